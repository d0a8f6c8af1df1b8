// Package roster finds what belongs to a pool in the controllers' cache, as it is
// there. The cache's own client copies every object that it lists, which for
// ten thousand members takes longer than to plan for them.
package roster

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// NewInformer makes what a cache reads one kind through.
type NewInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// Of gives what belongs to a pool, in no order. It is the cache's own: nobody may
// change it.
type Of interface {
	Members(pool types.NamespacedName) ([]*v1alpha1.Member, error)
	Claims(pool types.NamespacedName) ([]*v1alpha1.Claim, error)
}

// Roster is the members and claims of pools. The zero value is ready, and is
// empty until the cache reads through Follow.
type Roster struct {
	members index[*v1alpha1.Member]
	claims  index[*v1alpha1.Claim]
}

var _ Of = (*Roster)(nil)

// Follow has the roster know what is read through the informers that are made;
// makes is nil for the usual ones.
func (r *Roster) Follow(makes NewInformer) NewInformer {
	if makes == nil {
		makes = toolscache.NewSharedIndexInformer
	}
	return func(from toolscache.ListerWatcher, o runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
		informer := makes(from, o, resync, by)
		switch o.(type) {
		case *v1alpha1.Member:
			r.members.follow(informer)
		case *v1alpha1.Claim:
			r.claims.follow(informer)
		}
		return informer
	}
}

// Members implements Of.
func (r *Roster) Members(pool types.NamespacedName) ([]*v1alpha1.Member, error) {
	return r.members.of(pool)
}

// Claims implements Of.
func (r *Roster) Claims(pool types.NamespacedName) ([]*v1alpha1.Claim, error) {
	return r.claims.of(pool)
}

// byPool is the index's name.
const byPool = "pawl.dev/pool"

// index finds the objects of a kind in the informers that there are of it: one,
// or one for each namespace.
type index[T client.Object] struct {
	mu   sync.RWMutex
	from []toolscache.Indexer
}

func (x *index[T]) follow(informer toolscache.SharedIndexInformer) {
	if err := informer.AddIndexers(toolscache.Indexers{byPool: keyOf}); err != nil {
		panic(err) // the name is taken, or it has ended before it began
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.from = append(x.from, informer.GetIndexer())
}

func (x *index[T]) of(pool types.NamespacedName) ([]T, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var all []T
	for _, from := range x.from {
		found, err := from.ByIndex(byPool, pool.String())
		if err != nil {
			return nil, fmt.Errorf("find by pool: %w", err)
		}
		if all == nil {
			all = make([]T, 0, len(found))
		}
		for _, o := range found {
			if o, ok := o.(T); ok {
				all = append(all, o)
			}
		}
	}
	return all, nil
}

func keyOf(o any) ([]string, error) {
	switch o := o.(type) {
	case *v1alpha1.Member:
		return []string{o.Namespace + "/" + o.Spec.Pool}, nil
	case *v1alpha1.Claim:
		return []string{o.Namespace + "/" + o.Spec.Pool}, nil
	}
	return nil, nil
}

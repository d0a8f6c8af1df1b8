// Package roster finds what belongs to a pool in the controllers' cache, as it is
// there. The cache's own client copies every object that it lists, which for
// ten thousand members takes longer than to plan for them.
package roster

import (
	"fmt"
	"maps"
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
// change it. Nor does it wait for the cache: whoever asks for a kind has to watch
// it, so that he is not woken before it is there.
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
		var found *sources
		switch o.(type) {
		case *v1alpha1.Member:
			found = &r.members.sources
		case *v1alpha1.Claim:
			found = &r.claims.sources
		default:
			return makes(from, o, resync, by)
		}
		all := toolscache.Indexers{byPool: keyOf}
		maps.Copy(all, by)
		informer := makes(from, o, resync, all)
		found.add(informer.GetIndexer())
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

// sources are where the objects of a kind are: in one informer, or in one for
// each namespace.
type sources struct {
	mu   sync.RWMutex
	from []toolscache.Indexer
}

func (s *sources) add(from toolscache.Indexer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = append(s.from, from)
}

// index finds the objects of a kind.
type index[T client.Object] struct{ sources }

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

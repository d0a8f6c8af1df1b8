package pool

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// refusedRetry is how long a member whose write the API server refused is left
// alone, so that it does not keep the others from their turn. Nothing tells when
// whoever refuses it changes his mind.
const refusedRetry = time.Minute

// refusals are the members whose last write the API server refused for what it
// is, by pool and UID. They are remembered in memory only: whoever forgets them
// is told again. The zero value is ready for use.
type refusals struct {
	mu    sync.Mutex
	pools map[types.NamespacedName]map[types.UID]refusal
}

// refusal is one of them. It is spent once the member or the pool has changed.
type refusal struct {
	version    string
	generation int64
	at         time.Time
	err        error
}

// note remembers what came of a write to the member, as it was read.
func (r *refusals) note(w *world, m *v1alpha1.Member, err error) {
	if !refused(err) {
		return
	}
	pool := client.ObjectKeyFromObject(w.pool)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pools == nil {
		r.pools = map[types.NamespacedName]map[types.UID]refusal{}
	}
	if r.pools[pool] == nil {
		r.pools[pool] = map[types.UID]refusal{}
	}
	r.pools[pool][m.UID] = refusal{m.ResourceVersion, w.generation, w.now, err}
}

// recall marks the members that are left alone in this pass.
func (r *refusals) recall(w *world) {
	pool := client.ObjectKeyFromObject(w.pool)
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.pools[pool]
	if len(known) == 0 {
		return
	}
	left := make(map[types.UID]refusal, len(known))
	for i, m := range w.members {
		was, ok := known[m.UID]
		if !ok || was.version != m.ResourceVersion || was.generation != w.generation || remaining(was.at, refusedRetry, w.now) == 0 {
			continue
		}
		left[m.UID] = was
		w.snapshot.Members[i].Stuck = true
		w.stuck = append(w.stuck, was.err)
		w.wake = earliest(w.wake, was.at.Add(refusedRetry))
	}
	r.pools[pool] = left
}

// forget drops what is remembered of a pool that is gone.
func (r *refusals) forget(pool types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pools, pool)
}

package live

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// tap follows what has reached a reader until every controller that wants to
// know has been told.
type tap struct {
	toolscache.SharedIndexInformer

	mu       sync.Mutex
	on       map[types.UID]arrival
	handlers []map[types.UID]uint64
}

// arrival is a version of an object that is on its way, since when in real
// time.
type arrival struct {
	version uint64
	since   time.Time
}

// came notes that a version of an object goes to the controllers.
func (t *tap) came(uid types.UID, v uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on[uid] = arrival{v, time.Now()}
	t.settle(uid)
}

// told notes that a controller was told.
func (t *tap) told(handler int, o any) {
	if d, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handlers[handler][m.GetUID()] = max(t.handlers[handler][m.GetUID()], version(m.GetResourceVersion()))
	t.settle(m.GetUID())
}

// settle forgets a version that everybody was told of. Before there is anybody
// nobody can be.
func (t *tap) settle(uid types.UID) {
	is, ok := t.on[uid]
	if !ok || len(t.handlers) == 0 {
		return
	}
	for _, h := range t.handlers {
		if h[uid] < is.version {
			return
		}
	}
	delete(t.on, uid)
}

// busy tells since when something is on its way, in real time; zero for
// nothing.
func (t *tap) busy() (since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid, is := range t.on {
		if time.Since(is.since) > lostAfter {
			delete(t.on, uid)
			continue
		}
		since = sooner(since, is.since)
	}
	return since
}

// AddEventHandler implements toolscache.SharedInformer.
func (t *tap) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return t.SharedIndexInformer.AddEventHandler(t.follow(h)) //nolint:wrapcheck // it stands in for what it calls
}

// AddEventHandlerWithResyncPeriod implements toolscache.SharedInformer.
func (t *tap) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, d time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return t.SharedIndexInformer.AddEventHandlerWithResyncPeriod(t.follow(h), d) //nolint:wrapcheck // it stands in for what it calls
}

// AddEventHandlerWithOptions implements toolscache.SharedInformer.
func (t *tap) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return t.SharedIndexInformer.AddEventHandlerWithOptions(t.follow(h), o) //nolint:wrapcheck // it stands in for what it calls
}

func (t *tap) follow(h toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handlers = append(t.handlers, map[types.UID]uint64{})
	n := len(t.handlers) - 1
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) { h.OnAdd(o, initial); t.told(n, o) },
		UpdateFunc: func(old, o any) {
			h.OnUpdate(old, o)
			t.told(n, o)
		},
		DeleteFunc: func(o any) { h.OnDelete(o); t.told(n, o) },
	}
}

// notices are what the world has told the controllers of members, until they
// reach the queue of the controller that minds them.
type notices struct {
	mu  sync.Mutex
	seq int
	on  map[types.NamespacedName]notice
}

// notice is the last one of several, of which the first was sent at a real time.
type notice struct {
	seq   int
	since time.Time
}

func newNotices() *notices { return &notices{on: map[types.NamespacedName]notice{}} }

func (n *notices) sent(m types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	is, ok := n.on[m]
	if !ok {
		is.since = time.Now()
	}
	n.seq++
	is.seq = n.seq
	n.on[m] = is
}

// last is the last notice that was sent; 0 for none.
func (n *notices) last(m types.NamespacedName) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.on[m].seq
}

// came notes that all up to a notice have come.
func (n *notices) came(m types.NamespacedName, seq int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.on[m].seq <= seq {
		delete(n.on, m)
	}
}

func (n *notices) busy() (since time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for m, is := range n.on {
		if time.Since(is.since) > lostAfter {
			delete(n.on, m)
			continue
		}
		since = sooner(since, is.since)
	}
	return since
}

func (n *notices) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.on)
}

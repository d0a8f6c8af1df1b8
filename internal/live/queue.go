package live

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// limiter is how controllers bound what they repeat.
type limiter = workqueue.TypedRateLimiter[reconcile.Request]

// queue is a controller's queue whose waiting times are those of a clock, and
// which can tell whether there is anything to do.
type queue struct {
	workqueue.TypedInterface[reconcile.Request]

	limiter limiter
	clock   *Clock
	// notices are told of what comes, if they are not nil.
	notices *notices

	mu      sync.Mutex
	waiting map[reconcile.Request]clock.Timer
	ends    map[reconcile.Request]time.Time
	// ready are those that wait for a worker, running those that have one,
	// since when in real time.
	ready, running map[reconcile.Request]time.Time
	// held: nothing is handed out but kept.
	held bool
	kept map[reconcile.Request]bool
}

func newQueue(c *Clock, l limiter) *queue {
	return &queue{
		TypedInterface: workqueue.NewTyped[reconcile.Request](), limiter: l, clock: c,
		waiting: map[reconcile.Request]clock.Timer{}, ends: map[reconcile.Request]time.Time{},
		ready: map[reconcile.Request]time.Time{}, running: map[reconcile.Request]time.Time{},
		kept: map[reconcile.Request]bool{},
	}
}

// Add implements workqueue.TypedInterface.
func (q *queue) Add(r reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.notices != nil {
		q.notices.came(r.NamespacedName)
	}
	switch {
	case q.ShuttingDown():
		return
	case q.held:
		q.kept[r] = true
		return
	}
	if _, ok := q.ready[r]; !ok {
		q.ready[r] = time.Now()
	}
	q.TypedInterface.Add(r)
}

// hold keeps what comes, or hands out what was kept.
func (q *queue) hold(on bool) {
	q.mu.Lock()
	q.held = on
	kept := q.kept
	q.kept = map[reconcile.Request]bool{}
	q.mu.Unlock()
	for r := range kept {
		q.Add(r)
	}
}

// Get implements workqueue.TypedInterface.
func (q *queue) Get() (reconcile.Request, bool) {
	r, shutdown := q.TypedInterface.Get()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !shutdown {
		q.running[r] = time.Now()
		delete(q.ready, r)
	}
	return r, shutdown
}

// Done implements workqueue.TypedInterface.
func (q *queue) Done(r reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.running, r)
	q.TypedInterface.Done(r)
}

// AddAfter implements workqueue.TypedDelayingInterface: of several times for
// one item the first one counts.
func (q *queue) AddAfter(r reconcile.Request, d time.Duration) {
	if d <= 0 {
		q.Add(r)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ShuttingDown() {
		return
	}
	at := q.clock.Now().Add(d)
	if t := q.waiting[r]; t != nil {
		if !q.ends[r].After(at) {
			return
		}
		t.Stop()
	}
	q.ends[r] = at
	q.waiting[r] = q.clock.AfterFunc(d, func() {
		q.mu.Lock()
		if q.ends[r].Equal(at) {
			delete(q.waiting, r)
			delete(q.ends, r)
		}
		q.mu.Unlock()
		q.Add(r)
	})
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *queue) AddRateLimited(r reconcile.Request) { q.AddAfter(r, q.limiter.When(r)) }

// Forget implements workqueue.TypedRateLimitingInterface.
func (q *queue) Forget(r reconcile.Request) { q.limiter.Forget(r) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (q *queue) NumRequeues(r reconcile.Request) int { return q.limiter.NumRequeues(r) }

// ShutDown implements workqueue.TypedInterface.
func (q *queue) ShutDown() {
	q.stop()
	q.TypedInterface.ShutDown()
}

// ShutDownWithDrain implements workqueue.TypedInterface.
func (q *queue) ShutDownWithDrain() {
	q.stop()
	q.TypedInterface.ShutDownWithDrain()
}

func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.waiting {
		t.Stop()
	}
	clear(q.waiting)
	clear(q.ready)
}

// busy tells since when something is to be done; zero for nothing.
func (q *queue) busy() (since time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.Len() > 0 {
		since = time.Now()
	}
	for _, list := range []map[reconcile.Request]time.Time{q.ready, q.running} {
		for _, t := range list {
			since = sooner(since, t)
		}
	}
	return since
}

// sooner is the earlier of two times, zero being none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

package live

import (
	"slices"
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
	// line is what there is to do.
	line *line
	// held: nothing is handed out but kept.
	held bool
	kept map[reconcile.Request]bool
}

func newQueue(c *Clock, l limiter) *queue {
	line := &line{running: map[reconcile.Request]int{}, since: map[reconcile.Request]time.Time{}}
	return &queue{
		TypedInterface: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Queue: line}), line: line,
		limiter: l, clock: c,
		waiting: map[reconcile.Request]clock.Timer{}, ends: map[reconcile.Request]time.Time{},
		kept: map[reconcile.Request]bool{},
	}
}

// Add implements workqueue.TypedInterface.
func (q *queue) Add(r reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.notices != nil {
		// One that is sent once it is worked on is another one.
		defer q.notices.came(r.NamespacedName, q.notices.last(r.NamespacedName))
	}
	if q.held {
		q.kept[r] = true
		return
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

// Done implements workqueue.TypedInterface.
func (q *queue) Done(r reconcile.Request) {
	q.TypedInterface.Done(r)
	q.line.done(r)
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
}

// line is what a queue has to do, from when it comes until it is done; there is
// no moment in between at which it is neither waiting nor running, for the queue
// tells it with its own lock held.
type line struct {
	mu      sync.Mutex
	waiting []reconcile.Request
	// running is how many workers have a request: two while one that has come
	// again is taken before the first one is done with.
	running map[reconcile.Request]int
	// since is when a request came, or was taken, in real time.
	since map[reconcile.Request]time.Time
}

var _ workqueue.Queue[reconcile.Request] = (*line)(nil)

// Touch implements workqueue.Queue.
func (*line) Touch(reconcile.Request) {}

// Push implements workqueue.Queue.
func (l *line) Push(r reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, r)
	l.since[r] = time.Now()
}

// Len implements workqueue.Queue.
func (l *line) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// Pop implements workqueue.Queue.
func (l *line) Pop() reconcile.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.running[r]++
	l.since[r] = time.Now()
	return r
}

func (l *line) done(r reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[r]--; l.running[r] == 0 {
		delete(l.running, r)
		if !slices.Contains(l.waiting, r) {
			delete(l.since, r)
		}
	}
}

// busy tells since when something is being done or, if all counts, is to be; zero
// for nothing.
func (l *line) busy(all bool) (since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r, t := range l.since {
		if all || l.running[r] > 0 {
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

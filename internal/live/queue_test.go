package live

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func requestOf(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

func newTestQueue(t *testing.T) (*queue, *Clock) {
	t.Helper()
	c := NewClock(noon)
	q := newQueue(c, workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute))
	t.Cleanup(q.ShutDown)
	return q, c
}

// pending are the requests that a worker would get now, each of which it does.
func pending(q *queue) []string {
	var names []string
	for q.Len() > 0 {
		r, _ := q.Get()
		names = append(names, r.Name)
		q.Done(r)
	}
	return names
}

// Waiting is by the clock, and of several times the first one counts.
func TestQueue_AddAfter(t *testing.T) {
	t.Parallel()
	q, c := newTestQueue(t)
	q.AddAfter(requestOf("a"), time.Hour)
	q.AddAfter(requestOf("a"), time.Minute)
	q.AddAfter(requestOf("a"), 2*time.Minute)
	q.AddAfter(requestOf("b"), 0)
	q.AddRateLimited(requestOf("c"))
	q.AddRateLimited(requestOf("c")) // twice as long, but it waits already
	steps := []struct {
		at   time.Duration
		want []string
	}{
		{0, []string{"b"}},
		{time.Second, []string{"c"}},
		{time.Minute - 1, nil},
		{time.Minute, []string{"a"}},
		{2 * time.Hour, nil},
	}
	for _, s := range steps {
		for c.move(noon.Add(s.at)) {
			continue
		}
		if diff := cmp.Diff(s.want, pending(q)); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", s.at, diff)
		}
	}
}

func TestQueue_Busy(t *testing.T) {
	t.Parallel()
	q, _ := newTestQueue(t)
	busy := func(want bool, when string) {
		t.Helper()
		if got := !q.line.busy(true).IsZero(); got != want {
			t.Errorf("%s busy is %t", when, got)
		}
	}
	busy(false, "empty")
	q.AddAfter(requestOf("a"), time.Hour)
	busy(false, "with a request that waits")
	q.Add(requestOf("b"))
	busy(true, "with a request")
	if !q.line.busy(false).IsZero() {
		t.Error("a request that waits is being worked on")
	}
	r, _ := q.Get()
	busy(true, "while it is worked on")
	if q.line.busy(false).IsZero() {
		t.Error("nothing is being worked on")
	}
	q.Add(r)
	q.Done(r)
	busy(true, "when it came again meanwhile")
	again, _ := q.Get() // and is taken, which nobody has noticed yet
	busy(true, "when it was taken again")
	q.Done(again)
	q.Add(r)
	pending(q)
	busy(false, "when all is done")
}

// What comes while a queue is held is handed out afterwards.
func TestQueue_Hold(t *testing.T) {
	t.Parallel()
	q, _ := newTestQueue(t)
	q.notices = newNotices()
	q.notices.sent(requestOf("a").NamespacedName)
	q.hold(true)
	q.Add(requestOf("a"))
	if got := pending(q); got != nil || !q.line.busy(true).IsZero() || !q.notices.busy().IsZero() {
		t.Errorf("%q is handed out of a queue that is held", got)
	}
	q.hold(false)
	if diff := cmp.Diff([]string{"a"}, pending(q)); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}

// A notice that is sent while an older one is taken in stays on its way.
func TestNotices(t *testing.T) {
	t.Parallel()
	n, m := newNotices(), requestOf("a").NamespacedName
	n.came(m, n.last(m)) // which nobody has sent
	n.sent(m)
	first := n.last(m)
	n.sent(m)
	n.came(m, first)
	if n.busy().IsZero() {
		t.Error("the second one is taken for the first one")
	}
	n.came(m, n.last(m))
	if !n.busy().IsZero() {
		t.Error("one that has come is on its way")
	}
}

// A queue that is shut down wakes nobody any more.
func TestQueue_ShutDown(t *testing.T) {
	t.Parallel()
	q, c := newTestQueue(t)
	q.AddAfter(requestOf("a"), time.Second)
	q.ShutDown()
	q.Add(requestOf("b"))
	q.AddAfter(requestOf("c"), time.Second)
	if c.move(noon.Add(time.Hour)) || !q.line.busy(true).IsZero() {
		t.Error("it still goes on")
	}
}

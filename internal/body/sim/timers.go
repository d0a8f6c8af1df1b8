package sim

import (
	"container/heap"
	"time"

	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/internal/body"
)

// timers are the next times at which bodies change by themselves, the earliest
// first. A body may have several; those that are not its next any more do no
// harm.
type timers struct {
	queue queue
	// due are slots whose timers have come and of which nobody was told.
	due []key
	// alarm rings at the first of them. Each time it is set anew it gets
	// another number, so that one that is late does no harm.
	alarm  clock.Timer
	number int
}

type timer struct {
	at time.Time
	k  key
}

// add notes when the body changes next. It tells whether that is the earliest
// of all.
func (t *timers) add(k key, s *script, now time.Time) bool {
	at := s.next(now)
	if at.IsZero() {
		return false
	}
	heap.Push(&t.queue, timer{at, k})
	return t.queue[0].k == k && t.queue[0].at.Equal(at)
}

// disarm has the alarm not ring.
func (t *timers) disarm() {
	if t.alarm != nil {
		t.alarm.Stop()
	}
	t.number++
}

// expire moves to due what has come by now, removes the bodies that have gone
// and sets the timers for what comes after.
func (w *World) expire(now time.Time) {
	for len(w.timers.queue) > 0 && !now.Before(w.timers.queue[0].at) {
		k := heap.Pop(&w.timers.queue).(timer).k //nolint:forcetypeassert // it holds nothing else
		w.timers.due = append(w.timers.due, k)
		s := w.bodies[k]
		switch {
		case s == nil:
		case s.at(now) == body.Absent:
			w.bury(k, now)
		default:
			w.watched(k, s, now)
			w.timers.add(k, s, now)
		}
	}
}

// rearm sets the alarm to the next change of any body.
func (w *World) rearm(now time.Time) {
	w.timers.disarm()
	if w.closed || len(w.timers.queue) == 0 && len(w.timers.due) == 0 {
		return
	}
	wait := time.Duration(0)
	if len(w.timers.due) == 0 {
		wait = max(0, w.timers.queue[0].at.Sub(now))
	}
	number := w.timers.number
	w.timers.alarm = w.clock.AfterFunc(wait, func() { w.ring(number) })
}

// ring tells of what has changed by itself.
func (w *World) ring(number int) {
	w.mu.Lock()
	if w.closed || number != w.timers.number {
		w.mu.Unlock()
		return
	}
	w.telling.Add(1)
	defer w.telling.Done()
	now := w.clock.Now()
	w.expire(now)
	due, notify := w.timers.due, w.notify
	w.timers.due = nil
	w.rearm(now)
	w.mu.Unlock()
	for _, k := range due {
		w.tell(notify, k)
	}
}

// tell notifies of a slot, if there is anybody to.
func (w *World) tell(notify body.Notify, k key) {
	if notify == nil {
		return
	}
	if w.heard != nil {
		w.heard(k.Namespace, k.Member)
	}
	notify(k.Namespace, k.Member)
}

// queue implements heap.Interface.
type queue []timer

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(timer)) } //nolint:forcetypeassert // only timers are pushed

func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	*q = (*q)[:last]
	return t
}

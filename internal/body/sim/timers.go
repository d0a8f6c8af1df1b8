package sim

import (
	"container/heap"
	"time"

	"github.com/pawl-dev/pawl/internal/body"
)

// timers are the next times at which bodies change by themselves, the earliest
// first. A body may have several; those that are not its next any more do no
// harm.
type timers struct {
	queue queue
	// due are slots whose timers have come and of which nobody was told.
	due []key
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
			delete(w.bodies, k)
		default:
			w.timers.add(k, s, now)
		}
	}
}

// tell tells of what changes by itself, until the world is closed.
func (w *World) tell() {
	for {
		w.mu.Lock()
		now := time.Now()
		w.expire(now)
		due, notify := w.timers.due, w.notify
		w.timers.due = nil
		var wait <-chan time.Time
		var t *time.Timer
		if len(w.timers.queue) > 0 {
			t = time.NewTimer(w.timers.queue[0].at.Sub(now))
			wait = t.C
		}
		w.mu.Unlock()
		for _, k := range due {
			if notify != nil {
				notify(k.Namespace, k.Member)
			}
		}
		select {
		case <-w.done:
			return
		case <-w.wake:
		case <-wait:
		}
		if t != nil {
			t.Stop()
		}
	}
}

// rouse has tell look anew.
func (w *World) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
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

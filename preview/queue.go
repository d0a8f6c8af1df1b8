package preview

import (
	"cmp"
	"container/heap"
	"time"
)

// event is a future call of do; at is the time since the start.
type event struct {
	at  time.Duration
	seq int
	do  func()
}

// queue orders events by time; those of one instant, by the order of push.
type queue struct {
	heap events
	seq  int
}

func (q *queue) push(at time.Duration, do func()) {
	q.seq++
	heap.Push(&q.heap, &event{at, q.seq, do})
}

// next returns the time of the next event.
func (q *queue) next() (at time.Duration, ok bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].at, true
}

func (q *queue) pop() *event { return heap.Pop(&q.heap).(*event) } //nolint:forcetypeassert // nothing else is in it

type events []*event

func (e events) Len() int { return len(e) }

func (e events) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[j].at), cmp.Compare(e[i].seq, e[j].seq)) < 0
}

func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(*event)) } //nolint:forcetypeassert // as pop

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return x
}

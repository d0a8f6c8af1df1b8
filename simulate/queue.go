package simulate

import "time"

// event is a future call of do.
type event struct {
	at time.Duration
	// tie orders events of one instant, before seq: 0 for edits, 1 or random for
	// others.
	tie uint32
	seq uint64
	// life is the life of the controllers to which the event belongs; it is dropped
	// if they have crashed since. 0 for events of the world.
	life int
	do   func()
}

func (e *event) before(f *event) bool {
	if e.at != f.at {
		return e.at < f.at
	}
	if e.tie != f.tie {
		return e.tie < f.tie
	}
	return e.seq < f.seq
}

// queue is a binary heap of events, the next one first.
type queue struct {
	heap []event
	seq  uint64
}

func (q *queue) push(e event) {
	q.seq++
	e.seq = q.seq
	q.heap = append(q.heap, e)
	for i := len(q.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.heap[i].before(&q.heap[parent]) {
			break
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *queue) pop() event {
	top := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap[last] = event{}
	q.heap = q.heap[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && q.heap[child].before(&q.heap[least]) {
				least = child
			}
		}
		if least == i {
			return top
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}

package rollout

import "container/heap"

// before is the order in which members are taken: cost, order, index.
func (q *pass) before(a, b *Member) bool {
	return q.s.Policy.Before(a, b)
}

// first returns the positions of the first n members that qualify, in the
// order in which they are taken.
func (q *pass) first(n int, qualifies func(*Member) bool) []int {
	if q.l.ordered || q.s.Policy.Order != LowestIndex {
		return q.least(n, qualifies, q.before)
	}
	return q.lowest(n, qualifies)
}

// least returns the positions of the n least members that qualify, ascending.
// It holds no more than n at a time.
func (q *pass) least(n int, qualifies func(*Member) bool, less func(a, b *Member) bool) []int {
	if n <= 0 {
		return nil
	}
	h := &greatest{members: q.s.Members, less: less}
	for i := range q.s.Members {
		switch m := &q.s.Members[i]; {
		case !qualifies(m):
		case len(h.list) < n:
			heap.Push(h, i)
		case less(m, &q.s.Members[h.list[0]]):
			h.list[0] = i
			heap.Fix(h, 0)
		}
	}
	list := make([]int, len(h.list))
	for i := len(list) - 1; i >= 0; i-- {
		list[i], _ = heap.Pop(h).(int)
	}
	return list
}

// greatest is a heap of positions with the greatest member on top.
type greatest struct {
	members []Member
	less    func(a, b *Member) bool
	list    []int
}

func (h *greatest) Len() int { return len(h.list) }

func (h *greatest) Less(i, j int) bool {
	return h.less(&h.members[h.list[j]], &h.members[h.list[i]])
}

func (h *greatest) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }

func (h *greatest) Push(x any) {
	if i, ok := x.(int); ok {
		h.list = append(h.list, i)
	}
}

func (h *greatest) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}

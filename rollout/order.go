package rollout

import "slices"

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

// last returns the position of the last of the first n members that qualify, or
// -1 if there is none.
func (q *pass) last(n int, qualifies func(*Member) bool) int {
	if !q.l.ordered && q.s.Policy.Order == LowestIndex {
		list := q.lowest(n, qualifies)
		if len(list) == 0 {
			return -1
		}
		return list[len(list)-1]
	}
	list := q.some(n, qualifies, q.before)
	if len(list) == 0 {
		return -1
	}
	return slices.MaxFunc(list, q.comparing(q.before))
}

// least returns the positions of the n least members that qualify, ascending.
func (q *pass) least(n int, qualifies func(*Member) bool, less func(a, b *Member) bool) []int {
	list := q.some(n, qualifies, less)
	slices.SortFunc(list, q.comparing(less))
	return list
}

// some returns the positions of the n least members that qualify, in any order.
// It holds no more than twice as many at a time: whenever that is full, the
// greater half goes.
func (q *pass) some(n int, qualifies func(*Member) bool, less func(a, b *Member) bool) []int {
	n = min(n, len(q.s.Members))
	if n <= 0 {
		return nil
	}
	var list []int
	var bound *Member // no member from here on is among the n least
	for i := range q.s.Members {
		m := &q.s.Members[i]
		if bound != nil && !less(m, bound) || !qualifies(m) {
			continue
		}
		if list == nil {
			list = make([]int, 0, min(2*n, len(q.s.Members)))
		}
		if list = append(list, i); len(list) == 2*n {
			q.divide(list, n, less)
			list = list[:n]
			bound = &q.s.Members[slices.MaxFunc(list, q.comparing(less))]
		}
	}
	if len(list) > n {
		q.divide(list, n, less)
		list = list[:n]
	}
	return list
}

// divide puts the n least of the list before the others (Hoare's selection).
func (q *pass) divide(list []int, n int, less func(a, b *Member) bool) {
	for lo, hi := 0, len(list); hi-lo > 1 && n > lo && n < hi; {
		pivot := &q.s.Members[q.middle(list[lo], list[lo+(hi-lo)/2], list[hi-1], less)]
		i, j := lo, hi-1
		for i <= j {
			for less(&q.s.Members[list[i]], pivot) {
				i++
			}
			for less(pivot, &q.s.Members[list[j]]) {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j + 1
		case n >= i:
			lo = i
		default:
			return
		}
	}
}

// middle is the one of three positions that is neither the least nor the
// greatest.
func (q *pass) middle(a, b, c int, less func(a, b *Member) bool) int {
	m := func(i int) *Member { return &q.s.Members[i] }
	if less(m(b), m(a)) {
		a, b = b, a
	}
	switch {
	case less(m(c), m(a)):
		return a
	case less(m(c), m(b)):
		return c
	}
	return b
}

// comparing makes an order of positions. No two members are equal in it.
func (q *pass) comparing(less func(a, b *Member) bool) func(i, j int) int {
	return func(i, j int) int {
		switch {
		case i == j:
			return 0
		case less(&q.s.Members[i], &q.s.Members[j]):
			return -1
		}
		return 1
	}
}

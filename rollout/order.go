package rollout

import (
	"cmp"
	"slices"
)

// place is the rank of a member in an order: by a, b, c, then position. The keys are copied
// out of the members: memory access dominates the planning time of a large pool.
type place struct {
	a, b, c  int64
	position int
}

func (p place) compare(o place) int {
	switch {
	case p.a != o.a:
		return cmp.Compare(p.a, o.a)
	case p.b != o.b:
		return cmp.Compare(p.b, o.b)
	case p.c != o.c:
		return cmp.Compare(p.c, o.c)
	}
	return cmp.Compare(p.position, o.position)
}

// before reports whether a rollout takes member a before b: by cost, then order, then
// index. It agrees with place.
func (p *Policy) before(a, b *Member) bool {
	switch {
	case a.Cost != b.Cost:
		return a.Cost < b.Cost
	case p.Order == OldestFirst && !a.BornAt.Equal(b.BornAt):
		return a.BornAt.Before(b.BornAt)
	default:
		return a.Index < b.Index
	}
}

// before returns the place of the member in the order in which members are taken.
func (q *pass) before(m *Member) place {
	p := place{a: int64(m.Cost)}
	if q.s.Policy.Order == OldestFirst {
		p.b, p.c = m.BornAt.Unix(), int64(m.BornAt.Nanosecond())
	}
	return p
}

// first returns the positions of the first n members that qualify, in the order in which
// they are taken.
func (q *pass) first(n int, qualifies func(*Member) bool) []int {
	if q.ledger.hasCosts || q.s.Policy.Order != LowestIndex {
		return q.least(n, qualifies, q.before)
	}
	return q.lowest(n, qualifies)
}

// last returns the position of the last of the first n members that qualify, or -1 if none
// does.
func (q *pass) last(n int, qualifies func(*Member) bool) int {
	if !q.ledger.hasCosts && q.s.Policy.Order == LowestIndex {
		list := q.lowest(n, qualifies)
		if len(list) == 0 {
			return -1
		}
		return list[len(list)-1]
	}
	list := q.leastUnordered(n, qualifies, q.before)
	if len(list) == 0 {
		return -1
	}
	return slices.MaxFunc(list, place.compare).position
}

// least returns the positions of the n least members that qualify, ascending.
func (q *pass) least(n int, qualifies func(*Member) bool, order func(*Member) place) []int {
	places := q.leastUnordered(n, qualifies, order)
	slices.SortFunc(places, place.compare)
	list := make([]int, len(places))
	for i := range places {
		list[i] = places[i].position
	}
	return list
}

// leastUnordered returns the places of the n least members that qualify, in any order. It
// holds at most 2n places: when that is full, the greater half is dropped.
func (q *pass) leastUnordered(n int, qualifies func(*Member) bool, order func(*Member) place) []place {
	n = min(n, len(q.s.Members))
	if n <= 0 {
		return nil
	}
	var list []place
	var most place // no later place is among the n least
	bounded := false
	for i := range q.s.Members {
		m := &q.s.Members[i]
		if !qualifies(m) {
			continue
		}
		p := order(m)
		p.position = i
		if bounded && p.compare(most) > 0 {
			continue
		}
		if list == nil {
			list = make([]place, 0, min(2*n, len(q.s.Members)))
		}
		if list = append(list, p); len(list) == 2*n {
			selectLeast(list, n)
			list = list[:n]
			most, bounded = slices.MaxFunc(list, place.compare), true
		}
	}
	if len(list) > n {
		selectLeast(list, n)
		list = list[:n]
	}
	return list
}

// selectLeast moves the n least places to the front of the list (Hoare's selection).
func selectLeast(list []place, n int) {
	for lo, hi := 0, len(list); hi-lo > 1 && n > lo && n < hi; {
		pivot := median(list[lo], list[lo+(hi-lo)/2], list[hi-1])
		i, j := lo, hi-1
		for i <= j {
			for list[i].compare(pivot) < 0 {
				i++
			}
			for pivot.compare(list[j]) < 0 {
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

// median returns the one of three that is neither the least nor the greatest.
func median(a, b, c place) place {
	if b.compare(a) < 0 {
		a, b = b, a
	}
	switch {
	case c.compare(a) < 0:
		return a
	case c.compare(b) < 0:
		return c
	}
	return b
}

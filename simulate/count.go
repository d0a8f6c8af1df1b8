package simulate

import "slices"

// counts are the numbers of a pool. They are updated slot by slot, because a pool
// may have twenty thousand members and the judge reads them after each write.
type counts struct {
	n [numTallies]int
	// sums are the numbers that promises are checked with.
	sums sums
	// staying counts the bodies in slots that are not leaving, runs the bodies by
	// revision.
	staying int
	runs    map[string]int
	// parts are the contributions of slots, by index; touched are the indexes that
	// have to be counted again.
	parts   []part
	touched []int
}

// part is the contribution of one slot and its body.
type part struct {
	n       [numTallies]int8
	sums    sums
	staying int
	body    bool
	runs    string
	// touched: it has to be counted again.
	touched bool
}

// touch notes that the slot at the index or its body has changed.
func (c *counts) touch(index int) {
	if index >= len(c.parts) {
		c.parts = slices.Grow(c.parts, index+1-len(c.parts))[:index+1]
	}
	if q := &c.parts[index]; !q.touched {
		q.touched = true
		c.touched = append(c.touched, index)
	}
}

// counted returns the numbers, up to date.
func (p *pool) counted() *counts {
	c := &p.counts
	if c.runs == nil {
		c.runs = map[string]int{}
	}
	for _, i := range c.touched {
		c.add(&c.parts[i], -1)
		c.parts[i] = p.part(i)
		c.add(&c.parts[i], 1)
	}
	c.touched = c.touched[:0]
	return c
}

func (c *counts) add(q *part, times int) {
	for i, n := range q.n {
		c.n[i] += times * int(n)
	}
	c.sums.served += times * q.sums.served
	c.sums.free += times * q.sums.free
	c.sums.claimable += times * q.sums.claimable
	c.sums.all += times * q.sums.all
	c.sums.slots += times * q.sums.slots
	c.sums.claimed += times * q.sums.claimed
	c.staying += times * q.staying
	if q.body {
		c.runs[q.runs] += times
	}
}

// part counts the slot at the index.
func (p *pool) part(index int) (q part) {
	b := p.bodies[index]
	if b != nil {
		q.body, q.runs = true, string(b.revision)
	}
	s := p.slots.get(index)
	if s == nil {
		return q
	}
	serves := p.serves(s)
	var n [numTallies]int
	tallyMember(&n, &s.Member, serves)
	for i := range n {
		q.n[i] = int8(n[i])
	}
	q.sums.add(s, serves)
	if b != nil && !s.leaves() {
		q.staying = 1
	}
	return q
}

// without returns the sums as if the slot at the index were not in service.
func (p *pool) without(index int) sums {
	c := p.counted()
	n := c.sums
	if index < len(c.parts) {
		n.served -= c.parts[index].sums.served
		n.free -= c.parts[index].sums.free
		n.claimable -= c.parts[index].sums.claimable
	}
	return n
}

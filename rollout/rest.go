package rollout

// Rest are members that a snapshot counts and does not list. Who looks ahead
// over a large pool leaves out those of which nothing can be decided now.
//
// All are simply in service: their bodies serve and their revisions are known,
// and nobody disrupts, cordons, deletes or recycles them. A plan for such a
// snapshot is the one for the whole pool but for what it says of members that
// are not listed, as long as the rollout takes none of them, none is too many,
// no revision has failed, and indexes of new slots are not looked at.
type Rest struct {
	// Free and Claimed are how many there are.
	Free, Claimed int
	// Stale are those of them that are not on the target, Work those of the
	// stale ones that a rollout could take.
	Stale, Work int
	// Proven are those on the target that have recovered.
	Proven int
}

func (r *Rest) members() int { return r.Free + r.Claimed }

// enterRest adds the members that are not listed.
func (q *pass) enterRest() {
	r, c, l := &q.s.Rest, &q.plan.Counts, &q.l
	c.Members += r.members()
	c.InService += r.members()
	c.Claimed += r.Claimed
	c.Free += r.Free
	c.Stale += r.Stale
	c.Updated += r.members() - r.Stale
	l.slots += r.Free
	l.up += r.Free
	l.free += r.Free
	l.off += r.Stale
	l.work += r.Work
	l.proven += r.Proven
	if q.s.Policy.Warm {
		l.onTop += r.Claimed
		return
	}
	l.slots += r.Claimed
	l.up += r.Claimed
}

// Before tells whether a rollout takes member a before b, where both could be
// taken: by cost, then by order, then by index.
func (p *Policy) Before(a, b *Member) bool {
	switch {
	case a.Cost != b.Cost:
		return a.Cost < b.Cost
	case p.Order == OldestFirst && !a.BornAt.Equal(b.BornAt):
		return a.BornAt.Before(b.BornAt)
	default:
		return a.Index < b.Index
	}
}

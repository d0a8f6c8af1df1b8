package rollout

// Rest are members that a snapshot counts and does not list. Who looks ahead
// over a large pool leaves out those of which nothing can be decided now.
//
// All are simply in service: their bodies serve and their revisions are known,
// and nobody disrupts, cordons, deletes or recycles them. While no revision has
// failed, those that a rollout takes next are listed and the plan is neither
// Short nor not Whole, it is the one for the whole pool, but for what it says of
// members that are not listed.
type Rest struct {
	// Free and Claimed are how many there are, Idle the free ones on which no work
	// runs.
	Free, Claimed, Idle int
	// Stale are those of them that are not on the target, Work those of the
	// stale ones that a rollout could take.
	Stale, Work int
}

func (r *Rest) members() int { return r.Free + r.Claimed }

// Count counts the member n times, which may be negative. It has to be Simple;
// whether it has recovered is left to the caller.
func (r *Rest) Count(m *Member, target Revision, n int) {
	if m.Claimed {
		r.Claimed += n
	} else {
		r.Free += n
		if m.Occupancy == Idle {
			r.Idle += n
		}
	}
	if m.Runs != target {
		r.Stale += n
	}
	if m.Candidate(target) {
		r.Work += n
	}
}

// Candidate tells whether the member is simply in service, and a rollout to the
// target could take it.
func (m *Member) Candidate(target Revision) bool {
	return m.Simple() && m.Runs != target && m.nobodys() && !m.Skipped
}

// Short tells whether the rollout would take more members than are listed.
func (p *Plan) Short() bool {
	q := p.pass
	return q.s.Rest.Work > 0 && q.gate == "" && q.allowed > q.taken && q.limit() == Next
}

// Whole tells whether the plan is the one for the whole pool: it records nothing
// of revisions, makes no slots and removes none that are too many, since all
// that depends on members that are not listed.
func (p *Plan) Whole() bool {
	q := p.pass
	recorded := len(p.Actions) > 0 && p.Actions[0].Record != nil // they come first
	return !recorded && q.made == 0 && !q.resizing && q.excess() <= q.surplus
}

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
	l.claimable += r.Idle
	l.off += r.Stale
	l.work += r.Work
	l.behind += r.Work
	l.exempt += r.Stale - r.Work
	l.pausing += r.Stale - r.Work
	l.served = l.served || r.members() > r.Stale
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

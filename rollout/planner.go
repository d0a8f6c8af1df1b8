package rollout

import (
	"container/heap"
	"slices"
	"time"
)

// Planner plans repeatedly for one pool whose members change a few at a time, as in a
// forecast. It decides as [Snapshot.Plan] does. It lists only irregular members and the
// next candidates of a rollout, and counts the rest, so that a large pool is planned as
// fast as a small one.
type Planner struct {
	// Pool is the pool without its members. Between plans a caller may change anything but
	// the policy and the revisions.
	Pool Snapshot

	// slots are all slots by index. untidied: dropped slots are still among them.
	slots    []*Slot
	untidied bool
	// near are the listed slots, by index unless disordered. nearCandidates is the number
	// of candidates among them, wantCandidates the number that is wanted.
	near                           []*Slot
	disordered                     bool
	nearCandidates, wantCandidates int
	// rest counts the members that are not listed. far are the candidates among them.
	rest rest
	far  candidates
	// members, view and pass are reused from plan to plan.
	members []Member
	view    Snapshot
	pass    pass
	// now is the time of the last plan.
	now time.Time
}

// Slot is a slot of a planner.
type Slot struct {
	Member

	// candidate: a rollout could take it. listed: it is in near. place is its position in
	// far.
	candidate, listed, gone bool
	place                   int
}

// minListed is the least number of candidates that are listed.
const minListed = 4

// NewPlanner starts from the snapshot and does not change it. Members must be in ascending
// order of index.
func NewPlanner(s *Snapshot) *Planner {
	p := &Planner{Pool: *s, slots: make([]*Slot, len(s.Members))}
	p.Pool.Members = nil
	list := make([]Slot, len(s.Members))
	for i := range list {
		list[i].Member = s.Members[i]
		p.slots[i] = &list[i]
	}
	p.sort()
	return p
}

// Slots returns all slots by index.
func (p *Planner) Slots() []*Slot {
	if p.untidied {
		p.slots = slices.DeleteFunc(p.slots, func(s *Slot) bool { return s.gone })
		p.untidied = false
	}
	return p.slots
}

// Add adds a slot. There must be none of its index.
func (p *Planner) Add(m Member) *Slot {
	s := &Slot{Member: m}
	slots := p.Slots()
	i, _ := slices.BinarySearchFunc(slots, m.Index, byIndex)
	p.slots = slices.Insert(slots, i, s)
	p.put(s)
	return s
}

// Drop removes the slot.
func (p *Planner) Drop(s *Slot) {
	p.take(s)
	s.gone, p.untidied = true, true
}

// Set replaces the member of the slot. The index must stay the same.
func (p *Planner) Set(s *Slot, m Member) {
	if s.listed && !m.regular() {
		if s.candidate {
			p.nearCandidates--
		}
		s.Member, s.candidate = m, false
		return
	}
	p.take(s)
	s.Member = m
	p.put(s)
}

// Apply enters an action on a revision.
func (p *Planner) Apply(a *Action) {
	target := p.Pool.Target.ID
	if a.Record != nil {
		p.Pool.applyRecord(a)
	}
	if p.Pool.Target.ID != target {
		p.sort()
	}
}

// Next decides as [Snapshot.Plan] does, without messages: only Actions, Surge, Size and
// Wake are set, and Wake ignores the progress deadline. Whole reports whether every member
// was read.
func (p *Planner) Next(now time.Time) (plan *Plan, whole bool) {
	p.now = now
	if p.mayCount() {
		if plan := p.fromNear(now); plan != nil {
			return plan, false
		}
	}
	return p.Whole(now), true
}

// Whole plans as Next does, and reads every member.
func (p *Planner) Whole(now time.Time) *Plan { return p.Snapshot().decide(now).plan }

// Snapshot returns the pool with all its members. It is valid until the next call of a
// method.
func (p *Planner) Snapshot() *Snapshot {
	slots := p.Slots()
	p.members = slices.Grow(p.members[:0], len(slots))
	for _, s := range slots {
		p.members = append(p.members, s.Member)
	}
	return p.viewed()
}

// viewed returns the pool with p.members.
func (p *Planner) viewed() *Snapshot {
	p.view = p.Pool
	p.view.Members = p.members
	return &p.view
}

// mayCount reports whether no decision depends on when the members of rest came into
// service or how long they booted.
func (p *Planner) mayCount() bool {
	s := &p.Pool
	switch {
	case s.Deleting || s.Current.ID == "" || s.Target.troubled() || s.Current.troubled():
		return false
	case s.Target.ID == s.Current.ID:
		return true
	}
	behind, served := p.rest.takeable > 0, p.rest.free+p.rest.claimed > p.rest.stale
	for _, u := range p.near {
		if u.listed {
			behind = behind || u.candidate
			served = served || u.Runs == s.Target.ID && u.served()
		}
	}
	return behind && served
}

// troubled reports whether the revision has failed, or was halted or rolled back.
func (r *Record) troubled() bool { return r.Halted || r.RolledBack || len(r.Failures) > 0 }

// fromNear plans with the listed members; nil if every member has to be read.
func (p *Planner) fromNear(now time.Time) *Plan {
	for {
		p.fill()
		p.order()
		p.members = p.members[:0]
		for _, s := range p.near {
			p.members = append(p.members, s.Member)
		}
		q := &p.pass
		q.decide(p.viewed(), now, p.rest)
		switch {
		case !q.complete():
			return nil
		case !q.wantsMore() && p.inOrder(q):
			p.relax(len(q.plan.Actions))
			return q.plan
		}
		p.wantCandidates *= 2
	}
}

// wantsMore reports whether the rollout would take more members than are listed.
func (q *pass) wantsMore() bool {
	return q.rest.takeable > 0 && q.gate == "" && q.allowed > q.taken && q.limit() == Next
}

// complete reports whether the plan is that of the whole pool: it writes to no revision,
// waits for no unsettled body, makes no slot and removes no excess. All of these depend on
// members that are only counted.
func (q *pass) complete() bool {
	return len(q.notes) == 0 && q.ledger.unsettledBodies == 0 && q.made == 0 && !q.resizing && q.excess() <= q.allowedSurge
}

// inOrder reports whether the plan takes no member that comes after one of the rest.
func (p *Planner) inOrder(q *pass) bool {
	if len(p.far.list) == 0 {
		return true
	}
	first := &p.far.list[0].Member
	return !slices.ContainsFunc(q.plan.Actions, func(a Action) bool {
		return a.Why == WhyStale && p.Pool.Policy.before(first, q.member(a.Index))
	})
}

// relax lists fewer candidates if far fewer were taken than are listed.
func (p *Planner) relax(taken int) {
	p.wantCandidates = max(minListed, min(p.wantCandidates, 2*taken))
	if p.nearCandidates <= 4*p.wantCandidates {
		return
	}
	for _, s := range p.near {
		if s.listed && s.candidate {
			p.unlist(s)
			p.enterRest(s)
		}
	}
}

// fill lists the next candidates in order, until there are enough.
func (p *Planner) fill() {
	p.wantCandidates = max(p.wantCandidates, minListed)
	for p.nearCandidates < p.wantCandidates && len(p.far.list) > 0 {
		s := p.far.list[0]
		p.take(s)
		p.list(s)
	}
}

func (p *Planner) list(s *Slot) {
	s.listed = true
	if s.candidate {
		p.nearCandidates++
	}
	p.near = append(p.near, s)
	p.disordered = true
}

func (p *Planner) unlist(s *Slot) {
	s.listed = false
	if s.candidate {
		p.nearCandidates--
	}
	p.disordered = true
}

// fresh reports whether the member's time of service matters: it may be a surge body kept
// for members in use (see surgeForInUse).
func (p *Planner) fresh(m *Member) bool {
	return p.Pool.Policy.surge() > 0 && m.Runs == p.Pool.Target.ID && m.keptUntil().After(p.now)
}

// order drops slots from near that need not be listed, and sorts it.
func (p *Planner) order() {
	for _, s := range p.near {
		if s.listed && !s.candidate && s.regular() && !p.fresh(&s.Member) {
			p.unlist(s)
			p.enterRest(s)
		}
	}
	if !p.disordered {
		return
	}
	p.disordered = false
	p.near = slices.DeleteFunc(p.near, func(s *Slot) bool { return !s.listed })
	slices.SortFunc(p.near, func(a, b *Slot) int { return a.Index - b.Index })
	p.near = slices.Compact(p.near)
}

func byIndex(s *Slot, index int) int { return s.Index - index }

// enterRest counts the slot among the rest.
func (p *Planner) enterRest(s *Slot) {
	p.rest.count(&s.Member, p.Pool.Target.ID, 1)
	if s.candidate {
		heap.Push(&p.far, s)
	}
}

// take takes the slot out of near or rest.
func (p *Planner) take(s *Slot) {
	if s.listed {
		p.unlist(s)
		return
	}
	p.rest.count(&s.Member, p.Pool.Target.ID, -1)
	if s.candidate {
		heap.Remove(&p.far, s.place)
	}
}

// put puts the slot into near or rest.
func (p *Planner) put(s *Slot) {
	s.candidate = s.Member.candidate(p.Pool.Target.ID)
	if s.regular() && !p.fresh(&s.Member) {
		p.enterRest(s)
		return
	}
	p.list(s)
}

// sort puts every slot in its place anew.
func (p *Planner) sort() {
	p.near, p.nearCandidates, p.rest = nil, 0, rest{}
	p.far = candidates{policy: &p.Pool.Policy}
	for _, s := range p.Slots() {
		s.listed = false
		p.put(s)
	}
}

// rest counts regular members that a pass does not list. The pass decides as one over the
// whole pool does, if no revision has failed, the next candidates are listed, and the pass
// is complete and does not want more.
type rest struct {
	// free and claimed count all of them; idle the free ones without work, unsure the free
	// ones of unknown occupancy.
	free, claimed, idle, unsure int
	// stale counts those off the target, takeable the stale ones that a rollout could take,
	// staleInUse those that it could take but for a claim or work.
	stale, takeable, staleInUse int
}

func (r *rest) members() int { return r.free + r.claimed }

// count counts the member n times; n may be negative.
func (r *rest) count(m *Member, target Revision, n int) {
	if m.Claimed {
		r.claimed += n
	} else {
		r.free += n
		switch m.Occupancy {
		case Idle:
			r.idle += n
		case OccupancyUnsure:
			r.unsure += n
		}
	}
	if m.Runs != target {
		r.stale += n
	}
	switch {
	case m.candidate(target):
		r.takeable += n
	case m.Runs != target && !m.Held && !m.Skipped:
		r.staleInUse += n
	}
}

// candidate reports whether the member is regular and a rollout to the target could take
// it.
func (m *Member) candidate(target Revision) bool {
	return m.regular() && m.Runs != target && m.guard(Drift) == "" && !m.Skipped
}

// enterRest adds the members that are not listed.
func (q *pass) enterRest() {
	r, c, l := &q.rest, &q.plan.Counts, &q.ledger
	c.Members += r.members()
	c.InService += r.members()
	c.Claimed += r.claimed
	c.Free += r.free
	c.Stale += r.stale
	c.Updated += r.members() - r.stale
	l.slots += r.free
	l.up += r.free
	l.free += r.free
	l.claimable += r.idle
	l.unsure += r.unsure
	l.offTarget += r.stale
	l.takeable += r.takeable
	l.behind += r.takeable
	l.exempt += r.stale - r.takeable
	l.staleInUse += r.staleInUse
	l.targetServed = l.targetServed || r.members() > r.stale
	if q.s.Policy.Warm {
		l.onTop += r.claimed
		return
	}
	l.slots += r.claimed
	l.up += r.claimed
}

// candidates is a heap; the next member to be taken is on top.
type candidates struct {
	policy *Policy
	list   []*Slot
}

func (c *candidates) Len() int { return len(c.list) }

func (c *candidates) Less(i, j int) bool {
	return c.policy.before(&c.list[i].Member, &c.list[j].Member)
}

func (c *candidates) Swap(i, j int) {
	c.list[i], c.list[j] = c.list[j], c.list[i]
	c.list[i].place, c.list[j].place = i, j
}

// Push implements heap.Interface.
func (c *candidates) Push(x any) {
	if s, ok := x.(*Slot); ok {
		s.place = len(c.list)
		c.list = append(c.list, s)
	}
}

// Pop implements heap.Interface.
func (c *candidates) Pop() any {
	s := c.list[len(c.list)-1]
	c.list = c.list[:len(c.list)-1]
	return s
}

// Rests reports whether a step of the slot's life changes nothing, as far as the member
// shows: it is regular, and its phase matches its claim.
func (m *Member) Rests() bool { return m.regular() && m.Claimed == (m.Phase == InClaim) }

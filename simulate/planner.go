package simulate

import (
	"slices"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// planner is the pool controller: it asks the engine for a plan and carries it
// out.
type planner struct {
	cache  cache
	queued bool
	wakeAt time.Duration
	// passed is when the last pass began.
	passed time.Duration
	window glance
	// waiting are the claims that waited in the last pass, went the spec that it
	// went by.
	waiting int
	went    *specRecord
	// stored is the record that was stored last.
	stored *rollout.Record
	// taken are the members that look free still and are known to be claimed.
	taken int
	// members and verdicts are room that passes use again.
	members  []rollout.Member
	verdicts []verdict
}

// A pool of so many members is looked at no more often than the real controller
// looks at any: what comes meanwhile is looked at in one pass. The time that a
// pass takes grows with the members, and so does the number of events.
const (
	largePool    = 1000
	passInterval = 250 * time.Millisecond
)

// reset forgets everything.
func (c *planner) reset() { c.queued, c.wakeAt, c.passed = false, 0, -passInterval }

func (c *planner) wake() {
	w := c.cache.p.w
	if w.down || !c.cache.ready || c.queued {
		return
	}
	c.queued = true
	at := w.now
	if len(c.cache.slots) >= largePool {
		at = max(at, c.passed+passInterval)
	}
	w.act(at, func() {
		c.queued = false
		c.passed = w.now
		c.pass()
	})
}

// remind has a pass made when time alone has changed the plan.
func (c *planner) remind(at time.Duration) {
	w := c.cache.p.w
	if at <= w.now || at == c.wakeAt {
		return
	}
	c.wakeAt = at
	w.act(at, func() {
		if c.wakeAt == at {
			c.wakeAt = 0
			c.wake()
		}
	})
}

// pass reads, plans, applies and reports. It does not decide before it has
// seen its own last writes.
func (c *planner) pass() {
	p := c.cache.p
	w := p.w
	if w.down || c.cache.blind() || c.gone() {
		return
	}
	spec := c.cache.spec
	if spec.err != nil {
		w.judge.broken(spec.err)
		return
	}
	if spec.target != c.cache.state.target && (!c.retarget() || c.cache.blind()) {
		return
	}
	if !c.retry() || c.cache.blind() {
		return
	}
	snap := c.snapshot()
	c.waiting = snap.Waiting
	plan := snap.Plan(w.time())
	w.judge.planned(p, snap, plan)
	seen := slices.Clone(c.cache.slots)
	for i := range plan.Actions {
		if !c.apply(&plan.Actions[i], &seen) {
			return
		}
	}
	if snap.Unreadable == "" {
		c.went = spec
		if !c.unskip(snap) {
			return
		}
	}
	c.report(plan, snap)
	c.remind(first(c.holdEnds(), w.sinceIf(plan.Wake), w.sinceIf(c.window.until)))
}

// snapshot is everything that the plan depends on, as the controller sees it.
func (c *planner) snapshot() *rollout.Snapshot {
	p, spec, state := c.cache.p, c.cache.spec, c.cache.state
	s := &rollout.Snapshot{
		Pool: p.name, Policy: spec.policy, Target: state.record(spec.target), Current: state.record(state.current),
		Members: c.read(), Unreadable: p.w.unreadable(), Deleting: spec.deleting, Surge: p.status.surge, Size: p.status.size,
		Waiting: c.cache.waiting(), WindowShut: !c.window.open(spec, p.w.time()), WindowError: spec.windows.Problem(),
	}
	s.WindowNever = s.WindowShut && c.window.until.IsZero()
	if s.Target.RolledBack {
		s.RolledBack, s.Target = s.Target, s.Current
	}
	return s
}

// first is the earliest of the times that are not 0.
func first(times ...time.Duration) (least time.Duration) {
	for _, t := range times {
		if t != 0 && (least == 0 || t < least) {
			least = t
		}
	}
	return least
}

// sinceIf is the time as the file counts it; 0 for never.
func (w *world) sinceIf(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return w.since(t)
}

// glance is what was last seen of a pool's windows.
type glance struct {
	of          *specRecord
	is          bool
	from, until time.Time
}

// open tells whether a disruption for drift may start now. It asks the windows
// only when that may have changed.
func (g *glance) open(spec *specRecord, now time.Time) bool {
	if g.of != spec || now.Before(g.from) || !g.until.IsZero() && !now.Before(g.until) {
		g.of, g.from = spec, now
		g.is, g.until = spec.windows.At(now)
	}
	return g.is
}

// gone tells whether the pool was deleted and nothing is left of it.
func (c *planner) gone() bool { return c.cache.spec.deleting && len(c.cache.slots) == 0 }

// read is what the controller sees of the members.
func (c *planner) read() []rollout.Member {
	c.members = c.members[:0]
	target := c.cache.target()
	for _, s := range c.cache.slots {
		m := c.cache.p.seen(s)
		m.Skipped = s.skip != "" && s.skip == target
		c.members = append(c.members, m)
	}
	c.taken = 0
	for _, o := range c.cache.claims {
		if o.phase != v1alpha1.ClaimBound {
			continue
		}
		// One whose claim is seen to hold it is taken, though it looks free still.
		if i, ok := c.cache.slots.find(o.member); ok && c.members[i].Free() && c.cache.slots[i].lastClaim != o.uid {
			c.members[i].Taken()
			c.taken++
		}
	}
	return c.members
}

// holdEnds is when the next hold ends; 0 for never.
func (c *planner) holdEnds() (next time.Duration) {
	w := c.cache.p.w
	now := w.clock()
	for _, s := range c.cache.slots {
		if s.held(now) && s.holdUntil < longest && (next == 0 || s.holdUntil-w.skew < next) {
			next = s.holdUntil - w.skew
		}
	}
	return next
}

// retarget notes that the template says something new, which starts clean.
func (c *planner) retarget() bool {
	p := c.cache.p
	old := c.cache.state
	rec := old.record(c.cache.spec.target).Renewed(c.cache.p.w.time())
	next := old.with(rec)
	next.target = rec.ID
	return p.putState(old, next, func() string {
		return "notes that the target is " + string(rec.ID) + " now, and was " + string(old.target)
	})
}

// retry grants the round that somebody asked for, once. False ends the pass.
func (c *planner) retry() bool {
	old, asked := c.cache.state, c.cache.spec.retry
	if asked == (retryRequest{}) || old.retried == asked {
		return true
	}
	rec := old.record(asked.id)
	rec.Halted, rec.RolledBack = false, false
	next := old.with(rec.Renewed(c.cache.p.w.time()))
	next.retried = asked
	return c.cache.p.putState(old, next, func() string { return "grants " + string(asked.id) + " one more round" })
}

// unskip takes back that members were given up on, where that was for another
// target, so that it does not hold once more should that one come back. False
// ends the pass.
func (c *planner) unskip(snap *rollout.Snapshot) bool {
	p := c.cache.p
	var spent []*slot
	for _, s := range c.cache.slots {
		if s.skip != "" && s.skip != snap.Target.ID && s.skip != c.cache.spec.target && p.slots.get(s.Index) == s {
			spent = append(spent, s)
		}
	}
	for _, s := range spent {
		next := *s
		next.skip = ""
		if !p.put(byPlanner, s, &next, nil) {
			return false
		}
	}
	return true
}

// apply carries out one action, on the version of the slot that the plan was
// made for, and enters it in what was seen. False ends the pass.
func (c *planner) apply(a *rollout.Action, seen *slots) bool {
	p := c.cache.p
	if a.Record != nil {
		if a.Record == c.stored && a.Kind != rollout.Stand {
			return true // one write stores all that came to a revision
		}
		c.stored = a.Record
		next := p.state.with(*a.Record)
		if a.Kind == rollout.Stand {
			next.current = a.Revision
		}
		return p.putState(p.state, next, func() string { return a.Describe(p.member(a.Index)) })
	}
	i, ok := seen.find(a.Index)
	if !ok {
		return a.Kind == rollout.CreateSlot && c.create(a, seen)
	}
	old := (*seen)[i]
	next := *old
	switch a.Kind {
	case rollout.Grant:
		p.w.judge.grants(p, a, c.cache.spec)
	case rollout.Disrupt:
		p.w.judge.disrupts(p, a, old, *seen, c.cache.spec)
	case rollout.CreateSlot:
		return false // it was made meanwhile, and the next pass sees it
	}
	next.Member = a.Apply(old.Member, p.w.time())
	if old.Claimed && !next.Claimed {
		next.claim, next.claimUID = "", 0
	}
	(*seen)[i] = &next
	return p.put(byPlanner, old, &next, func() string { return a.Describe(p.member(a.Index)) })
}

func (c *planner) create(a *rollout.Action, seen *slots) bool {
	p := c.cache.p
	p.w.judge.made(p, a, *seen, c.waiting)
	s := &slot{Member: a.Apply(rollout.Member{}, p.w.time())}
	s.ID = p.slotID()
	seen.put(a.Index, s)
	return p.put(byPlanner, nil, s, func() string { return a.Describe(p.member(a.Index)) })
}

// says reports whether two versions of a status say the same, but for what
// stands in lists.
func (s *status) says(o *status) bool {
	return s.conditions == o.conditions && s.next == o.next && s.surge == o.surge && s.size == o.size && s.counts == o.counts && s.waiting == o.waiting &&
		s.generation == o.generation && s.target == o.target && s.current == o.current && s.aim == o.aim
}

// report writes the pool's status where it differs from what it was.
func (c *planner) report(plan *rollout.Plan, snap *rollout.Snapshot) {
	p := c.cache.p
	st := &p.status
	c.verdicts = c.verdicts[:0]
	for i := range snap.Members {
		m := &snap.Members[i]
		if r := plan.Verdict(m.Index); r != "" {
			c.verdicts = append(c.verdicts, verdict{m.Index, r})
		}
	}
	now := conditions{plan.Ready, plan.Reconciling, plan.Stalled, plan.Updated, plan.Available}
	same := now == st.conditions && slices.Equal(plan.Blockers, st.blockers) && slices.Equal(c.verdicts, st.verdicts)
	next := status{
		conditions: now, next: plan.Next, surge: plan.Surge, size: plan.Size, counts: plan.Counts, waiting: snap.Waiting,
		generation: c.cache.spec.generation, target: c.cache.spec.target, current: c.cache.state.current, aim: snap.Target.ID,
	}
	if same && next.says(st) {
		return
	}
	p.w.writes++
	p.w.narrateStatus(p, &now, plan)
	p.said = nil
	next.blockers, next.since = slices.Clone(plan.Blockers), sinceOf(st.since, plan.Blockers, p.w.time())
	next.verdicts, c.verdicts = c.verdicts, st.verdicts
	*st = next
	p.w.changed()
	if c.cache.spec.notify {
		p.w.hint(p.binder.wake)
	}
}

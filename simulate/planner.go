package simulate

import (
	"slices"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// planner is the pool controller: it plans and applies the plan.
type planner struct {
	cache  cache
	queued bool
	wakeAt time.Duration
	// lastPass is when the last pass began.
	lastPass time.Duration
	window   windowState
	// waiting is the number of claims that waited in the last pass, lastSpec its
	// spec.
	waiting  int
	lastSpec *specRecord
	// lastStored is the record that was stored last.
	lastStored *rollout.Record
	// taken counts the members that look free in the cache although a bound claim
	// names them.
	taken int
	// members and verdicts are buffers that passes reuse.
	members  []rollout.Member
	verdicts []verdict
}

// From largePool members on, passes are at least passInterval apart, as they are
// in the real controller for any pool. Changes meanwhile share one pass. This keeps
// the cost linear: the cost of a pass and the number of events both grow with the
// members.
const (
	largePool    = 1000
	passInterval = 250 * time.Millisecond
)

func (c *planner) reset() { c.queued, c.wakeAt, c.lastPass = false, 0, -passInterval }

func (c *planner) wake() {
	w := c.cache.p.w
	if w.down || !c.cache.ready || c.queued {
		return
	}
	c.queued = true
	at := w.now
	if len(c.cache.slots) >= largePool {
		at = max(at, c.lastPass+passInterval)
	}
	w.act(at, func() {
		c.queued = false
		c.lastPass = w.now
		c.pass()
	})
}

// wakeLater schedules a pass at the time.
func (c *planner) wakeLater(at time.Duration) {
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

// pass reads, plans, applies and reports. It does nothing until it has seen its
// own last writes.
func (c *planner) pass() {
	p := c.cache.p
	w := p.w
	if w.down || c.cache.hasUnseenWrites() || c.gone() {
		return
	}
	spec := c.cache.spec
	if spec.err != nil {
		w.judge.abort(spec.err)
		return
	}
	if spec.target != c.cache.state.target && (!c.retarget() || c.cache.hasUnseenWrites()) {
		return
	}
	if !c.retry() || c.cache.hasUnseenWrites() {
		return
	}
	snap := c.snapshot()
	c.waiting = snap.Waiting
	plan := snap.Plan(w.time())
	w.judge.checkPlan(p, snap, plan)
	seen := slices.Clone(c.cache.slots)
	for i := range plan.Actions {
		if !c.apply(&plan.Actions[i], &seen) {
			return
		}
	}
	if snap.Unreadable == "" {
		c.lastSpec = spec
		if !c.unskip(snap) {
			return
		}
	}
	c.report(plan, snap)
	c.wakeLater(earliest(c.holdEnds(), w.sinceIf(plan.Wake), w.sinceIf(c.window.until)))
}

// snapshot returns everything that the plan depends on, as the controller sees it.
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

// earliest returns the earliest of the times that are not 0.
func earliest(times ...time.Duration) (least time.Duration) {
	for _, t := range times {
		if t != 0 && (least == 0 || t < least) {
			least = t
		}
	}
	return least
}

// sinceIf converts a time as since does; never stays 0.
func (w *world) sinceIf(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return w.since(t)
}

// windowState caches the result of a pool's windows.
type windowState struct {
	spec        *specRecord
	isOpen      bool
	from, until time.Time
}

// open reports whether a disruption for drift may start now. It evaluates the
// windows only when the result may have changed.
func (g *windowState) open(spec *specRecord, now time.Time) bool {
	if g.spec != spec || now.Before(g.from) || !g.until.IsZero() && !now.Before(g.until) {
		g.spec, g.from = spec, now
		g.isOpen, g.until = spec.windows.At(now)
	}
	return g.isOpen
}

// gone reports whether the pool was deleted and has no slots left.
func (c *planner) gone() bool { return c.cache.spec.deleting && len(c.cache.slots) == 0 }

// read returns the members as the controller sees them.
func (c *planner) read() []rollout.Member {
	c.members = c.members[:0]
	target := c.cache.target()
	for _, s := range c.cache.slots {
		m := c.cache.p.readMember(s)
		m.Skipped = s.skip != "" && s.skip == target
		c.members = append(c.members, m)
	}
	c.taken = 0
	for _, o := range c.cache.claims {
		if o.Phase != rollout.ClaimBound {
			continue
		}
		// A bound claim names this member, but the cached slot still looks free.
		if i, ok := c.cache.slots.find(o.member); ok && c.members[i].Free() && c.cache.slots[i].lastClaim != o.uid {
			c.members[i].Taken()
			c.taken++
		}
	}
	return c.members
}

// holdEnds returns when the next hold ends; 0 for never.
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

// retarget stores the template's revision as the target, with a clean record.
func (c *planner) retarget() bool {
	p := c.cache.p
	old := c.cache.state
	rec := old.record(c.cache.spec.target).Renewed(c.cache.p.w.time())
	next := old.with(rec)
	next.target = rec.ID
	return p.putState(old, next, func() string {
		return "changes the target from " + string(old.target) + " to " + string(rec.ID)
	})
}

// retry grants a requested round, once. False ends the pass.
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

// unskip removes skips of earlier targets. Otherwise they would apply again if such
// a target returned. False ends the pass.
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

// apply carries out one action on the version of the slot that was planned for, and
// updates seen. False ends the pass.
func (c *planner) apply(a *rollout.Action, seen *slots) bool {
	p := c.cache.p
	if a.Record != nil {
		if a.Record == c.lastStored && a.Kind != rollout.Stand {
			return true // several actions share one record, and one write stores it
		}
		c.lastStored = a.Record
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
		p.w.judge.checkGrant(p, a, c.cache.spec)
	case rollout.Disrupt:
		p.w.judge.checkDisruption(p, a, old, *seen, c.cache.spec)
	case rollout.CreateSlot:
		return false // the slot was made meanwhile; the next pass sees it
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
	p.w.judge.checkCreateSlot(p, a, *seen, c.waiting)
	s := &slot{Member: a.Apply(rollout.Member{}, p.w.time())}
	s.ID = p.slotID()
	seen.put(a.Index, s)
	return p.put(byPlanner, nil, s, func() string { return a.Describe(p.member(a.Index)) })
}

// sameContent reports whether two versions of a status are equal, without their
// lists.
func (s *status) sameContent(o *status) bool {
	return s.conditions == o.conditions && s.next == o.next && s.surge == o.surge && s.size == o.size && s.counts == o.counts && s.waiting == o.waiting &&
		s.generation == o.generation && s.target == o.target && s.current == o.current && s.aim == o.aim
}

// report writes the pool's status if it has changed.
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
	if same && next.sameContent(st) {
		return
	}
	p.w.writes++
	p.w.narrateStatus(p, &now, plan)
	p.statusCache = nil
	next.blockers, next.since = slices.Clone(plan.Blockers), sinceOf(st.since, plan.Blockers, p.w.time())
	next.verdicts, c.verdicts = c.verdicts, st.verdicts
	*st = next
	p.w.changed()
	if c.cache.spec.notify {
		p.w.hint(p.binder.wake)
	}
}

package preview

import (
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// forecaster runs one pool in virtual time.
type forecaster struct {
	o   *Outlook
	out Forecast
	now time.Time
	// grain: waiting times at the start are rounded up to multiples of it; 0 for
	// no rounding.
	grain time.Duration

	// planner holds the pool, and units the forecast's own state of each slot, by
	// index. whole: the last plan considered every member.
	planner *rollout.Planner
	units   map[int]*unit
	whole   bool

	// touched are the units to step; spare is the other buffer of that list.
	touched, spare []*unit
	events         queue
	// wake is the wake time of the last plan; limit bounds the number of passes.
	wake          time.Time
	passes, limit int

	// bodies counts the existing bodies, capacity is how many fit (-1: any number),
	// and roomless are the units that wait for room.
	bodies, capacity int
	roomless         []*unit

	free, inService int
}

func newForecaster(o *Outlook) *forecaster {
	n := len(o.Snapshot.Members)
	f := &forecaster{o: o, now: o.Now, planner: rollout.NewPlanner(o.Snapshot), units: make(map[int]*unit, n), capacity: -1}
	f.setGrain()
	units := make([]unit, n)
	f.out.Moves = make([]Move, 0, n)
	noRoom := false
	for i, slot := range f.planner.Slots() {
		u := &units[i]
		u.Slot = slot
		f.units[u.Index] = u
		f.initBody(u)
		if u.state != rollout.Absent {
			f.bodies++
		}
		noRoom = noRoom || u.NoRoom
		f.count(&u.Member, 1)
		if !u.Rests() {
			f.touch(u)
		}
		f.scheduleEnds(u)
	}
	if noRoom {
		f.capacity = f.bodies
	}
	f.grain = 0
	f.limit = 1000 + 100*(n+o.Snapshot.Policy.Desired)
	f.out.Free = Low{Now: f.free, Lowest: f.free}
	f.out.InService = Low{Now: f.inService, Lowest: f.inService}
	return f
}

// Up to exactTimes bodies that boot or stop at the start keep their exact times.
// If there are more, the time of a replacement is divided into this many grains.
const (
	exactTimes = 50
	grains     = 16
)

// setGrain makes the bodies that boot or stop at the start finish in groups, if
// there are many. Otherwise each replacement would keep an instant of its own to
// the end of the forecast, with a plan of the whole pool at each.
func (f *forecaster) setGrain() {
	n := 0
	for i := range f.o.Snapshot.Members {
		switch f.o.Snapshot.Members[i].Phase {
		case rollout.Provisioning, rollout.Updating, rollout.Terminating:
			n++
		}
	}
	if n > exactTimes {
		f.grain = (f.o.Boot + f.o.Stop) / grains
	}
}

// scheduleEnds schedules the ends of the unit's hold and claim.
func (f *forecaster) scheduleEnds(u *unit) {
	if end, ok := f.o.HoldEnds[u.Index]; ok && u.Held {
		f.later(end, func() { f.unhold(u) })
	}
	if end, ok := f.o.ClaimEnds[u.Index]; ok && u.Claimed {
		f.later(end, func() { f.release(u) })
	}
}

func (f *forecaster) unhold(u *unit) {
	if u.gone {
		return
	}
	m := u.Member
	m.Held = false
	f.set(u, m)
	f.touch(u)
}

// release ends the unit's claim.
func (f *forecaster) release(u *unit) {
	if u.gone || !u.Claimed {
		return
	}
	claim := rollout.Claim{Phase: rollout.ClaimBound, Given: true, ExpiresAt: f.now}
	if rollout.StepClaim(claim, rollout.ClaimSight{Held: true}, rollout.ClaimRules{}, f.now).Do != rollout.ReleaseMember {
		return
	}
	m := u.Release(f.releaseOf(u), f.now)
	if m.Disruption.Cause == rollout.ClaimEnded {
		deed := Replaced
		if m.Disruption.Update {
			deed = UpdatedInPlace
		}
		f.begin(u, Move{Deed: deed, From: m.Runs, Why: "ClaimEnded"})
	}
	f.set(u, m)
	f.touch(u)
}

// releaseOf collects what decides how the unit is released when its claim ends.
func (f *forecaster) releaseOf(u *unit) *rollout.Release {
	s := &f.planner.Pool
	r := &rollout.Release{Reuse: f.o.Reuse, InPlace: s.Policy.InPlace}
	if !r.Reuse || s.Waiting == 0 {
		return r
	}
	plan := f.planner.Snapshot().Plan(f.now)
	r.Blocker, r.Held, r.Skipped, r.WindowShut = plan.Verdict(u.Index), u.Held, u.Skipped, s.WindowShut
	r.Stale, r.Partition, r.Waiting = plan.Counts.Stale, s.Policy.Partition, s.Waiting
	return r
}

// later schedules do at the time, or at the start if the time is before it.
func (f *forecaster) later(at time.Time, do func()) {
	f.events.push(max(0, at.Sub(f.o.Now)), do)
}

func (f *forecaster) touch(u *unit) { f.touched = append(f.touched, u) }

// elapsed returns the time since the start.
func (f *forecaster) elapsed() Time { return Time(f.now.Sub(f.o.Now)) }

// set replaces the unit's member, and updates counts, lows and the unit's move.
func (f *forecaster) set(u *unit, m rollout.Member) {
	if m.Incarnation != u.Incarnation {
		m.Asked = false // the request was for the previous incarnation
	}
	if m == u.Member {
		return
	}
	f.count(&u.Member, -1)
	up := serves(&u.Member)
	f.planner.Set(u.Slot, m)
	f.count(&u.Member, 1)
	f.observeLows()
	if serves(&u.Member) && !up {
		f.finish(u)
	}
}

// serves reports whether the member's body serves, cordoned or not.
func serves(m *rollout.Member) bool {
	return (m.Phase == rollout.Available || m.Phase == rollout.InClaim) && !m.Disrupted()
}

// count adds the member n times to free and inService; -1 takes it out.
func (f *forecaster) count(m *rollout.Member, n int) {
	if m.Free() {
		f.free += n
	}
	if m.InService() {
		f.inService += n
	}
}

func (f *forecaster) observeLows() {
	f.out.Free.observe(f.free, f.elapsed())
	f.out.InService.observe(f.inService, f.elapsed())
}

// begin records that a move of the unit begins.
func (f *forecaster) begin(u *unit, m Move) {
	m.Index, m.At = u.Index, f.elapsed()
	f.out.Moves = append(f.out.Moves, m)
	u.move = len(f.out.Moves)
	f.out.Took = f.elapsed()
}

// finish records that the unit's move, if any, is done.
func (f *forecaster) finish(u *unit) {
	f.out.Took = f.elapsed()
	if u.move > 0 {
		at := f.elapsed()
		m := &f.out.Moves[u.move-1]
		m.Done = &at
		if m.Deed != Removed {
			m.To = u.Runs
		}
		u.move = 0
	}
}

// drop removes the unit with its slot.
func (f *forecaster) drop(u *unit) {
	f.planner.Drop(u.Slot)
	f.finish(u)
	u.gone = true
	delete(f.units, u.Index)
}

// run advances until nothing changes any more. Overdue events run first. Then the
// engine plans before any unit steps, so that it can still withdraw the disruptions
// of draining members.
func (f *forecaster) run() {
	f.runEvents(0)
	f.out.Before = tally(f.planner.Whole(f.now))
	f.decide(f.o.wholePlans)
	f.settle()
	for f.advance() || f.decideWhole() {
		f.settle()
	}
}

// decideWhole makes a plan of the whole pool if the last one was partial, and
// reports whether there is more to do.
func (f *forecaster) decideWhole() bool {
	if f.whole || f.out.Endless {
		return false
	}
	return f.decide(true) || f.advance()
}

// settle steps and plans until nothing changes at this instant.
func (f *forecaster) settle() {
	f.stepTouched()
	for f.passes <= f.limit && f.decide(f.o.wholePlans) {
		f.stepTouched()
	}
}

// stepTouched steps units until none is touched.
func (f *forecaster) stepTouched() {
	for len(f.touched) > 0 {
		list := f.touched
		f.touched = f.spare[:0]
		for _, u := range list {
			f.step(u)
		}
		f.spare = list
	}
}

// decide makes one plan, of all members if whole, applies it and binds claims. It
// reports whether anything changed.
func (f *forecaster) decide(whole bool) bool {
	f.passes++
	s := &f.planner.Pool
	if f.o.Window != nil {
		open, until := f.o.Window(f.now)
		s.WindowShut, s.WindowNever = !open, !open && until.IsZero()
	}
	var plan *rollout.Plan
	if f.whole = whole; whole {
		plan = f.planner.Whole(f.now)
	} else {
		plan, f.whole = f.planner.Next(f.now)
	}
	f.wake = plan.Wake
	s.Surge, s.Size = plan.Surge, plan.Size
	f.out.SurgePeak = max(f.out.SurgePeak, plan.Surge)
	for i := range plan.Actions {
		f.apply(&plan.Actions[i])
	}
	bound := f.bindClaims()
	return len(plan.Actions) > 0 || bound
}

func (f *forecaster) apply(a *rollout.Action) {
	switch {
	case a.Record != nil:
		f.planner.Apply(a)
		return
	case a.Kind == rollout.CreateSlot:
		m := a.Apply(rollout.Member{}, f.now)
		m.ID = "new-" + strconv.Itoa(f.passes) + "-" + strconv.Itoa(a.Index)
		u := &unit{Slot: f.planner.Add(m)}
		f.units[a.Index] = u
		f.begin(u, Move{Deed: Made, To: a.Revision, Why: a.Why, Surge: a.Surge})
		f.touch(u)
		return
	}
	u := f.units[a.Index]
	m := a.Apply(u.Member, f.now)
	if a.Kind == rollout.Disrupt {
		deed := Replaced
		switch {
		case a.Disruption.Remove:
			deed = Removed
		case a.Disruption.Update:
			deed = UpdatedInPlace
		}
		f.begin(u, Move{Deed: deed, From: m.Runs, To: a.Revision, Why: a.Why})
	}
	f.set(u, m)
	f.touch(u)
}

// bindClaims binds free members to waiting claims, and reports whether it bound any.
func (f *forecaster) bindClaims() bool {
	bound := false
	for s := &f.planner.Pool; s.Waiting > 0 && f.free > 0; s.Waiting-- {
		members := f.planner.Snapshot().Members
		sight := rollout.ClaimSight{Free: rollout.Choices(members)}
		if rollout.StepClaim(rollout.Claim{}, sight, rollout.ClaimRules{}, f.now).Do != rollout.BindMember {
			break
		}
		u := f.units[members[rollout.Pick(members, s.Target.ID)].Index]
		f.set(u, u.Bind())
		f.touch(u)
		bound = true
	}
	return bound
}

// advance moves to the time of the next event and runs the events due then. It
// reports whether there was one.
func (f *forecaster) advance() bool {
	if f.passes > f.limit {
		f.out.Endless = true
		return false
	}
	next, ok := f.next()
	if !ok {
		return false
	}
	f.now = f.o.Now.Add(next)
	f.runEvents(next)
	return true
}

// runEvents runs all events that are due by the time.
func (f *forecaster) runEvents(by time.Duration) {
	for at, ok := f.events.next(); ok && at <= by; at, ok = f.events.next() {
		f.events.pop().do()
	}
}

// next returns the time of the next event: a queued one, the plan's wake time, or a
// window that opens. A window that closes counts only if there is another event.
func (f *forecaster) next() (next time.Duration, ok bool) {
	consider := func(at time.Time) {
		if d := at.Sub(f.o.Now); !at.IsZero() && at.After(f.now) && (!ok || d < next) {
			next, ok = d, true
		}
	}
	next, ok = f.events.next()
	consider(f.wake)
	if f.o.Window != nil {
		if open, until := f.o.Window(f.now); !open || ok {
			consider(until)
		}
	}
	return next, ok
}

// report completes the forecast at its end.
func (f *forecaster) report() *Forecast {
	out, s := &f.out, f.planner.Snapshot()
	p := s.Plan(f.now)
	out.Finishes = p.Updated.Status == rollout.True && !out.Endless
	out.Reason, out.Next = p.Updated.Reason, p.Next
	out.After = tally(p)
	out.Free.End, out.InService.End = f.free, f.inService
	if field, other := s.Policy.Collision(); field != "" && out.After.Stale > 0 {
		out.Collide = []string{"spec." + field, "spec." + other}
	}
	out.Stays = []Stay{}
	for i := range s.Members {
		m := &s.Members[i]
		if r := p.Verdict(m.Index); r != "" {
			out.Stays = append(out.Stays, Stay{Index: m.Index, Revision: m.Runs, Reason: r, Text: p.Explain(m), Needs: r.Needs()})
		}
	}
	return out
}

func tally(p *rollout.Plan) Tally {
	c := &p.Counts
	return Tally{Members: c.Members, Updated: c.Updated, Stale: c.Stale, Unknown: c.Unknown}
}

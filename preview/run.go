package preview

import (
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// forecaster plays one pool ahead.
type forecaster struct {
	o   *Outlook
	out Forecast
	now time.Time
	// grain is what times at the start are rounded up to; 0 for not at all.
	grain time.Duration

	// planner holds the pool, and units what else is known of each slot, by index.
	// Whole: the last plan looked at every member.
	planner *rollout.Planner
	units   map[int]*unit
	whole   bool

	// touched are the units that are to be stepped.
	touched, spare []*unit
	events         queue
	// wake is that of the last plan; limit bounds how many are made.
	wake          time.Time
	passes, limit int

	// bodies are those there are; capacity is how many fit, -1 for any number,
	// and roomless are the units that found no room.
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
		f.find(u)
		if u.state != rollout.Absent {
			f.bodies++
		}
		noRoom = noRoom || u.NoRoom
		f.count(&u.Member, 1)
		if !u.Rests() {
			f.touch(u)
		}
		f.timed(u)
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

// Of so many bodies at most that are on their way at the start each keeps its own
// time. With more of them a replacement is divided into so many grains.
const (
	ownTimes = 50
	grains   = 16
)

// setGrain has what is on its way at the start arrive in steps, where that is
// much: otherwise every replacement would have an instant of its own for ever,
// and the engine be asked about all others each time.
func (f *forecaster) setGrain() {
	n := 0
	for i := range f.o.Snapshot.Members {
		switch f.o.Snapshot.Members[i].Phase {
		case rollout.Provisioning, rollout.Updating, rollout.Terminating:
			n++
		}
	}
	if n > ownTimes {
		f.grain = (f.o.Boot + f.o.Stop) / grains
	}
}

// timed has the hold and the claim of the unit end.
func (f *forecaster) timed(u *unit) {
	if end, ok := f.o.HoldEnds[u.Index]; ok && u.Held {
		f.later(end, func() { f.unhold(u) })
	}
	if end, ok := f.o.ClaimEnds[u.Index]; ok && u.Claimed {
		f.later(end, func() { f.release(u) })
	}
}

// unhold ends the unit's hold.
func (f *forecaster) unhold(u *unit) {
	if u.gone {
		return
	}
	m := u.Member
	m.Held = false
	f.set(u, m)
	f.touch(u)
}

// release ends the unit's claim, if its time is up.
func (f *forecaster) release(u *unit) {
	if u.gone || !u.Claimed {
		return
	}
	claim := rollout.Claim{Phase: rollout.ClaimBound, Given: true, ExpiresAt: f.now}
	if rollout.StepClaim(claim, rollout.ClaimSight{Held: true}, rollout.ClaimRules{}, f.now).Do != rollout.ReleaseMember {
		return
	}
	m := u.Release(f.goesBack(u), f.now)
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

// goesBack is what decides how the unit goes back when its claim ends.
func (f *forecaster) goesBack(u *unit) *rollout.Release {
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

// later has something done at the time, but never before now.
func (f *forecaster) later(at time.Time, do func()) {
	f.events.push(max(0, at.Sub(f.o.Now)), do)
}

func (f *forecaster) touch(u *unit) { f.touched = append(f.touched, u) }

// since is how long after the start it is.
func (f *forecaster) since() Time { return Time(f.now.Sub(f.o.Now)) }

// set records the unit as it is now.
func (f *forecaster) set(u *unit, m rollout.Member) {
	if m.Incarnation != u.Incarnation {
		m.Asked = false // that was about the last one
	}
	if m == u.Member {
		return
	}
	f.count(&u.Member, -1)
	up := serves(&u.Member)
	f.planner.Set(u.Slot, m)
	f.count(&u.Member, 1)
	f.lows()
	if serves(&u.Member) && !up {
		f.finish(u)
	}
}

// serves reports whether the member's body serves, cordoned or not.
func serves(m *rollout.Member) bool {
	return (m.Phase == rollout.Available || m.Phase == rollout.InClaim) && !m.Disrupted()
}

// count enters the member n times.
func (f *forecaster) count(m *rollout.Member, n int) {
	if m.Free() {
		f.free += n
	}
	if m.InService() {
		f.inService += n
	}
}

// lows notes how low numbers are.
func (f *forecaster) lows() {
	f.out.Free.see(f.free, f.since())
	f.out.InService.see(f.inService, f.since())
}

// begin notes what is begun with the unit.
func (f *forecaster) begin(u *unit, m Move) {
	m.Index, m.At = u.Index, f.since()
	f.out.Moves = append(f.out.Moves, m)
	u.move = len(f.out.Moves)
	f.out.Took = f.since()
}

// finish notes that what was begun with the unit is over.
func (f *forecaster) finish(u *unit) {
	f.out.Took = f.since()
	if u.move > 0 {
		at := f.since()
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

// run plays until nothing moves any more. At the start, when all that is overdue
// has happened, the engine is asked before anything steps, so that it can take
// back what only drains.
func (f *forecaster) run() {
	f.happen(0)
	f.out.Before = headcount(f.planner.Whole(f.now))
	f.decide(f.o.whole)
	f.settle()
	for f.advance() || f.again() {
		f.settle()
	}
}

// again plans once with a look at the whole pool, where the last plan counted a part
// of it, and reports whether there is more to do.
func (f *forecaster) again() bool {
	if f.whole || f.out.Endless {
		return false
	}
	return f.decide(true) || f.advance()
}

// settle steps and plans until nothing changes at this instant.
func (f *forecaster) settle() {
	f.steps()
	for f.passes <= f.limit && f.decide(f.o.whole) {
		f.steps()
	}
}

// steps brings all that was touched as far as it comes at this instant.
func (f *forecaster) steps() {
	for len(f.touched) > 0 {
		list := f.touched
		f.touched = f.spare[:0]
		for _, u := range list {
			f.step(u)
		}
		f.spare = list
	}
}

// decide plans once, and reports whether that did anything.
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
	given := f.give()
	return len(plan.Actions) > 0 || given
}

// apply carries out one action.
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

// give gives free members to the claims that wait, and reports whether it did.
func (f *forecaster) give() bool {
	given := false
	for s := &f.planner.Pool; s.Waiting > 0 && f.free > 0; s.Waiting-- {
		members := f.planner.Snapshot().Members
		sight := rollout.ClaimSight{Free: rollout.Choices(members)}
		if rollout.StepClaim(rollout.Claim{}, sight, rollout.ClaimRules{}, f.now).Do != rollout.BindMember {
			break
		}
		u := f.units[members[rollout.Pick(members, s.Target.ID)].Index]
		f.set(u, u.Bind())
		f.touch(u)
		given = true
	}
	return given
}

// advance goes to the next time at which something happens, and tells whether
// there is one.
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
	f.happen(next)
	return true
}

// happen has all happen that is due by the time.
func (f *forecaster) happen(by time.Duration) {
	for at, ok := f.events.next(); ok && at <= by; at, ok = f.events.next() {
		f.events.pop().do()
	}
}

// next is the next time at which something happens. That windows open and
// close counts only while they are shut, or something else happens.
func (f *forecaster) next() (next time.Duration, ok bool) {
	see := func(at time.Time) {
		if d := at.Sub(f.o.Now); !at.IsZero() && at.After(f.now) && (!ok || d < next) {
			next, ok = d, true
		}
	}
	next, ok = f.events.next()
	see(f.wake)
	if f.o.Window != nil {
		if open, until := f.o.Window(f.now); !open || ok {
			see(until)
		}
	}
	return next, ok
}

// tell sums up.
func (f *forecaster) tell() *Forecast {
	out, s := &f.out, f.planner.Snapshot()
	p := s.Plan(f.now)
	out.Finishes = p.Updated.Status == rollout.True && !out.Endless
	out.Reason, out.Next = p.Updated.Reason, p.Next
	out.After = headcount(p)
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

func headcount(p *rollout.Plan) Tally {
	c := &p.Counts
	return Tally{Members: c.Members, Updated: c.Updated, Stale: c.Stale, Unknown: c.Unknown}
}

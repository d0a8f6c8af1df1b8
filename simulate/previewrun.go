package simulate

import (
	"slices"
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

	// snap is what the engine is asked about. units are all slots by index, those
	// included that are gone if some were dropped.
	snap    rollout.Snapshot
	units   []*unit
	dropped bool
	near    near
	// members is room for a list of all; whole tells whether the last plan was
	// made for all.
	members []rollout.Member
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
	f := &forecaster{o: o, now: o.Now, snap: *o.Snapshot, capacity: -1}
	f.setGrain()
	units := make([]unit, len(o.Snapshot.Members))
	f.units = make([]*unit, len(units))
	f.out.Moves = make([]Move, 0, len(units))
	for i := range units {
		u := &units[i]
		f.units[i] = u
		u.Member = o.Snapshot.Members[i]
		f.find(u)
		if u.state != rollout.Absent {
			f.bodies++
		}
		f.count(&u.Member, 1)
		if !u.Simple() || u.Claimed != (u.Phase == rollout.InClaim) {
			f.touch(u)
		}
		f.timed(u)
	}
	for _, u := range f.units {
		if u.NoRoom {
			f.capacity = f.bodies
		}
	}
	f.grain = 0
	f.near.off = o.whole
	f.near.sort(f)
	f.limit = 1000 + 100*(len(f.units)+f.snap.Policy.Desired)
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

// release ends the unit's claim.
func (f *forecaster) release(u *unit) {
	if u.gone || !u.Claimed {
		return
	}
	m := u.Member
	m.Claimed = false
	if !f.o.Reuse {
		m.Disruption = rollout.Disruption{Cause: rollout.ClaimEnded, Incarnation: m.Incarnation, Since: f.now}
		m.Wants = ""
		f.begin(u, Move{Deed: Replaced, From: m.Runs, Why: "ClaimEnded"})
	}
	f.set(u, m)
	f.touch(u)
}

// later has something done at the time, but never before now.
func (f *forecaster) later(at time.Time, do func()) {
	f.events.push(event{at: max(0, at.Sub(f.o.Now)), do: do})
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
	f.near.change(f, u, m)
	f.count(&u.Member, 1)
	f.lows()
	if serves(&u.Member) && !up {
		f.finish(u)
	}
}

// serves tells whether the member's body serves, cordoned or not.
func serves(m *rollout.Member) bool {
	return (m.Phase == rollout.Available || m.Phase == rollout.InClaim) && !live(m)
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
	f.near.remove(f, u)
	f.finish(u)
	u.gone, f.dropped = true, true
}

// tidy leaves out the units that are gone.
func (f *forecaster) tidy() {
	if f.dropped {
		f.units = slices.DeleteFunc(f.units, func(u *unit) bool { return u.gone })
		f.dropped = false
	}
}

func (f *forecaster) position(index int) (int, bool) {
	return slices.BinarySearchFunc(f.units, index, byIndex)
}

// unit is the one with the index, which is there.
func (f *forecaster) unit(index int) *unit {
	if i, ok := slices.BinarySearchFunc(f.near.list, index, byIndex); ok && !f.near.list[i].gone {
		return f.near.list[i]
	}
	f.tidy()
	i, _ := f.position(index)
	return f.units[i]
}

// run plays until nothing moves any more. At the start, when all that is overdue
// has happened, the engine is asked before anything steps, so that it can take
// back what only drains.
func (f *forecaster) run() {
	f.happen(0)
	f.listAll()
	f.out.Before = headcount(rollout.Decide(&f.snap, f.now))
	f.decide()
	f.settle()
	for f.advance() || f.again() {
		f.settle()
	}
}

// again asks once about the whole pool, where the last plan was about a part of
// it, and tells whether there is more to do.
func (f *forecaster) again() bool {
	if f.whole || f.out.Endless {
		return false
	}
	was := f.near.off
	f.near.off = true
	acted := f.decide()
	f.near.off = was
	return acted || f.advance()
}

// settle steps and plans until nothing changes at this instant.
func (f *forecaster) settle() {
	f.steps()
	for f.passes <= f.limit && f.decide() {
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

// decide asks the engine once, and tells whether it did anything.
func (f *forecaster) decide() bool {
	f.passes++
	s := &f.snap
	if f.o.Window != nil {
		open, until := f.o.Window(f.now)
		s.WindowShut, s.WindowNever = !open, !open && until.IsZero()
	}
	plan := f.near.decide(f)
	if f.whole = plan == nil; f.whole {
		f.listAll()
		plan = rollout.Decide(s, f.now)
	}
	f.wake = plan.Wake
	f.carryOut(plan)
	given := f.give()
	return len(plan.Actions) > 0 || given
}

// carryOut does what the plan says.
func (f *forecaster) carryOut(p *rollout.Plan) {
	f.snap.Surge = p.Surge
	f.out.SurgePeak = max(f.out.SurgePeak, p.Surge)
	for i := range p.Actions {
		f.apply(&p.Actions[i])
	}
}

// listAll has the snapshot list every unit.
func (f *forecaster) listAll() {
	f.tidy()
	f.snap.Rest = rollout.Rest{}
	f.members = slices.Grow(f.members[:0], len(f.units))
	for _, u := range f.units {
		f.members = append(f.members, u.Member)
	}
	f.snap.Members = f.members
}

// apply carries out one action.
func (f *forecaster) apply(a *rollout.Action) {
	if a.Record != nil {
		f.record(a)
		return
	}
	if a.Kind == rollout.CreateSlot {
		f.make(a)
		return
	}
	u := f.unit(a.Index)
	m := u.Member
	m.Wants = a.Revision
	switch a.Kind {
	case rollout.Undo:
		m.Disruption = rollout.Disruption{}
	case rollout.Disrupt:
		m.Disruption = a.Disruption
		m.Claimed = m.Claimed && !a.DropClaim
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

// record notes what becomes of a revision.
func (f *forecaster) record(a *rollout.Action) {
	s := &f.snap
	for _, r := range []*rollout.Record{&s.Target, &s.Current} {
		if r.ID == a.Record.ID {
			*r = *a.Record
		}
	}
	switch {
	case a.Kind == rollout.Stand:
		s.Current = *a.Record
	case a.Kind == rollout.Halt && a.Record.RolledBack:
		s.RolledBack, s.Target = *a.Record, s.Current
		f.near.sort(f)
	}
}

// make makes a slot.
func (f *forecaster) make(a *rollout.Action) {
	u := &unit{Member: rollout.Member{
		Index: a.Index, ID: "new-" + strconv.Itoa(f.passes) + "-" + strconv.Itoa(a.Index), Wants: a.Revision,
		Phase: rollout.Pending, BornAt: f.now, PhaseSince: f.now,
	}}
	f.tidy()
	i, _ := f.position(a.Index)
	f.units = slices.Insert(f.units, i, u)
	f.near.place(f, u)
	f.begin(u, Move{Deed: Made, To: a.Revision, Why: a.Why, Surge: a.Surge})
	f.touch(u)
}

// give gives free members to the claims that wait, and tells whether it did.
func (f *forecaster) give() bool {
	given := false
	for f.snap.Waiting > 0 && f.free > 0 {
		f.listAll()
		i := rollout.Pick(f.snap.Members, f.snap.Target.ID)
		if i < 0 {
			break
		}
		u := f.units[i]
		m := u.Member
		m.Claimed, m.Disruption = true, rollout.Disruption{}
		f.set(u, m)
		f.snap.Waiting--
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
	for len(f.events.heap) > 0 && f.events.heap[0].at <= by {
		e := f.events.pop()
		e.do()
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
	if len(f.events.heap) > 0 {
		next, ok = f.events.heap[0].at, true
	}
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
	out := &f.out
	f.listAll()
	p := rollout.New(&f.snap, f.now)
	out.Finishes = p.Updated.Status == rollout.True && !out.Endless
	out.Reason, out.Next = p.Updated.Reason, p.Next
	out.After = headcount(p)
	out.Free.End, out.InService.End = f.free, f.inService
	if field, other := f.snap.Policy.Collision(); field != "" && out.After.Stale > 0 {
		out.Collide = []string{"spec." + field, "spec." + other}
	}
	out.Stays = []Stay{}
	for i := range f.snap.Members {
		m := &f.snap.Members[i]
		if r := p.Verdict(m); r != "" {
			out.Stays = append(out.Stays, Stay{Index: m.Index, Revision: m.Runs, Reason: r, Text: p.Explain(m), Needs: needs(r)})
		}
	}
	return out
}

func headcount(p *rollout.Plan) Tally {
	c := &p.Counts
	return Tally{Members: c.Members, Updated: c.Updated, Stale: c.Stale, Unknown: c.Unknown}
}

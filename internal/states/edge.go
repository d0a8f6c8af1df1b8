package states

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// kind is what an edge does.
type kind uint8

const (
	noEdge    kind = iota
	planEdge       // the plan is carried out; n: only so many actions of it, or all
	stepEdge       // slot i takes its next step; n: see refused and noRoom
	claimEdge      // claim i takes its next step
	timeEdge       // time moves

	// Of a body nobody knows but its slot's next step, which comes at once.
	bootsEdge  // the body of slot i comes up, for the first time or again
	goesEdge   // it is gone, after it was told to go
	drainsEdge // its drain is done

	exitsEdge  // a fault: the body ends by itself
	vanishEdge // a fault: it is gone
	downEdge   // a fault: it is not ready for a while
	slowEdge   // a fault: it takes long to boot, drain or stop
	outageEdge // a fault: time moves although controllers have something to do

	editEdge      // a user edits the template to revision i
	pauseEdge     // pauses, or ends that
	scaleEdge     // scales to i
	partitionEdge // sets the partition to i
	makeEdge      // makes claim i
	releaseEdge   // deletes claim i
	holdEdge      // holds slot i, or ends that
	workEdge      // work begins on slot i, or ends
	recycleEdge   // asks for another body in slot i
	skipEdge      // gives up on slot i
	retryEdge     // asks for one more round
)

var kindNames = [...]string{
	"nothing", "plan", "step", "claim steps", "time", "boots", "is gone", "has drained", "exits", "vanishes", "goes down", "is slow",
	"outage", "edit to", "pause", "scale to", "partition", "claim", "release", "hold", "work", "recycle", "skip", "retry",
}

// How a step of a slot ends that creates or updates a body.
const (
	succeeds = iota
	refused  // a fault
	noRoom   // a fault
)

// whole is the n of a plan that is carried out to its end.
const whole = 31

// edge is one thing that happens. late: it happens between the read and the writes of a
// plan, which is carried out all the same.
type edge struct {
	kind kind
	i, n int8
	late bool
}

func (e edge) String() string {
	s := kindNames[e.kind]
	switch {
	case e.kind == planEdge && e.n != whole:
		s += fmt.Sprintf(", cut off after %d", e.n)
	case e.kind == editEdge:
		s += " " + string(revisions[e.i])
	case e.kind != planEdge && e.kind != timeEdge && e.kind != outageEdge && e.kind != pauseEdge && e.kind != retryEdge:
		s += fmt.Sprintf(" %d", e.i)
	}
	if e.kind != planEdge && e.n > 0 {
		s += [...]string{"", ", refused", ", without room"}[e.n]
	}
	if e.late {
		s += ", and a plan that has not seen that"
	}
	return s
}

// fault reports whether the edge is one, and user whether a user acts.
func (e edge) fault() bool {
	return e.kind >= exitsEdge && e.kind <= outageEdge || e.kind != planEdge && e.n > 0
}

func (e edge) user() bool { return e.kind >= editEdge }

// view is a state with what its controllers would do.
type view struct {
	w    *world
	r    *rules
	plan *rollout.Plan
	// said is the plan with what it says of members, which matters only where claims
	// give them back. It wakes for more, but only to say something else.
	said  *rollout.Plan
	steps [maxSlots]rollout.Transition
	// moves are the slots whose step does something, planned: the plan does.
	moves   [maxSlots]bool
	planned bool
	claims  [maxClaims]rollout.ClaimTransition
	// claimed are the claims whose step does something.
	claimed [maxClaims]bool
	members [maxSlots]rollout.Member
}

// look fills in the view of the state.
func (v *view) look(r *rules, w *world) {
	v.w, v.r = w, r
	v.moves, v.claimed = [maxSlots]bool{}, [maxClaims]bool{}
	s := w.snapshot(r, v.members[:0])
	v.plan = rollout.NewPlanner(s).Whole(w.now)
	v.planned = len(v.plan.Actions) > 0 || v.plan.Surge != int(w.surge) || v.plan.Size != int(w.size)
	if r.reuse {
		v.said = s.Plan(w.now)
		v.planned = v.planned || v.unsaid(s)
	}
	for i := range w.slots[:w.n] {
		sl := &w.slots[i]
		v.steps[i] = rollout.Step(sl.Member, sl.sight(), r.life, w.now)
		v.moves[i] = sl.moves(&v.steps[i])
	}
	ahead := 0
	free := rollout.Choices(v.members[:w.n])
	for i := range w.claims {
		c := &w.claims[i]
		if !c.made {
			continue
		}
		held := w.carrier(int8(i)) >= 0
		v.claims[i] = rollout.StepClaim(c.engine(), rollout.ClaimSight{Held: held, Free: free, Ahead: ahead}, rollout.ClaimRules{}, w.now)
		next := v.claims[i]
		v.claimed[i] = next.Do != rollout.RestClaim || next.Claim != c.engine()
		if !c.bound && !c.deleted {
			ahead++
		}
	}
}

// unsaid reports whether the plan would say something else of members than was said.
func (v *view) unsaid(s *rollout.Snapshot) bool {
	for i := range s.Members {
		if v.w.slots[i].blocked != (v.said.Verdict(s.Members[i].Index) == rollout.Claimed) {
			return true
		}
	}
	return int(v.w.stale) != v.said.Counts.Stale
}

// engine is the claim as the engine knows it.
func (c *claim) engine() rollout.Claim {
	if c.bound {
		return rollout.Claim{Phase: rollout.ClaimBound, Given: true, Deleted: c.deleted}
	}
	return rollout.Claim{Phase: rollout.ClaimPending, Deleted: c.deleted}
}

// carrier is the position of the slot that carries the claim, or nobody.
func (w *world) carrier(c int8) int {
	for i := range w.slots[:w.n] {
		if w.slots[i].Claimed && w.slots[i].claim == c {
			return i
		}
	}
	return nobody
}

func (s *slot) sight() rollout.Sight {
	return rollout.Sight{State: s.body.state, Drained: s.body.drained}
}

// moves reports whether the transition does something.
func (s *slot) moves(t *rollout.Transition) bool {
	switch t.Do {
	case rollout.DropSlot, rollout.CreateBody, rollout.UpdateBody:
		return true
	case rollout.DeleteBody:
		return s.body.state != rollout.Stopping || t.Member != s.Member
	case rollout.DrainBody:
		return !s.body.draining || t.Member != s.Member
	case rollout.UndrainBody:
		return s.body.draining || t.Member != s.Member
	}
	return t.Member != s.Member
}

// busy reports whether a controller has something to do.
func (v *view) busy() bool {
	return v.planned || v.moves != [maxSlots]bool{} || v.claimed != [maxClaims]bool{}
}

// fair is the edge that comes first, once users and faults stop.
func (v *view) fair() edge {
	for i := range v.moves {
		if v.moves[i] {
			return edge{kind: stepEdge, i: int8(i)}
		}
	}
	for i := range v.claimed {
		if v.claimed[i] {
			return edge{kind: claimEdge, i: int8(i)}
		}
	}
	if v.planned {
		return edge{kind: planEdge, n: whole}
	}
	for i := range v.w.slots[:v.w.n] {
		switch b := &v.w.slots[i].body; {
		case b.state == rollout.Booting:
			return edge{kind: bootsEdge, i: int8(i)}
		case b.state == rollout.Stopping:
			return edge{kind: goesEdge, i: int8(i)}
		case b.draining && !b.drained:
			return edge{kind: drainsEdge, i: int8(i)}
		}
	}
	if !v.wake().IsZero() {
		return edge{kind: timeEdge}
	}
	return edge{}
}

// edges appends all edges that lead on from the state.
func (v *view) edges(list []edge) []edge {
	w := v.w
	if v.planned {
		list = append(list, edge{kind: planEdge, n: whole})
		for n := range len(v.plan.Actions) - 1 {
			list = append(list, edge{kind: planEdge, n: int8(n + 1)})
		}
	}
	for i := range v.claimed {
		if v.claimed[i] {
			list = v.lates(append(list, edge{kind: claimEdge, i: int8(i)}))
		}
	}
	for i := range w.slots[:w.n] {
		list = v.slotEdges(list, int8(i))
	}
	if !v.busy() && w.mayWait() {
		list = append(list, edge{kind: timeEdge})
	} else if w.faults > 0 && !v.wake().IsZero() {
		list = append(list, edge{kind: outageEdge})
	}
	if w.users > 0 {
		list = v.userEdges(list)
	}
	return list
}

// lates appends the last edge once more, on the read of a plan that comes late.
func (v *view) lates(list []edge) []edge {
	e := list[len(list)-1]
	if len(v.plan.Actions) > 1 {
		e.late = true
		list = append(list, e)
	}
	return list
}

// slotEdges appends what the slot and its body do.
func (v *view) slotEdges(list []edge, i int8) []edge {
	s, fault := &v.w.slots[i], v.w.faults > 0
	if v.moves[i] {
		list = v.ways(list, stepEdge, i)
	}
	b := &s.body
	switch {
	case b.state == rollout.Booting:
		list = v.ways(list, bootsEdge, i)
	case b.state == rollout.Stopping:
		list = v.ways(list, goesEdge, i)
	case b.draining && !b.drained:
		list = v.ways(list, drainsEdge, i)
	}
	if !fault {
		return list
	}
	if b.state == rollout.Booting || b.state == rollout.Ready {
		list = v.lates(append(list, edge{kind: exitsEdge, i: i}))
		list = v.lates(append(list, edge{kind: vanishEdge, i: i}))
	}
	if b.state == rollout.Ready {
		list = v.lates(append(list, edge{kind: downEdge, i: i}))
	}
	if !b.slow && (b.state == rollout.Booting && !b.booted || b.state == rollout.Stopping || b.draining && !b.drained) {
		list = append(list, edge{kind: slowEdge, i: i})
	}
	return list
}

// ways appends the step that the slot takes once the body has done that, in each way
// in which it may end.
func (v *view) ways(list []edge, k kind, i int8) []edge {
	list = v.lates(append(list, edge{kind: k, i: i}))
	if v.w.faults == 0 {
		return list
	}
	s := v.w.slots[i]
	s.happen(k)
	switch do := rollout.Step(s.Member, s.sight(), v.r.life, v.w.now).Do; do {
	case rollout.CreateBody:
		list = append(list, edge{kind: k, i: i, n: noRoom}, edge{kind: k, i: i, n: refused})
	case rollout.UpdateBody:
		list = append(list, edge{kind: k, i: i, n: refused})
	}
	return list
}

func (v *view) userEdges(list []edge) []edge {
	w := v.w
	for r := range revisions {
		if r := int8(r); r != w.template && (r < 2 || w.knows(1)) {
			list = append(list, edge{kind: editEdge, i: r})
		}
	}
	list = append(list, edge{kind: pauseEdge})
	for d := range int8(maxDesired + 1) {
		if d != w.desired && int(d) <= v.r.policy.Desired+1 {
			list = append(list, edge{kind: scaleEdge, i: d})
		}
	}
	for p := range int8(3) {
		if p != w.partition {
			list = append(list, edge{kind: partitionEdge, i: p})
		}
	}
	for i := range w.claims {
		switch c := &w.claims[i]; {
		case c.made && !c.deleted:
			list = append(list, edge{kind: releaseEdge, i: int8(i)})
		case !c.made && (i == 0 || w.claims[i-1].made):
			list = append(list, edge{kind: makeEdge, i: int8(i)})
		}
	}
	for i := range w.slots[:w.n] {
		list = v.memberEdges(list, int8(i))
	}
	if r := &w.records[w.template]; r.Halted || r.RolledBack {
		list = append(list, edge{kind: retryEdge})
	}
	return list
}

func (v *view) memberEdges(list []edge, i int8) []edge {
	w, s := v.w, &v.w.slots[i]
	leaving := s.Disruption.Remove && s.Disruption.Incarnation == s.Incarnation
	list = v.lates(append(list, edge{kind: holdEdge, i: i}))
	if s.body.state == rollout.Ready && !s.ServedSince.IsZero() {
		list = append(list, edge{kind: workEdge, i: i})
	}
	if s.Body && !s.Asked && !leaving {
		list = v.lates(append(list, edge{kind: recycleEdge, i: i}))
	}
	onTarget := s.Body && s.InService() && s.Runs == revisions[w.target()]
	if w.target() != w.current && s.Phase != rollout.Terminating && !onTarget && !s.Skipped {
		list = v.lates(append(list, edge{kind: skipEdge, i: i}))
	}
	return list
}

// knows reports whether anything is left of the revision. One of which nothing is left
// is as good as any other.
func (w *world) knows(r int8) bool {
	if w.template == r || w.current == r || w.records[r].Halted || len(w.records[r].Failures) > 0 {
		return true
	}
	for i := range w.slots[:w.n] {
		if s := &w.slots[i]; s.Runs == revisions[r] || s.Wants == revisions[r] || s.Recovered == revisions[r] {
			return true
		}
	}
	return false
}

// mayWait reports whether no body does something that takes milliseconds, or should
// have booted by now.
func (w *world) mayWait() bool {
	for i := range w.slots[:w.n] {
		s := &w.slots[i]
		b := &s.body
		switch {
		case b.slow:
		case b.state == rollout.Stopping, b.draining && !b.drained:
			return false
		case b.state == rollout.Booting && !b.booted && w.now.Sub(s.BornAt) >= bootTime:
			return false
		}
	}
	return true
}

// wake is when something changes by itself; zero for never.
func (v *view) wake() time.Time {
	at := v.plan.Wake
	earlier := func(t time.Time) {
		if t.After(v.w.now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for i := range v.w.slots[:v.w.n] {
		s := &v.w.slots[i]
		earlier(v.steps[i].Wake)
		if s.body.state == rollout.Booting && !s.body.booted && !s.body.slow {
			earlier(s.BornAt.Add(bootTime))
		}
		if s.InService() {
			earlier(s.ServedSince.Add(v.r.life.RecoverAfter))
		}
	}
	return at
}

// longWhile is longer than any threshold.
const longWhile = time.Hour

// follow is the state that the edge leads to. It reports whether it leads anywhere.
func (v *view) follow(e edge, w *world) bool {
	*w = *v.w
	if e.fault() {
		w.faults--
	}
	if e.user() {
		w.users--
	}
	if e.kind == planEdge {
		v.execute(w, int(e.n), nil)
		return true
	}
	v.happen(e, w)
	if !e.late {
		return true
	}
	var changed [maxSlots]bool
	late := false
	for i := range v.plan.Actions {
		a := &v.plan.Actions[i]
		was := v.w.find(a.Index)
		if a.Record != nil || was < 0 {
			continue
		}
		is := w.find(a.Index)
		changed[a.Index] = is < 0 || w.slots[is].Member != v.w.slots[was].Member
		late = late || changed[a.Index]
	}
	if late {
		v.execute(w, whole, changed[:])
	}
	return late
}

// execute carries out the first n actions of the plan, but for those on members that
// have changed. At its end the pool says what it has come to.
func (v *view) execute(w *world, n int, changed []bool) {
	for i := range v.plan.Actions {
		a := &v.plan.Actions[i]
		if i >= n {
			return
		}
		if a.Record == nil && a.Kind != rollout.CreateSlot && changed != nil && changed[a.Index] {
			continue
		}
		w.carry(a)
	}
	w.surge, w.size = int8(v.plan.Surge), int8(v.plan.Size)
	if !v.r.reuse {
		return
	}
	w.stale = int8(v.said.Counts.Stale)
	for i := range w.slots[:w.n] {
		s := &w.slots[i]
		was := v.w.find(s.Index)
		s.blocked = was >= 0 && v.said.Verdict(s.Index) == rollout.Claimed
	}
}

// happen has the edge's event happen.
func (v *view) happen(e edge, w *world) {
	switch e.kind {
	case stepEdge, bootsEdge, goesEdge, drainsEdge, exitsEdge, vanishEdge, downEdge:
		w.slots[e.i].happen(e.kind)
		w.step(v.r, int(e.i), int(e.n))
	case claimEdge:
		v.stepClaim(w, e.i)
	case timeEdge, outageEdge:
		if at := v.wake(); !at.IsZero() {
			w.now = at
		} else {
			w.now = w.now.Add(longWhile)
		}
	case editEdge:
		w.template = e.i
		w.renew(e.i)
		for i := range w.slots[:w.n] {
			w.slots[i].Skipped = false
		}
	case retryEdge:
		r := &w.records[w.template]
		r.Halted, r.RolledBack = false, false
		w.renew(w.template)
	case pauseEdge:
		w.paused = !w.paused
	case scaleEdge:
		w.desired = e.i
	case partitionEdge:
		w.partition = e.i
	case makeEdge:
		w.claims[e.i] = claim{made: true}
	case releaseEdge:
		w.claims[e.i].deleted = true
	default:
		w.slots[e.i].happen(e.kind)
	}
}

// renew starts the revision anew, as the target.
func (w *world) renew(r int8) { w.records[r] = w.records[r].Renewed(w.now) }

// happen is what happens to a slot or its body.
func (s *slot) happen(k kind) {
	b := &s.body
	switch k {
	case bootsEdge:
		b.state, b.booted, b.slow = rollout.Ready, true, false
	case goesEdge, vanishEdge:
		*b = body{}
	case drainsEdge:
		b.drained, b.slow = true, false
	case exitsEdge:
		*b = body{state: rollout.Exited}
	case downEdge:
		b.state = rollout.Booting
	case slowEdge:
		b.slow = true
	case holdEdge:
		s.Held = !s.Held
	case workEdge:
		if s.Occupancy == rollout.Idle {
			s.Occupancy = rollout.Busy
		} else {
			s.Occupancy = rollout.Idle
		}
	case recycleEdge:
		s.Asked = true
	case skipEdge:
		s.Skipped = true
	}
}

// step has the slot take its next step. That its body is told to go, once that is
// recorded, nobody sees: it happens at once.
func (w *world) step(r *rules, i, how int) {
	s := &w.slots[i]
	was := s.Incarnation
	t := rollout.Step(s.Member, s.sight(), r.life, w.now)
	s.Member = t.Member
	switch t.Do {
	case rollout.DropSlot:
		w.drop(i)
		return
	case rollout.CreateBody, rollout.UpdateBody:
		w.born(s, &t, how)
	case rollout.DrainBody:
		s.body.draining = true
	case rollout.UndrainBody:
		s.body.draining, s.body.drained = false, false
	}
	if s.Incarnation != was {
		s.Asked = false
	}
	w.promise(s)
	if t = rollout.Step(s.Member, s.sight(), r.life, w.now); t.Do == rollout.DeleteBody && s.body.state != rollout.Stopping {
		s.body.state, s.body.slow = rollout.Stopping, false
	}
}

// born makes a body, or another one of the body that is there.
func (w *world) born(s *slot, t *rollout.Transition, how int) {
	switch {
	case how == refused:
		s.Member = t.Member.Refused(w.now)
	case how == noRoom:
		s.Member = t.Member.WithoutRoom(w.now)
	case t.Do == rollout.UpdateBody:
		s.Member, s.body = t.Member.Updated(w.now), body{state: rollout.Booting}
	default:
		s.Member, s.body = t.Member.Born(w.now), body{state: rollout.Booting}
	}
	if how == succeeds {
		s.Occupancy = rollout.Idle
	}
}

// stepClaim carries out what a claim's step comes to.
func (v *view) stepClaim(w *world, i int8) {
	c, held := &w.claims[i], w.carrier(i)
	switch t := &v.claims[i]; {
	case t.Do == rollout.BindMember:
		at := rollout.Pick(v.members[:w.n], revisions[w.target()])
		s := &w.slots[at]
		s.Member, s.claim, c.bound = s.Member.Bind(), i, true
		w.promise(s)
	case t.Do == rollout.ReleaseMember || t.Do == rollout.RemoveClaim:
		if held >= 0 {
			s := &w.slots[held]
			r := rollout.Release{
				Reuse: v.r.reuse, InPlace: v.r.policy.InPlace, Held: s.Held, Skipped: s.Skipped,
				Stale: int(w.stale), Partition: int(w.partition), Waiting: w.waiting(),
			}
			if s.blocked {
				r.Blocker = rollout.Claimed
			}
			s.Member, s.claim = s.Member.Release(&r, w.now), nobody
			w.promise(s)
		}
		w.end(i)
	case t.Claim.Ended():
		w.end(i)
	}
}

// end forgets a claim. The one made after it takes its place.
func (w *world) end(i int8) {
	w.claims[i] = claim{}
	if i > 0 || !w.claims[1].made {
		return
	}
	w.claims[0], w.claims[1] = w.claims[1], claim{}
	for k := range w.slots[:w.n] {
		if s := &w.slots[k]; s.Claimed {
			s.claim = 0
		}
	}
}

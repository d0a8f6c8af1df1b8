package states

import (
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

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

// step makes the next step of the slot. A body is deleted in the same edge in which its
// end is recorded, since nothing else reads the body between the two.
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
		s.Member, s.claim, c.bound = s.Bind(), i, true
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
			s.Member, s.claim = s.Release(&r, w.now), absent
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

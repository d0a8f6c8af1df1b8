package states

import (
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

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

// carrier is the position of the slot that carries the claim, or absent.
func (w *world) carrier(c int8) int {
	for i := range w.slots[:w.n] {
		if w.slots[i].Claimed && w.slots[i].claim == c {
			return i
		}
	}
	return absent
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

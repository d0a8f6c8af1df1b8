package simulate

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// promises are the rules that must hold at every action in every scenario: those
// that FORMAT.md lists, and a few more of the design. The checks count for
// themselves and do not use the engine's ledger; the engine's own invariants are
// checked, too.
//
// A controller does not know writes that it has not seen. Therefore a promise about
// numbers is broken only if it is broken both in the store and in the controller's
// view, which includes its own writes.
type promises struct {
	// used are the slots, by ID, whose claim has ended, with the incarnation that is
	// to be replaced.
	used map[string]int64
	// disturbed is the time of the last event that controllers notice an instant
	// later.
	disturbed time.Duration
}

// checkPlan checks a plan against the engine's invariants and the promises about
// plans.
func (j *judge) checkPlan(p *pool, s *rollout.Snapshot, plan *rollout.Plan) {
	j.checkStalled(p, plan)
	j.checkWording(p, s, plan)
	j.checkWake(p, s, plan)
	if len(plan.Actions) == 0 {
		return
	}
	if err := rollout.CheckInvariants(s, plan); err != nil {
		j.breakPromise("the plan for %s: %v", p.name, err)
	}
	j.checkRemovalOrder(p, s, plan)
}

// checkRemovalOrder checks that a scale-in removes members that are down first,
// then stale ones. Exempt are the slot on probation while a failure of the target
// is open, and slots that were made for a claim.
func (j *judge) checkRemovalOrder(p *pool, s *rollout.Snapshot, plan *rollout.Plan) {
	acted := map[int]bool{}
	best := -1
	rank := func(m *rollout.Member) int {
		switch {
		case !m.InService():
			return 0
		case m.Runs != s.Target.ID:
			return 1
		}
		return 2
	}
	worth, target := 0, s.Target
	for i := range plan.Actions {
		a := &plan.Actions[i]
		if a.Record != nil {
			if a.Revision == target.ID {
				target = *a.Record
			}
			continue
		}
		acted[a.Index] = true
		m, ok := slices.BinarySearchFunc(s.Members, a.Index, func(m rollout.Member, i int) int { return m.Index - i })
		if ok && a.Disruption.Cause == rollout.ScaleDown && rank(&s.Members[m]) > worth {
			best, worth = a.Index, rank(&s.Members[m])
		}
	}
	trying := !target.Halted && slices.ContainsFunc(target.Failures, func(f rollout.Failure) bool { return !f.Forgiven })
	for i := range s.Members {
		m := &s.Members[i]
		slot := p.planner.cache.slots.get(m.Index)
		idle := m.ServedSince.IsZero() || m.Occupancy == rollout.Idle
		if best >= 0 && !trying && !acted[m.Index] && !slot.leaves() && !m.ForClaim && !m.Claimed && !m.Held && idle && rank(m) < worth {
			j.breakPromise("%s is removed although %s is to be removed before it", p.member(best), p.member(m.Index))
			return
		}
	}
}

func (j *judge) breakPromise(format string, args ...any) {
	j.fail("promise", "", 0, fmt.Sprintf(format, args...))
}

// checkSlotWrite checks every stored version of a slot.
func (j *judge) checkSlotWrite(p *pool, old, next *slot) {
	j.trackTarget(p, old, next)
	if next == nil {
		delete(p.rolling, old.ID)
		if old.claimUID != 0 {
			j.breakPromise("%s went while %s held it", p.member(old.Index), old.claim)
		}
		if b := p.bodies[old.Index]; b != nil {
			j.breakPromise("%s is removed although its body %s exists", p.member(old.Index), b.name())
		}
		return
	}
	if next.claimUID != 0 && next.disrupted() {
		j.breakPromise("%s holds claim %s and a live disruption", p.member(next.Index), next.claim)
	}
	if next.Phase == rollout.Terminating && next.claimUID != 0 {
		j.breakPromise("%s terminates although %s holds it", p.member(next.Index), next.claim)
	}
	taken, rolling := p.rolling[next.ID]
	if rolling && (next.inService() || next.replaced(taken) || !next.disrupted() && next.Incarnation == taken) {
		delete(p.rolling, next.ID)
	}
	j.checkReuse(p, next)
	if next.claimUID != 0 && (old == nil || old.claimUID != next.claimUID) {
		j.checkClaimed(p, old, next)
	}
	if old != nil && old.Phase == rollout.Draining && (next.Phase == rollout.Terminating || next.Phase == rollout.Updating) {
		j.checkDrained(p, next)
	}
}

// replaced reports whether the body after the taken incarnation is ready. A cordon
// makes no difference.
func (s *slot) replaced(taken int64) bool {
	up := s.Phase == rollout.Available || s.Phase == rollout.InClaim
	return s.Incarnation > taken && up && !s.disrupted()
}

// checkReuse checks that a body that was to be replaced when its claim ended does
// not serve again.
func (j *judge) checkReuse(p *pool, s *slot) {
	if s.Disruption.Cause == rollout.ClaimEnded && s.disrupted() {
		if j.promises.used == nil {
			j.promises.used = map[string]int64{}
		}
		j.promises.used[s.ID] = s.Incarnation
	}
	if used, ok := j.promises.used[s.ID]; ok && used == s.Incarnation && s.inService() {
		j.breakPromise("%s serves again with the body that was to be replaced when its claim ended", p.member(s.Index))
		delete(j.promises.used, s.ID)
	}
}

// checkDrained checks a member that has drained for drift and is terminated: if it
// is on the target again, the disruption should have been withdrawn.
func (j *judge) checkDrained(p *pool, s *slot) {
	wanted := s.Disruption.Cause == rollout.Drift && !s.Deleting && s.Runs == p.target() && p.state.target == p.spec.target
	if wanted && j.w.nature.lag == 0 && j.w.now > j.promises.disturbed && j.w.unreadable() == "" {
		j.breakPromise("%s is terminated for drift although it is on the target", p.member(s.Index))
	}
}

// noteDisturbance records an event that controllers notice an instant later.
func (j *judge) noteDisturbance() { j.promises.disturbed = j.w.now }

// checkClaimed checks a slot that has just been claimed.
func (j *judge) checkClaimed(p *pool, old, next *slot) {
	if old == nil || old.claimUID != 0 || !old.inService() {
		j.breakPromise("%s was claimed by %s although it was not free", p.member(next.Index), next.claim)
	}
	if i, ok := p.holders[next.claimUID]; ok && i != next.Index {
		j.breakPromise("claim %s holds %s and %s", next.claim, p.member(i), p.member(next.Index))
	}
}

// checkBound checks a claim that has just been bound.
func (j *judge) checkBound(p *pool, c *claim) {
	if i, ok := p.holders[c.uid]; ok && i != c.member {
		j.breakPromise("%s names %s as its member, but %s carries it", c.name, p.member(c.member), p.member(i))
	}
}

// checkBirth checks that a body, which is counted already, may be born.
func (j *judge) checkBirth(b *body) {
	if r := j.w.unreadable(); r != "" {
		j.breakPromise("body %s is born while it is %s", b.name(), r)
	}
	if j.w.bodies > j.w.nature.capacity {
		j.breakPromise("body %s does not fit: %d bodies, capacity %d", b.name(), j.w.bodies, j.w.nature.capacity)
	}
	n, most := b.p.counted().staying, b.p.ceiling()
	if s := b.p.slots.get(b.index); n > most && !s.held(j.w.clock()) && j.w.nature.lag == 0 {
		j.breakPromise("body %s is born as number %d of the bodies that stay, but maxMembers is %d", b.name(), n, most)
	}
}

// ceiling is the larger of the current maxMembers and that of the last pass.
func (p *pool) ceiling() (most int) {
	for _, spec := range []*specRecord{p.spec, p.planner.lastSpec} {
		switch {
		case spec == nil || !spec.policy.HasCeiling:
			return unlimited
		case spec.policy.MaxMembers > most:
			most = spec.policy.MaxMembers
		}
	}
	return most
}

// checkDisruption checks a disruption that is about to be stored on old. seen are
// the slots as the controller sees them, including its own writes; spec is the spec
// of its pass.
func (j *judge) checkDisruption(p *pool, a *rollout.Action, old *slot, seen slots, spec *specRecord) {
	if p.slots.get(old.Index) != old {
		return // the write will be a conflict
	}
	if !p.inOrder[old.Index] {
		p.inOrder[old.Index] = true
		p.order = append(p.order, old.Index)
	}
	j.checkReadable(p, a)
	j.checkGrant(p, a, spec)
	j.checkInUse(p, a, old)
	j.checkSize(p, a, old, seen, spec)
	if a.Disruption.Cause != rollout.Drift {
		return
	}
	if shut(p.spec, j.w) && shut(spec, j.w) && !old.ServedSince.IsZero() {
		j.breakPromise("%s is disrupted for drift outside the windows", p.member(old.Index))
	}
	if !old.inService() {
		return
	}
	if i, ok := j.checkUnsettled(p, a, p.slots, p.spec); !ok && !p.probation() {
		if _, ok := j.checkUnsettled(p, a, seen, spec); !ok {
			j.breakPromise("%s is taken although %s went down before it had recovered, and no body of %s has recovered since",
				p.member(old.Index), p.member(i), a.Revision)
		}
	}
	p.rolling[old.ID] = old.Incarnation
	n := len(p.rolling)
	if n > spec.policy.MaxInFlight && n > p.spec.policy.MaxInFlight {
		j.breakPromise("%s is taken as number %d although %d may roll at once", p.member(old.Index), n, p.spec.policy.MaxInFlight)
	}
	truth := p.without(old.Index)
	view := sync.OnceValue(func() sums { return count(seen, old.Index) }) // rarely needed
	if !truth.legal(&p.spec.policy, n) && !view().legal(&spec.policy, n) {
		j.breakPromise("%s is taken although it cannot be spared: up %d and free %d remain, room %d, floorRoom %d",
			p.member(old.Index), truth.up(&p.spec.policy), truth.free, truth.room(&p.spec.policy), truth.floorRoom(&p.spec.policy))
	}
	if truth.slotsMissing(&p.spec.policy) && view().slotsMissing(&spec.policy) {
		j.breakPromise("%s is taken although the size asks for %d and there are %d",
			p.member(old.Index), p.spec.policy.Desired, truth.slots)
	}
}

// shut reports whether no disruption for drift may start now.
func shut(spec *specRecord, w *world) bool {
	open, _ := spec.windows.At(w.time())
	return !open
}

// checkReadable checks that nothing is decided while reads fail.
func (j *judge) checkReadable(p *pool, a *rollout.Action) {
	if r := j.w.unreadable(); r != "" {
		j.breakPromise("%s of %s is decided while it is %s", a.Kind, p.member(a.Index), r)
	}
}

// checkGrant checks that no slot is granted a target that has reached its failure
// limit.
func (j *judge) checkGrant(p *pool, a *rollout.Action, spec *specRecord) {
	t := p.state.record(p.state.target)
	if a.Why == rollout.WhyAdopt {
		return // an adoption makes no body
	}
	if p.state.current == "" {
		return // there is no revision to go back to
	}
	failed := 0
	for i := range t.Failures {
		if t.Failures[i].Count > 0 {
			failed++
		}
	}
	if a.Revision == t.ID && !a.Disruption.Remove && p.state.current != t.ID && failed >= spec.policy.FailureLimit {
		j.breakPromise("%s is granted a body on %s, which has failed in %d slots", p.member(a.Index), t.ID, failed)
	}
}

// checkInUse checks that no member in use is disrupted. Drift takes no member that
// is claimed, busy or held. Other causes take none that is claimed or busy, unless
// its body is gone. A recycle request and a scale-in also respect a hold, whatever
// the state of the body.
func (j *judge) checkInUse(p *pool, a *rollout.Action, old *slot) {
	b := p.bodyOf(old)
	cause := a.Disruption.Cause
	drift := cause == rollout.Drift
	name := p.member(old.Index)
	if (cause == rollout.Requested || cause == rollout.ScaleDown) && old.held(j.w.clock()) {
		j.breakPromise("%s is disrupted for %s although it is held", name, cause)
	}
	if !drift && (b == nil || b.exited) {
		return
	}
	occupancy := p.readMember(old).Occupancy
	switch {
	case old.claimUID != 0:
		j.breakPromise("%s is disrupted for %s although %s holds it", name, a.Disruption.Cause, old.claim)
	case !old.ServedSince.IsZero() && occupancy != rollout.Idle && !old.isGoing():
		j.breakPromise("%s is disrupted for %s although it is %s", name, a.Disruption.Cause, occupancyNames[occupancy])
	case drift && old.held(j.w.clock()):
		j.breakPromise("%s is disrupted for drift although it is held", name)
	}
}

// checkCreateSlot checks a slot that is about to be made. waiting is the number of
// waiting claims that the controller saw.
func (j *judge) checkCreateSlot(p *pool, a *rollout.Action, seen slots, waiting int) {
	spec := p.planner.cache.spec
	j.checkReadable(p, a)
	j.checkGrant(p, a, spec)
	truth := p.counted().sums.counted(&p.spec.policy) + 1
	view := func() int {
		n := count(seen, a.Index).counted(&spec.policy) + 1
		if spec.policy.Warm {
			n -= p.planner.taken
		}
		return n
	}
	most := maxSlots(&p.spec.policy, a.Surge, max(p.waiting(), p.slots.reservedForClaims()))
	if truth > most && view() > maxSlots(&spec.policy, a.Surge, max(waiting, seen.reservedForClaims())) {
		j.breakPromise("%s is made as number %d, but %d are enough", p.member(a.Index), truth, most)
	}
	if full(&p.spec.policy, p.slots) && full(&spec.policy, seen) {
		j.breakPromise("%s is made as number %d, but maxMembers is %d", p.member(a.Index), len(p.slots)+1, p.spec.policy.MaxMembers)
	}
	if a.Surge && shut(p.spec, j.w) && shut(spec, j.w) {
		j.breakPromise("%s is made for drift outside the windows", p.member(a.Index))
	}
}

// reservedForClaims counts the unclaimed slots that were made for claims. They do
// not count as surplus for a while.
func (l slots) reservedForClaims() (n int) {
	for _, s := range l {
		if s.ForClaim && s.claimUID == 0 && !s.leaves() {
			n++
		}
	}
	return n
}

// full reports whether maxMembers allows no more slot.
func full(p *rollout.Policy, list slots) bool { return p.HasCeiling && len(list) >= p.MaxMembers }

// maxSlots is how many slots that count towards the size there may be.
func maxSlots(p *rollout.Policy, surge bool, waiting int) int {
	n := p.Desired
	if p.Warm {
		n += waiting
	}
	if surge {
		n += p.MaxSurge
	}
	return n
}

// sums are counts of members: in service; free; free and idle, so that a claim can
// get them; all slots; slots that are not leaving; and of these, claimed ones.
type sums struct{ served, free, claimable, all, slots, claimed int }

// count returns the sums of recorded slots, as if the taken one were not in service.
func count(list slots, taken int) (n sums) {
	for _, s := range list {
		n.add(s, s.Index != taken && s.inService())
	}
	return n
}

func (n *sums) add(s *slot, serves bool) {
	n.all++
	if !s.leaves() {
		n.slots++
		if s.claimUID != 0 {
			n.claimed++
		}
	}
	if !serves {
		return
	}
	n.served++
	if s.claimUID != 0 {
		return
	}
	n.free++
	if s.Occupancy == rollout.Idle {
		n.claimable++
	}
}

// up counts the members in service; in a warm pool only the free ones.
func (n sums) up(p *rollout.Policy) int {
	if p.Warm {
		return n.free
	}
	return n.served
}

// counted counts the slots that count towards the size.
func (n sums) counted(p *rollout.Policy) int {
	if p.Warm {
		return n.slots - n.claimed
	}
	return n.slots
}

// slotsMissing reports whether slots have to be made before a rollout may go on. A
// refill that may wait or that maxMembers forbids does not count.
func (n sums) slotsMissing(p *rollout.Policy) bool {
	full := p.HasCeiling && n.all >= p.MaxMembers
	return n.slots < p.Desired && !p.Warm && p.RefillBelow == 0 && !full
}

func (n sums) room(p *rollout.Policy) int { return n.up(p) - (p.Desired - p.MaxUnavailable) }

func (n sums) floorRoom(p *rollout.Policy) int {
	if !p.HasFloor {
		return n.free
	}
	return n.claimable - p.MinAvailable
}

func (n sums) legal(p *rollout.Policy, rolling int) bool {
	alone := p.Warm && p.HasFloor && rolling == 1 // with a floor one may roll even without room
	return (n.room(p) >= 0 || alone) && n.floorRoom(p) >= 0
}

package simulate

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// promises are what must hold at every action, whatever a scenario expects:
// what FORMAT.md lists, and a few more of the design's rules. They are counted
// here anew, and not with the engine's own ledger; what the engine says of its
// plans is checked beside them.
//
// A controller that reads late cannot know what it has not seen. Where a
// promise is about numbers, it is broken if it is broken both in truth and in
// what the controller saw, its own writes included.
type promises struct {
	// used are the slots, by identity, whose claim has ended, with the
	// incarnation that is to be replaced.
	used map[string]int64
	// disturbed is when something last happened that controllers need an
	// instant to learn of.
	disturbed time.Duration
}

// planned checks a plan against what the engine itself promises.
func (j *judge) planned(p *pool, s *rollout.Snapshot, plan *rollout.Plan) {
	j.stalls(p, plan)
	j.words(p, s, plan)
	j.lasts(p, s, plan)
	if len(plan.Actions) == 0 {
		return
	}
	if err := rollout.CheckInvariants(s, plan); err != nil {
		j.promise("the plan for %s: %v", p.name, err)
	}
	j.removes(p, s, plan)
}

// removes checks that what is one too many goes in order: what is down, then
// what is stale. While the target fails, the slot that tries it again stays, and
// so does for a while what was made for a claim.
func (j *judge) removes(p *pool, s *rollout.Snapshot, plan *rollout.Plan) {
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
			j.promise("%s is removed although %s is worth less", p.member(best), p.member(m.Index))
			return
		}
	}
}

func (j *judge) promise(format string, args ...any) {
	j.fail("promise", "", 0, fmt.Sprintf(format, args...))
}

// stored checks what must hold of every stored version of a slot.
func (j *judge) stored(p *pool, old, next *slot) {
	j.follows(p, old, next)
	if next == nil {
		delete(p.rolling, old.ID)
		if old.claimUID != 0 {
			j.promise("%s went while %s held it", p.member(old.Index), old.claim)
		}
		if b := p.bodies[old.Index]; b != nil {
			j.promise("%s went and left its body %s behind", p.member(old.Index), b.name())
		}
		return
	}
	if next.claimUID != 0 && next.disrupted() {
		j.promise("%s holds claim %s and a live disruption", p.member(next.Index), next.claim)
	}
	if next.Phase == rollout.Terminating && next.claimUID != 0 {
		j.promise("%s terminates although %s holds it", p.member(next.Index), next.claim)
	}
	taken, rolling := p.rolling[next.ID]
	if rolling && (next.inService() || next.replaced(taken) || !next.disrupted() && next.Incarnation == taken) {
		delete(p.rolling, next.ID)
	}
	j.reused(p, next)
	if next.claimUID != 0 && (old == nil || old.claimUID != next.claimUID) {
		j.claims(p, old, next)
	}
	if old != nil && old.Phase == rollout.Draining && (next.Phase == rollout.Terminating || next.Phase == rollout.Updating) {
		j.goes(p, next)
	}
}

// replaced reports whether the slot has a body in place of the incarnation that
// a rollout took, and that has come up. Whether somebody has cordoned the slot
// meanwhile is no matter of the rollout.
func (s *slot) replaced(taken int64) bool {
	up := s.Phase == rollout.Available || s.Phase == rollout.InClaim
	return s.Incarnation > taken && up && !s.disrupted()
}

// reused checks that no body serves again that was to be replaced when its
// claim ended.
func (j *judge) reused(p *pool, s *slot) {
	if s.Disruption.Cause == rollout.ClaimEnded && s.disrupted() {
		if j.promises.used == nil {
			j.promises.used = map[string]int64{}
		}
		j.promises.used[s.ID] = s.Incarnation
	}
	if used, ok := j.promises.used[s.ID]; ok && used == s.Incarnation && s.inService() {
		j.promise("%s serves again, with the body that was to be replaced when its claim ended", p.member(s.Index))
		delete(j.promises.used, s.ID)
	}
}

// goes checks a member whose end begins after it has drained: one that matches
// again was to be taken back meanwhile.
func (j *judge) goes(p *pool, s *slot) {
	wanted := s.Disruption.Cause == rollout.Drift && !s.Deleting && s.Runs == p.target() && p.state.target == p.spec.target
	if wanted && j.w.nature.lag == 0 && j.w.now > j.promises.disturbed && j.w.unreadable() == "" {
		j.promise("%s goes although it is on the target", p.member(s.Index))
	}
}

// disturb notes that controllers need an instant to learn what is new.
func (j *judge) disturb() { j.promises.disturbed = j.w.now }

// claims checks a slot that has just been claimed.
func (j *judge) claims(p *pool, old, next *slot) {
	if old == nil || old.claimUID != 0 || !old.inService() {
		j.promise("%s was claimed by %s although it was not free", p.member(next.Index), next.claim)
	}
	if i, ok := p.holders[next.claimUID]; ok && i != next.Index {
		j.promise("claim %s holds %s and %s", next.claim, p.member(i), p.member(next.Index))
	}
}

// bound checks a claim that has just been told about its member.
func (j *judge) bound(p *pool, c *claim) {
	if i, ok := p.holders[c.uid]; ok && i != c.member {
		j.promise("%s says that it holds %s, and %s carries it", c.name, p.member(c.member), p.member(i))
	}
}

// born checks that a body fits. It is counted already.
func (j *judge) born(b *body) {
	if r := j.w.unreadable(); r != "" {
		j.promise("body %s is born while it is %s", b.name(), r)
	}
	if j.w.bodies > j.w.nature.capacity {
		j.promise("body %s does not fit: %d bodies, capacity %d", b.name(), j.w.bodies, j.w.nature.capacity)
	}
	n, most := b.p.counted().staying, b.p.ceiling()
	if s := b.p.slots.get(b.index); n > most && !s.held(j.w.clock()) && j.w.nature.lag == 0 {
		j.promise("body %s is born as number %d of those that stay, and maxMembers is %d", b.name(), n, most)
	}
}

// ceiling is maxMembers, or what it was when the pool's controller last knew.
func (p *pool) ceiling() (most int) {
	for _, spec := range []*specRecord{p.spec, p.planner.went} {
		switch {
		case spec == nil || !spec.policy.HasCeiling:
			return unlimited
		case spec.policy.MaxMembers > most:
			most = spec.policy.MaxMembers
		}
	}
	return most
}

// disrupts checks a disruption that is about to be stored on old. Seen are the
// slots as the controller saw them, with what it has written since; spec is
// the policy that it goes by.
func (j *judge) disrupts(p *pool, a *rollout.Action, old *slot, seen slots, spec *specRecord) {
	if p.slots.get(old.Index) != old {
		return // it is about to lose the race
	}
	if !p.ordered[old.Index] {
		p.ordered[old.Index] = true
		p.order = append(p.order, old.Index)
	}
	j.readable(p, a)
	j.grants(p, a, spec)
	j.spares(p, a, old)
	j.sized(p, a, old, seen, spec)
	if a.Disruption.Cause != rollout.Drift {
		return
	}
	if shut(p.spec, j.w) && shut(spec, j.w) && !old.ServedSince.IsZero() {
		j.promise("%s is disrupted for drift outside the windows", p.member(old.Index))
	}
	if !old.inService() {
		return
	}
	if i, ok := j.unsettled(p, a, p.slots, p.spec); !ok && !p.probation() {
		if _, ok := j.unsettled(p, a, seen, spec); !ok {
			j.promise("%s is taken although %s went down before it had recovered, and no body of %s has served for long enough since",
				p.member(old.Index), p.member(i), a.Revision)
		}
	}
	p.rolling[old.ID] = old.Incarnation
	n := len(p.rolling)
	if n > spec.policy.MaxInFlight && n > p.spec.policy.MaxInFlight {
		j.promise("%s is taken as number %d although %d may roll at once", p.member(old.Index), n, p.spec.policy.MaxInFlight)
	}
	truth := p.without(old.Index)
	view := sync.OnceValue(func() sums { return count(seen, old.Index) }) // mostly nobody has to ask
	if !truth.legal(&p.spec.policy, n) && !view().legal(&spec.policy, n) {
		j.promise("%s is taken although it cannot be spared: up %d and free %d remain, room %d, floorRoom %d",
			p.member(old.Index), truth.up(&p.spec.policy), truth.free, truth.room(&p.spec.policy), truth.floorRoom(&p.spec.policy))
	}
	if truth.toMake(&p.spec.policy) && view().toMake(&spec.policy) {
		j.promise("%s is taken although the size asks for %d and there are %d",
			p.member(old.Index), p.spec.policy.Desired, truth.slots)
	}
}

// shut tells whether no disruption for drift may start now.
func shut(spec *specRecord, w *world) bool {
	open, _ := spec.windows.At(w.time())
	return !open
}

// readable checks that nothing is decided while the world cannot be told.
func (j *judge) readable(p *pool, a *rollout.Action) {
	if r := j.w.unreadable(); r != "" {
		j.promise("%s of %s is decided while it is %s", a.Kind, p.member(a.Index), r)
	}
}

// grants checks that no slot is granted a body on a target of which as many
// bodies have failed as may.
func (j *judge) grants(p *pool, a *rollout.Action, spec *specRecord) {
	t := p.state.record(p.state.target)
	if a.Why == rollout.WhyAdopt {
		return // it names what is there
	}
	if p.state.current == "" {
		return // there is nothing to go back to
	}
	failed := 0
	for i := range t.Failures {
		if t.Failures[i].Count > 0 {
			failed++
		}
	}
	if a.Revision == t.ID && !a.Disruption.Remove && p.state.current != t.ID && failed >= spec.policy.FailureLimit {
		j.promise("%s is granted a body on %s, which has failed in %d slots", p.member(a.Index), t.ID, failed)
	}
}

// spares checks that nobody loses what they use: for drift no member that is
// claimed, busy or held, and for anything else none that is claimed or busy,
// unless its body is gone. A hold keeps whatever its body is like, also from a
// person who asks for another one, and from a scale-in.
func (j *judge) spares(p *pool, a *rollout.Action, old *slot) {
	b := p.own(old)
	cause := a.Disruption.Cause
	drift := cause == rollout.Drift
	name := p.member(old.Index)
	if (cause == rollout.Requested || cause == rollout.ScaleDown) && old.held(j.w.clock()) {
		j.promise("%s is disrupted for %s although it is held", name, cause)
	}
	if !drift && (b == nil || b.exited) {
		return
	}
	occupancy := p.seen(old).Occupancy
	switch {
	case old.claimUID != 0:
		j.promise("%s is disrupted for %s although %s holds it", name, a.Disruption.Cause, old.claim)
	case !old.ServedSince.IsZero() && occupancy != rollout.Idle && !old.goes():
		j.promise("%s is disrupted for %s although it is %s", name, a.Disruption.Cause, occupancyNames[occupancy])
	case drift && old.held(j.w.clock()):
		j.promise("%s is disrupted for drift although it is held", name)
	}
}

// made checks a slot that is about to be made. Waiting are the claims that the
// controller saw wait.
func (j *judge) made(p *pool, a *rollout.Action, seen slots, waiting int) {
	spec := p.planner.cache.spec
	j.readable(p, a)
	j.grants(p, a, spec)
	truth := p.counted().sums.counted(&p.spec.policy) + 1
	view := func() int {
		n := count(seen, a.Index).counted(&spec.policy) + 1
		if spec.policy.Warm {
			n -= p.planner.taken
		}
		return n
	}
	most := enough(&p.spec.policy, a.Surge, max(p.waiting(), p.slots.kept()))
	if truth > most && view() > enough(&spec.policy, a.Surge, max(waiting, seen.kept())) {
		j.promise("%s is made as number %d, and %d are enough", p.member(a.Index), truth, most)
	}
	if full(&p.spec.policy, p.slots) && full(&spec.policy, seen) {
		j.promise("%s is made as number %d, and maxMembers is %d", p.member(a.Index), len(p.slots)+1, p.spec.policy.MaxMembers)
	}
	if a.Surge && shut(p.spec, j.w) && shut(spec, j.w) {
		j.promise("%s is made for drift outside the windows", p.member(a.Index))
	}
}

// kept are the slots that were made for claims and are no excess for a while.
func (l slots) kept() (n int) {
	for _, s := range l {
		if s.ForClaim && s.claimUID == 0 && !s.leaves() {
			n++
		}
	}
	return n
}

// full tells whether there may be no slot more.
func full(p *rollout.Policy, list slots) bool { return p.HasCeiling && len(list) >= p.MaxMembers }

// enough is how many slots that count there may be.
func enough(p *rollout.Policy, surge bool, waiting int) int {
	n := p.Desired
	if p.Warm {
		n += waiting
	}
	if surge {
		n += p.MaxSurge
	}
	return n
}

// sums are what the design's ledger counts: members in service, free ones, those of
// them that a claim could get, all slots, those that are to stay, and those of them that are claimed.
type sums struct{ served, free, claimable, all, slots, claimed int }

// count adds up the slots as they are recorded; the one that is taken is no
// longer in service.
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

// up are the members in service that count: in a warm pool the free ones.
func (n sums) up(p *rollout.Policy) int {
	if p.Warm {
		return n.free
	}
	return n.served
}

// counted are the slots that count towards the size.
func (n sums) counted(p *rollout.Policy) int {
	if p.Warm {
		return n.slots - n.claimed
	}
	return n.slots
}

// toMake tells whether slots are still to be made before a rollout goes on. A
// refill that may wait, or finds no room below the ceiling, is none.
func (n sums) toMake(p *rollout.Policy) bool {
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
	alone := p.Warm && p.HasFloor && rolling == 1 // a floor lets one roll whatever the room says
	return (n.room(p) >= 0 || alone) && n.floorRoom(p) >= 0
}

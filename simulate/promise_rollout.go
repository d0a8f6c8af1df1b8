package simulate

import (
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// rolloutWatch is what the judge remembers of a pool's target.
type rolloutWatch struct {
	// target is the one that this is about, since when it has been the target.
	target rollout.Revision
	round  time.Time
	// proofs are the slots, by identity, in which a body of the target has
	// recovered and not failed later, but for those that still serve.
	proofs map[string]bool
	// brief are those of them whose body had not served for long enough when its
	// claim ended, and when that was; early those whose body recovered before the
	// revision became the target, which counts as long as it is there.
	brief map[string]time.Duration
	early map[string]bool
	// began is when this round began.
	began time.Duration
	// bad is when a body of the target last failed, or went down before it had
	// recovered.
	bad time.Duration
	// stands is since when the pool has stood on the target, by the world's own
	// time, and the current revision is another one; never if it does not.
	stands time.Duration
}

// rewind forgets what was proven before the clock was set back: the engine
// takes what it has stored as of now.
func (r *rolloutWatch) rewind(now time.Duration) {
	clear(r.proofs)
	r.bad, r.stands = min(r.bad, now), never
}

// retargeted forgets what was known of another target, and looks for bodies that
// have failed on this one before.
func (p *pool) retargeted() {
	state := p.state
	since := state.record(state.target).Since
	if r := &p.rollout; r.proofs != nil && r.target == state.target && r.round.Equal(since) {
		return
	}
	p.rollout = rolloutWatch{
		target: state.target, round: since, proofs: map[string]bool{}, brief: map[string]time.Duration{}, early: map[string]bool{},
		began: p.w.clock(), bad: never, stands: never,
	}
	for _, s := range p.slots {
		if s.Runs == state.target && (s.Phase == rollout.Failed || s.watch.shaken != never) {
			p.rollout.bad = p.w.clock()
		}
	}
}

// prove notes that the body of the slot has recovered, and when: in time, or since
// it was in health when its claim ended.
func (p *pool) prove(s *slot, inTime bool, at time.Duration) {
	r := &p.rollout
	if r.proofs == nil || s.Runs != r.target || s.Runs == "" {
		delete(r.proofs, s.ID) // the slot remembers its last body that recovered
		return
	}
	if inTime {
		delete(r.brief, s.ID)
	} else if !r.proofs[s.ID] {
		r.brief[s.ID] = p.w.now
	}
	if at > r.began {
		delete(r.early, s.ID)
	} else if !r.proofs[s.ID] {
		r.early[s.ID] = true
	}
	r.proofs[s.ID] = true
}

// follows notes what a stored version of a slot says about the target.
func (j *judge) follows(p *pool, old, next *slot) {
	r := &p.rollout
	p.retargeted()
	if next == nil {
		if at, brief := r.brief[old.ID]; old.Deleting || r.early[old.ID] || brief && (j.w.nature.lag > 0 || at >= j.w.now || at <= j.promises.disturbed) {
			delete(r.proofs, old.ID) // the engine may not have seen it in time
		}
		return
	}
	if r.early[next.ID] && (!next.Body || old == nil || old.Incarnation != next.Incarnation) {
		delete(r.early, next.ID)
		delete(r.proofs, next.ID)
	}
	if next.Runs != r.target {
		return
	}
	now := j.w.clock()
	if next.Phase == rollout.Failed && (old == nil || old.Phase != rollout.Failed || old.Incarnation != next.Incarnation) {
		r.bad = now
		delete(r.proofs, next.ID)
	}
	if next.watch.shaken != never && (old == nil || old.watch.shaken != next.watch.shaken) {
		r.bad = now
	}
}

// most is the number of members above which the judge does not look at what
// takes a look at all of them, again and again.
const mostFollowed = 200

// currents checks that the current revision follows: once the pool stands on the
// target, as the design defines it, and as long as it does, it takes the
// controllers no longer than recovery takes, and than they take to read, to
// make the target the current revision. Until is when the next thing happens.
func (j *judge) currents(p *pool, until time.Duration) {
	r := &p.rollout
	if p.state.current == p.state.target || len(p.slots) > mostFollowed || !j.stands(p) {
		r.stands = never
		return
	}
	if r.stands == never {
		r.stands = j.w.now
	}
	// A target is noted, a round granted and a record written, each seen late.
	bound := p.spec.recoverAfter() + 6*j.w.nature.lag + time.Second
	if until > r.stands+bound {
		j.promise("%s has stood on %s since %s, and the current revision is still %q", p.name, r.target, r.stands, p.state.current)
		r.stands = until // once is enough
	}
}

// stands reports whether the pool stands on its target. Slots whose last body of it
// failed lower the number that is needed; here they do not, which only has the
// pool stand later.
func (j *judge) stands(p *pool) bool {
	w, spec := j.w, p.spec
	r := &p.rollout
	p.retargeted()
	record := p.state.record(r.target)
	switch {
	case w.down || !p.planner.cache.ready || w.unreadable() != "":
		return false
	case spec.deleting || r.target == "" || r.target != spec.target || spec.retry != p.state.retried:
		return false
	case record.Halted || record.RolledBack || spec.policy.Partition > 0:
		return false
	}
	_, after := p.settling()
	now := w.clock()
	size := spec.policy.Desired
	proven, exempt := 0, 0
	well := r.bad == never
	for _, s := range p.slots {
		at := s.Runs == r.target
		switch {
		case at && s.recovered(now, after):
			proven++
			well = well || now-max(s.watch.steady, r.bad) >= after
		case r.proofs[s.ID]:
			proven++
		}
		switch {
		case !s.inService() || s.leaves() || at:
		case p.keptOff(s):
			exempt++
		default:
			return false
		}
	}
	for id := range r.proofs {
		if !p.has(id) {
			proven++
		}
	}
	return well && proven >= max(size-exempt, (size+1)/2, 1)
}

func (p *pool) has(id string) bool {
	for _, s := range p.slots {
		if s.ID == id {
			return true
		}
	}
	return false
}

// keptOff reports whether something keeps a member in service off the target: a
// claim, work, a person, or that nobody can tell what it runs.
func (p *pool) keptOff(s *slot) bool {
	adopted := s.Runs == "" && !p.spec.policy.ReplaceUnknown && (s.Wants == "" || s.Wants == p.rollout.target)
	return adopted || s.claimUID != 0 || p.seen(s).Occupancy != rollout.Idle || s.held(p.w.clock()) || s.skip != "" && s.skip == p.rollout.target
}

// remembers checks a write of the pool controller to what it remembers of
// revisions: the current one is never halted nor rolled back, and what is halted
// stays so until somebody asks for another round, or it becomes the current one.
func (j *judge) remembers(p *pool, old, next *stateRecord) {
	for i := range next.records {
		r := &next.records[i]
		was := old.record(r.ID)
		switch {
		case r.ID == next.current && (r.Halted || r.RolledBack):
			j.promise("%s is the current revision of %s, and is halted", r.ID, p.name)
		case was.Halted && !r.Halted && next.retried == old.retried && r.ID != next.current:
			j.promise("%s was halted in %s, and is not any more, although nobody asked for another round", r.ID, p.name)
		case was.RolledBack && !r.RolledBack && next.retried == old.retried && r.ID != next.current:
			j.promise("%s went back from %s, and takes it up again, although nobody asked for another round", p.name, r.ID)
		}
	}
}

// unsettled checks a member in service that is about to be taken for drift: while
// a body of the target went down before it had recovered, none is, unless one
// has served since for as long as recovery takes. With a failure open one may
// try the target on probation. It reports in the list what was seen.
func (j *judge) unsettled(p *pool, a *rollout.Action, list slots, spec *specRecord) (index int, ok bool) {
	target := a.Revision
	if a.Disruption.Remove {
		target = targetOf(spec, p.state)
	}
	if p.state.current == target {
		return 0, true
	}
	now, after := p.w.clock(), spec.recoverAfter()
	index, ok = 0, true
	from := never
	for _, s := range list {
		shaken := s.watch.shaken != never && s.Runs == target && s.Body && s.Phase != rollout.Failed && !s.disrupted() && !s.recovered(now, after)
		if shaken && s.watch.shaken > from {
			index, from, ok = s.Index, s.watch.shaken, false
		}
	}
	if ok {
		return 0, true
	}
	for _, s := range list {
		if s.Runs == target && s.watch.up != never && s.inService() && now-max(s.watch.up, from) >= after {
			return 0, true
		}
	}
	return index, false
}

// probation reports whether a failure of the target is open, so that one member
// in service may be taken to try it.
func (p *pool) probation() bool {
	r := p.state.record(p.state.target)
	for i := range r.Failures {
		if !r.Failures[i].Forgiven {
			return true
		}
	}
	return false
}

// sized checks a member in service that is about to be removed since there are
// too many: as many as the size asks for have to remain in service.
func (j *judge) sized(p *pool, a *rollout.Action, old *slot, seen slots, spec *specRecord) {
	if a.Disruption.Cause != rollout.ScaleDown || !old.inService() || p.spec.deleting || spec.deleting {
		return
	}
	truth := p.without(old.Index)
	least := p.asked(p.spec, truth, p.waiting(), unsure(p, p.slots))
	if truth.up(&p.spec.policy) >= least {
		return
	}
	view := count(seen, old.Index)
	if view.up(&spec.policy) >= p.asked(spec, view, p.planner.waiting, unsure(p, seen)) {
		return
	}
	j.promise("%s is removed, which leaves %d in service, and the size asks for %d", p.member(old.Index), truth.up(&p.spec.policy), least)
}

// asked is how many members in service the size asks for: in a warm pool one
// more for each claim that waits, unless it may get one of which nobody can tell
// whether work runs on it; and no more than maxMembers leaves.
func (p *pool) asked(spec *specRecord, n sums, waiting, unsure int) int {
	size := spec.policy.Desired
	if spec.policy.Warm {
		size += max(0, waiting-unsure)
	}
	if spec.policy.HasCeiling {
		most := spec.policy.MaxMembers
		if spec.policy.Warm {
			most -= n.claimed
		}
		size = max(0, min(size, most))
	}
	return size
}

// unsure counts free members of which nobody can tell whether work runs on them.
func unsure(p *pool, list slots) (n int) {
	for _, s := range list {
		if s.inService() && s.claimUID == 0 && p.seen(s).Occupancy == rollout.OccupancyUnsure {
			n++
		}
	}
	return n
}

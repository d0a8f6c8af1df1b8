package simulate

import (
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// rolloutWatch is what the judge has recorded of a pool's target.
type rolloutWatch struct {
	// target is the revision, since the time from which it has been the target.
	target rollout.Revision
	since  time.Time
	// proofs are the slots, by ID, in which a body of the target has recovered and
	// not failed later, and is not in service any more.
	proofs map[string]bool
	// notInTime are the proofs of bodies that recovered only because their claim
	// ended, with the time of that. early are those of bodies that recovered before
	// the revision became the target; they count while the body exists.
	notInTime map[string]time.Duration
	early     map[string]bool
	// began is when this round began.
	began time.Duration
	// lastFailed is when a body of the target last failed, or went down before it
	// had recovered.
	lastFailed time.Duration
	// stands is since when, by the world's clock, the pool has stood on the target
	// while another revision is the current one; never if that is not the case.
	stands time.Duration
}

// rewind drops all proofs after the clock was set back: the engine treats stored
// times in the future as now.
func (r *rolloutWatch) rewind(now time.Duration) {
	clear(r.proofs)
	r.lastFailed, r.stands = min(r.lastFailed, now), never
}

// trackNewTarget starts a new rolloutWatch if the target or its round has changed.
func (p *pool) trackNewTarget() {
	state := p.state
	since := state.record(state.target).Since
	if r := &p.rollout; r.proofs != nil && r.target == state.target && r.since.Equal(since) {
		return
	}
	p.rollout = rolloutWatch{
		target: state.target, since: since, proofs: map[string]bool{}, notInTime: map[string]time.Duration{}, early: map[string]bool{},
		began: p.w.clock(), lastFailed: never, stands: never,
	}
	for _, s := range p.slots {
		if s.Runs == state.target && (s.Phase == rollout.Failed || s.watch.shaken != never) {
			p.rollout.lastFailed = p.w.clock()
		}
	}
}

// recordProof records that the body of the slot has recovered at the time: inTime by
// serving for long enough, or else because it was healthy when its claim ended.
func (p *pool) recordProof(s *slot, inTime bool, at time.Duration) {
	r := &p.rollout
	if r.proofs == nil || s.Runs != r.target || s.Runs == "" {
		delete(r.proofs, s.ID) // a slot stores only its last recovery
		return
	}
	if inTime {
		delete(r.notInTime, s.ID)
	} else if !r.proofs[s.ID] {
		r.notInTime[s.ID] = p.w.now
	}
	if at > r.began {
		delete(r.early, s.ID)
	} else if !r.proofs[s.ID] {
		r.early[s.ID] = true
	}
	r.proofs[s.ID] = true
}

// trackTarget updates the rolloutWatch with a stored version of a slot.
func (j *judge) trackTarget(p *pool, old, next *slot) {
	r := &p.rollout
	p.trackNewTarget()
	if next == nil {
		if at, brief := r.notInTime[old.ID]; old.Deleting || r.early[old.ID] || brief && (j.w.nature.lag > 0 || at >= j.w.now || at <= j.promises.disturbed) {
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
		r.lastFailed = now
		delete(r.proofs, next.ID)
	}
	if next.watch.shaken != never && (old == nil || old.watch.shaken != next.watch.shaken) {
		r.lastFailed = now
	}
}

// mostFollowed is the number of members up to which the judge makes checks that
// read all members at each step.
const mostFollowed = 200

// checkCurrent checks that the target becomes the current revision in time: once the
// pool has stood on the target, as the design defines it, for the time of a recovery
// and some lags. until is the time of the next event.
func (j *judge) checkCurrent(p *pool, until time.Duration) {
	r := &p.rollout
	if p.state.current == p.state.target || len(p.slots) > mostFollowed || !j.standsOnTarget(p) {
		r.stands = never
		return
	}
	if r.stands == never {
		r.stands = j.w.now
	}
	// Target, round and record are three writes, each with a lag.
	bound := p.spec.recoverAfter() + 6*j.w.nature.lag + time.Second
	if until > r.stands+bound {
		j.breakPromise("%s has stood on %s since %s, but the current revision is still %q", p.name, r.target, r.stands, p.state.current)
		r.stands = until // reports it only once
	}
}

// standsOnTarget reports whether the pool stands on its target. Unlike in the design,
// slots whose last body failed do not lower the number that is needed, so that a
// pool may stand later here than in the engine, never earlier.
func (j *judge) standsOnTarget(p *pool) bool {
	w, spec := j.w, p.spec
	r := &p.rollout
	p.trackNewTarget()
	record := p.state.record(r.target)
	switch {
	case w.down || !p.planner.cache.ready || w.unreadable() != "":
		return false
	case spec.deleting || r.target == "" || r.target != spec.target || spec.retry != p.state.retried:
		return false
	case record.Halted || record.RolledBack || spec.policy.Partition > 0:
		return false
	}
	_, after := p.recoveryTimes()
	now := w.clock()
	size := spec.policy.Desired
	proven, exempt := 0, 0
	well := r.lastFailed == never
	for _, s := range p.slots {
		at := s.Runs == r.target
		switch {
		case at && s.recovered(now, after):
			proven++
			well = well || now-max(s.watch.steady, r.lastFailed) >= after
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

// keptOff reports whether a member in service may stay off the target: it is
// claimed, busy, held, skipped or adopted.
func (p *pool) keptOff(s *slot) bool {
	adopted := s.Runs == "" && !p.spec.policy.ReplaceUnknown && (s.Wants == "" || s.Wants == p.rollout.target)
	return adopted || s.claimUID != 0 || p.readMember(s).Occupancy != rollout.Idle || s.held(p.w.clock()) || s.skip != "" && s.skip == p.rollout.target
}

// checkRecords checks a write of the records of revisions: the current revision is
// never halted or rolled back, and another one stays halted until a user asks for
// another round or it becomes the current one.
func (j *judge) checkRecords(p *pool, old, next *stateRecord) {
	for i := range next.records {
		r := &next.records[i]
		was := old.record(r.ID)
		switch {
		case r.ID == next.current && (r.Halted || r.RolledBack):
			j.breakPromise("%s is halted although it is the current revision of %s", r.ID, p.name)
		case was.Halted && !r.Halted && next.retried == old.retried && r.ID != next.current:
			j.breakPromise("%s is not halted any more in %s, although no user asked for another round", r.ID, p.name)
		case was.RolledBack && !r.RolledBack && next.retried == old.retried && r.ID != next.current:
			j.breakPromise("%s rolls to %s again after a rollback, although no user asked for another round", p.name, r.ID)
		}
	}
}

// checkUnsettled reports whether a member in service may be taken for drift: no body
// of the target in the list is unsettled, or one has served since for the time of a
// recovery. Otherwise index is the member of the unsettled body.
func (j *judge) checkUnsettled(p *pool, a *rollout.Action, list slots, spec *specRecord) (index int, ok bool) {
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
		unsettled := s.watch.shaken != never && s.Runs == target && s.Body && s.Phase != rollout.Failed && !s.disrupted() && !s.recovered(now, after)
		if unsettled && s.watch.shaken > from {
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

// checkSize checks the scale-in of a member in service: as many members as the size
// asks for have to remain in service.
func (j *judge) checkSize(p *pool, a *rollout.Action, old *slot, seen slots, spec *specRecord) {
	if a.Disruption.Cause != rollout.ScaleDown || !old.inService() || p.spec.deleting || spec.deleting {
		return
	}
	truth := p.without(old.Index)
	least := p.sizeNeeded(p.spec, truth, p.waiting(), unsure(p, p.slots))
	if truth.up(&p.spec.policy) >= least {
		return
	}
	view := count(seen, old.Index)
	if view.up(&spec.policy) >= p.sizeNeeded(spec, view, p.planner.waiting, unsure(p, seen)) {
		return
	}
	j.breakPromise("%s is removed, which leaves %d in service, but the size asks for %d", p.member(old.Index), truth.up(&p.spec.policy), least)
}

// sizeNeeded is the number of members in service that the size asks for, at most
// what maxMembers allows. In a warm pool each waiting claim adds one, unless it may
// get a member of unknown occupancy.
func (p *pool) sizeNeeded(spec *specRecord, n sums, waiting, unsure int) int {
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

// unsure counts unclaimed members in service of unknown occupancy.
func unsure(p *pool, list slots) (n int) {
	for _, s := range list {
		if s.inService() && s.claimUID == 0 && p.readMember(s).Occupancy == rollout.OccupancyUnsure {
			n++
		}
	}
	return n
}

package simulate

import (
	"math"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// watch is the judge's record of a slot. Each stored version has its own, so that a
// controller with lag is judged by the version that it saw. It is derived only from
// phases and disruptions, not from the times that the engine stores. Times are those
// of the controllers' clock.
type watch struct {
	// away is since when the slot has been on its way into service: since it was
	// made or went down, or since the last decision to replace its body.
	away time.Duration
	// up is since when the body has been in service without a break; a withdrawn
	// drain is not a break. never while it is not in service.
	up time.Duration
	// steady is the same, except that a cordon counts as a break.
	steady time.Duration
	// shaken is when the body first went down before it had recovered; never if
	// it did not.
	shaken time.Duration
	// arrived is when a body of the slot last came into service for its first time;
	// never if none has. before is the same for earlier bodies that recovered; nothing
	// is stored of others.
	arrived, before time.Duration
	// came: the body has been in service. settled: it has recovered, at the time
	// proven. failed: it has failed.
	came, settled, failed bool
	proven                time.Duration
}

// never is the time of an event that has not happened.
const never = time.Duration(math.MinInt64)

// recoverAfter returns how long a body has to be in service to recover: the longer
// of a minute and minReadySeconds.
func (s *specRecord) recoverAfter() time.Duration { return max(time.Minute, s.policy.MinReady) }

// recoveryTimes returns the shorter and the longer recovery time of the stored spec
// and of the spec that the member controller sees.
func (p *pool) recoveryTimes() (least, most time.Duration) {
	a, b := p.spec.recoverAfter(), p.spec.recoverAfter()
	if s := p.keeper.cache.spec; s != nil {
		b = s.recoverAfter()
	}
	return min(a, b), max(a, b)
}

// nextWatch returns the watch of the next version of a slot.
func (p *pool) nextWatch(old, next *slot) watch {
	now := p.w.clock()
	w := watch{away: now, up: never, steady: never, shaken: never, arrived: never, before: never}
	if old != nil {
		w = old.watch
		w.updateAway(old, next, now)
		if old.Incarnation != next.Incarnation {
			p.endService(&w, old, next, now)
			switch {
			case w.settled && w.failed:
				w.arrived = never // a failure deletes the slot's stored recovery
			case !w.settled:
				w.arrived = w.before
			}
			w.before = w.arrived
			w.up, w.steady, w.shaken, w.came, w.settled, w.failed = never, never, never, false, false, false
		}
	}
	w.failed = w.failed || next.Phase == rollout.Failed
	switch next.Phase {
	case rollout.Available, rollout.InClaim:
		if w.up == never {
			w.up = now
		}
		switch {
		case !next.inService() && !next.disrupted():
			w.steady = never
		case w.steady == never:
			w.steady = now
		}
		if !w.came {
			w.came, w.arrived = true, now
		}
	case rollout.Draining: // the body may still serve, and the drain may be withdrawn
	default:
		p.endService(&w, old, next, now)
	}
	return w
}

// updateAway updates away for the next version of the slot.
func (w *watch) updateAway(old, next *slot, now time.Duration) {
	switch {
	case next.inService():
		w.away = never
	case old.inService():
		w.away = now
	case next.disrupted() && next.Disruption != old.Disruption && !next.Disruption.Rolling && !next.Disruption.Remove:
		w.away = now // another decision to replace the body
	}
}

// keepable reports whether a claim, work or a hold can keep the body of a slot that
// is not in service: the body exists and is not being deleted.
func (s *slot) keepable() bool {
	return s.Phase == rollout.Unready || s.Phase == rollout.Failed && !s.Gone || s.Phase == rollout.Draining
}

// kept reports whether a claim, work or a hold keeps the body now.
func (p *pool) kept(s *slot) bool {
	busy := s.watch.came && p.readMember(s).Occupancy != rollout.Idle
	return s.keepable() && (!s.disrupted() || s.Disruption.Cause != rollout.ClaimEnded) && (s.claimUID != 0 || busy || s.held(p.w.clock()))
}

// endService updates the watch for a body that leaves service. A healthy body whose
// claim has ended has recovered.
func (p *pool) endService(w *watch, old, next *slot, now time.Duration) {
	if w.up == never || old == nil {
		return
	}
	least, most := p.recoveryTimes()
	served := now - w.up
	steady := w.steady != never && now-w.steady >= most
	b := p.bodies[old.Index]
	healthy := next.disrupted() && next.Disruption.Cause == rollout.ClaimEnded && b != nil && b.ready()
	switch {
	case served >= most || healthy:
		if !w.settled {
			w.settled, w.proven = true, min(now, w.up+least)
		}
		w.shaken = never
		if steady || healthy {
			p.recordProof(old, steady, w.proven)
		}
	case served < least && !w.settled && w.shaken == never && !old.disrupted() && !next.disrupted():
		w.shaken = now
	}
	w.up, w.steady = never, never
}

// recovered reports whether the body is in service, and has been so for the time.
func (s *slot) recovered(now, after time.Duration) bool {
	return s.watch.steady != never && s.inService() && now-s.watch.steady >= after
}

// rewind moves recorded times that are in the future to now, after the clock was set
// back.
func (p *pool) rewind() {
	now := p.w.clock()
	back := func(list slots) {
		for _, s := range list {
			for _, t := range []*time.Duration{&s.watch.away, &s.watch.up, &s.watch.steady, &s.watch.shaken, &s.watch.arrived, &s.watch.before, &s.watch.proven} {
				*t = min(*t, now)
			}
		}
	}
	back(p.slots)
	for _, c := range p.caches {
		back(c.slots)
	}
	p.rollout.rewind(now)
}

package simulate

import (
	"math"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// watch is what the judge remembers of a slot. It belongs to one stored version,
// so that a controller that reads late is judged by what it saw. It is derived
// from phases and disruptions only, and not from the times that the engine
// stores. Times are those of the controllers' clock.
type watch struct {
	// away is since when the slot has been on its way into service: since it was
	// made or went down, or since the last decision to replace its body.
	away time.Duration
	// up is since when the body has been in service without a break, which a
	// drain that was withdrawn is not; never while it is not.
	up time.Duration
	// steady is the same, but while somebody has cordoned it, it is not in service.
	steady time.Duration
	// shaken is when the body first went down before it had recovered; never if
	// it did not.
	shaken time.Duration
	// arrived is when a body of the slot last came into service for its first
	// time; never if none has. Before is the same of the bodies before this one, as
	// far as they recovered: of others nothing is stored.
	arrived, before time.Duration
	// came: the body has been in service. settled: it has recovered, at the time
	// that is proven. failed: it has failed.
	came, settled, failed bool
	proven                time.Duration
}

// never is the time of what has not happened.
const never = time.Duration(math.MinInt64)

// recoverAfter is how long a body has to be in service until it has recovered:
// the longer of a minute and minReadySeconds.
func (s *specRecord) recoverAfter() time.Duration { return max(time.Minute, s.policy.MinReady) }

// settling is the same in truth and as the member controller knows it: the
// shorter and the longer one, where they differ.
func (p *pool) settling() (least, most time.Duration) {
	a, b := p.spec.recoverAfter(), p.spec.recoverAfter()
	if s := p.keeper.cache.spec; s != nil {
		b = s.recoverAfter()
	}
	return min(a, b), max(a, b)
}

// watched is what is to be remembered of the next version of a slot.
func (p *pool) watched(old, next *slot) watch {
	now := p.w.clock()
	w := watch{away: now, up: never, steady: never, shaken: never, arrived: never, before: never}
	if old != nil {
		w = old.watch
		w.keepAway(old, next, now)
		if old.Incarnation != next.Incarnation {
			p.leaves(&w, old, next, now)
			switch {
			case w.settled && w.failed:
				w.arrived = never // the slot forgets what has recovered
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
	case rollout.Draining: // the body may still serve, and be taken back
	default:
		p.leaves(&w, old, next, now)
	}
	return w
}

// keepAway moves on since when the slot has been on its way into service.
func (w *watch) keepAway(old, next *slot, now time.Duration) {
	switch {
	case next.inService():
		w.away = never
	case old.inService():
		w.away = now
	case next.disrupted() && next.Disruption != old.Disruption && !next.Disruption.Rolling && !next.Disruption.Remove:
		w.away = now // another decision
	}
}

// keepable reports whether a claim, work or a hold can keep the body of a slot
// that is not in service as it is: there is one, and its end has not begun.
func (s *slot) keepable() bool {
	return s.Phase == rollout.Unready || s.Phase == rollout.Failed && !s.Gone || s.Phase == rollout.Draining
}

// kept reports whether one of them does so now.
func (p *pool) kept(s *slot) bool {
	busy := s.watch.came && p.seen(s).Occupancy != rollout.Idle
	return s.keepable() && (!s.disrupted() || s.Disruption.Cause != rollout.ClaimEnded) && (s.claimUID != 0 || busy || s.held(p.w.clock()))
}

// leaves notes that the body is not in service any more, if it was. A body in
// health whose claim has ended has recovered.
func (p *pool) leaves(w *watch, old, next *slot, now time.Duration) {
	if w.up == never || old == nil {
		return
	}
	least, most := p.settling()
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
			p.prove(old, steady, w.proven)
		}
	case served < least && !w.settled && w.shaken == never && !old.disrupted() && !next.disrupted():
		w.shaken = now
	}
	w.up, w.steady = never, never
}

// recovered reports whether the body has been in service for so long, and is.
func (s *slot) recovered(now, after time.Duration) bool {
	return s.watch.steady != never && s.inService() && now-s.watch.steady >= after
}

// rewind has nothing have happened later than now: a clock that was set back
// shows an earlier time than before.
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

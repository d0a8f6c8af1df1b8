package preview

import (
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// unit is one slot and the state of its simulated body.
type unit struct {
	*rollout.Slot

	// state is the state of the body, and until when it changes by itself; zero for
	// never.
	state rollout.BodyState
	until time.Time
	// move is the unfinished move: its index in Forecast.Moves plus one, or 0.
	move int
	gone bool
}

// initBody sets the unit's body to its state at the start.
func (f *forecaster) initBody(u *unit) {
	m := &u.Member
	switch {
	case !m.Body:
		u.state = rollout.Absent
		return
	case m.Phase == rollout.Failed && m.Gone:
		u.state = rollout.Exited
		return
	}
	switch m.Phase {
	case rollout.Available, rollout.InClaim, rollout.Preparing, rollout.Draining:
		u.state = rollout.Ready
	case rollout.Updating:
		u.state = rollout.Ready // the update of the body has not begun
		if !m.Disrupted() {
			f.become(u, rollout.Booting, m.BornAt.Add(f.o.Boot))
		}
	case rollout.Provisioning:
		f.become(u, rollout.Booting, m.BornAt.Add(f.o.Boot))
	case rollout.Terminating:
		f.become(u, rollout.Stopping, f.goneAt(m))
	default:
		u.state = rollout.Booting // down, and stays down
	}
}

// goneAt returns when the body of a terminating member is gone.
func (f *forecaster) goneAt(m *rollout.Member) time.Time {
	since := m.PhaseSince
	if m.Disrupted() && !m.ServedSince.IsZero() {
		since = m.Disruption.Since
	}
	return since.Add(f.o.Stop)
}

// become puts the unit's body into a state that ends at the time, or now if that
// has passed.
func (f *forecaster) become(u *unit, s rollout.BodyState, until time.Time) {
	wait := max(0, until.Sub(f.now))
	if f.grain > 0 {
		wait += (f.grain - wait%f.grain) % f.grain
	}
	until = f.now.Add(wait)
	u.state, u.until = s, until
	f.later(until, func() {
		if !u.gone && u.state == s && u.until.Equal(until) {
			f.endState(u)
		}
	})
}

// endState puts the unit's body into the state that follows by itself.
func (f *forecaster) endState(u *unit) {
	u.until = time.Time{}
	switch u.state {
	case rollout.Booting:
		u.state = rollout.Ready
	case rollout.Stopping:
		u.state = rollout.Absent
		f.bodies--
		f.retryRoomless()
	}
	f.touch(u)
}

// step advances the unit's life until nothing changes at this instant.
func (f *forecaster) step(u *unit) {
	if u.Phase == rollout.Quarantined {
		return
	}
	drained := false
	for !u.gone {
		tr := rollout.Step(u.Member, rollout.Sight{State: u.state, Drained: drained}, f.o.Life, f.now)
		if !tr.Wake.IsZero() {
			f.wakeUnit(u, tr.Wake)
		}
		changed := tr.Member != u.Member
		f.set(u, tr.Member)
		switch tr.Do {
		case rollout.DropSlot:
			f.drop(u)
		case rollout.CreateBody:
			changed = f.create(u)
		case rollout.UpdateBody:
			f.out.Updates++
			f.set(u, u.Updated(f.now))
			f.become(u, rollout.Booting, f.now.Add(f.o.Boot))
			changed = true
		case rollout.DrainBody:
			drained, changed = true, true
		case rollout.DeleteBody:
			if u.state != rollout.Stopping {
				f.out.Deletes++
				f.become(u, rollout.Stopping, f.goneAt(&u.Member))
			}
			changed = false
		}
		if !changed {
			return
		}
	}
}

// whyOwed is the Why of a birth in a slot that existed at the start.
const whyOwed rollout.Why = "Owed"

// create creates the unit's next body if there is room, and reports whether it did.
func (f *forecaster) create(u *unit) bool {
	if f.capacity >= 0 && f.bodies >= f.capacity {
		f.set(u, u.WithoutRoom(f.now))
		f.roomless = append(f.roomless, u)
		return false
	}
	f.bodies++
	f.out.Births++
	if u.move == 0 {
		f.begin(u, Move{Deed: Born, To: u.Wants, Why: whyOwed})
	}
	f.set(u, u.Born(f.now))
	f.become(u, rollout.Booting, f.now.Add(f.o.Boot))
	return true
}

// retryRoomless lets the units without room try again, each no earlier than its
// next attempt.
func (f *forecaster) retryRoomless() {
	list := f.roomless
	f.roomless = nil
	for _, u := range list {
		if u.NextAttempt.After(f.now) {
			f.wakeUnit(u, u.NextAttempt)
			continue
		}
		f.touch(u)
	}
}

// wakeUnit schedules a step of the unit at the time.
func (f *forecaster) wakeUnit(u *unit, at time.Time) {
	if f.capacity >= 0 && u.NoRoom && f.bodies >= f.capacity && at.Equal(u.NextAttempt) {
		f.roomless = append(f.roomless, u) // retry only after a body is gone
		return
	}
	f.later(at, func() { f.touch(u) })
}

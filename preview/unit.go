package preview

import (
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// unit is one slot as a forecast sees it.
type unit struct {
	*rollout.Slot

	// state is how its body would be found, and at when that changes by itself;
	// zero for never.
	state rollout.BodyState
	at    time.Time
	// move is what is being done to it, by its place in the forecast plus one.
	move int
	gone bool
}

// find is the slot's body as it is at the start.
func (f *forecaster) find(u *unit) {
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
		u.state = rollout.Ready // until it is told to become another revision
		if !m.Disrupted() {
			f.become(u, rollout.Booting, m.BornAt.Add(f.o.Boot))
		}
	case rollout.Provisioning:
		f.become(u, rollout.Booting, m.BornAt.Add(f.o.Boot))
	case rollout.Terminating:
		f.become(u, rollout.Stopping, f.ends(m))
	default:
		u.state = rollout.Booting // down, and stays so
	}
}

// ends is when a body that goes will be gone.
func (f *forecaster) ends(m *rollout.Member) time.Time {
	since := m.PhaseSince
	if m.Disrupted() && !m.ServedSince.IsZero() {
		since = m.Disruption.Since
	}
	return since.Add(f.o.Stop)
}

// become has the unit's body be in a state that ends at the time, or now.
func (f *forecaster) become(u *unit, s rollout.BodyState, until time.Time) {
	wait := max(0, until.Sub(f.now))
	if f.grain > 0 {
		wait += (f.grain - wait%f.grain) % f.grain
	}
	until = f.now.Add(wait)
	u.state, u.at = s, until
	f.later(until, func() {
		if !u.gone && u.state == s && u.at.Equal(until) {
			f.ripen(u)
		}
	})
}

// ripen is what a body comes to by itself.
func (f *forecaster) ripen(u *unit) {
	u.at = time.Time{}
	switch u.state {
	case rollout.Booting:
		u.state = rollout.Ready
	case rollout.Stopping:
		u.state = rollout.Absent
		f.bodies--
		f.roomy()
	}
	f.touch(u)
}

// step brings the unit through its life until nothing changes.
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
				f.become(u, rollout.Stopping, f.ends(&u.Member))
			}
			changed = false
		}
		if !changed {
			return
		}
	}
}

// whyOwed is why a slot that was there at the start gets a body.
const whyOwed rollout.Why = "Owed"

// create makes the next body, if there is room.
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

// roomy has those that found no room try again.
func (f *forecaster) roomy() {
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

// wakeUnit has the unit stepped at the time.
func (f *forecaster) wakeUnit(u *unit, at time.Time) {
	if f.capacity >= 0 && u.NoRoom && f.bodies >= f.capacity && at.Equal(u.NextAttempt) {
		f.roomless = append(f.roomless, u) // not before a body has gone
		return
	}
	f.later(at, func() { f.touch(u) })
}

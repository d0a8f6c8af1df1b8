package sim

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// What follows is for those who tell a story: they change the world behind the
// controllers' back.

// Stats counts what has happened since New.
type Stats struct {
	// Creates are births, Deletes bodies that were told to go by Delete.
	Creates, Deletes int
	// MostBodies is the largest number of bodies at any time, those that stop
	// included.
	MostBodies int
}

// Stats tells what has happened.
func (w *World) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// Body is a body of a World.
type Body struct {
	Namespace, Member string
	// Told: Delete has told it to go.
	Told bool
	body.Observation
}

// Bodies tells which bodies there are, by namespace and member.
func (w *World) Bodies() []Body {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	w.expire(now)
	var all []Body
	for _, k := range sortedKeys(w.bodies) {
		s := w.bodies[k]
		all = append(all, Body{k.Namespace, k.Member, !s.GoneAt.IsZero(), w.observe(k, s, now)})
	}
	return all
}

// SetCapacity changes how many bodies fit; 0 is without limit, less is none.
// Those that are there stay.
func (w *World) SetCapacity(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.capacity = n
}

// Refuse has births in a slot refused for some time.
func (w *World) Refuse(namespace, member string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused[key{namespace, member}] = w.clock.Now().Add(d)
}

// SetHealthy makes a body healthy, or not. One that is not is not ready. Where
// there is no body, nothing happens.
func (w *World) SetHealthy(namespace, member string, healthy bool) error {
	k := key{namespace, member}
	changed, err := w.change(k, func(s *script, now time.Time) bool {
		if healthy == s.SickSince.IsZero() {
			return false
		}
		s.SickSince = time.Time{}
		if !healthy {
			s.SickSince = now
		}
		return true
	})
	if changed {
		w.told(k)
	}
	return err
}

// SetOccupancy says whether work runs on a body. Where there is no body,
// nothing happens.
func (w *World) SetOccupancy(namespace, member string, o body.Occupancy) error {
	return w.edit(namespace, member, func(s *script) bool {
		changed := s.Occupancy != o
		s.Occupancy = o
		return changed
	})
}

// SetRevision has a body say that it runs something else; empty: it cannot
// tell. Where there is no body, nothing happens.
func (w *World) SetRevision(namespace, member, revision string) error {
	return w.edit(namespace, member, func(s *script) bool {
		changed := s.Revision != revision
		s.Revision = revision
		return changed
	})
}

// hangs is how long a body takes to stop that never does.
const hangs = 100 * 365 * 24 * time.Hour

// SetStop sets how long a body takes to stop, from now on, also if it has been
// told to; negative is for ever. Where there is no body, nothing happens.
func (w *World) SetStop(namespace, member string, d time.Duration) error {
	k := key{namespace, member}
	changed, err := w.change(k, func(s *script, now time.Time) bool {
		s.StopSet = &d
		if !s.GoneAt.IsZero() {
			s.GoneAt = s.gone(now)
		}
		return true
	})
	if changed {
		w.told(k)
	}
	return err
}

// gone is when the body is gone that is told to go now.
func (s *script) gone(now time.Time) time.Time {
	switch {
	case s.StopSet == nil:
		return now.Add(s.StopTakes)
	case *s.StopSet < 0:
		return now.Add(hangs)
	}
	return now.Add(*s.StopSet)
}

func (w *World) edit(namespace, member string, f func(*script) bool) error {
	k := key{namespace, member}
	changed, err := w.change(k, func(s *script, _ time.Time) bool { return f(s) })
	if changed {
		w.told(k)
	}
	return err
}

// Placed is a body that was there before the story began.
type Placed struct {
	// Version is that of its template.
	Version string
	// State is Booting, Ready, Down or Stopping. What is not over yet begins
	// now.
	State  body.State
	BornAt time.Time
	body.Occupancy
}

// Place puts a body into the slot, which is empty, and returns its UID. It is
// no birth, and nobody is told.
func (w *World) Place(slot body.Slot, p Placed) (uid string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	s := w.script(slot, &v1alpha1.Sim{Version: &p.Version}, now)
	s.BornAt, s.Occupancy = p.BornAt, p.Occupancy
	if p.State != body.Booting {
		if !s.EndsAt.IsZero() {
			s.EndsAt = now.Add(s.EndsAt.Sub(s.ReadyAt))
		}
		s.ReadyAt = p.BornAt
	}
	switch p.State {
	case body.Down:
		s.SickSince, s.EndsAt = now, time.Time{}
	case body.Stopping:
		s.GoneAt = now.Add(s.StopTakes)
	default:
	}
	return s.UID, w.set(keyOf(slot), s, now)
}

// Remove takes a body away at once, as if somebody had deleted it.
func (w *World) Remove(namespace, member string) error {
	k := key{namespace, member}
	w.mu.Lock()
	err := w.set(k, nil, w.clock.Now())
	w.mu.Unlock()
	w.told(k)
	return err
}

// FailReads has everything that has to look at a body fail with the reason,
// until it is called with nil. Delete, which only has to name one, goes on.
func (w *World) FailReads(reason error) {
	w.mu.Lock()
	w.lost = nil
	if reason != nil {
		w.lost = fmt.Errorf("%w: %w", errLost, reason)
	}
	all := sortedKeys(w.bodies)
	w.mu.Unlock()
	for _, k := range all {
		w.told(k)
	}
}

// FailOccupancy has nobody know whether work runs on any body, until it is
// called with false.
func (w *World) FailOccupancy(unsure bool) {
	w.mu.Lock()
	w.unsure = unsure
	all := sortedKeys(w.bodies)
	w.mu.Unlock()
	for _, k := range all {
		w.told(k)
	}
}

// told tells of a slot that was changed from outside.
func (w *World) told(k key) {
	w.mu.Lock()
	notify := w.notify
	w.mu.Unlock()
	w.tell(notify, k)
}

package sim

import (
	"fmt"
	"time"

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
	body.Observation
}

// Bodies tells which bodies there are, by namespace and member.
func (w *World) Bodies() []Body {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.expire(now)
	var all []Body
	for _, k := range sortedKeys(w.bodies) {
		all = append(all, Body{k.Namespace, k.Member, observe(k, w.bodies[k], now)})
	}
	return all
}

// SetCapacity changes how many bodies fit; 0 is without limit. Those that are
// there stay.
func (w *World) SetCapacity(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.capacity = n
}

// Refuse has births in a slot refused for some time.
func (w *World) Refuse(namespace, member string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused[key{namespace, member}] = time.Now().Add(w.real(d))
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

// Remove takes a body away at once, as if somebody had deleted it.
func (w *World) Remove(namespace, member string) error {
	k := key{namespace, member}
	w.mu.Lock()
	err := w.set(k, nil, time.Now())
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

// told tells of a slot that was changed from outside.
func (w *World) told(k key) {
	w.mu.Lock()
	notify := w.notify
	w.mu.Unlock()
	if notify != nil {
		notify(k.Namespace, k.Member)
	}
}

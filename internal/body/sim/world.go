package sim

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// Options say what a World is like.
type Options struct {
	// File, if not empty, is where bodies are kept across restarts. Each change
	// is written before it counts, so that none is lost when the process is
	// killed; a power cut may lose some. Nobody else may use the file.
	File string
	// Speed is how many scripted seconds pass in a real one, more than 0.
	// Absent means 1.
	Speed float64
	// Capacity is how many bodies fit, those that stop included. Absent means
	// without limit.
	Capacity int
}

// World is where scripted bodies are. It implements body.Kind.
type World struct {
	speed float64

	mu       sync.Mutex
	notify   body.Notify
	bodies   map[key]*script
	timers   timers
	journal  *journal
	capacity int
	refused  map[key]time.Time // until when births are refused
	lost     error             // why nothing can be read
	stats    Stats

	wake    chan struct{}
	done    chan struct{}
	stopped sync.WaitGroup
}

// key names a slot.
type key struct{ Namespace, Member string }

var (
	_ body.Kind      = (*World)(nil)
	_ body.Validator = (*World)(nil)
)

// New gives a World with the bodies of its file, if any. It is to be closed.
// notify may be nil, and changed by Notify.
func New(o Options, notify body.Notify) (*World, error) {
	if o.Speed == 0 {
		o.Speed = 1
	}
	if o.Speed < 0 || o.Capacity < 0 {
		return nil, fmt.Errorf("simulated bodies: speed %v and capacity %d must not be negative", o.Speed, o.Capacity)
	}
	w := &World{
		speed: o.Speed, capacity: o.Capacity, notify: notify,
		bodies: map[key]*script{}, refused: map[key]time.Time{},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if o.File != "" {
		var err error
		if w.journal, w.bodies, err = openJournal(o.File, time.Now()); err != nil {
			return nil, fmt.Errorf("simulated bodies: %w", err)
		}
	}
	now := time.Now()
	for k, s := range w.bodies {
		w.timers.add(k, s, now)
	}
	w.stopped.Go(w.tell)
	return w, nil
}

// Close ends the notifications and closes the file.
func (w *World) Close() error {
	close(w.done)
	w.stopped.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.journal.close()
}

// Notify makes f the one that is told of changes, instead of any other. Nil
// tells nobody.
func (w *World) Notify(f body.Notify) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notify = f
}

// Create implements body.Kind.
func (w *World) Create(_ context.Context, slot body.Slot, template *v1alpha1.Template) (body.Observation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	k := keyOf(slot)
	if w.lost != nil {
		return body.Observation{}, w.lost
	}
	if s := w.find(k, now); s != nil {
		if s.MemberUID != slot.UID || s.Incarnation != slot.Incarnation || s.Revision != slot.Revision {
			return body.Observation{}, fmt.Errorf("%w: incarnation %d of revision %s, body %s, is still there", body.ErrOccupied, s.Incarnation, s.Revision, s.UID)
		}
		return observe(k, s, now), nil
	}
	if err := w.admit(k, slot, template, now); err != nil {
		return body.Observation{}, err
	}
	s := w.script(slot, template.Sim, now)
	if err := w.set(k, s, now); err != nil {
		return body.Observation{}, fmt.Errorf("%w: %w", body.ErrNoRoom, err)
	}
	w.stats.Creates++
	w.stats.MostBodies = max(w.stats.MostBodies, w.count(now))
	return observe(k, s, now), nil
}

// admit says why there cannot be a body now.
func (w *World) admit(k key, slot body.Slot, template *v1alpha1.Template, now time.Time) error {
	if err := w.Validate(slot, template); err != nil {
		return err
	}
	if o := template.Sim.Outcome; o != nil && *o == createError {
		return fmt.Errorf("%w: template.sim.outcome is %s", body.ErrRefused, createError)
	}
	if until, ok := w.refused[k]; ok {
		if now.Before(until) {
			return fmt.Errorf("%w: births in this slot are refused for now", body.ErrRefused)
		}
		delete(w.refused, k)
	}
	if w.capacity > 0 {
		if n := w.count(now); n >= w.capacity {
			return fmt.Errorf("%w: there are %d bodies, and %d fit", body.ErrNoRoom, n, w.capacity)
		}
	}
	return nil
}

// The outcomes of a template that are not Ready.
const (
	neverReady  = "NeverReady"
	crash       = "Crash"
	createError = "CreateError"
)

// script is what becomes of a body that is born now.
func (w *World) script(slot body.Slot, sim *v1alpha1.Sim, now time.Time) *script {
	s := &script{
		UID: rand.Text(), MemberUID: slot.UID, Incarnation: slot.Incarnation, Revision: slot.Revision, BornAt: now,
		ReadyAt: now.Add(w.scale(sim.Boot)), DrainTakes: w.scale(sim.Drain), StopTakes: w.scale(sim.Stop),
	}
	if sim.Outcome != nil {
		switch *sim.Outcome {
		case neverReady:
			s.ReadyAt = time.Time{}
		case crash:
			s.EndsAt = s.ReadyAt.Add(w.scale(sim.After))
		}
	}
	return s
}

// Observe implements body.Kind. The template does not matter.
func (w *World) Observe(_ context.Context, slot body.Slot, _ *v1alpha1.Template) (body.Observation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost != nil {
		return body.Observation{}, w.lost
	}
	now := time.Now()
	k := keyOf(slot)
	return observe(k, w.find(k, now), now), nil
}

func observe(k key, s *script, now time.Time) body.Observation {
	if s == nil {
		return body.Observation{State: body.Absent}
	}
	o := body.Observation{
		State: s.at(now), UID: s.UID, Incarnation: s.Incarnation, Revision: s.Revision, BornAt: s.BornAt,
		Address: fmt.Sprintf("%s.%s.sim:%d", k.Member, k.Namespace, s.Incarnation),
	}
	switch o.State {
	case body.Exited:
		o.Message = "crashed as its template says"
	case body.Down:
		o.Message = "made unhealthy"
	}
	return o
}

// Drain implements body.Kind.
func (w *World) Drain(_ context.Context, slot body.Slot, _ *v1alpha1.Template) (done bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost != nil {
		return false, w.lost
	}
	now := time.Now()
	k := keyOf(slot)
	s := w.find(k, now)
	if s == nil || s.drained(now) {
		return true, nil
	}
	if s.DrainedAt.IsZero() {
		begun := *s
		begun.DrainedAt = now.Add(s.DrainTakes)
		if err := w.set(k, &begun, now); err != nil {
			return false, err
		}
		s = &begun
	}
	return s.drained(now), nil
}

// Undrain implements body.Kind.
func (w *World) Undrain(_ context.Context, slot body.Slot, _ *v1alpha1.Template) error {
	_, err := w.change(keyOf(slot), func(s *script, _ time.Time) bool {
		changed := !s.DrainedAt.IsZero()
		s.DrainedAt = time.Time{}
		return changed
	})
	return err
}

// Delete implements body.Kind.
func (w *World) Delete(_ context.Context, slot body.Slot, uid string) error {
	k := keyOf(slot)
	changed, err := w.change(k, func(s *script, now time.Time) bool {
		if s.UID != uid || !s.GoneAt.IsZero() {
			return false
		}
		s.GoneAt = now.Add(s.StopTakes)
		return true
	})
	if changed {
		w.mu.Lock()
		w.stats.Deletes++
		w.mu.Unlock()
		w.told(k)
	}
	return err
}

// Validate implements body.Validator.
func (w *World) Validate(_ body.Slot, template *v1alpha1.Template) error {
	if template == nil || template.Sim == nil {
		return fmt.Errorf("%w: template.sim: is missing", body.ErrRefused)
	}
	if o := template.Sim.Outcome; o != nil {
		switch *o {
		case "Ready", neverReady, crash, createError:
		default:
			return fmt.Errorf("%w: template.sim.outcome: %q is not one of Ready, %s, %s, %s",
				body.ErrRefused, *o, neverReady, crash, createError)
		}
	}
	return nil
}

// change lets f change the body of a slot, if there is one, and keeps the
// change if f says that there is one.
func (w *World) change(k key, f func(s *script, now time.Time) bool) (changed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	s := w.find(k, now)
	if s == nil {
		return false, nil
	}
	other := *s
	if !f(&other, now) {
		return false, nil
	}
	err = w.set(k, &other, now)
	return err == nil, err
}

// set makes s the body of the slot, nil meaning none, if that can be kept. It
// tells nobody; that is up to the caller.
func (w *World) set(k key, s *script, now time.Time) error {
	if err := w.journal.write(k, s, w.bodies, now); err != nil {
		return err
	}
	if s == nil || s.at(now) == body.Absent {
		delete(w.bodies, k)
		return nil
	}
	w.bodies[k] = s
	if w.timers.add(k, s, now) {
		w.rouse()
	}
	return nil
}

// find gives the body of a slot, or nil.
func (w *World) find(k key, now time.Time) *script {
	s := w.bodies[k]
	if s != nil && s.at(now) == body.Absent {
		delete(w.bodies, k)
		return nil
	}
	return s
}

// count is how many bodies there are, those that stop included. Those that
// have gone since the last time are removed by their timers, or now.
func (w *World) count(now time.Time) int {
	w.expire(now)
	return len(w.bodies)
}

func (w *World) scale(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return w.real(d.Duration)
}

// real is how long a scripted time takes.
func (w *World) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / w.speed)
}

func keyOf(slot body.Slot) key { return key{slot.Namespace, slot.Member} }

var errLost = errors.New("simulated bodies cannot be read")

package sim

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// Options say what a World is like.
type Options struct {
	// File, if not empty, is where bodies are kept across restarts. Each change
	// is written before it counts, so that none is lost when the process is
	// killed; a power cut may lose some. Nobody else may use the file.
	File string
	// Clock is whose time passes for bodies. Nil: real time.
	Clock clock.WithDelayedExecution
	// Capacity is how many bodies fit, those that stop included. Absent means
	// without limit.
	Capacity int
	// Nature, if not nil, says how bodies behave whose template this is: it
	// takes the place of the template, is asked anew for each thing that a body
	// does, and may answer something else each time.
	Nature func(template *v1alpha1.Sim) *v1alpha1.Sim
	// Watch, if not nil, is told of each change of a body, one after the other
	// in their order and before anybody else is. It must not call the World.
	Watch func(Body)
	// Told, if not nil, is told of whom anybody is notified, before that is.
	Told body.Notify
}

// World is where scripted bodies are. It implements body.Kind.
type World struct {
	clock  clock.WithDelayedExecution
	nature func(*v1alpha1.Sim) *v1alpha1.Sim
	watch  func(Body)
	heard  body.Notify

	mu       sync.Mutex
	notify   body.Notify
	bodies   map[key]*script
	timers   timers
	journal  *journal
	capacity int
	refused  map[key]time.Time // until when births are refused
	lost     error             // why nothing can be read
	unsure   bool              // nobody can tell whether work runs
	stats    Stats
	closed   bool
	telling  sync.WaitGroup
}

// key names a slot.
type key struct{ Namespace, Member string }

var (
	_ body.Kind      = (*World)(nil)
	_ body.Validator = (*World)(nil)
	_ body.Updater   = (*World)(nil)
	_ body.Liver     = (*World)(nil)
)

// New gives a World with the bodies of its file, if any. It is to be closed.
// notify may be nil, and changed by Notify.
func New(o Options, notify body.Notify) (*World, error) {
	if o.Capacity < 0 {
		return nil, fmt.Errorf("simulated bodies: capacity %d must not be negative", o.Capacity)
	}
	w := &World{
		clock: o.Clock, nature: o.Nature, watch: o.Watch, heard: o.Told, capacity: o.Capacity, notify: notify,
		bodies: map[key]*script{}, refused: map[key]time.Time{},
	}
	if w.clock == nil {
		w.clock = clock.RealClock{}
	}
	if w.nature == nil {
		w.nature = func(s *v1alpha1.Sim) *v1alpha1.Sim { return s }
	}
	now := w.clock.Now()
	if o.File != "" {
		var err error
		if w.journal, w.bodies, err = openJournal(o.File, now); err != nil {
			return nil, fmt.Errorf("simulated bodies: %w", err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, s := range w.bodies {
		w.timers.add(k, s, now)
	}
	w.rearm(now)
	return w, nil
}

// Close ends the notifications and closes the file.
func (w *World) Close() error {
	w.mu.Lock()
	w.closed = true
	w.timers.disarm()
	w.mu.Unlock()
	w.telling.Wait()
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
func (w *World) Create(ctx context.Context, slot body.Slot, template *v1alpha1.Template) (body.Observation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	k := keyOf(slot)
	if err := w.unreachable(ctx); err != nil {
		return body.Observation{}, err
	}
	if s := w.find(k, now); s != nil {
		if s.MemberUID != slot.UID || s.Incarnation != slot.Incarnation || s.Revision != slot.Revision {
			return body.Observation{}, fmt.Errorf("%w: incarnation %d of revision %s, body %s, is still there", body.ErrOccupied, s.Incarnation, s.Revision, s.UID)
		}
		return w.observe(k, s, now), nil
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
	return w.observe(k, s, now), nil
}

// unreachable says why nothing can be done now. Whoever asks and is dead
// himself does nothing any more.
func (w *World) unreachable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("simulated bodies: %w", err)
	}
	return w.lost
}

// admit says why there cannot be a body now.
func (w *World) admit(k key, slot body.Slot, template *v1alpha1.Template, now time.Time) error {
	if err := w.bears(k, slot, template, now); err != nil {
		return err
	}
	if w.capacity != 0 {
		if n, most := w.count(now), max(0, w.capacity); n >= most {
			return fmt.Errorf("%w: there are %d bodies, and %d fit", body.ErrNoRoom, n, most)
		}
	}
	return nil
}

// bears says why no body can become what the template says.
func (w *World) bears(k key, slot body.Slot, template *v1alpha1.Template, now time.Time) error {
	if err := w.Validate(slot, template); err != nil {
		return err
	}
	if o := w.nature(template.Sim).Outcome; o != nil && *o == createError {
		return fmt.Errorf("%w: template.sim.outcome is %s", body.ErrRefused, createError)
	}
	if until, ok := w.refused[k]; ok {
		if now.Before(until) {
			return fmt.Errorf("%w: births in this slot are refused for now", body.ErrRefused)
		}
		delete(w.refused, k)
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
	s := &script{UID: rand.Text(), MemberUID: slot.UID, BornAt: now}
	w.boots(s, slot, sim, now)
	return s
}

// boots makes a body what the template says, from now on.
func (w *World) boots(s *script, slot body.Slot, sim *v1alpha1.Sim, now time.Time) {
	is := w.nature(sim)
	s.Incarnation, s.Revision, s.Version = slot.Incarnation, slot.Revision, value(sim.Version)
	s.As, s.BootAt = sim.DeepCopy(), now
	s.ReadyAt, s.EndsAt, s.DrainedAt = now.Add(span(is.Boot)), time.Time{}, time.Time{}
	s.DrainTakes, s.StopTakes = span(is.Drain), span(is.Stop)
	switch value(is.Outcome) {
	case neverReady:
		s.ReadyAt = time.Time{}
	case crash:
		s.EndsAt = s.ReadyAt.Add(span(is.After))
	}
}

// renew asks again how long the end of a body takes.
func (w *World) renew(s *script) {
	is := w.nature(&v1alpha1.Sim{Version: &s.Version, Drain: &metav1.Duration{Duration: s.DrainTakes}, Stop: &metav1.Duration{Duration: s.StopTakes}})
	s.DrainTakes, s.StopTakes = span(is.Drain), span(is.Stop)
}

// Observe implements body.Kind. The template does not matter.
func (w *World) Observe(ctx context.Context, slot body.Slot, _ *v1alpha1.Template) (body.Observation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unreachable(ctx); err != nil {
		return body.Observation{}, err
	}
	now := w.clock.Now()
	k := keyOf(slot)
	return w.observe(k, w.find(k, now), now), nil
}

func (w *World) observe(k key, s *script, now time.Time) body.Observation {
	if s == nil {
		return body.Observation{State: body.Absent}
	}
	o := body.Observation{
		State: s.at(now), UID: s.UID, Incarnation: s.Incarnation, Revision: s.Revision, BornAt: s.BornAt,
		Address: fmt.Sprintf("%s.%s.sim:%d", k.Member, k.Namespace, s.Incarnation),
	}
	if o.Occupancy = s.Occupancy; w.unsure {
		o.Occupancy = body.UnknownOccupancy
	}
	switch o.State {
	case body.Exited:
		o.Message = "crashed as its template says"
	case body.Booting:
		if s.ReadyAt.IsZero() {
			o.Message = "never gets ready, as its template says"
		}
	case body.Down:
		o.Message = "made unhealthy"
	}
	return o
}

// Update implements body.Updater: the body boots again as what it is now.
func (w *World) Update(ctx context.Context, slot body.Slot, template *v1alpha1.Template) (body.Observation, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unreachable(ctx); err != nil {
		return body.Observation{}, err
	}
	now := w.clock.Now()
	k := keyOf(slot)
	s := w.find(k, now)
	switch {
	case s == nil || s.MemberUID != slot.UID || !s.GoneAt.IsZero():
		return body.Observation{}, fmt.Errorf("%w: there is no body to update", body.ErrOccupied)
	case s.Incarnation == slot.Incarnation && s.Revision == slot.Revision:
		return w.observe(k, s, now), nil
	}
	if err := w.bears(k, slot, template, now); err != nil {
		return body.Observation{}, err
	}
	updated := *s
	updated.SickSince = time.Time{}
	w.boots(&updated, slot, template.Sim, now)
	if err := w.set(k, &updated, now); err != nil {
		return body.Observation{}, err
	}
	return w.observe(k, &updated, now), nil
}

// Drain implements body.Kind.
func (w *World) Drain(ctx context.Context, slot body.Slot, _ *v1alpha1.Template) (done bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unreachable(ctx); err != nil {
		return false, err
	}
	now := w.clock.Now()
	k := keyOf(slot)
	s := w.find(k, now)
	if s == nil || s.drained(now) {
		return true, nil
	}
	if s.DrainedAt.IsZero() {
		begun := *s
		w.renew(&begun)
		begun.DrainedAt = now.Add(begun.DrainTakes)
		if err := w.set(k, &begun, now); err != nil {
			return false, err
		}
		s = &begun
	}
	return s.drained(now), nil
}

// Undrain implements body.Kind.
func (w *World) Undrain(ctx context.Context, slot body.Slot, _ *v1alpha1.Template) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("simulated bodies: %w", err)
	}
	_, err := w.change(keyOf(slot), func(s *script, _ time.Time) bool {
		changed := !s.DrainedAt.IsZero()
		s.DrainedAt = time.Time{}
		return changed
	})
	return err
}

// Delete implements body.Kind.
func (w *World) Delete(ctx context.Context, slot body.Slot, uid string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("simulated bodies: %w", err)
	}
	k := keyOf(slot)
	changed, err := w.change(k, func(s *script, now time.Time) bool {
		if s.UID != uid || !s.GoneAt.IsZero() {
			return false
		}
		w.renew(s)
		s.GoneAt = s.gone(now)
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
	now := w.clock.Now()
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
// tells nobody but Watch; the rest is up to the caller.
func (w *World) set(k key, s *script, now time.Time) error {
	if err := w.journal.write(k, s, w.bodies, now); err != nil {
		return err
	}
	if s != nil {
		w.bodies[k] = s
	}
	if s == nil || s.at(now) == body.Absent {
		w.bury(k, now)
		return nil
	}
	w.watched(k, s, now)
	if w.timers.add(k, s, now) {
		w.rearm(now)
	}
	return nil
}

// bury removes the body of a slot, if there is one.
func (w *World) bury(k key, now time.Time) {
	if s := w.bodies[k]; s != nil {
		delete(w.bodies, k)
		w.watched(k, s, now)
	}
}

// watched tells Watch how a body is, or that it is not there any more.
func (w *World) watched(k key, s *script, now time.Time) {
	if w.watch == nil {
		return
	}
	o := w.observe(k, s, now)
	if w.bodies[k] != s {
		o.State = body.Absent
	}
	w.watch(Body{k.Namespace, k.Member, !s.GoneAt.IsZero(), o})
}

// find gives the body of a slot, or nil.
func (w *World) find(k key, now time.Time) *script {
	s := w.bodies[k]
	if s != nil && s.at(now) == body.Absent {
		w.bury(k, now)
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

// span is a time that a template gives, or none.
func span(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func keyOf(slot body.Slot) key { return key{slot.Namespace, slot.Member} }

var errLost = errors.New("simulated bodies cannot be read")

package sim

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/fieldpath"
)

// CheckLive implements body.Liver: a scripted body takes every field.
func (w *World) CheckLive(template *v1alpha1.Template) error {
	_, err := body.LiveFields(template, "sim", func(fieldpath.Path) error { return nil })
	return err
}

// ApplyLive implements body.Liver. What has begun goes on, or ends now: a body
// that is ready does not boot again.
func (w *World) ApplyLive(ctx context.Context, slot body.Slot, template *v1alpha1.Template) error {
	if err := w.Validate(slot, template); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unreachable(ctx); err != nil {
		return err
	}
	now := w.clock.Now()
	k := keyOf(slot)
	s := w.find(k, now)
	is := s != nil && s.MemberUID == slot.UID && s.Incarnation == slot.Incarnation && s.GoneAt.IsZero()
	if !is || equality.Semantic.DeepEqual(s.As, template.Sim) {
		return nil
	}
	tuned := *s
	w.tune(&tuned, template.Sim, now)
	return w.set(k, &tuned, now)
}

// tune makes a body what the template says without a boot.
func (w *World) tune(s *script, sim *v1alpha1.Sim, now time.Time) {
	is := w.nature(sim)
	s.As, s.Version = sim.DeepCopy(), value(sim.Version)
	s.DrainTakes, s.StopTakes = span(is.Drain), span(is.Stop)
	if passed(s.EndsAt, now) {
		return
	}
	s.EndsAt = time.Time{}
	outcome := value(is.Outcome)
	if !passed(s.ReadyAt, now) {
		if s.ReadyAt = notBefore(now, s.BootAt.Add(span(is.Boot))); outcome == neverReady {
			s.ReadyAt = time.Time{}
		}
	}
	if outcome == crash {
		s.EndsAt = notBefore(now, s.ReadyAt.Add(span(is.After)))
	}
}

// notBefore is t, or now if that is past.
func notBefore(now, t time.Time) time.Time {
	if t.Before(now) {
		return now
	}
	return t
}

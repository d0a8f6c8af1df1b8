package sim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

func (s *story) live(slot body.Slot, sim v1alpha1.Sim) {
	s.Helper()
	if err := s.ApplyLive(s.Context(), slot, &v1alpha1.Template{Sim: &sim, LiveFields: []string{"sim"}}); err != nil {
		s.Fatal(err)
	}
}

func TestWorld_ApplyLive(t *testing.T) {
	crashes, never := "Crash", "NeverReady"
	minute := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	tell(t, Options{}, func(s *story) {
		slot := slotNamed("a")
		first := s.create(slot, v1alpha1.Sim{Boot: takes(minute(5))})
		s.pass(minute(1))
		s.live(slot, v1alpha1.Sim{Boot: takes(minute(2))})
		s.pass(minute(1))
		s.want(slot, body.Ready, "its boot counts from its birth")
		s.live(slot, v1alpha1.Sim{Boot: takes(minute(9))})
		s.want(slot, body.Ready, "what has booted does not boot again")
		s.live(slot, v1alpha1.Sim{Outcome: &never})
		s.want(slot, body.Ready, "nor does it stop being ready")
		s.live(slot, v1alpha1.Sim{Outcome: &crashes, After: takes(minute(3))})
		s.live(slot, v1alpha1.Sim{Stop: takes(minute(1))})
		s.pass(minute(9))
		s.want(slot, body.Ready, "it does not crash after all")
		if o, err := s.Observe(s.Context(), slot, nil); err != nil || o.UID != first.UID || o.Incarnation != 1 {
			t.Errorf("it is another one: %+v, %v", o, err)
		}
		s.delete(slot, first.UID)
		s.live(slot, v1alpha1.Sim{})
		s.want(slot, body.Stopping, "it stops as long as its template said last")
		s.pass(minute(1))
		s.want(slot, body.Absent, "and no longer")
		s.live(slot, v1alpha1.Sim{})

		slot.Incarnation = 2
		s.create(slot, v1alpha1.Sim{Outcome: &never})
		s.pass(minute(1))
		s.live(slot, v1alpha1.Sim{})
		s.want(slot, body.Ready, "it should have been ready before now")
		s.live(slot, v1alpha1.Sim{Outcome: &crashes})
		s.want(slot, body.Exited, "and crashed")
		s.live(slot, v1alpha1.Sim{})
		s.want(slot, body.Exited, "what has ended stays so")
		other := slot
		other.Incarnation = 3
		s.live(other, v1alpha1.Sim{Stop: takes(minute(9))})
		o, _ := s.Observe(s.Context(), slot, nil)
		s.delete(slot, o.UID)
		s.want(slot, body.Absent, "another incarnation was meant")
	})
}

func TestWorld_CheckLive(t *testing.T) {
	w := &World{}
	for path, want := range map[string]string{
		"sim": "", "sim.boot": "", "sim.outcome": "",
		"sim.boots":    "template.sim has no field boots",
		"process.stop": "it is not in the template, which has sim",
	} {
		err := w.CheckLive(&v1alpha1.Template{Sim: &v1alpha1.Sim{}, LiveFields: []string{path}})
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

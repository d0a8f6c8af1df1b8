package sim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// An update keeps the body: it boots again, as what it is now.
func TestWorld_Update(t *testing.T) {
	tell(t, Options{}, func(s *story) {
		slot := slotNamed("a")
		update := func(slot body.Slot, sim v1alpha1.Sim) (body.Observation, error) {
			return s.Update(t.Context(), slot, &v1alpha1.Template{Sim: &sim})
		}
		if _, err := update(slot, v1alpha1.Sim{}); !errors.Is(err, body.ErrOccupied) {
			t.Errorf("without a body: %v, want ErrOccupied", err)
		}
		was := s.create(slot, v1alpha1.Sim{Drain: takes(time.Second)})
		if _, err := s.Drain(t.Context(), slot, nil); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Second)
		next := slot
		next.Incarnation, next.Revision = 2, "B"
		if _, err := update(next, v1alpha1.Sim{Outcome: new("CreateError")}); !errors.Is(err, body.ErrRefused) {
			t.Errorf("an impossible update: %v, want ErrRefused", err)
		}
		s.want(slot, body.Ready, "after an impossible update")
		is, err := update(next, v1alpha1.Sim{Boot: takes(time.Minute), Drain: takes(time.Second)})
		if err != nil || is.UID != was.UID || is.Incarnation != 2 || is.Revision != "B" || is.State != body.Booting {
			t.Errorf("updated it is %+v, %v; it was %+v", is, err, was)
		}
		if done, err := s.Drain(t.Context(), next, nil); done || err != nil {
			t.Errorf("the drain of before its update still counts: %t, %v", done, err)
		}
		s.pass(30 * time.Second)
		if _, err := update(next, v1alpha1.Sim{Boot: takes(time.Hour)}); err != nil {
			t.Error(err)
		}
		s.pass(30 * time.Second)
		s.want(next, body.Ready, "a minute after its update")
		other := next
		other.UID = "of a later Member"
		if _, err := update(other, v1alpha1.Sim{}); !errors.Is(err, body.ErrOccupied) {
			t.Errorf("the body of another Member: %v, want ErrOccupied", err)
		}
		if got := s.Stats(); got.Creates != 1 || got.Deletes != 0 {
			t.Errorf("an update is neither birth nor end: %+v", got)
		}
	})
}

// Nature takes the place of what templates say, and may change its mind.
func TestWorld_Nature(t *testing.T) {
	stop := time.Second
	nature := func(sim *v1alpha1.Sim) *v1alpha1.Sim {
		is := &v1alpha1.Sim{Boot: takes(time.Minute), Stop: takes(stop), Drain: takes(stop)}
		if *sim.Version == "bad" {
			is.Outcome = new("CreateError")
		}
		return is
	}
	tell(t, Options{Nature: nature}, func(s *story) {
		bad := &v1alpha1.Template{Sim: &v1alpha1.Sim{Version: new("bad")}}
		if _, err := s.Create(t.Context(), slotNamed("b"), bad); !errors.Is(err, body.ErrRefused) {
			t.Errorf("a bad one: %v, want ErrRefused", err)
		}
		slot := slotNamed("a")
		o := s.create(slot, v1alpha1.Sim{Version: new("good")})
		s.pass(time.Minute - 1)
		s.want(slot, body.Booting, "before a minute")
		s.pass(1)
		s.want(slot, body.Ready, "after a minute")
		stop = time.Hour
		s.delete(slot, o.UID)
		s.pass(time.Hour - 1)
		s.want(slot, body.Stopping, "before an hour")
		s.pass(1)
		s.want(slot, body.Absent, "after an hour")
	})
}

// How long a body takes to stop can be changed, also once it stops.
func TestWorld_SetStop(t *testing.T) {
	tell(t, Options{}, func(s *story) {
		set := func(d time.Duration) {
			t.Helper()
			if err := s.SetStop("ns", "a", d); err != nil {
				t.Error(err)
			}
		}
		set(-1) // there is no body: nothing happens
		slot := slotNamed("a")
		o := s.create(slot, v1alpha1.Sim{Stop: takes(time.Second)})
		set(-1)
		s.delete(slot, o.UID)
		s.pass(24 * time.Hour)
		s.want(slot, body.Stopping, "for ever")
		set(5 * time.Second)
		s.pass(4 * time.Second)
		s.want(slot, body.Stopping, "before its new time")
		s.pass(time.Second)
		s.want(slot, body.Absent, "after it")
	})
}

// Whoever watches is told of each change, in order.
func TestWorld_Watch(t *testing.T) {
	var seen []string
	watch := func(b Body) {
		said := fmt.Sprintf("%s#%d %s %s%s", b.Member, b.Incarnation, b.Revision, b.State, b.Occupancy)
		if b.Told {
			said += " told"
		}
		seen = append(seen, said)
	}
	tell(t, Options{Watch: watch}, func(s *story) {
		slot := slotNamed("a")
		o := s.create(slot, v1alpha1.Sim{Boot: takes(time.Second), Stop: takes(time.Second)})
		s.pass(2 * time.Second)
		for _, err := range []error{
			s.SetHealthy("ns", "a", false), s.SetHealthy("ns", "a", true),
			s.SetOccupancy("ns", "a", body.Busy), s.SetOccupancy("ns", "a", body.Busy), s.SetRevision("ns", "a", ""),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		s.delete(slot, o.UID)
		s.pass(time.Second)
		slot.Incarnation = 2
		s.create(slot, v1alpha1.Sim{})
		if err := s.Remove("ns", "a"); err != nil {
			t.Error(err)
		}
		slot.Incarnation = 3
		s.delete(slot, s.create(slot, v1alpha1.Sim{}).UID)
		want := []string{
			"a#1 A Booting", "a#1 A Ready", "a#1 A Down", "a#1 A Ready", "a#1 A ReadyBusy", "a#1  ReadyBusy",
			"a#1  StoppingBusy told", "a#1  AbsentBusy told", "a#2 A Ready", "a#2 A Absent", "a#3 A Ready", "a#3 A Absent told",
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// What nobody can tell is unknown, and known again afterwards.
func TestWorld_FailOccupancy(t *testing.T) {
	tell(t, Options{}, func(s *story) {
		slot := slotNamed("a")
		s.create(slot, v1alpha1.Sim{})
		for _, step := range []struct {
			do   func()
			want body.Occupancy
		}{
			{func() {}, body.Untold},
			{func() { s.FailOccupancy(true) }, body.UnknownOccupancy},
			{func() { _ = s.SetOccupancy("ns", "a", body.Busy) }, body.UnknownOccupancy},
			{func() { s.FailOccupancy(false) }, body.Busy},
		} {
			step.do()
			s.pass(0)
			if o, err := s.Observe(t.Context(), slot, nil); o.Occupancy != step.want || err != nil {
				t.Errorf("it is %q, %v; want %q", o.Occupancy, err, step.want)
			}
		}
	})
}

func TestWorld_Place(t *testing.T) {
	nature := func(sim *v1alpha1.Sim) *v1alpha1.Sim {
		is := &v1alpha1.Sim{Boot: takes(time.Minute), Stop: takes(time.Second)}
		switch *sim.Version {
		case "crashes":
			is.Outcome, is.After = new("Crash"), takes(time.Hour)
		case "never":
			is.Outcome = new("NeverReady")
		}
		return is
	}
	tests := map[string]struct {
		version string
		state   body.State
		after   time.Duration
		then    body.State
		reason  string
	}{
		"ready":    {"A", body.Ready, time.Hour, body.Ready, "it has been there all the time"},
		"booting":  {"A", body.Booting, time.Minute, body.Ready, "its boot begins with the story"},
		"never":    {"never", body.Booting, time.Hour, body.Booting, "what never boots does not boot"},
		"survivor": {"never", body.Ready, time.Hour, body.Ready, "what has booted has booted"},
		"down":     {"crashes", body.Down, 2 * time.Hour, body.Down, "what is down does not crash"},
		"crashes":  {"crashes", body.Ready, time.Hour, body.Exited, "its time until the crash begins with the story"},
		"stopping": {"A", body.Stopping, time.Second, body.Absent, "its end begins with the story"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tell(t, Options{Nature: nature}, func(s *story) {
				slot := slotNamed("a")
				uid, err := s.Place(slot, Placed{Version: tt.version, State: tt.state, BornAt: time.Now().Add(-24 * time.Hour)})
				if err != nil || uid == "" {
					t.Fatal(uid, err)
				}
				s.want(slot, tt.state, "at first")
				s.pass(tt.after - 1)
				s.want(slot, tt.state, "a moment before")
				s.pass(1)
				s.want(slot, tt.then, tt.reason)
				if got := s.Stats(); got.Creates+got.Deletes != 0 {
					t.Errorf("it counts as a birth or an end: %+v", got)
				}
			})
		})
	}
}

// Whoever has been stopped does nothing any more, not even by a call that was
// on its way.
func TestWorld_DeadCaller(t *testing.T) {
	tell(t, Options{}, func(s *story) {
		slot := slotNamed("a")
		o := s.create(slot, v1alpha1.Sim{})
		dead, cancel := context.WithCancel(s.Context())
		cancel()
		next := slotNamed("b")
		_, errCreate := s.Create(dead, next, &v1alpha1.Template{Sim: &v1alpha1.Sim{}})
		_, errUpdate := s.Update(dead, slot, &v1alpha1.Template{Sim: &v1alpha1.Sim{}})
		_, errDrain := s.Drain(dead, slot, nil)
		for what, err := range map[string]error{
			"create": errCreate, "update": errUpdate, "drain": errDrain,
			"undrain": s.Undrain(dead, slot, nil), "delete": s.Delete(dead, slot, o.UID),
		} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want context.Canceled", what, err)
			}
		}
		s.want(slot, body.Ready, "after calls of the dead")
		s.want(next, body.Absent, "after calls of the dead")
	})
}

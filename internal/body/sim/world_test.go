package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// story is a world in virtual time, with a note of who was told.
type story struct {
	*testing.T
	*World

	mu   sync.Mutex
	told []string
}

// tell plays f in a world of its own.
func tell(t *testing.T, o Options, f func(s *story)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &story{T: t}
		w, err := New(o, s.noted)
		if err != nil {
			t.Fatal(err)
		}
		s.World = w
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		f(s)
	})
}

func (s *story) noted(_, member string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, member)
}

// pass lets time pass and gives who was told meanwhile.
func (s *story) pass(d time.Duration) []string {
	time.Sleep(d)
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	s.told = nil
	return told
}

func (s *story) create(slot body.Slot, sim v1alpha1.Sim) body.Observation {
	s.Helper()
	o, err := s.Create(s.Context(), slot, &v1alpha1.Template{Sim: &sim})
	if err != nil {
		s.Fatalf("create %s: %v", slot.Member, err)
	}
	return o
}

func (s *story) state(slot body.Slot) body.State {
	s.Helper()
	o, err := s.Observe(s.Context(), slot, nil)
	if err != nil {
		s.Fatalf("observe %s: %v", slot.Member, err)
	}
	return o.State
}

func (s *story) want(slot body.Slot, want body.State, when string) {
	s.Helper()
	if got := s.state(slot); got != want {
		s.Errorf("%s %s is %s, want %s", when, slot.Member, got, want)
	}
}

func (s *story) delete(slot body.Slot, uid string) {
	s.Helper()
	if err := s.Delete(s.Context(), slot, uid); err != nil {
		s.Fatalf("delete %s: %v", slot.Member, err)
	}
}

func slotNamed(member string) body.Slot {
	return body.Slot{Namespace: "ns", Member: member, UID: "uid-of-" + member, Incarnation: 1, Revision: "A"}
}

func takes(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func TestWorld_LifeOfABody(t *testing.T) {
	tell(t, Options{}, func(s *story) {
		slot := slotNamed("a")
		sim := v1alpha1.Sim{Boot: takes(30 * time.Second), Stop: takes(10 * time.Second)}
		s.want(slot, body.Absent, "before its birth")
		o := s.create(slot, sim)
		want := body.Observation{
			State: body.Booting, UID: o.UID, Incarnation: 1, Revision: "A", Address: "a.ns.sim:1", BornAt: time.Now(),
		}
		if diff := cmp.Diff(want, o); diff != "" || o.UID == "" {
			t.Errorf("at its birth (-want +got):\n%s", diff)
		}
		s.pass(30*time.Second - 1)
		s.want(slot, body.Booting, "a moment before 30s")
		if again := s.create(slot, sim); again.UID != o.UID {
			t.Error("created twice, there is another body")
		}
		if told := s.pass(1); !cmp.Equal(told, []string{"a"}) {
			t.Errorf("at 30s %q are told", told)
		}
		s.want(slot, body.Ready, "at 30s")
		if told := s.pass(time.Hour); len(told) != 0 {
			t.Errorf("%q are told of nothing", told)
		}

		s.delete(slot, "another")
		s.want(slot, body.Ready, "after deleting another body")
		s.pass(0)
		s.delete(slot, o.UID)
		if told := s.pass(0); len(told) != 1 {
			t.Errorf("at its end %q are told", told)
		}
		s.pass(5 * time.Second)
		s.delete(slot, o.UID) // does not begin anew
		s.pass(5*time.Second - 1)
		s.want(slot, body.Stopping, "a moment before 10s")
		if told := s.pass(1); !cmp.Equal(told, []string{"a"}) {
			t.Errorf("at 10s %q are told", told)
		}
		s.want(slot, body.Absent, "at 10s")
		s.delete(slot, o.UID)
		if diff := cmp.Diff(Stats{Creates: 1, Deletes: 1, MostBodies: 1}, s.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

// What takes no time is told all the same.
func TestWorld_NoTime(t *testing.T) {
	tell(t, Options{Capacity: 1}, func(s *story) {
		slot := slotNamed("a")
		for slot.Incarnation = 1; slot.Incarnation <= 3; slot.Incarnation++ {
			o := s.create(slot, v1alpha1.Sim{})
			s.want(slot, body.Ready, "at its birth")
			s.pass(0)
			s.delete(slot, o.UID)
			if told := s.pass(0); !cmp.Equal(told, []string{"a"}) {
				t.Errorf("of an end at once %q are told", told)
			}
			s.want(slot, body.Absent, "told to go")
		}
	})
}

func TestWorld_Outcomes(t *testing.T) {
	tell(t, Options{}, func(s *story) {
		never, crashes := slotNamed("never"), slotNamed("crashes")
		s.create(never, v1alpha1.Sim{Outcome: new("NeverReady")})
		s.create(crashes, v1alpha1.Sim{Outcome: new("Crash"), Boot: takes(time.Second), After: takes(20 * time.Second)})
		s.pass(20 * time.Second)
		s.want(crashes, body.Ready, "20s after its birth")
		if told := s.pass(time.Second); !cmp.Equal(told, []string{"crashes"}) {
			t.Errorf("at the crash %q are told", told)
		}
		s.want(crashes, body.Exited, "20s after it was ready")
		s.pass(24 * time.Hour)
		s.want(never, body.Booting, "a day later")
		s.want(crashes, body.Exited, "a day later")

		for outcome, want := range map[string]string{"CreateError": "is CreateError", "Else": `"Else" is not one of`} {
			template := &v1alpha1.Template{Sim: &v1alpha1.Sim{Outcome: &outcome}}
			_, err := s.Create(t.Context(), slotNamed("c"), template)
			if !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), "template.sim.outcome") || !strings.Contains(err.Error(), want) {
				t.Errorf("outcome %s: %v", outcome, err)
			}
			s.want(slotNamed("c"), body.Absent, "refused")
		}
		for _, template := range []*v1alpha1.Template{nil, {}} {
			if err := s.Validate(never, template); !errors.Is(err, body.ErrRefused) {
				t.Errorf("without sim: %v", err)
			}
		}
	})
}

func TestWorld_CreateOccupied(t *testing.T) {
	tell(t, Options{}, func(s *story) {
		slot := slotNamed("a")
		o := s.create(slot, v1alpha1.Sim{Stop: takes(time.Second)})
		next, other, edited := slot, slot, slot
		next.Incarnation = 2
		other.UID = "of a later Member"
		edited.Revision = "B"
		for _, wrong := range []body.Slot{next, other, edited} {
			if _, err := s.Create(t.Context(), wrong, &v1alpha1.Template{Sim: &v1alpha1.Sim{}}); !errors.Is(err, body.ErrOccupied) {
				t.Errorf("create %+v: %v, want ErrOccupied", wrong, err)
			}
		}
		s.delete(other, o.UID)
		if _, err := s.Create(t.Context(), next, &v1alpha1.Template{Sim: &v1alpha1.Sim{}}); !errors.Is(err, body.ErrOccupied) {
			t.Errorf("create while it stops: %v, want ErrOccupied", err)
		}
		s.pass(time.Second)
		s.create(other, v1alpha1.Sim{})
	})
}

func TestWorld_Drain(t *testing.T) {
	tell(t, Options{}, func(s *story) {
		slot := slotNamed("a")
		drained := func(want bool, when string) {
			t.Helper()
			if done, err := s.Drain(t.Context(), slot, nil); done != want || err != nil {
				t.Errorf("%s drain gives %t, %v; want %t", when, done, err, want)
			}
		}
		drained(true, "without a body")
		o := s.create(slot, v1alpha1.Sim{Drain: takes(time.Minute), Stop: takes(time.Second)})
		drained(false, "at first")
		s.pass(59 * time.Second)
		drained(false, "after 59s")
		if err := s.Undrain(t.Context(), slot, nil); err != nil {
			t.Error(err)
		}
		s.pass(time.Hour)
		drained(false, "after it was taken back, anew")
		if told := s.pass(time.Minute); !cmp.Equal(told, []string{"a"}) {
			t.Errorf("when it is done %q are told", told)
		}
		drained(true, "after a minute")
		s.want(slot, body.Ready, "drained")
		s.delete(slot, o.UID)
		drained(true, "told to go")
	})
}

// A body that stops still takes its place.
func TestWorld_Capacity(t *testing.T) {
	tell(t, Options{Capacity: 2}, func(s *story) {
		a, b, c := slotNamed("a"), slotNamed("b"), slotNamed("c")
		stop := v1alpha1.Sim{Stop: takes(10 * time.Second)}
		o := s.create(a, stop)
		s.create(b, stop)
		full := func(when string) {
			t.Helper()
			if _, err := s.Create(t.Context(), c, &v1alpha1.Template{Sim: &stop}); !errors.Is(err, body.ErrNoRoom) {
				t.Errorf("%s create gives %v, want ErrNoRoom", when, err)
			}
		}
		full("with two of two")
		s.delete(a, o.UID)
		s.pass(10*time.Second - 1)
		full("while one stops")
		s.pass(1)
		s.create(c, stop)
		s.SetCapacity(1)
		if err := s.Remove("ns", "b"); err != nil {
			t.Error(err)
		}
		s.create(c, stop) // it is there
		if _, err := s.Create(t.Context(), b, &v1alpha1.Template{Sim: &stop}); !errors.Is(err, body.ErrNoRoom) {
			t.Errorf("with one of one create gives %v, want ErrNoRoom", err)
		}
		s.SetCapacity(-1)
		if _, err := s.Create(t.Context(), b, &v1alpha1.Template{Sim: &stop}); !errors.Is(err, body.ErrNoRoom) {
			t.Errorf("where none fits create gives %v, want ErrNoRoom", err)
		}
		s.SetCapacity(0)
		s.create(b, stop)
		if got := s.Stats(); got.MostBodies != 2 || got.Creates != 4 || got.Deletes != 1 {
			t.Errorf("stats %+v", got)
		}
	})
}

func TestWorld_BehindOnesBack(t *testing.T) {
	tell(t, Options{}, func(s *story) {
		a, b := slotNamed("a"), slotNamed("b")
		s.create(a, v1alpha1.Sim{})
		s.create(b, v1alpha1.Sim{Boot: takes(time.Minute)})
		health := func(slot body.Slot, up bool, want body.State) {
			t.Helper()
			s.pass(time.Second)
			before := s.state(slot)
			if err := s.SetHealthy(slot.Namespace, slot.Member, up); err != nil {
				t.Error(err)
			}
			if told := s.pass(0); before != want && !cmp.Equal(told, []string{slot.Member}) {
				t.Errorf("of its health %q are told", told)
			}
			s.want(slot, want, fmt.Sprintf("made healthy %t", up))
		}
		health(a, false, body.Down)
		health(a, false, body.Down)
		health(a, true, body.Ready)
		health(b, false, body.Booting)
		s.pass(time.Hour)
		s.want(b, body.Booting, "never well")
		health(b, true, body.Ready)
		health(b, false, body.Down)
		health(slotNamed("none"), false, body.Absent)

		if err := s.Remove("ns", "a"); err != nil {
			t.Error(err)
		}
		if told := s.pass(0); !cmp.Equal(told, []string{"a"}) {
			t.Errorf("of a removal %q are told", told)
		}
		s.want(a, body.Absent, "removed")

		s.Refuse("ns", "a", time.Minute)
		s.pass(time.Minute - 1)
		if _, err := s.Create(t.Context(), a, &v1alpha1.Template{Sim: &v1alpha1.Sim{}}); !errors.Is(err, body.ErrRefused) {
			t.Errorf("while births are refused: %v", err)
		}
		s.pass(1)
		s.create(a, v1alpha1.Sim{})
		var members []string
		for _, b := range s.Bodies() {
			members = append(members, fmt.Sprintf("%s/%s %s", b.Namespace, b.Member, b.State))
		}
		if diff := cmp.Diff([]string{"ns/a Ready", "ns/b Down"}, members); diff != "" {
			t.Errorf("bodies (-want +got):\n%s", diff)
		}
	})
}

// What cannot be read is unknown, not absent.
func TestWorld_FailReads(t *testing.T) {
	tell(t, Options{}, func(s *story) {
		slot := slotNamed("a")
		o := s.create(slot, v1alpha1.Sim{})
		cut := errors.New("network is down")
		s.FailReads(cut)
		_, errObserve := s.Observe(t.Context(), slot, nil)
		_, errDrain := s.Drain(t.Context(), slot, nil)
		_, errCreate := s.Create(t.Context(), slotNamed("b"), &v1alpha1.Template{Sim: &v1alpha1.Sim{}})
		for what, err := range map[string]error{"observe": errObserve, "drain": errDrain, "create": errCreate} {
			if !errors.Is(err, cut) || errors.Is(err, body.ErrRefused) || errors.Is(err, body.ErrNoRoom) {
				t.Errorf("%s: %v, want the reason and nothing else", what, err)
			}
		}
		s.pass(0)
		s.FailReads(nil)
		if told := s.pass(0); !cmp.Equal(told, []string{"a"}) {
			t.Errorf("when reads work again %q are told", told)
		}
		if again := s.create(slot, v1alpha1.Sim{}); again.UID != o.UID {
			t.Error("the body is another one")
		}
	})
}

// Controllers come and go; the world stays, and tells whoever is there.
func TestWorld_Notify(t *testing.T) {
	tell(t, Options{}, func(s *story) {
		boot := v1alpha1.Sim{Boot: takes(time.Second)}
		s.Notify(nil)
		s.create(slotNamed("a"), boot)
		if told := s.pass(time.Second); len(told) != 0 {
			t.Errorf("%q are told, want nobody", told)
		}
		s.Notify(s.noted)
		s.create(slotNamed("b"), boot)
		if told := s.pass(time.Second); !cmp.Equal(told, []string{"b"}) {
			t.Errorf("%q are told", told)
		}
	})
}

func TestWorld_ManyBodies(t *testing.T) {
	const n = 10_000
	before := runtime.NumGoroutine()
	tell(t, Options{}, func(s *story) {
		for i := range n {
			s.create(slotNamed(fmt.Sprint(i)), v1alpha1.Sim{Boot: takes(time.Duration(i) * time.Millisecond)})
		}
		if extra := runtime.NumGoroutine() - before; extra > 10 {
			t.Errorf("%d goroutines for %d bodies", extra, n)
		}
		if told := s.pass(time.Hour); len(told) != n-1 {
			t.Errorf("%d are told, want %d", len(told), n-1)
		}
		if left := len(s.timers.queue); left != 0 {
			t.Errorf("%d timers are left", left)
		}
	})
}

func TestWorld_Concurrent(t *testing.T) {
	w, err := New(Options{}, func(string, string) {})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			slot := slotNamed(fmt.Sprint(i))
			template := &v1alpha1.Template{Sim: &v1alpha1.Sim{Boot: takes(time.Microsecond), Stop: takes(time.Microsecond)}}
			for slot.Incarnation = 1; slot.Incarnation < 100; slot.Incarnation++ {
				o, err := w.Create(context.Background(), slot, template)
				if err != nil {
					t.Error(err)
					return
				}
				_ = w.SetHealthy(slot.Namespace, slot.Member, false)
				_ = w.Bodies()
				for o.State != body.Absent {
					_ = w.Delete(context.Background(), slot, o.UID)
					o, _ = w.Observe(context.Background(), slot, nil)
				}
			}
		})
	}
	all.Wait()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func BenchmarkWorld_Life(b *testing.B) {
	w, err := New(Options{File: b.TempDir() + "/sim"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	template := &v1alpha1.Template{Sim: &v1alpha1.Sim{}}
	for i := range 10_000 {
		if _, err := w.Create(b.Context(), slotNamed(fmt.Sprint("other", i)), template); err != nil {
			b.Fatal(err)
		}
	}
	slot := slotNamed("a")
	for b.Loop() {
		slot.Incarnation++
		o, err := w.Create(b.Context(), slot, template)
		if err != nil {
			b.Fatal(err)
		}
		if err := w.Delete(b.Context(), slot, o.UID); err != nil {
			b.Fatal(err)
		}
	}
}

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// again is the same world after its process has ended; killed, it had no time
// to close anything.
func (s *story) again(file string, killed bool) {
	s.Helper()
	old := s.World
	if !killed {
		if err := old.Close(); err != nil {
			s.Error(err)
		}
	}
	w, err := New(Options{File: file}, s.noted)
	if err != nil {
		s.Fatal(err)
	}
	if killed {
		_ = old.Close()
	}
	s.World = w
}

func TestWorld_OutlivesItsProcess(t *testing.T) {
	for name, killed := range map[string]bool{"closed": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "sim.json")
			tell(t, Options{File: file}, func(s *story) {
				boots, stops, gone, sick, drains := slotNamed("boots"), slotNamed("stops"), slotNamed("gone"), slotNamed("sick"), slotNamed("drains")
				sim := v1alpha1.Sim{Boot: takes(time.Minute), Stop: takes(time.Minute), Drain: takes(time.Minute)}
				uid := s.create(boots, sim).UID
				s.delete(stops, s.create(stops, sim).UID)
				s.create(gone, sim)
				s.create(sick, sim)
				s.create(drains, sim)
				if err := s.Remove("ns", "gone"); err != nil {
					t.Error(err)
				}
				if done, err := s.Drain(t.Context(), drains, nil); done || err != nil {
					t.Error(done, err)
				}
				s.pass(30 * time.Second)
				before := s.Bodies()
				s.again(file, killed)
				if diff := cmp.Diff(before, s.Bodies()); diff != "" {
					t.Errorf("after a restart (-want +got):\n%s", diff)
				}
				s.want(gone, body.Absent, "after a restart")
				s.pass(30 * time.Second)
				s.want(boots, body.Ready, "after its minute")
				s.want(stops, body.Absent, "after its minute")
				if done, err := s.Drain(t.Context(), drains, nil); !done || err != nil {
					t.Errorf("drained: %t, %v", done, err)
				}
				if err := s.SetHealthy("ns", "sick", false); err != nil {
					t.Error(err)
				}
				s.delete(boots, uid)
				s.pass(time.Hour)
				// Time passes while nobody is there.
				s.again(file, killed)
				s.want(boots, body.Absent, "an hour later")
				s.want(sick, body.Booting, "sick since before it was ready")
				if n := len(s.Bodies()); n != 2 {
					t.Errorf("there are %d bodies", n)
				}
			})
		})
	}
}

// Whatever was written is a state that was; half a line never counts.
func TestJournal_Torn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sim.json")
	tell(t, Options{File: file}, func(s *story) {
		for i := range 3 {
			s.create(slotNamed(fmt.Sprint(i)), v1alpha1.Sim{})
		}
	})
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) + 1 {
		if err := os.WriteFile(file, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		j, bodies, err := openJournal(file, time.Now())
		if err != nil {
			t.Fatalf("after %d bytes: %v", n, err)
		}
		if want := bytes.Count(whole[:n], []byte("\n")); len(bodies) != want {
			t.Errorf("after %d bytes there are %d bodies, want %d", n, len(bodies), want)
		}
		// What comes next does not run into the torn line.
		if err := j.write(key{"ns", "next"}, &script{UID: "next"}, bodies, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
		if again, err := readJournal(file); err != nil || again[key{"ns", "next"}] == nil {
			t.Errorf("after %d bytes and another line: %v, %v", n, again, err)
		}
	}
}

func TestJournal_Damaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sim.json")
	if err := os.WriteFile(file, []byte("{\"namespace\":\"a\"}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{File: file}, nil); err == nil || !strings.Contains(err.Error(), file+" is damaged in line 2") {
		t.Errorf("error %v, want file and line", err)
	}
	if _, err := New(Options{File: filepath.Join(file, "x")}, nil); err == nil {
		t.Error("a file that cannot be made gives no error")
	}
}

func TestJournal_StaysSmall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sim.json")
	tell(t, Options{File: file}, func(s *story) {
		slot := slotNamed("a")
		keep := s.create(slotNamed("keep"), v1alpha1.Sim{}).UID
		for slot.Incarnation = 1; slot.Incarnation < 5000; slot.Incarnation++ {
			s.delete(slot, s.create(slot, v1alpha1.Sim{}).UID)
		}
		b, err := os.ReadFile(file)
		if err != nil || bytes.Count(b, []byte("\n")) > 1100 {
			t.Errorf("the file has %d lines, %v", bytes.Count(b, []byte("\n")), err)
		}
		s.again(file, true)
		if all := s.Bodies(); len(all) != 1 || all[0].UID != keep {
			t.Errorf("bodies %+v", all)
		}
	})
}

// What cannot be kept does not happen.
func TestJournal_CannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sim.json")
	tell(t, Options{File: file}, func(s *story) {
		a := slotNamed("a")
		o := s.create(a, v1alpha1.Sim{})
		good := s.journal.file
		bad, err := os.Open(file) // for reading only
		if err != nil {
			t.Fatal(err)
		}
		s.journal.file = bad
		if _, err := s.Create(t.Context(), slotNamed("b"), &v1alpha1.Template{Sim: &v1alpha1.Sim{}}); !errors.Is(err, body.ErrNoRoom) {
			t.Errorf("create: %v, want ErrNoRoom", err)
		}
		if err := s.Delete(t.Context(), a, o.UID); err == nil {
			t.Error("delete gives no error")
		}
		s.want(a, body.Ready, "not deleted")
		s.want(slotNamed("b"), body.Absent, "not created")
		if got := s.Stats(); got.Creates != 1 || got.Deletes != 0 {
			t.Errorf("stats %+v count what did not happen", got)
		}
		s.journal.file = good
		_ = bad.Close()
		s.delete(a, o.UID)
		s.want(a, body.Absent, "deleted")
	})
}

func FuzzReadJournal(f *testing.F) {
	f.Add([]byte("{\"namespace\":\"a\",\"member\":\"b\",\"body\":{\"uid\":\"c\"}}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file := filepath.Join(t.TempDir(), "sim.json")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		j, bodies, err := openJournal(file, time.Now())
		if err != nil {
			return
		}
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
		again, err := readJournal(file)
		if err != nil || !cmp.Equal(bodies, again) {
			t.Errorf("written and read again: %v, %s", err, cmp.Diff(bodies, again))
		}
	})
}

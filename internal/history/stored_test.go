package history

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/revision"
	"github.com/pawl-dev/pawl/rollout"
)

func TestStored_Snapshot(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
	old, id := sim("1"), sim("2")
	tests := map[string]struct {
		reason    string
		change    func(*Stored)
		target    rollout.Revision
		current   rollout.Revision
		back      rollout.Revision
		unreadble rollout.Reason
	}{
		"as it is": {
			reason: "the template is the target, the revision on which the pool last stood the current one",
			change: func(*Stored) {}, target: rollout.Revision(id), current: rollout.Revision(old),
		},
		"not stored yet": {
			reason: "what the controller has not stored yet is the target all the same",
			change: func(s *Stored) { s.Revisions = s.Revisions[:1] }, target: rollout.Revision(id), current: rollout.Revision(old),
		},
		"never seen": {
			reason: "a new pool has no current revision before a body has recovered",
			change: func(s *Stored) { s.Revisions = nil }, target: rollout.Revision(id),
		},
		"invalid": {
			reason: "a template that is wrong keeps the last known target",
			change: func(s *Stored) {
				s.Invalid = errors.New("spec.template.process.args[0]: undeclared reference")
				s.Pool.Status.TargetRevision = old
			},
			target: rollout.Revision(old), current: rollout.Revision(old), unreadble: rollout.SourcesUnresolved,
		},
		"rolled back": {
			reason: "after a rollback the target is the current revision",
			change: func(s *Stored) { record(t, s.Revisions[1], Record{RolledBack: true}) },
			target: rollout.Revision(old), current: rollout.Revision(old), back: rollout.Revision(id),
		},
		"known": {
			reason: "whoever knows the target says so",
			change: func(s *Stored) { s.Target = "known" }, target: "known", current: rollout.Revision(old),
		},
		"the same": {
			reason: "a current revision that says the same as the target is it",
			change: func(s *Stored) { s.Pool.Spec.Template.LiveFields = []string{"sim.version"} },
			target: rollout.Revision(id), current: rollout.Revision(id),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stored(t, now)
			tt.change(s)
			got, err := s.Snapshot(now)
			if err != nil {
				t.Fatal(err)
			}
			is := []any{got.Target.ID, got.Current.ID, got.RolledBack.ID, got.Unreadable, len(got.Members)}
			want := []any{tt.target, tt.current, tt.back, tt.unreadble, 1}
			if diff := cmp.Diff(want, is); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tt.reason, diff)
			}
		})
	}
}

// TestStored_Snapshot_taken: a claim says that it holds a member before the
// member is seen claimed.
func TestStored_Snapshot_taken(t *testing.T) {
	t.Parallel()
	s := stored(t, noon)
	s.Members[0].Name = "web-0"
	s.Claims = []*v1alpha1.Claim{{Spec: v1alpha1.ClaimSpec{Pool: "web"}, Status: v1alpha1.ClaimStatus{Phase: v1alpha1.ClaimBound, Member: "web-0"}}}
	for _, ended := range []bool{false, true} {
		if ended {
			s.Claims[0].DeletionTimestamp = &metav1.Time{Time: noon}
		}
		got, err := s.Snapshot(noon)
		if err != nil {
			t.Fatal(err)
		}
		if m := got.Members[0]; m.Free() == !ended || m.Claimed == ended {
			t.Errorf("the claim is being deleted: %t, and its member is %+v", ended, m)
		}
	}
}

func TestStored_Snapshot_members(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
	s := stored(t, now)
	s.Pool.Spec.Template.LiveFields = []string{"sim.version"}
	s.Members[0].Spec.Revision = sim("1")
	s.Members[0].Annotations = map[string]string{v1alpha1.AnnotationSkip: sim("1")}
	got, err := s.Snapshot(now)
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Members[0]; m.Runs != got.Target.ID || m.Wants != got.Target.ID || !m.Skipped {
		t.Errorf("what says the same as the target is it, by whatever name: %+v", m)
	}
	for id, want := range map[string]bool{sim("1"): false, sim("2"): true, "": false} {
		s := stored(t, now)
		s.Members[0].Annotations = map[string]string{v1alpha1.AnnotationSkip: id}
		if got, err := s.Snapshot(now); err != nil || got.Members[0].Skipped != want {
			t.Errorf("a member that skips %q, of target %s, is skipped: %t, %v", id, got.Target.ID, got.Members[0].Skipped, err)
		}
	}
	s = stored(t, now)
	s.Missing = map[string]bool{sim("1"): true}
	if got, err := s.Snapshot(now); err != nil || !got.Current.Missing || got.Target.Missing {
		t.Errorf("current %+v, target %+v, %v", got.Current, got.Target, err)
	}
}

// TestStored_Snapshot_time: windows and holds, and when they next matter.
func TestStored_Snapshot_time(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	hold := func(until string) func(*Stored) {
		return func(s *Stored) {
			s.Members[0].Annotations = map[string]string{v1alpha1.AnnotationHold: `{"until": "` + until + `"}`}
		}
	}
	open := func(schedules ...string) func(*Stored) {
		return func(s *Stored) {
			s.Pool.Spec.Update = &v1alpha1.Update{}
			for _, text := range schedules {
				s.Pool.Spec.Update.Windows = append(s.Pool.Spec.Update.Windows, v1alpha1.Window{Schedule: text, Duration: &metav1.Duration{Duration: time.Hour}})
			}
		}
	}
	cases := map[string]struct {
		reason string
		edits  []func(*Stored)
		shut   bool
		wake   string
	}{
		"nothing":             {"time changes nothing", nil, false, ""},
		"held":                {"until the hold ends", []func(*Stored){hold("2026-06-01T13:00:00Z")}, false, "2026-06-01T13:00:00Z"},
		"held till now":       {"that is over", []func(*Stored){hold("2026-06-01T12:00:00Z")}, false, ""},
		"open":                {"until the window closes", []func(*Stored){open("30 11 * * *")}, false, "2026-06-01T12:30:00Z"},
		"shut":                {"until it opens", []func(*Stored){open("30 13 * * *")}, true, "2026-06-01T13:30:00Z"},
		"never opens":         {"and nothing wakes for it", []func(*Stored){open("nonsense")}, true, ""},
		"held, and opens":     {"the hold ends first", []func(*Stored){open("30 13 * * *"), hold("2026-06-01T13:00:00Z")}, true, "2026-06-01T13:00:00Z"},
		"held for longer":     {"it opens first", []func(*Stored){open("30 13 * * *"), hold("2026-06-01T14:00:00Z")}, true, "2026-06-01T13:30:00Z"},
		"one is bad, one not": {"the other opens", []func(*Stored){open("nonsense", "30 11 * * *")}, false, "2026-06-01T12:30:00Z"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := stored(t, now)
			for _, edit := range tc.edits {
				edit(s)
			}
			got, err := s.Snapshot(now)
			if err != nil {
				t.Fatal(err)
			}
			wake := ""
			if !s.Wake.IsZero() {
				wake = s.Wake.Format(time.RFC3339)
			}
			if got.WindowShut != tc.shut || wake != tc.wake {
				t.Errorf("%s: shut %t, wake at %q", tc.reason, got.WindowShut, wake)
			}
			if never := name == "never opens"; got.WindowNever != never {
				t.Errorf("%s: it never opens: %t", tc.reason, got.WindowNever)
			}
			if bad := strings.Contains(name, "bad") || strings.Contains(name, "never"); bad != strings.HasPrefix(got.WindowError, "spec.update.windows[0].schedule: ") {
				t.Errorf("%s: it says %q", tc.reason, got.WindowError)
			}
		})
	}
}

// TestStored_Snapshot_waiting: no claim counts that has ended, or got a member.
func TestStored_Snapshot_waiting(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	s := stored(t, now)
	claim := func(uid types.UID, phase v1alpha1.ClaimPhase) *v1alpha1.Claim {
		return &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: v1alpha1.ClaimStatus{Phase: phase}}
	}
	s.Claims = []*v1alpha1.Claim{
		claim("new", ""), claim("waits", v1alpha1.ClaimPending), claim("has", v1alpha1.ClaimBound), claim("had", v1alpha1.ClaimExpired),
		claim("unrecorded", v1alpha1.ClaimPending), claim("released", v1alpha1.ClaimPending),
	}
	s.Claims[5].DeletionTimestamp = &metav1.Time{Time: now}
	s.Members[0].Spec.Claim = &v1alpha1.MemberClaim{UID: "unrecorded"}
	got, err := s.Snapshot(now)
	if err != nil {
		t.Fatal(err)
	}
	if got.Waiting != 2 {
		t.Errorf("%d claims wait instead of 2: new and waits", got.Waiting)
	}
}

// stored is a pool whose template became version 2 while its one member runs 1.
func stored(t *testing.T, now time.Time) *Stored {
	t.Helper()
	p := pool("1")
	s := &Stored{Pool: p}
	for i, version := range []string{"1", "2"} {
		p.Spec.Template.Sim.Version = &version
		rev, err := New(p, only(t, p), revision.Current, int64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		record(t, rev, Record{})
		s.Revisions = append(s.Revisions, rev)
	}
	stood := metav1.NewMicroTime(now)
	record(t, s.Revisions[0], Record{StoodAt: &stood})
	s.Members = []*v1alpha1.Member{{Status: v1alpha1.MemberStatus{Phase: v1alpha1.PhaseAvailable, Revision: sim("1")}}}
	return s
}

// only is what the pool's template says.
func only(t *testing.T, p *v1alpha1.Pool) *Content {
	t.Helper()
	c, err := ContentOf(&p.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func record(t *testing.T, r *appsv1.ControllerRevision, rec Record) {
	t.Helper()
	if err := WriteRecord(r, rec); err != nil {
		t.Fatal(err)
	}
}

func pool(version string) *v1alpha1.Pool {
	return &v1alpha1.Pool{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec:       v1alpha1.PoolSpec{Template: v1alpha1.Template{Sim: &v1alpha1.Sim{Version: &version}}},
	}
}

// sim is the id of the revision of a version.
func sim(version string) string {
	id, err := ID(&pool(version).Spec.Template)
	if err != nil {
		panic(err)
	}
	return id
}

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
)

// busy is the world with everything that people can ask for.
func busy(t *testing.T) []client.Object {
	t.Helper()
	p, objects := world(t)
	p.Spec.Update.OnClaimed = new(v1alpha1.ClaimedNotify)
	p.Spec.Update.Windows = []v1alpha1.Window{{Schedule: "0 22 * * *", Duration: &metav1.Duration{Duration: 2 * time.Hour}}}
	objects[4].SetAnnotations(map[string]string{v1alpha1.AnnotationHold: `{"reason":"debugging the disk","until":"2031-05-01T16:00:00Z"}`})
	objects[5].SetAnnotations(map[string]string{v1alpha1.AnnotationSkip: p.Status.TargetRevision})
	objects[6].SetAnnotations(map[string]string{v1alpha1.AnnotationRecycle: "1"})
	return append(objects, &v1alpha1.Claim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "build-17", UID: "c1"},
		Spec:       v1alpha1.ClaimSpec{Pool: "web", Holder: "ci"},
		Status: v1alpha1.ClaimStatus{Phase: v1alpha1.ClaimBound, Member: "web-0", Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionUpdateRequested, Status: metav1.ConditionTrue, Reason: "Stale",
			LastTransitionTime: metav1.NewTime(noon.Add(-5 * time.Minute)), Message: "member web-0 is not on revision 9pddxxgw7rvz",
		}}},
	})
}

func TestRemarks(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"status-busy.txt":          {"status", "web"},
		"explain-busy.txt":         {"explain", "web"},
		"explain-busy-claimed.txt": {"explain", "web/0"},
		"explain-busy-held.txt":    {"explain", "web/1"},
		"explain-busy-skipped.txt": {"explain", "web/2"},
		"explain-busy-asked.txt":   {"explain", "web/3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, busy(t)...)
			if got := term.do(t.Context(), args...); got != 0 {
				t.Fatalf("exit status %d: %s", got, &term.err)
			}
			golden(t, name, term.out.String())
		})
	}
}

// TestRemarks_halted: what failed, in the body's own words, and the three
// commands that can follow.
func TestRemarks_halted(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		p, objects := world(t)
		err := history.WriteRecord(objects[2].(*appsv1.ControllerRevision), history.Record{Failed: 3, Halted: true, RolledBack: back, Failures: []history.Failure{
			{ID: "mweb-2", Index: 2, Incarnation: 2, Count: 3, At: *micro(-time.Minute), Message: "exit status 3: cannot open /data"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		term := newTerminal(t, objects...)
		if got := term.do(t.Context(), "explain", "web"); got != 0 {
			t.Fatalf("exit status %d: %s", got, &term.err)
		}
		said := term.out.String()
		for _, want := range []string{"member 2 (exit status 3: cannot open /data)", "pawl undo web", "pawl retry web", "correct the template"} {
			if !strings.Contains(said, want) {
				t.Errorf("rolled back %t: it does not say %q:\n%s", back, want, said)
			}
		}
		// The controller says the same in the pool's conditions, and status shows it.
		for line := range strings.Lines(said) {
			if message, ok := strings.CutPrefix(strings.TrimSpace(line), "Stalled "); ok {
				meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "UpdateHalted", Message: strings.TrimSpace(message)})
				p.Status.Rollout.Next = strings.TrimSpace(message)
			}
		}
		tree := &tree{pool: p, now: noon}
		if got := strings.Count(tree.String(), "pawl undo web"); got != 1 {
			t.Errorf("rolled back %t: the way out is shown %d times:\n%s", back, got, tree)
		}
	}
}

func TestRemarks_windows(t *testing.T) {
	t.Parallel()
	daily := func(schedule string, d time.Duration) v1alpha1.Window {
		return v1alpha1.Window{Schedule: schedule, Duration: &metav1.Duration{Duration: d}}
	}
	for name, tt := range map[string]struct {
		reason  string
		list    []v1alpha1.Window
		updated bool
		want    string
	}{
		"none":   {"a pool without windows", nil, false, ""},
		"shut":   {"the next one is said", []v1alpha1.Window{daily("0 22 * * *", time.Hour)}, false, "windows: shut; the next one opens at 2031-05-01T22:00:00Z (in 10h)"},
		"open":   {"and until when one is open", []v1alpha1.Window{daily("0 11 * * *", 2*time.Hour)}, false, "windows: open until 2031-05-01T13:00:00Z (in 60m)"},
		"never":  {"one that cannot be read never opens", []v1alpha1.Window{daily("at noon", time.Hour)}, false, "windows: shut, and none opens again"},
		"always": {"those that touch are one", []v1alpha1.Window{daily("* * * * *", time.Minute)}, false, "windows: open until "},
		"done":   {"nothing waits for one", []v1alpha1.Window{daily("0 22 * * *", time.Hour)}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := world(t)
			p.Spec.Update.Windows = tt.list
			if tt.updated {
				p.Status.Conditions[0].Status = metav1.ConditionTrue
			}
			if got := windows(p, noon); got != tt.want && (tt.want == "" || !strings.HasPrefix(got, tt.want)) {
				t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
			}
		})
	}
}

// TestExplain_unresolved: what the controller could not read, nobody guesses.
func TestExplain_unresolved(t *testing.T) {
	t.Parallel()
	p, objects := world(t)
	p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionSourcesResolved, Status: metav1.ConditionFalse, Reason: "NotFound", Message: "source bootstrap: ConfigMap default/bootstrap is not there: make it",
	})
	term := newTerminal(t, objects...)
	if got := term.do(t.Context(), "explain", "web/1"); got != 0 || !strings.Contains(term.out.String(), "  SourcesUnresolved: member 1 is on revision") {
		t.Errorf("exit status %d\n%s%s", got, &term.out, &term.err)
	}
	if got := term.do(t.Context(), "status", "web"); got != 0 || !strings.Contains(term.out.String(), "│ sources: source bootstrap: ConfigMap default/bootstrap is not there: make it\n") {
		t.Errorf("exit status %d\n%s%s", got, &term.out, &term.err)
	}
	p.Generation++ // it is about an earlier spec
	term = newTerminal(t, objects...)
	if got := term.do(t.Context(), "explain", "web/1"); got != 0 || strings.Contains(term.out.String(), "SourcesUnresolved") {
		t.Errorf("exit status %d\n%s%s", got, &term.out, &term.err)
	}
}

func TestAsides_many(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	var list []*v1alpha1.Member
	for i := range int32(8) {
		m := member(i, v1alpha1.PhaseAvailable, "x")
		m.Annotations = map[string]string{v1alpha1.AnnotationHold: ""}
		list = append(list, m)
	}
	for n, want := range map[int]string{5: "web-4 is held", 6: "web-5 is held", 7: "and 2 more like that", 8: "and 3 more like that"} {
		got := asides(p, list[:n], noon)
		if last := got[len(got)-1]; last != want || len(got) > manyAsides+1 {
			t.Errorf("%d members: %s", n, fmt.Sprint(got))
		}
	}
}

// TestRemarks_others: what is of an earlier target, body or claim is not told.
func TestRemarks_others(t *testing.T) {
	t.Parallel()
	objects := busy(t)
	objects[4].SetAnnotations(map[string]string{v1alpha1.AnnotationHold: `{"until":"2031-05-01T12:00:00Z"}`})
	objects[5].SetAnnotations(map[string]string{v1alpha1.AnnotationSkip: "bbbbbbbbbbbb"})
	objects[6].SetAnnotations(map[string]string{v1alpha1.AnnotationRecycle: "0"})
	objects[7].SetUID("c2")
	term := newTerminal(t, objects...)
	for _, arg := range []string{"web", "web/0", "web/1", "web/2", "web/3"} {
		if got := term.do(t.Context(), "explain", arg); got != 0 {
			t.Fatalf("exit status %d: %s", got, &term.err)
		}
		for _, not := range []string{"is held", "is skipped", "another body", "its holder was asked"} {
			if strings.Contains(term.out.String(), not) {
				t.Errorf("%s: it says %q:\n%s", arg, not, &term.out)
			}
		}
	}
}

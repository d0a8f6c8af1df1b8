package main

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

func event(name, reason, note string, regarding, related corev1.ObjectReference, before time.Duration) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, EventTime: *micro(-before),
		Reason: reason, Note: note, Regarding: regarding, Related: &related,
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	_, objects := world(t)
	ref := func(kind, name string) corev1.ObjectReference {
		return corev1.ObjectReference{Kind: kind, Namespace: "default", Name: name, UID: types.UID("m" + name)}
	}
	objects = append(objects,
		event("e2", "Bound", "member web-0 is bound", ref("Claim", "build-17"), ref("Member", "web-0"), 10*time.Minute),
		event("e1", "Fill", "web-0 is made, for a body of revision x: the size asks for one more", ref("Pool", "web"), ref("Member", "web-0"), time.Hour),
		event("e3", "Stale", "web-2 is replaced (Stale)", ref("Pool", "web"), ref("Member", "web-2"), time.Second),
	)
	for name, arg := range map[string]string{
		"explain-pool.txt":    "web",
		"explain-claimed.txt": "web/0",
		"explain-waiting.txt": "web/1",
		"explain-moving.txt":  "web/2",
		"explain-updated.txt": "web/3",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), "explain", arg); got != 0 {
				t.Fatalf("exit status %d: %s", got, &term.err)
			}
			golden(t, name, term.out.String())
		})
	}
}

// TestExplain_released: how a stale member goes back depends on the pool and on
// whether a claim waits.
func TestExplain_released(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		change func(p *v1alpha1.Pool)
		waits  bool
		want   string
	}{
		"replace":           {"nobody gets a used body", func(*v1alpha1.Pool) {}, false, "it gets a new body"},
		"reuse":             {"the rollout takes it", func(p *v1alpha1.Pool) { reuse(p) }, false, "it takes its turn in the rollout"},
		"reuse, and a wait": {"nobody gets a stale body that a rollout could take", func(p *v1alpha1.Pool) { reuse(p) }, true, "it gets a new body"},
		"in place": {"nor one that could be updated", func(p *v1alpha1.Pool) {
			reuse(p)
			p.Spec.Update.Method = new(v1alpha1.MethodInPlace)
		}, true, "it is updated"},
		"paused": {"what no rollout may take is free again", func(p *v1alpha1.Pool) {
			reuse(p)
			p.Spec.Update.Paused = new(true)
		}, true, "it takes its turn in the rollout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, objects := world(t)
			tt.change(p)
			if tt.waits {
				objects = append(objects, &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "next", UID: "c2"}, Spec: v1alpha1.ClaimSpec{Pool: "web"}})
			}
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), "explain", "web/0"); got != 0 || !strings.Contains(term.out.String(), "  when claim build-17 ends, "+tt.want+"\n") {
				t.Errorf("%s: exit status %d: %s%s", tt.reason, got, &term.out, &term.err)
			}
		})
	}
}

func reuse(p *v1alpha1.Pool) { p.Spec.Claims = &v1alpha1.Claims{OnRelease: new(v1alpha1.ReleaseReuse)} }

// TestExplain_down: what is recorded of a slot whose bodies do not stay up.
func TestExplain_down(t *testing.T) {
	t.Parallel()
	_, objects := world(t)
	m := objects[6].(*v1alpha1.Member)
	m.Spec.ForClaim = new(true)
	st := &m.Status
	st.Phase, st.DownSince, st.UnsettledSince = v1alpha1.PhaseUnready, micro(-2*time.Minute), micro(-3*time.Minute)
	st.Attempts, st.NextAttemptAt = 3, micro(20*time.Second)
	term := newTerminal(t, objects...)
	if got := term.do(t.Context(), "explain", "web/3"); got != 0 {
		t.Fatalf("exit status %d: %s", got, &term.err)
	}
	for _, want := range []string{
		"out of service for 2m\n", "its body left service 3m ago, before it had recovered\n", "made because a claim waited\n",
		"3 bodies in a row did not recover\n", "the next attempt to make a body is in 20s\n",
	} {
		if !strings.Contains(term.out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &term.out)
		}
	}
	st.NoRoom = true
	if term = newTerminal(t, objects...); term.do(t.Context(), "explain", "web/3") != 0 || !strings.Contains(term.out.String(), "there was no room for its body, 3 times in a row\n") {
		t.Errorf("it does not say that there is no room:\n%s", &term.out)
	}
}

func TestExplain_invalidTemplate(t *testing.T) {
	t.Parallel()
	p, objects := world(t)
	p.Spec.Template = v1alpha1.Template{Process: &v1alpha1.Process{Command: "/bin/true", Args: []string{"${member.nmae}"}}}
	term := newTerminal(t, append([]client.Object{p}, objects[1:]...)...)
	if got := term.do(t.Context(), "explain", "web"); got != 0 {
		t.Fatalf("exit status %d: %s", got, &term.err)
	}
	for _, want := range []string{"invalid: ", "args[0]", "SourcesUnresolved"} {
		if !strings.Contains(term.out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &term.out)
		}
	}
}

func TestExplain_asksTheEngine(t *testing.T) {
	t.Parallel()
	p, objects := world(t)
	p.Spec.Update.MaxUnavailable = nil
	moved := objects[5].(*v1alpha1.Member)
	moved.Spec.Disruption, moved.Status.Revision = nil, moved.Spec.Revision
	moved.Status.Phase = v1alpha1.PhaseAvailable
	term := newTerminal(t, objects...)
	if got := term.do(t.Context(), "explain", "web/1"); got != 0 {
		t.Fatalf("exit status %d: %s", got, &term.err)
	}
	if want := "web-1 is replaced by a body of revision"; !strings.Contains(term.out.String(), want) {
		t.Errorf("there is room for web-1 now, and it does not say %q:\n%s", want, &term.out)
	}
	var after v1alpha1.Member
	if err := term.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web-1"}, &after); err != nil || after.Spec.Disruption != nil {
		t.Errorf("explaining has changed something: %+v, %v", after.Spec, err)
	}
}

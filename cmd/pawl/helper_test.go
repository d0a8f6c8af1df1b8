package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// noon is when tests take place.
var noon = time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; -rewrite takes it over (-want +got):\n%s", path, diff)
	}
}

// terminal is a program on a server that is not there, and what it prints.
type terminal struct {
	*program

	client   client.WithWatch
	out, err bytes.Buffer
}

// newTerminal is a program whose server has the objects.
func newTerminal(t *testing.T, objects ...client.Object) *terminal {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	byPool := func(o client.Object) []string {
		switch o := o.(type) {
		case *v1alpha1.Member:
			return []string{o.Spec.Pool}
		case *v1alpha1.Claim:
			return []string{o.Spec.Pool}
		}
		return nil
	}
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	own := make([]client.Object, len(objects)) // tests that run at once share theirs
	for i, o := range objects {
		own[i], _ = o.DeepCopyObject().(client.Object)
	}
	term := &terminal{}
	term.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(own...).
		WithStatusSubresource(&v1alpha1.Pool{}, &v1alpha1.Member{}, &v1alpha1.Claim{}).
		WithIndex(&v1alpha1.Member{}, "spec.pool", byPool).
		WithIndex(&v1alpha1.Claim{}, "spec.pool", byPool).
		WithIndex(&v1alpha1.Pool{}, "metadata.name", byName).
		WithIndex(&v1alpha1.Member{}, "metadata.name", byName).
		WithIndex(&v1alpha1.Claim{}, "metadata.name", byName).
		WithIndex(&eventsv1.Event{}, "regarding.kind", func(o client.Object) []string { return []string{o.(*eventsv1.Event).Regarding.Kind} }).
		WithIndex(&eventsv1.Event{}, "regarding.name", func(o client.Object) []string { return []string{o.(*eventsv1.Event).Regarding.Name} }).
		Build()
	term.program = newProgram("pawl", genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &term.out, ErrOut: &term.err})
	term.connect = func() (*cluster, error) {
		return &cluster{WithWatch: term.client, namespace: "default", name: term.name}, nil
	}
	term.now = func() time.Time { return noon }
	return term
}

// do runs a command line and returns its exit status.
func (t *terminal) do(ctx context.Context, args ...string) int {
	t.out.Reset()
	t.err.Reset()
	return t.run(ctx, args)
}

// world is a pool with a claimed member that a rollout waits for, one that is
// replaced, one that waits its turn, and one on the target.
func world(t *testing.T) (p *v1alpha1.Pool, objects []client.Object) {
	t.Helper()
	version := "1"
	rolling := v1alpha1.UpdateRollingUpdate
	p = &v1alpha1.Pool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 2, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec: v1alpha1.PoolSpec{
			Replicas: new(int32(4)), Template: v1alpha1.Template{Sim: &v1alpha1.Sim{Version: &version}},
			Update: &v1alpha1.Update{Type: &rolling},
		},
	}
	old := keep(t, p, 1, history.Record{StoodAt: micro(-time.Hour)})
	version = "2"
	target := keep(t, p, 2, history.Record{TargetSince: micro(-time.Minute)})
	p.Status = v1alpha1.PoolStatus{
		ObservedGeneration: 2, Replicas: 4, Free: 2, Claimed: 1, Provisioning: 1, Updated: 1, Stale: 2, Rolling: 1, WaitingClaims: 1,
		CurrentRevision: history.RevisionID(old), TargetRevision: history.RevisionID(target),
		Rollout: &v1alpha1.RolloutStatus{
			Revision: history.RevisionID(target), Updated: 1, Total: 4, Next: "1 of 4 updated; member 0: it is claimed, and waits until the claim is released",
			Blockers: []v1alpha1.Blocker{{Reason: "Claimed", Count: 1, Example: "web-0", Since: new(metav1.NewTime(noon.Add(-30 * time.Second)))}},
		},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionUpdated, Status: metav1.ConditionFalse, Reason: "RollingUpdate", Message: "members are brought to revision " + history.RevisionID(target)}},
	}
	stale, updated := history.RevisionID(old), history.RevisionID(target)
	claimed := member(0, v1alpha1.PhaseClaimed, stale)
	claimed.Spec.Claim = &v1alpha1.MemberClaim{Name: "build-17", UID: "c1", Holder: "ci", BoundAt: micro(-10 * time.Minute), ExpiresAt: micro(50 * time.Minute)}
	blocked(claimed, "Claimed")
	next := member(1, v1alpha1.PhaseAvailable, stale)
	blocked(next, "UnavailableLimit")
	moving := member(2, v1alpha1.PhaseTerminating, stale)
	moving.Spec.Revision = updated
	moving.Spec.Disruption = &v1alpha1.Disruption{
		Reason: v1alpha1.DisruptionDrift, Action: v1alpha1.ActionReplace, Incarnation: 1, Since: micro(-5 * time.Second), Rolling: new(true),
	}
	done := member(3, v1alpha1.PhaseAvailable, updated)
	return p, []client.Object{p, old, target, claimed, next, moving, done}
}

func member(index int32, phase v1alpha1.Phase, revision string) *v1alpha1.Member {
	name := fmt.Sprintf("web-%d", index)
	return &v1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("m" + name), Labels: map[string]string{v1alpha1.LabelPool: "web"}},
		Spec:       v1alpha1.MemberSpec{Pool: "web", Index: index, Revision: revision},
		Status: v1alpha1.MemberStatus{
			Phase: phase, Revision: revision, Incarnation: 1, BodyUID: "b" + name, Address: fmt.Sprintf("127.0.0.1:%d", 20000+index),
			BornAt: micro(-time.Hour), PhaseSince: micro(-10 * time.Minute), ServedSince: micro(-time.Hour),
		},
	}
}

func blocked(m *v1alpha1.Member, reason string) {
	m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpdated, Status: metav1.ConditionFalse, Reason: reason}}
}

func keep(t *testing.T, p *v1alpha1.Pool, number int64, rec history.Record) *appsv1.ControllerRevision {
	t.Helper()
	c, err := history.ContentOf(&p.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	r, err := history.New(p, c, 1, number)
	if err == nil {
		err = history.WriteRecord(r, rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// micro is a time as far from noon.
func micro(d time.Duration) *metav1.MicroTime {
	m := metav1.NewMicroTime(noon.Add(d))
	return &m
}

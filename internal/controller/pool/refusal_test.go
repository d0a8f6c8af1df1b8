package pool

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// serve has each slot without a body get one that has been in service for an hour.
func (b *bench) serve() {
	b.t.Helper()
	var list v1alpha1.MemberList
	b.must(b.Client.List(b.t.Context(), &list, client.MatchingFields{v1alpha1.FieldPool: "web"}))
	long := &metav1.MicroTime{Time: b.now.Add(-time.Hour)}
	for i := range list.Items {
		m := &list.Items[i]
		if d := m.Spec.Disruption; m.Status.Phase != "" && (d == nil || d.Incarnation < m.Status.Incarnation) {
			continue
		}
		m.Status = v1alpha1.MemberStatus{
			Phase: v1alpha1.PhaseAvailable, Revision: m.Spec.Revision, Incarnation: m.Status.Incarnation + 1, BodyUID: m.Name,
			BornAt: long, PhaseSince: long, ServedSince: long,
		}
		b.must(b.Client.Status().Update(b.t.Context(), m))
	}
}

// identified creates an object with a UID, as an API server does.
func identified(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	o.SetUID(types.UID("uid of " + o.GetName()))
	return c.Create(ctx, o, opts...)
}

func (b *bench) member(name string) *v1alpha1.Member {
	b.t.Helper()
	var m v1alpha1.Member
	b.must(b.Client.Get(b.t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, &m))
	return &m
}

// edit changes the pool's spec.
func (b *bench) edit(change func(*v1alpha1.Pool)) {
	b.t.Helper()
	p := b.pool()
	change(p)
	p.Generation++
	b.must(b.Client.Update(b.t.Context(), p))
}

func updatedOf(m *v1alpha1.Member) metav1.Condition {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdated); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// One member that the API server will not have changed costs itself: it is left
// alone, the others have their turn, and it is tried again now and then.
func TestReconciler_refusedDisruption(t *testing.T) {
	t.Parallel()
	refusing, tries := true, 0
	b := newBench(t, interceptor.Funcs{
		Create: identified,
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if o.GetName() == "web-0" && refusing {
				tries++
				return apierrors.NewForbidden(memberResource(), "web-0", errors.New("not on a Friday"))
			}
			return c.Update(ctx, o, opts...)
		},
	}, newPool(3))
	b.once()
	b.serve()
	b.once()
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Template.Sim.Version = new("2") })
	for range 10 {
		b.once()
		b.serve()
	}
	for name, want := range map[string]bool{"web-0": false, "web-1": true, "web-2": true} {
		if got := b.member(name).Status.Incarnation == 2; got != want {
			t.Errorf("%s is replaced: %t", name, got)
		}
	}
	b.condition(v1alpha1.ConditionStalled, ApplyFailed, "web-0", "not on a Friday")
	if c := updatedOf(b.member("web-0")); c.Reason != string(rollout.Unreachable) {
		t.Errorf("of the member it is said %+v", c)
	}
	if tries > 3 {
		t.Errorf("the same write is tried %d times within seconds", tries)
	}
	if wait := b.once(); wait > refusedRetry {
		t.Errorf("it is tried again only after %s", wait)
	}
	before := tries
	b.now = b.now.Add(refusedRetry)
	b.once()
	if tries != before+1 {
		t.Errorf("after a minute it is tried %d times", tries-before)
	}
	before = tries
	m := b.member("web-0")
	m.Status.Message = "changed"
	b.must(b.Client.Status().Update(t.Context(), m))
	b.once()
	if tries != before+1 {
		t.Errorf("after the member has changed it is tried %d times", tries-before)
	}
	refusing = false
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Update.MinReadySeconds = new(int32(1)) })
	b.once()
	b.serve()
	b.once()
	if b.member("web-0").Status.Incarnation != 2 {
		t.Error("it is not replaced once nobody refuses it")
	}
	if c := meta.FindStatusCondition(b.pool().Status.Conditions, v1alpha1.ConditionStalled); c.Status != metav1.ConditionFalse {
		t.Errorf("the complaint stays: %+v", c)
	}
}

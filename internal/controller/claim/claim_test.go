package claim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/controller/roster/rostertest"
	"github.com/pawl-dev/pawl/snapshot"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(d time.Duration) *metav1.MicroTime { return snapshot.Micro(epoch.Add(d)) }

func newClaim(status v1alpha1.ClaimStatus) *v1alpha1.Claim {
	return &v1alpha1.Claim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", UID: "u", Generation: 1, Finalizers: []string{v1alpha1.FinalizerBinding}},
		Spec:       v1alpha1.ClaimSpec{Pool: "web"}, Status: status,
	}
}

// newMember is a slot of pool web: free, or claimed by the claim mine of the UID.
func newMember(index int32, uid types.UID) *v1alpha1.Member {
	m := &v1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("web-%d", index)},
		Spec:       v1alpha1.MemberSpec{Pool: "web", Index: index, Revision: "r"},
		Status:     v1alpha1.MemberStatus{Phase: v1alpha1.PhaseAvailable, Revision: "r", Incarnation: 1, BodyUID: "b", ServedSince: at(-time.Hour)},
	}
	if uid != "" {
		m.Spec.Claim = &v1alpha1.MemberClaim{Name: "mine", UID: uid, BoundAt: at(0), ExpiresAt: at(time.Minute)}
		m.Status.Phase = v1alpha1.PhaseClaimed
	}
	return m
}

// newReconciler works on the objects, and a pool, half a minute after epoch.
func newReconciler(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects = append(objects, &v1alpha1.Pool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
		Spec:       v1alpha1.PoolSpec{Claims: &v1alpha1.Claims{MaxTTL: &metav1.Duration{Duration: time.Hour}}},
		Status:     v1alpha1.PoolStatus{TargetRevision: "r"},
	})
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Claim{}).
		WithInterceptorFuncs(funcs).
		WithIndex(&v1alpha1.Member{}, FieldClaimName, claimName).
		WithIndex(&v1alpha1.Member{}, FieldClaimUID, func(o client.Object) []string {
			if m, ok := o.(*v1alpha1.Member); ok && m.Spec.Claim != nil {
				return []string{string(m.Spec.Claim.UID)}
			}
			return nil
		}).Build()
	return &Reconciler{Client: c, Reader: c, Roster: rostertest.Listed{Reader: c}, Events: events.NewFakeRecorder(100), Now: func() time.Time { return epoch.Add(30 * time.Second) }}
}

func pass(t *testing.T, r *Reconciler) (reconcile.Result, error) {
	t.Helper()
	return r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "mine"}})
}

// claimed are the members that carry a claim.
func claimed(t *testing.T, r *Reconciler) []string {
	t.Helper()
	var list v1alpha1.MemberList
	if err := r.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		if m := &list.Items[i]; m.Spec.Claim != nil {
			names = append(names, m.Name)
		} else if d := m.Spec.Disruption; m.Status.Phase == v1alpha1.PhaseClaimed && (d == nil || d.Reason != v1alpha1.DisruptionClaimEnded) {
			t.Errorf("%s was released and its body not replaced: %+v", m.Name, d)
		}
	}
	return names
}

func status(t *testing.T, r *Reconciler) v1alpha1.ClaimStatus {
	t.Helper()
	var c v1alpha1.Claim
	if err := r.Client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "mine"}, &c); err != nil {
		t.Fatal(err)
	}
	return c.Status
}

func TestReconciler_holds(t *testing.T) {
	bound := v1alpha1.ClaimStatus{ObservedGeneration: 1, Phase: v1alpha1.ClaimBound, Member: "web-1", BoundAt: at(0), ExpiresAt: at(time.Minute)}
	over := bound
	over.ExpiresAt = at(time.Second)
	ended := bound
	ended.Phase = v1alpha1.ClaimExpired
	late := newMember(1, "u")
	late.Spec.Claim.ExpiresAt = at(time.Second)
	renamed := newMember(0, "u")
	renamed.Spec.Claim.Name = "other"
	deleted := newClaim(bound)
	deleted.DeletionTimestamp = &metav1.Time{Time: epoch}
	kept := deleted.DeepCopy()
	kept.Finalizers = []string{"example.com/other"}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		phase   v1alpha1.ClaimPhase
		claimed []string
	}{
		"no claim":        {"a member of a claim that no longer exists is released", []client.Object{newMember(0, "u"), newMember(1, "v")}, "", nil},
		"another UID":     {"a restored claim is another claim", []client.Object{newClaim(bound), newMember(0, "old"), newMember(1, "u")}, v1alpha1.ClaimBound, []string{"web-1"}},
		"two":             {"the one in the status is the claim's", []client.Object{newClaim(bound), newMember(0, "u"), newMember(1, "u")}, v1alpha1.ClaimBound, []string{"web-1"}},
		"two, unrecorded": {"the first is the claim's", []client.Object{newClaim(v1alpha1.ClaimStatus{}), newMember(0, "u"), newMember(1, "u")}, v1alpha1.ClaimBound, []string{"web-0"}},
		"another name":    {"a claim is both its name and its UID", []client.Object{newClaim(bound), renamed, newMember(1, "u")}, v1alpha1.ClaimBound, []string{"web-1"}},
		"another member":  {"status.member never changes", []client.Object{newClaim(bound), newMember(0, "u"), newMember(1, "")}, v1alpha1.ClaimFailed, nil},
		"lost":            {"its body is gone", []client.Object{newClaim(bound), newMember(1, "")}, v1alpha1.ClaimFailed, nil},
		"lost and over":   {"its time was up anyway", []client.Object{newClaim(over), newMember(1, "")}, v1alpha1.ClaimExpired, nil},
		"over":            {"its time is up", []client.Object{newClaim(bound), late}, v1alpha1.ClaimExpired, nil},
		"over at once":    {"it expired before the binding was recorded", []client.Object{newClaim(v1alpha1.ClaimStatus{}), late}, v1alpha1.ClaimExpired, nil},
		"ended":           {"a crash came after the end was recorded", []client.Object{newClaim(ended), newMember(1, "u")}, v1alpha1.ClaimExpired, nil},
		"deleted":         {"all are released", []client.Object{deleted, newMember(0, "u"), newMember(1, "u")}, "", nil},
		"deleted, kept":   {"our finalizer was taken off, and another is there", []client.Object{kept, newMember(1, "u")}, v1alpha1.ClaimBound, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := make([]client.Object, len(tc.objects))
			for i, o := range tc.objects {
				objects[i] = o.DeepCopyObject().(client.Object)
			}
			r := newReconciler(t, interceptor.Funcs{}, objects...)
			for range 2 { // the second changes nothing
				if _, err := pass(t, r); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.claimed, claimed(t, r)); diff != "" {
					t.Errorf("%s: claimed members (-want +got):\n%s", tc.reason, diff)
				}
				if tc.phase != "" && status(t, r).Phase != tc.phase {
					t.Errorf("%s: phase %s instead of %s", tc.reason, status(t, r).Phase, tc.phase)
				}
			}
		})
	}
}

// TestReconciler_crash: after a crash between any two writes of an end,
// the claim becomes Expired and its member is released.
func TestReconciler_crash(t *testing.T) {
	for last := range 4 {
		m := newMember(1, "u")
		m.Spec.Claim.ExpiresAt = at(time.Second)
		c := newClaim(v1alpha1.ClaimStatus{ObservedGeneration: 1, Phase: v1alpha1.ClaimBound, Member: "web-1", ExpiresAt: at(time.Second)})
		writes, down := 0, true
		crash := func() error {
			if writes++; down && writes > last {
				return errors.New("crashed")
			}
			return nil
		}
		r := newReconciler(t, interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				return errors.Join(crash(), onlyIf(!down || writes <= last, func() error { return c.Update(ctx, o, opts...) }))
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				return errors.Join(crash(), onlyIf(!down || writes <= last, func() error { return c.SubResource(sub).Update(ctx, o, opts...) }))
			},
		}, c, m)
		_, _ = pass(t, r)
		down = false
		if _, err := pass(t, r); err != nil {
			t.Fatal(err)
		}
		if st := status(t, r); st.Phase != v1alpha1.ClaimExpired || len(claimed(t, r)) > 0 {
			t.Errorf("%d writes before the crash: phase %s, claimed %v", last, st.Phase, claimed(t, r))
		}
	}
}

func onlyIf(ok bool, do func() error) error {
	if ok {
		return do()
	}
	return nil
}

// TestReconciler_bind: a member that cannot be bound does not hide the next one,
// and a pass without a binding is retried with backoff.
func TestReconciler_bind(t *testing.T) {
	members := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "members"}
	cases := map[string]struct {
		reason  string
		refuse  func(name string) error
		err     bool
		after   time.Duration
		claimed []string
		says    string
	}{
		"all well": {"the first is given", func(string) error { return nil }, false, 0, []string{"web-0"}, "Bound"},
		"one refused": {"the next is given", func(name string) error {
			if name == "web-0" {
				return apierrors.NewInvalid(schema.GroupKind{}, name, nil)
			}
			return nil
		}, false, 0, []string{"web-1"}, "Bound"},
		"all refused": {"an error is retried with backoff", func(name string) error {
			return apierrors.NewForbidden(members, name, errors.New("no"))
		}, true, 0, nil, "BindingRefused"},
		"gone": {"a member that is gone is not a claim that is gone", func(name string) error {
			return apierrors.NewNotFound(members, name)
		}, true, 0, nil, ""},
		"lost race": {"a conflict is retried soon", func(name string) error {
			return apierrors.NewConflict(members, name, errStale)
		}, false, conflictRetry, nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			r := newReconciler(t, interceptor.Funcs{
				Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
					if m, ok := o.(*v1alpha1.Member); ok {
						asked++
						if err := tc.refuse(m.Name); err != nil {
							return err
						}
					}
					return c.Update(ctx, o, opts...)
				},
			}, newClaim(v1alpha1.ClaimStatus{}), newMember(0, ""), newMember(1, ""), newMember(2, ""), newMember(3, ""), newMember(4, ""), newMember(5, ""))
			got, err := pass(t, r)
			if tc.err != (err != nil) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if !tc.err && tc.after != 0 && got.RequeueAfter != tc.after {
				t.Errorf("%s: back after %s", tc.reason, got.RequeueAfter)
			}
			if asked > maxBindAttempts {
				t.Errorf("%d members were asked for", asked)
			}
			if diff := cmp.Diff(tc.claimed, claimed(t, r)); diff != "" {
				t.Errorf("%s: claimed members (-want +got):\n%s", tc.reason, diff)
			}
			b := meta.FindStatusCondition(status(t, r).Conditions, v1alpha1.ConditionBound)
			if tc.says != "" && (b == nil || b.Reason != tc.says) {
				t.Errorf("%s: Bound is %+v instead of %s", tc.reason, b, tc.says)
			}
		})
	}
}

// TestReconciler_expiry: the expiry fixed at binding changes only by an edit of the
// claim. The pool's limit is now an hour.
func TestReconciler_expiry(t *testing.T) {
	cases := map[string]struct {
		reason               string
		generation, observed int64
		was, ttl             time.Duration
		want                 *metav1.MicroTime
	}{
		"not edited":              {"the pool's new limit does not apply", 3, 3, 0, 0, at(time.Minute)},
		"renewed":                 {"a heartbeat is no edit of the ttl", 3, 2, 2 * time.Hour, 2 * time.Hour, at(time.Minute)},
		"renewed, without a ttl":  {"a heartbeat does not apply the pool's new limit", 3, 2, 0, 0, at(time.Minute)},
		"unrecorded":              {"a crash came after the binding", 1, 0, 0, 0, at(time.Minute)},
		"edited":                  {"it counts from the binding", 2, 1, 0, 2 * time.Minute, at(2 * time.Minute)},
		"edited past the limit":   {"the pool's present limit applies", 2, 1, time.Minute, 2 * time.Hour, at(time.Hour)},
		"edited away":             {"only the pool's limit is left", 2, 1, time.Minute, 0, at(time.Hour)},
		"edited, unrecorded":      {"an edit between the two writes of a binding counts", 2, 0, 0, 2 * time.Minute, at(2 * time.Minute)},
		"recorded while it waits": {"its generation is the one it was bound with", 2, 2, time.Minute, 2 * time.Hour, at(time.Minute)},
	}
	span := func(d time.Duration) *metav1.Duration {
		if d == 0 {
			return nil
		}
		return &metav1.Duration{Duration: d}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClaim(v1alpha1.ClaimStatus{ObservedGeneration: tc.observed, TTL: span(tc.was)})
			c.Generation, c.Spec.TTL = tc.generation, span(tc.ttl)
			r := newReconciler(t, interceptor.Funcs{}, c, newMember(0, "u"))
			got, err := pass(t, r)
			if err != nil {
				t.Fatal(err)
			}
			st := status(t, r)
			if !st.ExpiresAt.Equal(tc.want) || st.ObservedGeneration != tc.generation {
				t.Errorf("%s: expires at %v instead of %v, generation %d", tc.reason, st.ExpiresAt, tc.want, st.ObservedGeneration)
			}
			if diff := cmp.Diff(c.Spec.TTL, st.TTL); diff != "" {
				t.Errorf("%s: the ttl is not recorded:\n%s", tc.reason, diff)
			}
			if want := tc.want.Sub(r.Now()); got.RequeueAfter != want {
				t.Errorf("%s: back after %s instead of %s", tc.reason, got.RequeueAfter, want)
			}
		})
	}
}

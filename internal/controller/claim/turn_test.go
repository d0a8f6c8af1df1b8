package claim

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// TestReconciler_turn: claims that wait are served in the order in which they were
// made, also if a later one is reconciled first.
func TestReconciler_turn(t *testing.T) {
	earlier := func(edit func(*v1alpha1.Claim)) *v1alpha1.Claim {
		c := newClaim(v1alpha1.ClaimStatus{})
		c.Name, c.UID, c.CreationTimestamp = "first", "e", metav1.NewTime(epoch.Add(-time.Minute))
		edit(c)
		return c
	}
	for name, tc := range map[string]struct {
		reason string
		other  *v1alpha1.Claim
		free   int
		phase  v1alpha1.ClaimPhase
	}{
		"one free":        {"it is for the claim that was made first", earlier(func(*v1alpha1.Claim) {}), 1, v1alpha1.ClaimPending},
		"two free":        {"one is left", earlier(func(*v1alpha1.Claim) {}), 2, v1alpha1.ClaimBound},
		"made later":      {"it is behind", earlier(func(c *v1alpha1.Claim) { c.CreationTimestamp = metav1.NewTime(epoch.Add(time.Minute)) }), 1, v1alpha1.ClaimBound},
		"bound":           {"it has what it waited for", earlier(func(c *v1alpha1.Claim) { c.Status.Phase = v1alpha1.ClaimBound }), 1, v1alpha1.ClaimBound},
		"of another pool": {"each pool has a queue of its own", earlier(func(c *v1alpha1.Claim) { c.Spec.Pool = "db" }), 1, v1alpha1.ClaimBound},
		"has waited":      {"its time to wait is over", earlier(func(c *v1alpha1.Claim) { c.Spec.Wait = &metav1.Duration{Duration: time.Second} }), 1, v1alpha1.ClaimBound},
		"refused": {"a claim whose binding is rejected does not block later ones", earlier(func(c *v1alpha1.Claim) {
			c.Status.Phase = v1alpha1.ClaimPending
			c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBound, Status: metav1.ConditionFalse, Reason: reasonRefused}}
		}), 1, v1alpha1.ClaimBound},
	} {
		t.Run(name, func(t *testing.T) {
			mine := newClaim(v1alpha1.ClaimStatus{})
			mine.CreationTimestamp = metav1.NewTime(epoch)
			r := newReconciler(t, interceptor.Funcs{}, mine, tc.other)
			for i := range tc.free {
				if err := r.Client.Create(t.Context(), newMember(int32(i), "")); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := pass(t, r); err != nil {
				t.Fatal(err)
			}
			got := status(t, r)
			if got.Phase != tc.phase {
				t.Errorf("%s: it is %s", tc.reason, got.Phase)
			}
			const turn = "older claims wait for each free member of Pool web; it gets one as soon as it can"
			if b := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionBound); got.Phase == v1alpha1.ClaimPending && b.Message != turn {
				t.Errorf("%s: it says %q", tc.reason, b.Message)
			}
		})
	}
}

// TestReconciler_wakeQueue: a claim that leaves the queue wakes the claims behind it.
func TestReconciler_wakeQueue(t *testing.T) {
	waits, ended := newClaim(v1alpha1.ClaimStatus{Phase: v1alpha1.ClaimPending}), newClaim(v1alpha1.ClaimStatus{Phase: v1alpha1.ClaimFailed})
	waits.Name, ended.Name = "first", "first"
	waits.UID, ended.UID = "e", "e"
	got := waits.DeepCopy()
	got.Status.Phase = v1alpha1.ClaimBound
	for name, tc := range map[string]struct {
		event func(*Reconciler, queue)
		woken int
	}{
		"ended": {func(r *Reconciler, q queue) {
			r.wakeQueue(t.Context(), event.UpdateEvent{ObjectOld: waits, ObjectNew: ended}, q)
		}, 1},
		"gone": {func(r *Reconciler, q queue) { r.wakeQueueOnDelete(t.Context(), event.DeleteEvent{Object: waits}, q) }, 1},
		"bound": {func(r *Reconciler, q queue) {
			r.wakeQueue(t.Context(), event.UpdateEvent{ObjectOld: waits, ObjectNew: got}, q)
		}, 0},
		"still waits": {func(r *Reconciler, q queue) {
			r.wakeQueue(t.Context(), event.UpdateEvent{ObjectOld: waits, ObjectNew: waits}, q)
		}, 0},
		"did not wait": {func(r *Reconciler, q queue) { r.wakeQueueOnDelete(t.Context(), event.DeleteEvent{Object: ended}, q) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReconciler(t, interceptor.Funcs{}, newClaim(v1alpha1.ClaimStatus{}))
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			tc.event(r, q)
			if q.Len() != tc.woken {
				t.Fatalf("%d claims are woken instead of %d", q.Len(), tc.woken)
			}
			if tc.woken == 0 {
				return
			}
			if got, _ := q.Get(); got.NamespacedName != (types.NamespacedName{Namespace: "ns", Name: "mine"}) {
				t.Errorf("%s is woken", got)
			}
		})
	}
}

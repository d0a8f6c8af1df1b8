package claim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// TestReconciler_wait: a claim that was made at epoch, and is looked at later.
func TestReconciler_wait(t *testing.T) {
	limited := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	const none = "no member of Pool web is free"
	cases := map[string]struct {
		reason     string
		wait       *metav1.Duration
		started    time.Duration
		at         time.Duration
		free       bool
		pool       string
		phase      v1alpha1.ClaimPhase
		says       string
		comesAfter time.Duration
	}{
		"no limit":         {"it waits for ever", nil, -time.Hour, 1000 * time.Hour, false, "web", v1alpha1.ClaimPending, none + "; it gets one as soon as it can", 0},
		"waits":            {"its time is not over", limited(time.Minute), -time.Hour, 20 * time.Second, false, "web", v1alpha1.ClaimPending, none + "; it gets one as soon as it can", 41 * time.Second},
		"just before":      {"the API rounds the time of creation down", limited(time.Minute), -time.Hour, 61*time.Second - 1, false, "web", v1alpha1.ClaimPending, none + "; it gets one as soon as it can", 1},
		"over":             {"it has failed", limited(time.Minute), -time.Hour, 61 * time.Second, false, "web", v1alpha1.ClaimFailed, none + ", and it waited for 1m0s; make another claim", 0},
		"over, and free":   {"it gets the member that has just come free", limited(time.Minute), -time.Hour, 61 * time.Second, true, "web", v1alpha1.ClaimBound, "it holds member web-0", 0},
		"no pool":          {"that is why", limited(time.Minute), -time.Hour, 2 * time.Minute, false, "wed", v1alpha1.ClaimFailed, "there is no Pool wed in namespace ns, and it waited for 1m0s; make another claim", 0},
		"zero, and free":   {"there is one now", limited(0), -time.Hour, time.Second, true, "web", v1alpha1.ClaimBound, "it holds member web-0", 0},
		"zero, and none":   {"it does not wait", limited(0), -time.Hour, 0, false, "web", v1alpha1.ClaimFailed, none + ", and it does not wait (spec.wait); make another claim", 0},
		"over in downtime": {"its wait was over before the start", limited(time.Minute), 62 * time.Second, 62 * time.Second, true, "web", v1alpha1.ClaimFailed, "no controller was running meanwhile, and it waited for 1m0s; make another claim", 0},
		"started in time":  {"its wait was not over at the start", limited(time.Minute), 60 * time.Second, 61 * time.Second, true, "web", v1alpha1.ClaimBound, "it holds member web-0", 0},
		"zero in downtime": {"it is not known whether a member was free", limited(0), 2 * time.Second, 2 * time.Second, true, "web", v1alpha1.ClaimFailed, "no controller was running meanwhile, and it does not wait (spec.wait); make another claim", 0},
		"zero at start":    {"made in the same second, which may be after it", limited(0), time.Second, time.Second, true, "web", v1alpha1.ClaimBound, "it holds member web-0", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newClaim(v1alpha1.ClaimStatus{})
			c.CreationTimestamp, c.Spec.Wait, c.Spec.Pool = metav1.NewTime(epoch), tc.wait, tc.pool
			objects := []client.Object{c}
			if tc.free {
				objects = append(objects, newMember(0, ""))
			}
			r := newReconciler(t, interceptor.Funcs{}, objects...)
			r.edit(t, func(p *v1alpha1.Pool) { p.Spec.Claims = nil })
			r.at(tc.started)
			r.startTime()
			r.at(tc.at)
			got, err := pass(t, r)
			if err != nil {
				t.Fatal(err)
			}
			st := status(t, r)
			b := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionBound)
			if b == nil {
				t.Fatalf("%s: the condition is missing: %+v", tc.reason, st)
			}
			if diff := cmp.Diff([]any{tc.phase, tc.says, tc.comesAfter}, []any{st.Phase, b.Message, got.RequeueAfter}); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// at sets the clock.
func (r *Reconciler) at(d time.Duration) { r.Now = func() time.Time { return epoch.Add(d) } }

// edit changes the pool.
func (r *Reconciler) edit(t *testing.T, edit func(*v1alpha1.Pool)) {
	t.Helper()
	var p v1alpha1.Pool
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "web"}, &p); err != nil {
		t.Fatal(err)
	}
	edit(&p)
	if err := r.Client.Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
}

package claim

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// network is a Reach that the test sets.
type network struct {
	back   time.Time
	within time.Duration
}

func (n *network) Back() time.Time             { return n.back }
func (n *network) Expect(within time.Duration) { n.within = within }

// delayed notes what is added to a queue.
type delayed struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	added map[reconcile.Request][]time.Duration
}

func (d *delayed) AddAfter(r reconcile.Request, after time.Duration) {
	d.added[r] = append(d.added[r], after)
}

// beating is a reconciler of a claim bound at epoch, of a pool with a
// heartbeat.
func beating(t *testing.T, funcs interceptor.Funcs, every time.Duration) (*Reconciler, *network, *delayed) {
	t.Helper()
	m := newMember(0, "u")
	m.Spec.Claim.ExpiresAt = nil
	r := newReconciler(t, funcs, newClaim(v1alpha1.ClaimStatus{ObservedGeneration: 1, Phase: v1alpha1.ClaimBound, Member: "web-0"}), m)
	r.edit(t, func(p *v1alpha1.Pool) { p.Spec.Claims = &v1alpha1.Claims{Heartbeat: &metav1.Duration{Duration: every}} })
	n, q := &network{}, &delayed{added: map[reconcile.Request][]time.Duration{}}
	r.Reach = n
	if err := r.probes.open(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	return r, n, q
}

// TestReconciler_outage: a holder that could not renew has one whole heartbeat
// from the end of the outage, whether or not a pass over its claim met it.
func TestReconciler_outage(t *testing.T) {
	t.Parallel()
	r, n, _ := beating(t, interceptor.Funcs{}, time.Minute)
	for _, s := range []struct {
		at, back, want time.Duration
		phase          v1alpha1.ClaimPhase
	}{
		{0, -time.Hour, time.Minute, v1alpha1.ClaimBound},                                          // one before it was bound
		{50 * time.Second, 50 * time.Second, time.Minute, v1alpha1.ClaimBound},                     // it is away now
		{10 * time.Minute, 10 * time.Minute, time.Minute, v1alpha1.ClaimBound},                     // and still
		{10*time.Minute + 10*time.Second, 10 * time.Minute, 50 * time.Second, v1alpha1.ClaimBound}, // it is back
		{11 * time.Minute, 10 * time.Minute, 0, v1alpha1.ClaimExpired},
	} {
		r.at(s.at)
		n.back = epoch.Add(s.back)
		got, err := pass(t, r)
		if err != nil {
			t.Fatal(err)
		}
		if st := status(t, r); st.Phase != s.phase || got.RequeueAfter != s.want {
			t.Errorf("at %s it is %s, and ends in %s instead of %s", s.at, st.Phase, got.RequeueAfter, s.want)
		}
	}
}

// TestReconciler_probe: while a claim has a heartbeat, the API server is
// probed, and no longer than that.
func TestReconciler_probe(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ every, want time.Duration }{
		{time.Second, quickestProbe}, {12 * time.Second, time.Second}, {24 * time.Hour, slowestProbe},
	} {
		asked, away := 0, error(nil)
		r, n, q := beating(t, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if _, bounded := ctx.Deadline(); bounded {
					asked++
					return away
				}
				return c.Get(ctx, key, o, options...)
			},
		}, tt.every)
		r.at(0)
		for range 2 {
			if _, err := pass(t, r); err != nil {
				t.Fatal(err)
			}
		}
		if got := q.added[probe]; len(got) != 1 || got[0] != tt.want || n.within != missedProbes*tt.want {
			t.Errorf("heartbeat %s: probes come after %v, and an answer within %s", tt.every, got, n.within)
		}
		for _, away = range []error{nil, errors.New("connection refused")} {
			got, err := r.Reconcile(t.Context(), probe)
			if err != nil || got.RequeueAfter != tt.want {
				t.Errorf("heartbeat %s: the next probe comes after %s (%v)", tt.every, got.RequeueAfter, err)
			}
		}
		if asked != 2 {
			t.Errorf("%d probes", asked)
		}
		r.edit(t, func(p *v1alpha1.Pool) { p.Spec.Claims = nil })
		if _, err := pass(t, r); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Reconcile(t.Context(), probe); err != nil || got != (reconcile.Result{}) || n.within != 0 || asked != 2 {
			t.Errorf("probes continue: %+v, %v, within %s", got, err, n.within)
		}
	}
}

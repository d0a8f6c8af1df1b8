package claim

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/snapshot"
)

// step is an event at a time in the life of a claim, then a pass. Ends is the time
// from the step until the claim ends: 0 for never,
// negative if it has ended.
type step struct {
	at   time.Duration
	do   func(*testing.T, *Reconciler) *Reconciler
	ends time.Duration
}

// TestReconciler_heartbeat: a claim bound at epoch, of a pool with a
// heartbeat of a minute.
func TestReconciler_heartbeat(t *testing.T) {
	const over = -1
	every := func(d time.Duration) func(*testing.T, *Reconciler) *Reconciler {
		return func(t *testing.T, r *Reconciler) *Reconciler {
			t.Helper()
			r.edit(t, func(p *v1alpha1.Pool) {
				p.Spec.Claims = &v1alpha1.Claims{}
				if d > 0 {
					p.Spec.Claims.Heartbeat = &metav1.Duration{Duration: d}
				}
			})
			return r
		}
	}
	renew := func(at time.Duration) func(*testing.T, *Reconciler) *Reconciler {
		return func(t *testing.T, r *Reconciler) *Reconciler {
			t.Helper()
			var c v1alpha1.Claim
			if err := r.Client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "mine"}, &c); err != nil {
				t.Fatal(err)
			}
			c.Spec.RenewTime = snapshot.Micro(epoch.Add(at))
			c.Generation++
			if err := r.Client.Update(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	restart := func(t *testing.T, r *Reconciler) *Reconciler {
		t.Helper()
		return &Reconciler{Client: r.Client, Reader: r.Reader, Roster: r.Roster, Events: r.Events, Now: r.Now}
	}
	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"none":            {"one whole heartbeat from the binding", []step{{0, nil, time.Minute}, {59 * time.Second, nil, time.Second}, {time.Minute, nil, over}}},
		"renewed":         {"one whole heartbeat from the last", []step{{0, nil, time.Minute}, {50 * time.Second, renew(50 * time.Second), time.Minute}, {109 * time.Second, nil, time.Second}, {110 * time.Second, nil, over}}},
		"slow holder":     {"the holder's clock does not matter", []step{{0, nil, time.Minute}, {50 * time.Second, renew(-time.Hour), time.Minute}}},
		"fast holder":     {"a clock that is ahead gains no time", []step{{0, nil, time.Minute}, {50 * time.Second, renew(1000 * time.Hour), time.Minute}, {110 * time.Second, nil, over}}},
		"renewed late":    {"the late renewal came before the next pass", []step{{0, nil, time.Minute}, {61 * time.Second, renew(61 * time.Second), time.Minute}}},
		"restart":         {"one whole heartbeat after a start", []step{{0, nil, time.Minute}, {50 * time.Second, restart, time.Minute}, {110 * time.Second, nil, over}}},
		"long down":       {"also after hours", []step{{0, nil, time.Minute}, {time.Hour, restart, time.Minute}, {time.Hour + time.Minute, nil, over}}},
		"clock set back":  {"that does not end the claim", []step{{0, nil, time.Minute}, {-time.Hour, nil, time.Hour + time.Minute}}},
		"asked for anew":  {"one whole heartbeat from then", []step{{0, every(0), 0}, {time.Hour, every(time.Minute), time.Minute}, {time.Hour + time.Minute, nil, over}}},
		"shorter":         {"one whole heartbeat of the new length", []step{{0, every(time.Hour), time.Hour}, {59 * time.Minute, every(30 * time.Second), 30 * time.Second}}},
		"no longer asked": {"it need not be renewed", []step{{0, nil, time.Minute}, {50 * time.Second, every(0), 0}, {time.Hour, nil, 0}}},
		"the pool is gone": {"no pool requires renewals", []step{{0, nil, time.Minute}, {2 * time.Minute, func(t *testing.T, r *Reconciler) *Reconciler {
			t.Helper()
			if err := r.Client.Delete(t.Context(), &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}); err != nil {
				t.Fatal(err)
			}
			return r
		}, 0}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMember(0, "u")
			m.Spec.Claim.ExpiresAt = nil
			r := newReconciler(t, interceptor.Funcs{}, newClaim(v1alpha1.ClaimStatus{ObservedGeneration: 1, Phase: v1alpha1.ClaimBound, Member: "web-0"}), m)
			r = every(time.Minute)(t, r)
			for _, s := range tc.steps {
				r.at(s.at)
				if s.do != nil {
					r = s.do(t, r)
				}
				got, err := pass(t, r)
				if err != nil {
					t.Fatal(err)
				}
				st := status(t, r)
				if s.ends == over {
					b := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionBound)
					if st.Phase != v1alpha1.ClaimExpired || b.Reason != "NotRenewed" || len(claimed(t, r)) > 0 {
						t.Errorf("%s: at %s it is %s (%s), and members %v are claimed", tc.reason, s.at, st.Phase, b.Message, claimed(t, r))
					}
					continue
				}
				if st.Phase != v1alpha1.ClaimBound || got.RequeueAfter != s.ends || len(claimed(t, r)) != 1 {
					t.Errorf("%s: at %s it is %s, and ends in %s instead of %s", tc.reason, s.at, st.Phase, got.RequeueAfter, s.ends)
				}
			}
			if list := r.beats.last; len(list) > 1 {
				t.Errorf("%v is stored for one claim", list)
			}
		})
	}
}

// TestReconciler_heartbeat_ttl: the claim ends by heartbeat or time to live,
// whichever is over first.
func TestReconciler_heartbeat_ttl(t *testing.T) {
	for name, tc := range map[string]struct{ every, ends time.Duration }{
		"heartbeat first": {10 * time.Second, 10 * time.Second}, "ttl first": {time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReconciler(t, interceptor.Funcs{}, newClaim(v1alpha1.ClaimStatus{ObservedGeneration: 1, Phase: v1alpha1.ClaimBound, Member: "web-0"}), newMember(0, "u"))
			r.edit(t, func(p *v1alpha1.Pool) {
				p.Spec.Claims = &v1alpha1.Claims{Heartbeat: &metav1.Duration{Duration: tc.every}}
			})
			r.at(0)
			if got, err := pass(t, r); err != nil || got.RequeueAfter != tc.ends {
				t.Errorf("it ends in %s instead of %s (%v)", got.RequeueAfter, tc.ends, err)
			}
		})
	}
}

// TestReconciler_forgets: no heartbeat is stored for a claim that is gone, and a
// later claim of the name starts anew.
func TestReconciler_forgets(t *testing.T) {
	c, m := newClaim(v1alpha1.ClaimStatus{ObservedGeneration: 1, Phase: v1alpha1.ClaimBound, Member: "web-0"}), newMember(0, "u")
	m.Spec.Claim.ExpiresAt = nil
	r := newReconciler(t, interceptor.Funcs{}, c, m)
	r.edit(t, func(p *v1alpha1.Pool) {
		p.Spec.Claims = &v1alpha1.Claims{Heartbeat: &metav1.Duration{Duration: time.Minute}}
	})
	if _, err := pass(t, r); err != nil || len(r.beats.last) != 1 {
		t.Fatalf("%d heartbeats are stored: %v", len(r.beats.last), err)
	}
	namesake := c.DeepCopy()
	namesake.UID = "other"
	r.at(time.Hour)
	if got := r.beats.heard(namesake, time.Minute, r.Now()); !got.Equal(r.Now()) {
		t.Errorf("another claim of the name was heard of at %s", got)
	}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Fatal(err)
	}
	c.Finalizers = nil
	if err := r.Client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := pass(t, r); err != nil || len(r.beats.last) != 0 {
		t.Errorf("%d heartbeats are stored: %v", len(r.beats.last), err)
	}
}

// TestReconciler_heartbeat_outage: the end of a claim that could not be written
// gives its holder, who could not write either, a whole heartbeat again.
func TestReconciler_heartbeat_outage(t *testing.T) {
	t.Parallel()
	away := false
	c := newClaim(v1alpha1.ClaimStatus{Phase: v1alpha1.ClaimBound, Member: "web-0", ObservedGeneration: 1})
	m := newMember(0, "u")
	m.Spec.Claim.ExpiresAt = nil
	r := newReconciler(t, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, k client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			if away {
				return errors.New("connection refused")
			}
			return k.SubResource(sub).Update(ctx, o, options...)
		},
		SubResourcePatch: func(ctx context.Context, k client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			if away {
				return errors.New("connection refused")
			}
			return k.SubResource(sub).Patch(ctx, o, p, options...)
		},
	}, c, m)
	r.edit(t, func(p *v1alpha1.Pool) {
		p.Spec.Claims = &v1alpha1.Claims{Heartbeat: &metav1.Duration{Duration: time.Minute}}
	})
	now := epoch
	r.Now = func() time.Time { return now }
	look := func(after time.Duration, want v1alpha1.ClaimPhase) {
		t.Helper()
		now = now.Add(after)
		if _, err := pass(t, r); (err != nil) != away {
			t.Fatalf("%v, while the API is away: %t", err, away)
		}
		if got := status(t, r).Phase; got != want {
			t.Fatalf("after %s it is %s instead of %s", now.Sub(epoch), got, want)
		}
	}
	look(0, v1alpha1.ClaimBound)
	away = true
	look(2*time.Minute, v1alpha1.ClaimBound)
	away = false
	look(time.Second, v1alpha1.ClaimBound)
	look(59*time.Second, v1alpha1.ClaimBound)
	look(2*time.Second, v1alpha1.ClaimExpired)
}

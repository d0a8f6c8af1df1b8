//go:build integration

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// TestClaim_heartbeat: a claim lives for as long as somebody renews it, and its
// end stays where it was.
func TestClaim_heartbeat(t *testing.T) {
	w := shared(t)
	pool := w.simPool("web", 1)
	pool.Spec.Claims = &v1alpha1.Claims{Heartbeat: ttl(2 * time.Second), DefaultTTL: ttl(time.Hour)}
	w.create(pool)
	w.updated("web", 1)
	c := w.claim("mine", "web")
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Claims.MaxTTL = ttl(time.Second) }) // for claims to come
	w.eventually("twice the time passes", func() error {
		w.renew(c)
		if passed := time.Since(c.Status.BoundAt.Time); passed < 4*time.Second {
			return fmt.Errorf("%s only", passed)
		}
		return nil
	})
	w.ends(c, time.Hour)
	w.stands(c)
	last := time.Now()
	w.eventually("it expires", func() error { return w.bound(c, v1alpha1.ClaimExpired, "NotRenewed", "it was not renewed for 2s") })
	if after := time.Since(last); after < time.Second {
		t.Errorf("it expired %s after it was renewed", after)
	}
	w.replaced("web", c.Status.Member)
}

// TestClaim_wait: a claim that waits gets the next member, or fails when it has
// waited for as long as it may.
func TestClaim_wait(t *testing.T) {
	w := shared(t)
	w.create(w.simPool("web", 1))
	w.updated("web", 1)
	mine := w.claim("mine", "web")
	patient, brief, now := w.waiting("patient", ttl(time.Hour)), w.waiting("brief", ttl(time.Second)), w.waiting("now", ttl(0))
	w.eventually("one fails at once", func() error {
		return w.bound(now, v1alpha1.ClaimFailed, "WaitOver", "no member of Pool web is free, and it does not wait")
	})
	w.eventually("one fails after its wait", func() error {
		return w.bound(brief, v1alpha1.ClaimFailed, "WaitOver", "no member of Pool web is free, and it waited for 1s")
	})
	w.eventually("one waits", func() error {
		if n := w.pool("web").Status.WaitingClaims; n != 1 {
			return fmt.Errorf("%d claims wait", n)
		}
		return w.bound(patient, v1alpha1.ClaimPending, "NoFreeMember", "")
	})
	if err := w.c.Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	w.eventually("it gets the next", func() error { return w.phase(patient, v1alpha1.ClaimBound) })
	w.eventually("none waits", func() error {
		if n := w.pool("web").Status.WaitingClaims; n != 0 {
			return fmt.Errorf("%d claims wait", n)
		}
		return nil
	})
}

// TestClaim_downtime: while Pawl is down a wait goes on and a heartbeat does
// not.
func TestClaim_downtime(t *testing.T) {
	server := pawldtest.Start(t, pawldtest.WithSim())
	w := newWorld(t, server.Config)
	const heartbeat = 5 * time.Second
	pool := w.simPool("web", 1)
	pool.Spec.Claims = &v1alpha1.Claims{Heartbeat: ttl(heartbeat)}
	w.create(pool)
	w.updated("web", 1)
	mine := w.claim("mine", "web")
	late := w.waiting("late", ttl(4*time.Second))
	w.renew(mine)
	server.Kill()
	w.eventually("the time is over", func() error {
		if passed := time.Since(mine.Status.BoundAt.Time); passed < heartbeat+time.Second {
			return fmt.Errorf("%s only", passed)
		}
		return nil
	})
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	w.eventually("the wait is over", func() error {
		return w.bound(late, v1alpha1.ClaimFailed, "WaitOver", "no controller was running meanwhile")
	})
	w.stands(mine)
	w.eventually("the heartbeat begins anew", func() error { return w.bound(mine, v1alpha1.ClaimExpired, "NotRenewed", "") })
}

// TestClaim_notify: who holds a stale member is asked to let it go, until it
// is not stale any more.
func TestClaim_notify(t *testing.T) {
	w := shared(t)
	pool := w.simPool("web", 2)
	pool.Spec.Update.OnClaimed = new(v1alpha1.ClaimedNotify)
	w.create(pool)
	w.updated("web", 2)
	c := w.claim("mine", "web")
	w.version("web", "2")
	w.eventually("it is asked", func() error { return w.requested(c, "True Stale") })
	w.version("web", "1")
	w.eventually("that is taken back", func() error { return w.requested(c, "False NotStale") })
	w.version("web", "3")
	w.eventually("it is asked again", func() error { return w.requested(c, "True Stale") })
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Update.OnClaimed = nil })
	w.eventually("the pool would rather wait", func() error { return w.requested(c, "False NotAsked") })
	w.stands(c)
	if err := w.c.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.updated("web", 2)
}

// TestClaim_reuse: in a pool that uses members again, a stale one goes back as it
// is where nobody waits, and current where somebody does.
func TestClaim_reuse(t *testing.T) {
	for name, method := range map[string]v1alpha1.UpdateMethod{"replace": v1alpha1.MethodReplace, "in place": v1alpha1.MethodInPlace} {
		t.Run(name, func(t *testing.T) {
			w := shared(t)
			pool := w.simPool("web", 1)
			pool.Spec.Claims = &v1alpha1.Claims{OnRelease: new(v1alpha1.ReleaseReuse)}
			pool.Spec.Update.Method = &method
			w.create(pool)
			w.updated("web", 1)
			first := w.claim("first", "web")
			w.release(first)
			second := w.claim("second", "web")
			if m := w.member("web-0"); m.Status.Incarnation != 1 || second.Status.Revision != first.Status.Revision {
				t.Errorf("a current member was not used again: %s", list(w.members("web")))
			}
			body := w.member("web-0").Status.BodyUID

			third := w.waiting("third", nil)
			w.version("web", "2")
			w.eventually("it is said that the claim keeps it stale", func() error {
				p := w.pool("web")
				c := meta.FindStatusCondition(w.member("web-0").Status.Conditions, v1alpha1.ConditionUpdated)
				if p.Status.WaitingClaims != 1 || p.Status.Stale != 1 || c == nil || c.Reason != "Claimed" || !strings.Contains(c.Message, p.Status.TargetRevision) {
					return errors.New(describe(p))
				}
				return nil
			})
			w.release(second)
			w.eventually("the next holder gets it current", func() error { return w.phase(third, v1alpha1.ClaimBound) })
			now, m := w.claimed(third), w.member("web-0")
			if target := w.pool("web").Status.TargetRevision; now.Status.Revision != target || m.Status.Revision != target || m.Status.Incarnation != 2 {
				t.Errorf("the claim has %s, of %s: %s", now.Status.Revision, target, list(w.members("web")))
			}
			if kept := m.Status.BodyUID == body; kept != (method == v1alpha1.MethodInPlace) {
				t.Errorf("its body was kept: %t", kept)
			}
		})
	}
}

// TestWindows: nothing rolls outside, a window that cannot be read never opens
// and says so, and one that does opens.
func TestWindows(t *testing.T) {
	w := shared(t)
	pool := w.simPool("web", 1)
	pool.Spec.Update.Windows = []v1alpha1.Window{{Schedule: "0 0 31 2 *", Duration: ttl(time.Hour)}}
	w.create(pool)
	w.updated("web", 1)
	w.version("web", "2")
	w.eventually("it is blocked", func() error {
		p := w.pool("web")
		c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionUpdated)
		if c == nil || c.Reason != "UpdateBlocked" || p.Status.Rollout == nil || len(p.Status.Rollout.Blockers) != 1 || p.Status.Rollout.Blockers[0].Reason != "OutsideWindow" {
			return errors.New(describe(p))
		}
		return nil
	})
	w.stalled("web", "InvalidWindow", `spec.update.windows[0].schedule: "0 0 31 2 *" names no day that there is`)
	if m := w.members("web")[0]; m.Status.Incarnation != 1 {
		t.Errorf("it was replaced: %s", list([]v1alpha1.Member{m}))
	}
	w.edit("web", func(p *v1alpha1.Pool) {
		p.Spec.Update.Windows = append(p.Spec.Update.Windows, v1alpha1.Window{Schedule: "* * * * *", Duration: ttl(time.Hour), TimeZone: new("Pacific/Chatham")})
	})
	w.eventually("it rolls", func() error {
		if m := w.members("web")[0]; m.Status.Incarnation != 2 || m.Status.Phase != v1alpha1.PhaseAvailable {
			return errors.New(list([]v1alpha1.Member{m}))
		}
		return nil
	})
}

// waiting makes a claim that waits.
func (w *world) waiting(name string, limit *metav1.Duration) *v1alpha1.Claim {
	w.t.Helper()
	c := &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}, Spec: v1alpha1.ClaimSpec{Pool: "web", Wait: limit}}
	w.create(c)
	return c
}

// release deletes the claim and waits until it is gone.
func (w *world) release(c *v1alpha1.Claim) {
	w.t.Helper()
	if err := w.c.Delete(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
	w.gone(c)
}

func (w *world) renew(c *v1alpha1.Claim) {
	w.t.Helper()
	next := c.DeepCopy()
	next.Spec.RenewTime = new(metav1.NowMicro())
	if err := w.c.Patch(w.t.Context(), next, client.MergeFrom(c)); err != nil {
		w.t.Fatal(err)
	}
}

// version gives the pool another template.
func (w *world) version(pool, version string) {
	w.t.Helper()
	w.edit(pool, func(p *v1alpha1.Pool) { p.Spec.Template.Sim.Version = &version })
}

// bound checks the claim's phase, and the reason and words of its condition
// Bound.
func (w *world) bound(c *v1alpha1.Claim, phase v1alpha1.ClaimPhase, reason, words string) error {
	now := w.claimed(c)
	b := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionBound)
	if b == nil || now.Status.Phase != phase || b.Reason != reason || !strings.Contains(b.Message, words) {
		return fmt.Errorf("phase %s, %+v", now.Status.Phase, b)
	}
	return nil
}

// requested checks the claim's condition UpdateRequested.
func (w *world) requested(c *v1alpha1.Claim, want string) error {
	now := w.claimed(c)
	r := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionUpdateRequested)
	if r == nil || string(r.Status)+" "+r.Reason != want {
		return fmt.Errorf("%+v", r)
	}
	return nil
}

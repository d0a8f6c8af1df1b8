//go:build integration

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// TestClaim_gone: a member does not stay claimed for a claim that is no more,
// or never was.
func TestClaim_gone(t *testing.T) {
	w := shared(t)
	w.create(w.processPool("web", 3, "1"))
	w.updated("web", 3)
	c := w.claim("mine", "web")
	others := w.unclaimed("web")
	w.claimByHand(others[0], "ghost", "never-was")
	w.claimByHand(others[1], "mine", "restored-since")
	w.replaced("web", others[0])
	w.replaced("web", others[1])
	w.stands(c)

	// Whoever takes the finalizer off is in a race with the controller, which
	// puts it back on; the member is let go whoever wins.
	w.eventually("its finalizer is taken off", func() error {
		now := w.claimed(c)
		now.Finalizers = nil
		return w.c.Update(t.Context(), now)
	})
	if err := w.c.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.gone(c.DeepCopy())
	w.replaced("web", c.Status.Member)
	w.updated("web", 3)
}

// TestClaim_twice: of two members that carry one claim, the one that its
// status names is the claim's. The other is let go.
func TestClaim_twice(t *testing.T) {
	w := shared(t)
	w.create(w.processPool("web", 2, "1"))
	w.updated("web", 2)
	c := w.claim("mine", "web")
	other := w.unclaimed("web")[0]
	w.claimByHand(other, c.Name, c.UID)
	w.replaced("web", other)
	w.stands(c)
}

// TestClaim_ended: a claim that says that it has ended lets its member go,
// although whoever recorded the end did not come to that.
func TestClaim_ended(t *testing.T) {
	w := shared(t)
	w.create(w.processPool("web", 1, "1"))
	w.updated("web", 1)
	c := w.claim("mine", "web")
	w.eventually("the end is recorded", func() error {
		now := w.claimed(c)
		now.Status.Phase = v1alpha1.ClaimExpired
		return w.c.Status().Update(t.Context(), now)
	})
	w.replaced("web", c.Status.Member)
	if now := w.claimed(c); now.Status.Phase != v1alpha1.ClaimExpired || now.Status.Member != c.Status.Member {
		t.Errorf("claim %+v", now.Status)
	}
}

// TestClaim_limits: when a claim ends was fixed when it was bound. An edit of
// its ttl moves that, within the pool's limits of then; an edit of the pool
// does not.
func TestClaim_limits(t *testing.T) {
	w := shared(t)
	pool := w.processPool("web", 2, "1")
	pool.Spec.Claims = &v1alpha1.Claims{DefaultTTL: ttl(10 * time.Minute), MaxTTL: ttl(2 * time.Hour)}
	w.create(pool)
	w.updated("web", 2)
	c := w.claim("mine", "web")
	w.ends(c, 10*time.Minute)
	w.setTTL(c, time.Hour)
	w.ends(c, time.Hour)
	w.setTTL(c, 3*time.Hour)
	w.ends(c, 2*time.Hour)

	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Claims.DefaultTTL, p.Spec.Claims.MaxTTL = nil, ttl(time.Second) })
	w.eventually("the claim is looked at again", func() error {
		now := w.claimed(c)
		now.Annotations = map[string]string{"example.com/touched": "yes"}
		return w.c.Update(t.Context(), now)
	})
	next := w.claim("next", "web")
	w.eventually("the new limit holds for a new claim", func() error { return w.phase(next, v1alpha1.ClaimExpired) })
	w.ends(c, 2*time.Hour)
	w.stands(c)

	w.setTTL(c, time.Hour)
	w.eventually("an edit is under the new limit", func() error { return w.phase(c, v1alpha1.ClaimExpired) })
	w.replaced("web", c.Status.Member)
}

func ttl(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// member reads a member.
func (w *world) member(name string) *v1alpha1.Member {
	w.t.Helper()
	var m v1alpha1.Member
	if err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &m); err != nil {
		w.t.Fatal(err)
	}
	return &m
}

// unclaimed are the names of the pool's members that nobody holds.
func (w *world) unclaimed(pool string) []string {
	w.t.Helper()
	var names []string
	for _, m := range w.members(pool) {
		if m.Spec.Claim == nil {
			names = append(names, m.Name)
		}
	}
	return names
}

// claimByHand has a member carry a claim that the controller did not give it to.
func (w *world) claimByHand(member, claim string, uid types.UID) {
	w.t.Helper()
	w.eventually("claim "+member, func() error {
		m := w.member(member)
		m.Spec.Claim = &v1alpha1.MemberClaim{Name: claim, UID: uid}
		return w.c.Update(w.t.Context(), m)
	})
}

// replaced waits until a member that was claimed is free, in its second body.
func (w *world) replaced(pool, member string) {
	w.t.Helper()
	w.eventually(member+" let go and replaced", func() error {
		if m := w.member(member); m.Spec.Claim != nil || m.Status.Incarnation != 2 || m.Status.Phase != v1alpha1.PhaseAvailable {
			return errors.New(list(w.members(pool)))
		}
		return nil
	})
}

// stands fails unless the claim holds the member that it held.
func (w *world) stands(c *v1alpha1.Claim) {
	w.t.Helper()
	now, m := w.claimed(c), w.member(c.Status.Member)
	if now.Status.Phase != v1alpha1.ClaimBound || m.Spec.Claim == nil || m.Spec.Claim.UID != c.UID || m.Status.Incarnation != 1 {
		w.t.Errorf("claim %+v, member %s", now.Status, list([]v1alpha1.Member{*m}))
	}
}

func (w *world) phase(c *v1alpha1.Claim, want v1alpha1.ClaimPhase) error {
	if now := w.claimed(c); now.Status.Phase != want {
		return fmt.Errorf("phase %s", now.Status.Phase)
	}
	return nil
}

func (w *world) setTTL(c *v1alpha1.Claim, d time.Duration) {
	w.t.Helper()
	w.eventually("edit ttl of "+c.Name, func() error {
		now := w.claimed(c)
		now.Spec.TTL = ttl(d)
		return w.c.Update(w.t.Context(), now)
	})
}

// ends waits until claim and member say that the claim ends so long after it
// was bound.
func (w *world) ends(c *v1alpha1.Claim, after time.Duration) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s ends after %s", c.Name, after), func() error {
		now := w.claimed(c)
		want := metav1.NewMicroTime(now.Status.BoundAt.Add(after))
		m := w.member(now.Status.Member)
		if now.Status.ObservedGeneration != now.Generation || !now.Status.ExpiresAt.Equal(&want) || m.Spec.Claim == nil || !m.Spec.Claim.ExpiresAt.Equal(&want) {
			return fmt.Errorf("claim %+v, member's %+v", now.Status, m.Spec.Claim)
		}
		return nil
	})
}

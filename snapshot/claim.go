package snapshot

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// Claim reads one claim. The API server rounds creation times down to the
// second; one second is added so that Made is never too early.
func Claim(c *v1alpha1.Claim) rollout.Claim {
	st := &c.Status
	updateRequested := meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionUpdateRequested)
	k := rollout.Claim{
		Phase: rollout.ClaimPhase(st.Phase), Given: st.Member != "", Deleted: !c.DeletionTimestamp.IsZero(),
		Made: c.CreationTimestamp.Add(time.Second), Limited: c.Spec.Wait != nil, Wait: duration(c.Spec.Wait),
		ExpiresAt: Time(st.ExpiresAt), Asked: updateRequested,
	}
	if k.Phase == "" {
		k.Phase = rollout.ClaimPending
	}
	return k
}

// ClaimRules reads the pool's rules for its claims. started is when the
// controller started; the pool is nil if it is gone.
func ClaimRules(p *v1alpha1.Pool, started time.Time) rollout.ClaimRules {
	if p == nil {
		return rollout.ClaimRules{Gone: true, Started: started}
	}
	r := rollout.ClaimRules{Gone: !p.DeletionTimestamp.IsZero(), Started: started}
	if c := p.Spec.Claims; c != nil {
		r.DefaultTTL, r.MaxTTL, r.Heartbeat = duration(c.DefaultTTL), duration(c.MaxTTL), duration(c.Heartbeat)
	}
	if u := p.Spec.Update; u != nil {
		r.Notify = value(u.OnClaimed, v1alpha1.ClaimedWait) == v1alpha1.ClaimedNotify
	}
	return r
}

// Pending reports whether the claim has no member yet and may still get one.
func Pending(c *v1alpha1.Claim) bool {
	return c.DeletionTimestamp.IsZero() && (c.Status.Phase == "" || c.Status.Phase == v1alpha1.ClaimPending)
}

// Waiting counts the claims that wait for a member. A claim that a member
// carries does not wait, even if its own status does not say so yet.
func Waiting(claims []*v1alpha1.Claim, members []*v1alpha1.Member) int {
	waiting := map[types.UID]bool{}
	for _, c := range claims {
		if Pending(c) {
			waiting[c.UID] = true
		}
	}
	if len(waiting) == 0 {
		return 0
	}
	for _, m := range members {
		if m.Spec.Claim != nil {
			delete(waiting, m.Spec.Claim.UID)
		}
	}
	return len(waiting)
}

// Bound returns the names of the members that bound claims name in their status.
func Bound(claims []*v1alpha1.Claim) map[string]bool {
	var names map[string]bool
	for _, c := range claims {
		if c.Status.Phase != v1alpha1.ClaimBound || c.Status.Member == "" || !c.DeletionTimestamp.IsZero() {
			continue
		}
		if names == nil {
			names = map[string]bool{}
		}
		names[c.Status.Member] = true
	}
	return names
}

// Release collects what decides how the member is released when its claim ends,
// except Waiting, which the caller sets. The pool is nil if it is gone.
func Release(p *v1alpha1.Pool, m *v1alpha1.Member, now time.Time) rollout.Release {
	if p == nil || p.Spec.Claims == nil || value(p.Spec.Claims.OnRelease, v1alpha1.ReleaseReplace) != v1alpha1.ReleaseReuse {
		return rollout.Release{}
	}
	r := rollout.Release{Reuse: true, Held: Held(m, now), Stale: int(p.Status.Stale)}
	if u := p.Spec.Update; u != nil {
		r.InPlace = value(u.Method, v1alpha1.MethodReplace) == v1alpha1.MethodInPlace
		r.Partition = int(value(u.Partition, 0))
	}
	open, _ := UpdateWindows(&p.Spec).At(now)
	r.WindowShut = !open
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdated); c != nil && c.Status == metav1.ConditionFalse {
		r.Blocker = rollout.Reason(c.Reason)
	}
	id := m.Annotations[v1alpha1.AnnotationSkip]
	r.Skipped = id != "" && id == string(Aim(p))
	return r
}

package claim

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// keep records that the claim holds the member, and ends an expired claim. The expiry is
// fixed at binding; only an edit of the claim's own ttl changes it.
func (r *Reconciler) keep(ctx context.Context, c *v1alpha1.Claim, m *v1alpha1.Member) (time.Duration, error) {
	p, err := r.pool(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.Pool})
	if err != nil {
		return 0, err
	}
	if edited(c) {
		if err := r.extend(ctx, c, m, p); err != nil {
			return 0, err
		}
	}
	return r.record(ctx, c, m, p)
}

// edited reports whether the claim's ttl was edited since it was last recorded; without a
// record, since its creation.
func edited(c *v1alpha1.Claim) bool {
	if c.Status.ObservedGeneration == 0 {
		return c.Generation > 1
	}
	return c.Generation != c.Status.ObservedGeneration && !equality.Semantic.DeepEqual(c.Spec.TTL, c.Status.TTL)
}

// extend changes the expiry to the claim's ttl and the pool's present limits.
func (r *Reconciler) extend(ctx context.Context, c *v1alpha1.Claim, m *v1alpha1.Member, p *v1alpha1.Pool) error {
	at := r.expiry(p, c, m.Spec.Claim.BoundAt)
	if at.Equal(m.Spec.Claim.ExpiresAt) {
		return nil
	}
	// A stale cache may show an edit that was applied before the pool's limits changed.
	if err := r.confirm(ctx, c); err != nil {
		return err
	}
	m.Spec.Claim.ExpiresAt = at
	if err := r.Client.Update(ctx, m); err != nil {
		return fmt.Errorf("set expiry of Member %s: %w", m.Name, err)
	}
	return nil
}

// record writes the status of a claim that holds the member, or of one that has ended. It
// returns the time until the claim expires.
func (r *Reconciler) record(ctx context.Context, c *v1alpha1.Claim, m *v1alpha1.Member, p *v1alpha1.Pool) (time.Duration, error) {
	st := heldStatus(c, m)
	known := *c
	known.Status = st
	seen := sight(m)
	seen.Silent = r.silence(c, p)
	tr := r.step(&known, seen, p)
	if tr.Do == rollout.ReleaseMember {
		if err := r.end(ctx, c, st, endingOf(c, p, tr, why{})); err != nil {
			return 0, err
		}
		return 0, r.releaseMember(ctx, c, m)
	}
	st.Phase = v1alpha1.ClaimPhase(tr.Claim.Phase)
	request(&st, m, tr.Claim.Asked, notAsked(m, p))
	begun := requested(&st) && !requested(&c.Status)
	if err := r.setStatus(ctx, c, st, boundCondition{metav1.ConditionTrue, "Bound", "it holds member " + m.Name}); err != nil {
		return 0, err
	}
	if begun {
		r.Events.Eventf(c, m, corev1.EventTypeNormal, v1alpha1.ConditionUpdateRequested, "Notify", "member %s is stale: the pool asks for it back", m.Name)
	}
	return r.after(tr.Wake), nil
}

// heldStatus returns the status of a claim that holds the member, without phase and
// conditions of its own.
func heldStatus(c *v1alpha1.Claim, m *v1alpha1.Member) v1alpha1.ClaimStatus {
	return v1alpha1.ClaimStatus{
		Phase: c.Status.Phase, Member: m.Name, Address: m.Status.Address, Revision: m.Status.Revision,
		BoundAt: m.Spec.Claim.BoundAt, ExpiresAt: m.Spec.Claim.ExpiresAt, Conditions: slices.Clone(c.Status.Conditions),
	}
}

// ending is the phase, reason and message of an ended claim.
type ending struct {
	phase           v1alpha1.ClaimPhase
	reason, message string
}

// end records the end of the claim.
func (r *Reconciler) end(ctx context.Context, c *v1alpha1.Claim, st v1alpha1.ClaimStatus, e ending) error {
	st.Phase = e.phase
	noRequest(&st, "Ended", "the claim has ended")
	if err := r.setStatus(ctx, c, st, boundCondition{metav1.ConditionFalse, e.reason, e.message}); err != nil {
		return err
	}
	r.Events.Eventf(c, nil, corev1.EventTypeNormal, e.reason, "End", "%s", e.message)
	return nil
}

// boundCondition is the condition Bound.
type boundCondition struct {
	bound           metav1.ConditionStatus
	reason, message string
}

// setStatus writes the status for the claim's generation, if it differs.
func (r *Reconciler) setStatus(ctx context.Context, c *v1alpha1.Claim, st v1alpha1.ClaimStatus, s boundCondition) error {
	st.ObservedGeneration, st.TTL = c.Generation, c.Spec.TTL
	meta.SetStatusCondition(&st.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionBound, Status: s.bound, Reason: s.reason, Message: s.message, ObservedGeneration: c.Generation,
	})
	if equality.Semantic.DeepEqual(c.Status, st) {
		return nil
	}
	c.Status = st
	if err := r.Client.Status().Update(ctx, c); err != nil {
		return fmt.Errorf("update status: %w", err)
	}
	return nil
}

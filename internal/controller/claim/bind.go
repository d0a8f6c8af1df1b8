package claim

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// bind gives the claim a free member, by one conditional write to it. It gets
// none if the pool has none: then it waits, and says for what.
func (r *Reconciler) bind(ctx context.Context, c *v1alpha1.Claim) (time.Duration, error) {
	p, err := r.pool(ctx, c)
	if err != nil {
		return 0, err
	}
	if p == nil || !p.DeletionTimestamp.IsZero() {
		return 0, r.wait(ctx, c, "PoolNotFound", fmt.Sprintf("there is no Pool %s in namespace %s", c.Spec.Pool, c.Namespace))
	}
	m, err := r.pick(ctx, p)
	if err != nil {
		return 0, err
	}
	if m == nil {
		return 0, r.wait(ctx, c, "NoFreeMember", fmt.Sprintf("no member of Pool %s is free; it gets the next one", c.Spec.Pool))
	}
	now := micro(r.Now())
	m.Spec.Claim = &v1alpha1.MemberClaim{
		Name: c.Name, UID: c.UID, Holder: c.Spec.Holder, BoundAt: now, ExpiresAt: expiry(p, c, now),
	}
	m.Spec.Disruption = nil // spent, or the member would not be free
	if err := r.Client.Update(ctx, m); err != nil {
		if apierrors.IsInvalid(err) { // the cache was late, and the API server's rules were not
			return conflictRetry, nil
		}
		return 0, fmt.Errorf("bind Member %s: %w", m.Name, err)
	}
	r.Events.Eventf(c, m, corev1.EventTypeNormal, "Bound", "Bind", "member %s is bound", m.Name)
	return r.keep(ctx, c, m)
}

func (r *Reconciler) pool(ctx context.Context, c *v1alpha1.Claim) (*v1alpha1.Pool, error) {
	var p v1alpha1.Pool
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.Pool}, &p)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // none is an answer
	case err != nil:
		return nil, fmt.Errorf("get Pool %s: %w", c.Spec.Pool, err)
	}
	return &p, nil
}

// pick chooses a free member of the pool; nil if there is none.
func (r *Reconciler) pick(ctx context.Context, p *v1alpha1.Pool) (*v1alpha1.Member, error) {
	var list v1alpha1.MemberList
	if err := r.Client.List(ctx, &list, client.InNamespace(p.Namespace), client.MatchingFields{FieldPool: p.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list members of Pool %s: %w", p.Name, err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Member) int { return int(a.Spec.Index) - int(b.Spec.Index) })
	now := r.Now()
	members := make([]rollout.Member, len(list.Items))
	for i := range list.Items {
		members[i] = snapshot.Member(&list.Items[i], now)
		if list.Items[i].Status.Phase == v1alpha1.PhaseClaimed {
			members[i].Cordoned = true // released, and not recorded as Available yet
		}
	}
	i := rollout.Pick(members, rollout.Revision(p.Status.TargetRevision))
	if i < 0 {
		return nil, nil //nolint:nilnil // none is an answer
	}
	return list.Items[i].DeepCopy(), nil
}

// keep says what the claim has, and ends it when its time is up.
func (r *Reconciler) keep(ctx context.Context, c *v1alpha1.Claim, m *v1alpha1.Member) (time.Duration, error) {
	p, err := r.pool(ctx, c)
	if err != nil {
		return 0, err
	}
	var until time.Duration
	if at := expiry(p, c, m.Spec.Claim.BoundAt); at != nil {
		if until = at.Sub(r.Now()); until <= 0 {
			return 0, r.expire(ctx, c, m)
		}
		if !at.Equal(m.Spec.Claim.ExpiresAt) {
			m.Spec.Claim.ExpiresAt = at
			if err := r.Client.Update(ctx, m); err != nil {
				return 0, fmt.Errorf("set expiry of Member %s: %w", m.Name, err)
			}
		}
	} else if m.Spec.Claim.ExpiresAt != nil {
		m.Spec.Claim.ExpiresAt = nil
		if err := r.Client.Update(ctx, m); err != nil {
			return 0, fmt.Errorf("clear expiry of Member %s: %w", m.Name, err)
		}
	}
	st := v1alpha1.ClaimStatus{
		ObservedGeneration: c.Generation, Phase: v1alpha1.ClaimBound, Member: m.Name, Address: m.Status.Address, Revision: m.Status.Revision,
		BoundAt: m.Spec.Claim.BoundAt, ExpiresAt: m.Spec.Claim.ExpiresAt, Conditions: slices.Clone(c.Status.Conditions),
	}
	return until, r.setStatus(ctx, c, st, metav1.ConditionTrue, "Bound", "it holds member "+m.Name)
}

// expire ends a claim whose time is up.
func (r *Reconciler) expire(ctx context.Context, c *v1alpha1.Claim, m *v1alpha1.Member) error {
	if err := r.letGo(ctx, c, m); err != nil {
		return err
	}
	return r.end(ctx, c, v1alpha1.ClaimExpired, "Expired", "its time is up; make another claim")
}

// letGo takes the claim off the member and, unless the pool reuses members,
// has its body replaced, in one write. What is born next is for the engine to
// say: there is no grant yet.
func (r *Reconciler) letGo(ctx context.Context, c *v1alpha1.Claim, m *v1alpha1.Member) error {
	p, err := r.pool(ctx, c)
	if err != nil {
		return err
	}
	m.Spec.Claim = nil
	if !reuses(p) {
		m.Spec.Disruption = &v1alpha1.Disruption{
			Reason: v1alpha1.DisruptionClaimEnded, Action: v1alpha1.ActionReplace, Incarnation: m.Status.Incarnation, Since: micro(r.Now()),
		}
		m.Spec.Revision = ""
	}
	if err := r.Client.Update(ctx, m); err != nil {
		return fmt.Errorf("release Member %s: %w", m.Name, err)
	}
	return nil
}

func reuses(p *v1alpha1.Pool) bool {
	return p != nil && p.Spec.Claims != nil && p.Spec.Claims.OnRelease != nil && *p.Spec.Claims.OnRelease == v1alpha1.ReleaseReuse
}

// expiry is when a claim that was bound at a time ends by itself; nil for never.
func expiry(p *v1alpha1.Pool, c *v1alpha1.Claim, bound *metav1.MicroTime) *metav1.MicroTime {
	if bound == nil {
		return nil
	}
	ttl, limited := c.Spec.TTL, p != nil && p.Spec.Claims != nil
	if ttl == nil && limited {
		ttl = p.Spec.Claims.DefaultTTL
	}
	if limited && p.Spec.Claims.MaxTTL != nil && (ttl == nil || ttl.Duration > p.Spec.Claims.MaxTTL.Duration) {
		ttl = p.Spec.Claims.MaxTTL
	}
	if ttl == nil {
		return nil
	}
	return micro(bound.Add(ttl.Duration))
}

// wait says that the claim waits, and for what.
func (r *Reconciler) wait(ctx context.Context, c *v1alpha1.Claim, reason, message string) error {
	st := *c.Status.DeepCopy()
	st.ObservedGeneration, st.Phase = c.Generation, v1alpha1.ClaimPending
	return r.setStatus(ctx, c, st, metav1.ConditionFalse, reason, message)
}

// end says that the claim has ended. It keeps what it had, for the record.
func (r *Reconciler) end(ctx context.Context, c *v1alpha1.Claim, phase v1alpha1.ClaimPhase, reason, message string) error {
	st := *c.Status.DeepCopy()
	st.ObservedGeneration, st.Phase = c.Generation, phase
	r.Events.Eventf(c, nil, corev1.EventTypeNormal, reason, "End", "%s", message)
	return r.setStatus(ctx, c, st, metav1.ConditionFalse, reason, message)
}

// setStatus writes the status if it differs.
func (r *Reconciler) setStatus(ctx context.Context, c *v1alpha1.Claim, st v1alpha1.ClaimStatus, bound metav1.ConditionStatus, reason, message string) error {
	meta.SetStatusCondition(&st.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionBound, Status: bound, Reason: reason, Message: message, ObservedGeneration: c.Generation,
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

func micro(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t.UTC().Truncate(time.Microsecond))
	return &m
}

package claim

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// tries is how many members a pass asks for, should the API server refuse to
// give them.
const tries = 5

// bind gives the claim a free member, by one conditional write to it. It gets
// none if the pool has none: then it waits, and says for what. A member that
// the API server refuses to give does not hide the next one.
func (r *Reconciler) bind(ctx context.Context, c *v1alpha1.Claim) (time.Duration, error) {
	if r.missed(c) {
		return 0, r.end(ctx, c, *c.Status.DeepCopy(), impatient(c, "no controller was running meanwhile"))
	}
	p, err := r.pool(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.Pool})
	if err != nil {
		return 0, err
	}
	if p == nil || !p.DeletionTimestamp.IsZero() {
		return r.wait(ctx, c, "PoolNotFound", fmt.Sprintf("there is no Pool %s in namespace %s", c.Spec.Pool, c.Namespace))
	}
	free, err := r.free(p)
	if err != nil {
		return 0, err
	}
	now := snapshot.Micro(r.Now())
	claim := v1alpha1.MemberClaim{Name: c.Name, UID: c.UID, Holder: c.Spec.Holder, BoundAt: now, ExpiresAt: expiry(p, c, now)}
	var refused error
	for range tries {
		m := free.next()
		if m == nil {
			break
		}
		m.Spec.Claim = claim.DeepCopy()
		m.Spec.Disruption = nil // spent, or the member would not be free
		err := r.Client.Update(ctx, m)
		switch {
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
			refused = fmt.Errorf("bind Member %s: %w", m.Name, err)
			continue
		case err != nil:
			return 0, fmt.Errorf("bind Member %s: %w", m.Name, err)
		}
		r.Events.Eventf(c, m, corev1.EventTypeNormal, "Bound", "Bind", "member %s is bound", m.Name)
		return r.record(ctx, c, m, p)
	}
	if refused == nil {
		return r.wait(ctx, c, "NoFreeMember", fmt.Sprintf("no member of Pool %s is free", c.Spec.Pool))
	}
	if _, err := r.wait(ctx, c, "BindingRefused", refused.Error()); err != nil || ended(c) {
		return 0, err
	}
	return 0, refused // what is not the cache's fault is not over in a moment
}

// pool reads a pool; nil if it is not there.
func (r *Reconciler) pool(ctx context.Context, name types.NamespacedName) (*v1alpha1.Pool, error) {
	var p v1alpha1.Pool
	err := r.Client.Get(ctx, name, &p)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // none is an answer
	case err != nil:
		return nil, fmt.Errorf("get Pool %s: %w", name.Name, err)
	}
	return &p, nil
}

// choice is the free members of a pool, the best first.
type choice struct {
	target  rollout.Revision
	stored  []*v1alpha1.Member
	members []rollout.Member
}

// free are the pool's members to choose from.
func (r *Reconciler) free(p *v1alpha1.Pool) (*choice, error) {
	stored, err := r.Roster.Members(client.ObjectKeyFromObject(p))
	if err != nil {
		return nil, fmt.Errorf("list members of Pool %s: %w", p.Name, err)
	}
	slices.SortFunc(stored, func(a, b *v1alpha1.Member) int { return int(a.Spec.Index) - int(b.Spec.Index) })
	now := r.Now()
	members := make([]rollout.Member, len(stored))
	for i, m := range stored {
		members[i] = snapshot.Member(m, now)
		if m.Status.Phase == v1alpha1.PhaseClaimed {
			members[i].Cordoned = true // released, and not recorded as Available yet
		}
	}
	return &choice{target: snapshot.Aim(p), stored: stored, members: members}, nil
}

// next takes a member out of the choice; nil if there is none left.
func (f *choice) next() *v1alpha1.Member {
	i := rollout.Pick(f.members, f.target)
	if i < 0 {
		return nil
	}
	f.members[i].Cordoned = true
	return f.stored[i].DeepCopy()
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
	return snapshot.Micro(bound.Add(ttl.Duration))
}

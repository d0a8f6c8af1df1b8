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

// maxBindAttempts is how many members a pass tries if the API server rejects the binding.
const maxBindAttempts = 5

// serve steps a claim that no member carries: it waits, gets a member, or ends.
func (r *Reconciler) serve(ctx context.Context, c *v1alpha1.Claim) (time.Duration, error) {
	p, err := r.pool(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.Pool})
	if err != nil {
		return 0, err
	}
	var free candidates
	var seen rollout.ClaimSight
	if p != nil && !everBound(c) {
		if free, err = r.free(p); err != nil {
			return 0, err
		}
		if seen.Ahead, err = r.ahead(c, free.stored); err != nil {
			return 0, err
		}
		seen.Free = rollout.Choices(free.members)
	}
	tr := r.step(c, seen, p)
	if tr.Do == rollout.BindMember {
		return r.bind(ctx, c, p, &free)
	}
	w := waitReason(c, tr.Why)
	if tr.Why != rollout.NotServed && seen.Free > 0 {
		w.message = fmt.Sprintf("older claims wait for each free member of Pool %s", c.Spec.Pool)
	}
	return r.recordWait(ctx, c, p, tr, w)
}

// ahead returns how many older claims wait, still have time to, and are carried by no
// member.
func (r *Reconciler) ahead(c *v1alpha1.Claim, members []*v1alpha1.Member) (int, error) {
	claims, err := r.Roster.Claims(types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.Pool})
	if err != nil {
		return 0, fmt.Errorf("list claims of Pool %s: %w", c.Spec.Pool, err)
	}
	now := r.Now()
	earlier := slices.DeleteFunc(slices.Clone(claims), func(o *v1alpha1.Claim) bool {
		k := snapshot.Claim(o)
		return !queued(o) || o.UID == c.UID || older(c, o) < 0 || k.Limited && !now.Before(k.Made.Add(k.Wait))
	})
	return snapshot.Waiting(earlier, members), nil
}

// bind gives the claim a free member, by compare-and-swap.
func (r *Reconciler) bind(ctx context.Context, c *v1alpha1.Claim, p *v1alpha1.Pool, free *candidates) (time.Duration, error) {
	now := snapshot.Micro(r.Now())
	claim := v1alpha1.MemberClaim{Name: c.Name, UID: c.UID, Holder: c.Spec.Holder, BoundAt: now, ExpiresAt: r.expiry(p, c, now)}
	var refused error
	for range maxBindAttempts {
		m := free.next()
		if m == nil {
			break
		}
		m.Spec.Claim = claim.DeepCopy()
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
	tr := r.step(c, rollout.ClaimSight{}, p)
	if refused == nil {
		return r.recordWait(ctx, c, p, tr, waitReason(c, tr.Why))
	}
	if _, err := r.recordWait(ctx, c, p, tr, why{reasonRefused, refused.Error()}); err != nil || ended(c) {
		return 0, err
	}
	return 0, refused // retry with backoff: the cache is right, and the cause persists
}

// pool reads a pool; nil if it does not exist.
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

// candidates are the members of a pool from which a claim's is chosen.
type candidates struct {
	target  rollout.Revision
	stored  []*v1alpha1.Member
	members []rollout.Member
}

// free returns the pool's members to choose from.
func (r *Reconciler) free(p *v1alpha1.Pool) (candidates, error) {
	stored, err := r.Roster.Members(client.ObjectKeyFromObject(p))
	if err != nil {
		return candidates{}, fmt.Errorf("list members of Pool %s: %w", p.Name, err)
	}
	slices.SortFunc(stored, func(a, b *v1alpha1.Member) int { return int(a.Spec.Index) - int(b.Spec.Index) })
	now := r.Now()
	members := make([]rollout.Member, len(stored))
	for i, m := range stored {
		members[i] = snapshot.Member(m, now)
		if m.Status.Phase == v1alpha1.PhaseClaimed {
			members[i].Cordoned = true // released, and not yet recorded as Available
		}
	}
	return candidates{target: snapshot.Aim(p), stored: stored, members: members}, nil
}

// next returns the next member for the claim, ready to be written apart from the claim
// itself; nil if none is free. It returns each member once.
func (f *candidates) next() *v1alpha1.Member {
	i := rollout.Pick(f.members, f.target)
	if i < 0 {
		return nil
	}
	m, is := f.stored[i].DeepCopy(), f.members[i].Bind()
	snapshot.SetSpec(m, &f.members[i], &is)
	f.members[i].Cordoned = true
	return m
}

// expiry returns when a claim bound at the time expires; nil for never.
func (r *Reconciler) expiry(p *v1alpha1.Pool, c *v1alpha1.Claim, bound *metav1.MicroTime) *metav1.MicroTime {
	if bound == nil {
		return nil
	}
	ttl := time.Duration(0)
	if c.Spec.TTL != nil {
		ttl = c.Spec.TTL.Duration
	}
	rules := snapshot.ClaimRules(p, r.startTime())
	return snapshot.Micro(rules.Expiry(ttl, bound.Time))
}

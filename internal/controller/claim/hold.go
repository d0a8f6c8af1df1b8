package claim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/snapshot"
)

// held returns the member that the claim holds, nil for none, and all others that carry it.
// It reads from the API server, so that a claim never gets a second member.
func (r *Reconciler) held(ctx context.Context, c *v1alpha1.Claim) (held *v1alpha1.Member, spare []*v1alpha1.Member, err error) {
	var list v1alpha1.MemberList
	err = r.Reader.List(ctx, &list, client.InNamespace(c.Namespace), client.MatchingFields{FieldClaimUID: string(c.UID)})
	if err != nil {
		return nil, nil, fmt.Errorf("look for the member that it holds: %w", err)
	}
	held, spare = choose(c, list.Items)
	return held, spare, nil
}

// choose splits the members with the claim's UID into the one that it holds and the others.
// It holds the one named in its status or, without a name, the first of its pool.
func choose(c *v1alpha1.Claim, members []v1alpha1.Member) (held *v1alpha1.Member, spare []*v1alpha1.Member) {
	slices.SortFunc(members, func(a, b v1alpha1.Member) int {
		return cmp.Or(cmp.Compare(a.Spec.Index, b.Spec.Index), cmp.Compare(a.Name, b.Name))
	})
	for i := range members {
		m := &members[i]
		fits := m.Spec.Pool == c.Spec.Pool && m.Spec.Claim.Name == c.Name && (c.Status.Member == "" || c.Status.Member == m.Name)
		if held == nil && fits {
			held = m
		} else {
			spare = append(spare, m)
		}
	}
	return held, spare
}

// carriers returns the members in the cache that name the claim and carry a wanted UID.
func (r *Reconciler) carriers(ctx context.Context, claim types.NamespacedName, want func(types.UID) bool) ([]*v1alpha1.Member, error) {
	var list v1alpha1.MemberList
	err := r.Client.List(ctx, &list, client.InNamespace(claim.Namespace), client.MatchingFields{FieldClaimName: claim.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the members that carry it: %w", err)
	}
	var members []*v1alpha1.Member
	for i := range list.Items {
		if m := &list.Items[i]; m.Spec.Claim != nil && want(m.Spec.Claim.UID) {
			members = append(members, m.DeepCopy())
		}
	}
	return members, nil
}

// sweep releases members whose claim no longer exists: its finalizer was removed, or
// the claim was restored under another UID. No claim will have such a UID again, so a
// stale cache does no harm.
//
// Members with the given UID, that of the claim in the cache, are left alone; empty
// for no claim.
func (r *Reconciler) sweep(ctx context.Context, claim types.NamespacedName, uid types.UID) error {
	strays, err := r.carriers(ctx, claim, func(carried types.UID) bool { return carried != uid || uid == "" })
	if err != nil || len(strays) == 0 {
		return err
	}
	var live v1alpha1.Claim
	if err := r.Reader.Get(ctx, claim, &live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read it again: %w", err)
	}
	for _, m := range strays {
		if live.UID != "" && m.Spec.Claim.UID == live.UID {
			continue
		}
		if err := r.unclaim(ctx, m); err != nil {
			return err
		}
		r.Events.Eventf(m, nil, corev1.EventTypeWarning, "ClaimGone", "Release", "claim %s is gone and did not release the member", claim.Name)
	}
	return nil
}

// clear releases the members of an ended claim, whose end is recorded already.
func (r *Reconciler) clear(ctx context.Context, c *v1alpha1.Claim) error {
	members, err := r.carriers(ctx, client.ObjectKeyFromObject(c), func(carried types.UID) bool { return carried == c.UID })
	if err != nil {
		return err
	}
	for _, m := range members {
		if err := r.releaseMember(ctx, c, m); err != nil {
			return err
		}
	}
	return nil
}

// release releases the members, then removes the claim's finalizer.
func (r *Reconciler) release(ctx context.Context, c *v1alpha1.Claim) error {
	if !controllerutil.ContainsFinalizer(c, v1alpha1.FinalizerBinding) {
		return r.clear(ctx, c) // our finalizer is gone, and another one keeps the claim
	}
	held, spare, err := r.held(ctx, c)
	if err != nil {
		return err
	}
	if held != nil {
		spare = append(spare, held)
	}
	for _, m := range spare {
		if err := r.releaseMember(ctx, c, m); err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(c, v1alpha1.FinalizerBinding)
	if err := r.Client.Update(ctx, c); err != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}

// releaseMember releases a member that carries the claim, and emits an event.
func (r *Reconciler) releaseMember(ctx context.Context, c *v1alpha1.Claim, m *v1alpha1.Member) error {
	if err := r.unclaim(ctx, m); err != nil {
		return err
	}
	r.Events.Eventf(c, m, corev1.EventTypeNormal, "Released", "Release", "member %s is released", m.Name)
	return nil
}

// unclaim removes the claim from the member in one write, which also has the body replaced
// or updated, unless the next claim gets it as it is. The engine grants the next birth
// later. A missing member needs no release.
func (r *Reconciler) unclaim(ctx context.Context, m *v1alpha1.Member) error {
	p, err := r.pool(ctx, types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.Pool})
	if err != nil {
		return err
	}
	release := snapshot.Release(p, m, r.Now())
	if release.Reuse {
		if release.Waiting, err = r.waiters(client.ObjectKeyFromObject(p)); err != nil {
			return err
		}
	}
	was := snapshot.Member(m, r.Now())
	is := was.Release(&release, r.Now())
	snapshot.SetSpec(m, &was, &is)
	if err := r.Client.Update(ctx, m); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("release Member %s: %w", m.Name, err)
	}
	return nil
}

// waiters returns how many of the pool's claims wait for a member.
func (r *Reconciler) waiters(pool types.NamespacedName) (int, error) {
	claims, err := r.Roster.Claims(pool)
	if err != nil {
		return 0, fmt.Errorf("list claims of Pool %s: %w", pool.Name, err)
	}
	if !slices.ContainsFunc(claims, snapshot.Pending) {
		return 0, nil
	}
	members, err := r.Roster.Members(pool)
	if err != nil {
		return 0, fmt.Errorf("list members of Pool %s: %w", pool.Name, err)
	}
	return snapshot.Waiting(claims, members), nil
}

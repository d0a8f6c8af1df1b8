// Package claim is the controller of Claims: it gives each a free member, and
// takes it back at its end.
package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// Indexes of Claims and Members.
const (
	// FieldPool is by the name of their pool.
	FieldPool = "spec.pool"
	// FieldClaimUID is the selectable field of Members by who holds them.
	FieldClaimUID = "spec.claim.uid"
)

// conflictRetry is how long a lost race waits.
const conflictRetry = 50 * time.Millisecond

var errStale = errors.New("the cache is late")

// Reconciler binds, renews and ends claims.
type Reconciler struct {
	// Client reads from the cache and writes to the API server; Reader reads
	// from the API server itself.
	Client client.Client
	Reader client.Reader
	Events events.EventRecorder
	// Now is the clock.
	Now func() time.Time
}

// SetupWithManager has the controller woken by claims, by members that come
// free or lose their claim, and by pools that appear or go.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("claim").
		For(&v1alpha1.Claim{}).
		Watches(&v1alpha1.Member{}, handler.EnqueueRequestsFromMapFunc(r.concerned)).
		Watches(&v1alpha1.Pool{}, handler.EnqueueRequestsFromMapFunc(r.waiting)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(r)
}

// concerned are the claims to which a change of a member matters: the one that
// holds it, and, if it is free, those that wait.
func (r *Reconciler) concerned(ctx context.Context, o client.Object) []reconcile.Request {
	m, ok := o.(*v1alpha1.Member)
	if !ok {
		return nil
	}
	requests := r.bound(ctx, m)
	if m.Spec.Claim == nil && m.Status.Phase == v1alpha1.PhaseAvailable {
		requests = append(requests, r.claims(ctx, m.Namespace, m.Spec.Pool, pending)...)
	}
	return requests
}

// bound are the claims that the member was given to.
func (r *Reconciler) bound(ctx context.Context, m *v1alpha1.Member) []reconcile.Request {
	if c := m.Spec.Claim; c != nil {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: c.Name}}}
	}
	return r.claims(ctx, m.Namespace, m.Spec.Pool, func(c *v1alpha1.Claim) bool {
		return c.Status.Phase == v1alpha1.ClaimBound && c.Status.Member == m.Name
	})
}

// waiting are the pool's claims that wait for a member.
func (r *Reconciler) waiting(ctx context.Context, o client.Object) []reconcile.Request {
	return r.claims(ctx, o.GetNamespace(), o.GetName(), pending)
}

func pending(c *v1alpha1.Claim) bool {
	return c.Status.Phase == "" || c.Status.Phase == v1alpha1.ClaimPending
}

func (r *Reconciler) claims(ctx context.Context, namespace, pool string, want func(*v1alpha1.Claim) bool) []reconcile.Request {
	var list v1alpha1.ClaimList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{FieldPool: pool}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if c := &list.Items[i]; want(c) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		}
	}
	return requests
}

// Reconcile brings one claim to where it should be.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var c v1alpha1.Claim
	if err := r.Client.Get(ctx, req.NamespacedName, &c); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	wait, err := r.reconcile(ctx, &c)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("claim %s: %w", c.Name, err)
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

func (r *Reconciler) reconcile(ctx context.Context, c *v1alpha1.Claim) (time.Duration, error) {
	switch {
	case !c.DeletionTimestamp.IsZero():
		return 0, r.release(ctx, c)
	case ended(c):
		return 0, nil
	}
	if controllerutil.AddFinalizer(c, v1alpha1.FinalizerBinding) {
		if err := r.Client.Update(ctx, c); err != nil {
			return 0, fmt.Errorf("add finalizer: %w", err)
		}
	}
	held, err := r.held(ctx, c)
	if err != nil {
		return 0, err
	}
	switch {
	case held != nil:
		return r.keep(ctx, c, held)
	case c.Status.Phase == v1alpha1.ClaimBound:
		return 0, r.end(ctx, c, v1alpha1.ClaimFailed, "BodyGone", fmt.Sprintf("the body of member %s is gone; make another claim", c.Status.Member))
	}
	if err := r.confirm(ctx, c); err != nil {
		return 0, err
	}
	return r.bind(ctx, c)
}

// confirm makes sure that the claim is still as the cache shows it. One that
// was bound, ended or deleted meanwhile must not get another member.
func (r *Reconciler) confirm(ctx context.Context, c *v1alpha1.Claim) error {
	var live v1alpha1.Claim
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(c), &live); err != nil {
		return fmt.Errorf("read it again: %w", err)
	}
	if live.UID != c.UID || live.ResourceVersion != c.ResourceVersion {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("claims").GroupResource(), c.Name, errStale)
	}
	return nil
}

func ended(c *v1alpha1.Claim) bool {
	switch c.Status.Phase {
	case v1alpha1.ClaimReleased, v1alpha1.ClaimExpired, v1alpha1.ClaimFailed:
		return true
	}
	return false
}

// held is the member that carries the claim, by a consistent read; nil if none
// does. So a claim never gets a second member, whatever was forgotten.
func (r *Reconciler) held(ctx context.Context, c *v1alpha1.Claim) (*v1alpha1.Member, error) {
	var list v1alpha1.MemberList
	err := r.Reader.List(ctx, &list, client.InNamespace(c.Namespace), client.MatchingFields{FieldClaimUID: string(c.UID)})
	if err != nil {
		return nil, fmt.Errorf("look for the member that it holds: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil //nolint:nilnil // none is an answer
	}
	return &list.Items[0], nil
}

// release lets the member go and then the claim.
func (r *Reconciler) release(ctx context.Context, c *v1alpha1.Claim) error {
	if !controllerutil.ContainsFinalizer(c, v1alpha1.FinalizerBinding) {
		return nil
	}
	held, err := r.held(ctx, c)
	if err != nil {
		return err
	}
	if held != nil {
		if err := r.letGo(ctx, c, held); err != nil {
			return err
		}
		r.Events.Eventf(c, held, corev1.EventTypeNormal, "Released", "Release", "member %s is released", held.Name)
	}
	controllerutil.RemoveFinalizer(c, v1alpha1.FinalizerBinding)
	if err := r.Client.Update(ctx, c); err != nil {
		return client.IgnoreNotFound(err)
	}
	return nil
}

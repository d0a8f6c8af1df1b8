// Package claim is the controller of Claims: it gives each a free member, and
// releases the member when the claim ends.
//
// The member's spec.claim holds the claim. The claim's status is written after it when
// a member is bound, and before it when one is released, so that the next pass
// completes whatever a crash between the two writes left.
package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/controller/pace"
	"github.com/pawl-dev/pawl/internal/controller/roster"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// Indexes of Members by their claim.
const (
	// FieldClaimName is the index of Members by the name of their claim, in the cache only.
	FieldClaimName = "spec.claim.name"
	// FieldClaimUID is the selectable field of Members with the UID of their claim.
	FieldClaimUID = "spec.claim.uid"
)

const (
	// conflictRetry is the delay after a conflict.
	conflictRetry = 50 * time.Millisecond
	// firstRetry and lastRetry are the range of the backoff after a failed pass.
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Minute
)

var errStale = errors.New("the cache is late")

// Reconciler binds, renews and ends claims.
type Reconciler struct {
	// Client reads from the cache and writes to the API server; Reader reads from the API
	// server.
	Client client.Client
	Reader client.Reader
	// Roster lists the objects of a pool from that cache.
	Roster roster.Of
	Events events.EventRecorder
	// Now is the clock. NewQueue makes a queue that uses it.
	Now      func() time.Time
	NewQueue pace.NewQueue
	// Steady is a monotonic clock, for heartbeats. Nil: Now.
	Steady func() time.Time
	// Changed emits claims to reconcile for other reasons than a change in the API. Nil:
	// there are none.
	Changed <-chan event.GenericEvent
	// Reach reports outages of the API server. Nil: it is always reachable.
	Reach Reach

	start   sync.Once
	started time.Time
	beats   beats
	probes  probes
}

// Reach reports when the API server could not be reached.
type Reach interface {
	// Back returns when the last outage ended: now during an outage, zero if there was
	// none.
	Back() time.Time
	// Expect announces that requests follow at intervals of at most within, so that a
	// longer time without an answer is an outage; 0 ends that.
	Expect(within time.Duration)
}

// SetupWithManager registers the controller. It watches claims, members that become free,
// change while claimed or lose their claim, and pools that are created, changed or deleted.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Member{}, FieldClaimName, claimName); err != nil {
		return fmt.Errorf("index by claim: %w", err)
	}
	begin := manager.RunnableFunc(func(context.Context) error {
		r.startTime()
		return nil
	})
	if err := mgr.Add(begin); err != nil {
		return fmt.Errorf("note the start: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr)
	if r.Changed != nil {
		b = b.WatchesRawSource(source.Channel(r.Changed, &handler.EnqueueRequestForObject{}))
	}
	return b.
		Named("claim").
		For(&v1alpha1.Claim{}).
		Watches(&v1alpha1.Member{}, handler.EnqueueRequestsFromMapFunc(r.affectedClaims)).
		Watches(&v1alpha1.Claim{}, handler.Funcs{UpdateFunc: r.wakeQueue, DeleteFunc: r.wakeQueueOnDelete}).
		Watches(&v1alpha1.Pool{}, handler.EnqueueRequestsFromMapFunc(r.waiting)).
		Watches(&v1alpha1.Pool{}, handler.EnqueueRequestsFromMapFunc(r.holding), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Func(r.probes.open)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: 1,
			NewQueue:                r.NewQueue,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

// startTime returns when the controller started. The first call records it.
func (r *Reconciler) startTime() time.Time {
	r.start.Do(func() { r.started = r.Now() })
	return r.started
}

func claimName(o client.Object) []string {
	if m, ok := o.(*v1alpha1.Member); ok && m.Spec.Claim != nil {
		return []string{m.Spec.Claim.Name}
	}
	return nil
}

// affectedClaims returns the claims that a change of a member affects: the one that it
// carries, whether or not that exists, and the waiting ones if the member is free.
func (r *Reconciler) affectedClaims(ctx context.Context, o client.Object) []reconcile.Request {
	m, ok := o.(*v1alpha1.Member)
	if !ok {
		return nil
	}
	requests := r.givenTo(ctx, m)
	if m.Spec.Claim == nil && m.Status.Phase == v1alpha1.PhaseAvailable {
		requests = append(requests, r.claims(ctx, m.Namespace, m.Spec.Pool, snapshot.Pending)...)
	}
	return requests
}

// givenTo returns the claims that have the member.
func (r *Reconciler) givenTo(ctx context.Context, m *v1alpha1.Member) []reconcile.Request {
	if c := m.Spec.Claim; c != nil {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: c.Name}}}
	}
	return r.claims(ctx, m.Namespace, m.Spec.Pool, func(c *v1alpha1.Claim) bool {
		return bound(c) && c.Status.Member == m.Name
	})
}

// waiting returns the pool's claims that wait for a member.
func (r *Reconciler) waiting(ctx context.Context, o client.Object) []reconcile.Request {
	return r.claims(ctx, o.GetNamespace(), o.GetName(), snapshot.Pending)
}

// holding returns the pool's claims that have a member.
func (r *Reconciler) holding(ctx context.Context, o client.Object) []reconcile.Request {
	return r.claims(ctx, o.GetNamespace(), o.GetName(), bound)
}

// queued reports whether the claim waits for its turn. A claim whose binding is rejected
// does not block later ones.
func queued(c *v1alpha1.Claim) bool {
	is := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionBound)
	return snapshot.Pending(c) && (is == nil || is.Reason != reasonRefused)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wakeQueue wakes the claims behind one that left the queue without a member. After a
// binding their turn is unchanged: the claim took a member with it.
func (r *Reconciler) wakeQueue(ctx context.Context, e event.UpdateEvent, q queue) {
	was, isWas := e.ObjectOld.(*v1alpha1.Claim)
	is, isIs := e.ObjectNew.(*v1alpha1.Claim)
	if isWas && isIs && queued(was) && !queued(is) && !bound(is) {
		r.next(ctx, is, q)
	}
}

// wakeQueueOnDelete does the same for a deleted claim.
func (r *Reconciler) wakeQueueOnDelete(ctx context.Context, e event.DeleteEvent, q queue) {
	if c, ok := e.Object.(*v1alpha1.Claim); ok && queued(c) {
		r.next(ctx, c, q)
	}
}

func (r *Reconciler) next(ctx context.Context, c *v1alpha1.Claim, q queue) {
	for _, request := range r.claims(ctx, c.Namespace, c.Spec.Pool, snapshot.Pending) {
		q.Add(request)
	}
}

func bound(c *v1alpha1.Claim) bool { return c.Status.Phase == v1alpha1.ClaimBound }

func (r *Reconciler) claims(ctx context.Context, namespace, pool string, want func(*v1alpha1.Claim) bool) []reconcile.Request {
	list, err := r.Roster.Claims(types.NamespacedName{Namespace: namespace, Name: pool})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the claims of a pool that has changed are not woken", "pool", pool)
	}
	list = slices.DeleteFunc(slices.Clone(list), func(c *v1alpha1.Claim) bool { return !want(c) })
	slices.SortFunc(list, older)
	requests := make([]reconcile.Request, len(list))
	for i, c := range list {
		requests[i].NamespacedName = client.ObjectKeyFromObject(c)
	}
	return requests
}

// older orders claims as they are served: by creation, which the API stores in seconds,
// then by name.
func older(a, b *v1alpha1.Claim) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// Reconcile steps one claim, and releases members that carry its name for a claim that no
// longer exists.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r.startTime()
	if req == probe {
		return reconcile.Result{RequeueAfter: r.probe(ctx)}, nil
	}
	var c v1alpha1.Claim
	var wait time.Duration
	err := r.Client.Get(ctx, req.NamespacedName, &c)
	switch {
	case apierrors.IsNotFound(err):
		err = nil
		r.beats.forget(req.NamespacedName)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("get Claim %s: %w", req.Name, err)
	default:
		if wait, err = r.reconcile(ctx, &c); notFound(err, req.Name) {
			err = nil // its deletion triggers the next pass
		}
	}
	if swept := r.sweep(ctx, req.NamespacedName, c.UID); err == nil {
		err = swept
	}
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case err != nil:
		// The failure may also have kept the holder from renewing: it gets a whole
		// heartbeat again.
		r.beats.forget(req.NamespacedName)
		return reconcile.Result{}, fmt.Errorf("claim %s: %w", req.Name, err)
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// notFound reports whether the claim itself was not found, not its pool or a member.
func notFound(err error, claim string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d != nil && d.Group == v1alpha1.GroupVersion.Group && d.Kind == "claims" && d.Name == claim
}

func (r *Reconciler) reconcile(ctx context.Context, c *v1alpha1.Claim) (time.Duration, error) {
	// Members of an ended or deleted claim are looked up below.
	switch r.step(c, rollout.ClaimSight{Held: true}, nil).Do {
	case rollout.RemoveClaim:
		return 0, r.release(ctx, c)
	case rollout.ReleaseMember:
		if ended(c) {
			r.beats.forget(client.ObjectKeyFromObject(c))
			return 0, r.clear(ctx, c)
		}
	}
	if controllerutil.AddFinalizer(c, v1alpha1.FinalizerBinding) {
		if err := r.Client.Update(ctx, c); err != nil {
			return 0, fmt.Errorf("add finalizer: %w", err)
		}
	}
	held, spare, err := r.held(ctx, c)
	if err != nil {
		return 0, err
	}
	for _, m := range spare {
		if err := r.releaseMember(ctx, c, m); err != nil {
			return 0, err
		}
	}
	switch {
	case held != nil:
		return r.keep(ctx, c, held)
	case !everBound(c):
		if err := r.confirm(ctx, c); err != nil {
			return 0, err
		}
	}
	return r.serve(ctx, c)
}

// step moves the claim one step through its life.
func (r *Reconciler) step(c *v1alpha1.Claim, seen rollout.ClaimSight, p *v1alpha1.Pool) rollout.ClaimTransition {
	return rollout.StepClaim(snapshot.Claim(c), seen, snapshot.ClaimRules(p, r.startTime()), r.Now())
}

// after returns the time until then; 0 for never.
func (r *Reconciler) after(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(r.Now()), 1)
}

// confirm reads the claim from the API server and continues with that, since the cache may
// not show this controller's own last write and the claim must keep its turn. It returns a
// conflict if the claim was bound, ended or deleted meanwhile: it must not get another
// member.
func (r *Reconciler) confirm(ctx context.Context, c *v1alpha1.Claim) error {
	var live v1alpha1.Claim
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(c), &live); err != nil {
		return fmt.Errorf("read it again: %w", err)
	}
	switch {
	case live.UID == c.UID && live.ResourceVersion == c.ResourceVersion:
	case live.UID == c.UID && live.Generation == c.Generation && snapshot.Pending(&live) && !everBound(&live):
		live.DeepCopyInto(c)
	default:
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("claims").GroupResource(), c.Name, errStale)
	}
	return nil
}

// everBound reports whether the claim has had a member. It never gets another.
func everBound(c *v1alpha1.Claim) bool {
	return bound(c) || c.Status.Member != ""
}

func ended(c *v1alpha1.Claim) bool {
	k := snapshot.Claim(c)
	return k.Ended()
}

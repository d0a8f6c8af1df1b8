// Package claim is the controller of Claims: it gives each a free member, and
// takes it back at its end.
//
// What a claim holds stands in the member: spec.claim. What the claim's status
// says comes after it when a member is given, and before it when one is taken
// back, so that a crash between the two writes is mended by the next pass.
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
	// FieldClaimName is the index of Members by the name of who holds them. It
	// is the cache's only.
	FieldClaimName = "spec.claim.name"
	// FieldClaimUID is the selectable field of Members by who holds them.
	FieldClaimUID = "spec.claim.uid"
)

const (
	// conflictRetry is how long a lost race waits.
	conflictRetry = 50 * time.Millisecond
	// firstRetry and lastRetry bound how long a pass that failed waits.
	firstRetry = 5 * time.Millisecond
	lastRetry  = time.Minute
)

var errStale = errors.New("the cache is late")

// Reconciler binds, renews and ends claims.
type Reconciler struct {
	// Client reads from the cache and writes to the API server; Reader reads
	// from the API server itself.
	Client client.Client
	Reader client.Reader
	// Roster finds in that cache what belongs to a pool.
	Roster roster.Of
	Events events.EventRecorder
	// Now is the clock, and NewQueue makes a queue that goes by it.
	Now      func() time.Time
	NewQueue pace.NewQueue
	// Steady is a monotonic clock, for heartbeats. Nil: Now.
	Steady func() time.Time
	// Changed tells of claims that are to be looked at for another reason than a
	// change in the API. Nil: there is none.
	Changed <-chan event.GenericEvent
	// Reach tells when holders could not renew their claims. Nil: they always can.
	Reach Reach

	start   sync.Once
	started time.Time
	beats   beats
	probes  probes
}

// Reach knows when the API server could not be reached.
type Reach interface {
	// Back is when the last time ended in which it could not be; now, while that
	// lasts, and zero if there was none.
	Back() time.Time
	// Expect says that from now on it is asked something at least this often, so
	// that no answer for longer means that it cannot be reached; 0 for no longer.
	Expect(within time.Duration)
}

// SetupWithManager has the controller woken by claims, by members that come
// free, change while they are claimed or lose their claim, and by pools that
// appear, change or go.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Member{}, FieldClaimName, claimName); err != nil {
		return fmt.Errorf("index by claim: %w", err)
	}
	begin := manager.RunnableFunc(func(context.Context) error {
		r.begin()
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
		Watches(&v1alpha1.Member{}, handler.EnqueueRequestsFromMapFunc(r.concerned)).
		Watches(&v1alpha1.Claim{}, handler.Funcs{UpdateFunc: r.left, DeleteFunc: r.leftForGood}).
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

// begin notes when the controllers started, and returns it.
func (r *Reconciler) begin() time.Time {
	r.start.Do(func() { r.started = r.Now() })
	return r.started
}

func claimName(o client.Object) []string {
	if m, ok := o.(*v1alpha1.Member); ok && m.Spec.Claim != nil {
		return []string{m.Spec.Claim.Name}
	}
	return nil
}

// concerned are the claims to which a change of a member matters: the one that
// holds it, whether or not it exists, and, if it is free, those that wait.
func (r *Reconciler) concerned(ctx context.Context, o client.Object) []reconcile.Request {
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

// givenTo are the claims that the member was given to.
func (r *Reconciler) givenTo(ctx context.Context, m *v1alpha1.Member) []reconcile.Request {
	if c := m.Spec.Claim; c != nil {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: c.Name}}}
	}
	return r.claims(ctx, m.Namespace, m.Spec.Pool, func(c *v1alpha1.Claim) bool {
		return bound(c) && c.Status.Member == m.Name
	})
}

// waiting are the pool's claims that wait for a member.
func (r *Reconciler) waiting(ctx context.Context, o client.Object) []reconcile.Request {
	return r.claims(ctx, o.GetNamespace(), o.GetName(), snapshot.Pending)
}

// holding are the pool's claims that have a member.
func (r *Reconciler) holding(ctx context.Context, o client.Object) []reconcile.Request {
	return r.claims(ctx, o.GetNamespace(), o.GetName(), bound)
}

// queued reports whether the claim waits for its turn. One that no member may be
// bound to for another reason keeps no other from its turn.
func queued(c *v1alpha1.Claim) bool {
	is := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionBound)
	return snapshot.Pending(c) && (is == nil || is.Reason != reasonRefused)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// left wakes the claims that wait behind one that left the queue without a member.
// One that was bound takes a member with it, which leaves their turn as it was.
func (r *Reconciler) left(ctx context.Context, e event.UpdateEvent, q queue) {
	was, isWas := e.ObjectOld.(*v1alpha1.Claim)
	is, isIs := e.ObjectNew.(*v1alpha1.Claim)
	if isWas && isIs && queued(was) && !queued(is) && !bound(is) {
		r.next(ctx, is, q)
	}
}

// leftForGood does the same for one that is gone.
func (r *Reconciler) leftForGood(ctx context.Context, e event.DeleteEvent, q queue) {
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

// older is the order in which claims are served: by when they were made, which
// the API knows to the second, then by name.
func older(a, b *v1alpha1.Claim) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// Reconcile brings one claim to where it should be, and lets the members go
// that carry its name for a claim that is no more.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	r.begin()
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
			err = nil // its deletion brings the next pass
		}
	}
	if swept := r.sweep(ctx, req.NamespacedName, c.UID); err == nil {
		err = swept
	}
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case err != nil:
		// The holder may have been kept from renewing by what kept this from
		// being done: it has a whole heartbeat again.
		r.beats.forget(req.NamespacedName)
		return reconcile.Result{}, fmt.Errorf("claim %s: %w", req.Name, err)
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// notFound tells that it is the claim itself that was not found, and not its
// pool or a member.
func notFound(err error, claim string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d != nil && d.Group == v1alpha1.GroupVersion.Group && d.Kind == "claims" && d.Name == claim
}

func (r *Reconciler) reconcile(ctx context.Context, c *v1alpha1.Claim) (time.Duration, error) {
	// What is left of an ended or deleted claim on members is looked for below.
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
		if err := r.letGo(ctx, c, m); err != nil {
			return 0, err
		}
	}
	switch {
	case held != nil:
		return r.keep(ctx, c, held)
	case !given(c):
		if err := r.confirm(ctx, c); err != nil {
			return 0, err
		}
	}
	return r.serve(ctx, c)
}

// step moves the claim one step through its life.
func (r *Reconciler) step(c *v1alpha1.Claim, seen rollout.ClaimSight, p *v1alpha1.Pool) rollout.ClaimTransition {
	return rollout.StepClaim(snapshot.Claim(c), seen, snapshot.ClaimRules(p, r.begin()), r.Now())
}

// after is how long it is until the time; 0 for never.
func (r *Reconciler) after(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(r.Now()), 1)
}

// confirm makes sure that the claim still waits, and goes on with what the API
// server says of it: the cache may be late by this controller's own last write,
// and the claim must not lose its turn for that. One that was bound, ended or
// deleted meanwhile must not get another member.
func (r *Reconciler) confirm(ctx context.Context, c *v1alpha1.Claim) error {
	var live v1alpha1.Claim
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(c), &live); err != nil {
		return fmt.Errorf("read it again: %w", err)
	}
	switch {
	case live.UID == c.UID && live.ResourceVersion == c.ResourceVersion:
	case live.UID == c.UID && live.Generation == c.Generation && snapshot.Pending(&live) && !given(&live):
		live.DeepCopyInto(c)
	default:
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("claims").GroupResource(), c.Name, errStale)
	}
	return nil
}

// given tells that the claim got a member once. It never gets another.
func given(c *v1alpha1.Claim) bool {
	return bound(c) || c.Status.Member != ""
}

func ended(c *v1alpha1.Claim) bool {
	k := snapshot.Claim(c)
	return k.Ended()
}

// Package pool is the controller of Pools: it reads a pool's members, asks the
// engine for a plan, carries it out, and reports.
package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/controller/fresh"
	"github.com/pawl-dev/pawl/rollout"
)

// FieldPool is the index of Members and Claims by the name of their pool.
const FieldPool = "spec.pool"

// Limits of the controller's own pace.
const (
	// passInterval is the least time between two passes over one pool.
	passInterval = 250 * time.Millisecond
	// statusInterval is the least time between two status writes of one pool,
	// unless a condition changes.
	statusInterval = time.Second
	// unseenRetry is how long the cache may take to show a write before its
	// object is looked up.
	unseenRetry = 2 * time.Second
)

// Reconciler keeps pools as their spec says.
type Reconciler struct {
	// Client reads from the cache and writes to the API server; Reader reads
	// from the API server itself.
	Client client.Client
	Reader client.Reader
	Events events.EventRecorder
	// Now is the clock.
	Now func() time.Time
	// Check says what is wrong with a pool's template, naming the fields, and
	// Validate whether a body can never be made of it as things are. The one is
	// asked in every pass, the other only of a template that is new: what has
	// been a revision stays one.
	Check, Validate func(*v1alpha1.Pool) error

	writes fresh.Writes
	mu     sync.Mutex
	// passed and reported are when a pool's last pass began, and when its
	// status was last written. They pace, and decide nothing.
	passed, reported map[types.NamespacedName]time.Time
}

// SetupWithManager has the controller woken by pools, members, claims and
// revisions.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.passed = map[types.NamespacedName]time.Time{}
	r.reported = map[types.NamespacedName]time.Time{}
	return ctrl.NewControllerManagedBy(mgr).
		Named("pool").
		For(&v1alpha1.Pool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Member{}, handler.EnqueueRequestsFromMapFunc(poolOfMember)).
		Watches(&v1alpha1.Claim{}, handler.EnqueueRequestsFromMapFunc(poolOfClaim)).
		Watches(&appsv1.ControllerRevision{}, handler.EnqueueRequestsFromMapFunc(poolOfRevision)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
}

func poolOfMember(_ context.Context, o client.Object) []reconcile.Request {
	m, ok := o.(*v1alpha1.Member)
	if !ok {
		return nil
	}
	return request(m.Namespace, m.Spec.Pool)
}

func poolOfClaim(_ context.Context, o client.Object) []reconcile.Request {
	c, ok := o.(*v1alpha1.Claim)
	if !ok {
		return nil
	}
	return request(c.Namespace, c.Spec.Pool)
}

func poolOfRevision(_ context.Context, o client.Object) []reconcile.Request {
	if pool := o.GetLabels()[v1alpha1.LabelPool]; pool != "" {
		return request(o.GetNamespace(), pool)
	}
	return nil
}

func request(namespace, name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// Reconcile makes one pass over a pool: read, plan, apply, report.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if wait := r.tooSoon(req.NamespacedName); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	var p v1alpha1.Pool
	if err := r.Client.Get(ctx, req.NamespacedName, &p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if p.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(&p, v1alpha1.FinalizerMembers) {
		if err := r.Client.Update(ctx, &p); err != nil {
			return requeueOnConflict(err)
		}
	}
	w, err := r.read(ctx, &p)
	switch {
	case errors.Is(err, errUnseen):
		return reconcile.Result{RequeueAfter: unseenRetry}, nil
	case err != nil:
		return requeueOnConflict(err)
	case w.finished():
		return reconcile.Result{}, r.finish(ctx, w)
	}
	plan := rollout.New(&w.snapshot, w.now)
	if err := r.apply(ctx, w, plan); err != nil {
		return requeueOnConflict(err)
	}
	later, err := r.report(ctx, w, plan)
	if err != nil {
		return requeueOnConflict(err)
	}
	return reconcile.Result{RequeueAfter: w.next(plan, later)}, nil
}

// tooSoon is how long to wait until the next pass, so that bursts of events
// make one.
func (r *Reconciler) tooSoon(pool types.NamespacedName) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	if wait := r.passed[pool].Add(passInterval).Sub(now); wait > 0 && wait <= passInterval {
		return wait
	}
	r.passed[pool] = now
	return 0
}

// requeueOnConflict treats a lost race as what it is: somebody else was first,
// and the next pass sees it.
func requeueOnConflict(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: passInterval}, nil
	}
	return reconcile.Result{}, err
}

// finish lets a deleted pool go, whose members are gone.
func (r *Reconciler) finish(ctx context.Context, w *world) error {
	for _, rev := range w.revisions {
		if err := r.Client.Delete(ctx, rev); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ControllerRevision %s: %w", rev.Name, err)
		}
	}
	if !controllerutil.RemoveFinalizer(w.pool, v1alpha1.FinalizerMembers) {
		return nil
	}
	r.mu.Lock()
	delete(r.passed, client.ObjectKeyFromObject(w.pool))
	delete(r.reported, client.ObjectKeyFromObject(w.pool))
	r.mu.Unlock()
	if err := r.Client.Update(ctx, w.pool); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("remove finalizer from Pool %s: %w", w.pool.Name, err)
	}
	return nil
}

// Package pool is the controller of Pools: it reads a pool's members, asks the
// engine for a plan, carries it out, and reports.
package pool

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/controller/fresh"
	"github.com/pawl-dev/pawl/internal/controller/pace"
	"github.com/pawl-dev/pawl/internal/controller/roster"
	"github.com/pawl-dev/pawl/internal/history"
)

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
	// longestRetry bounds the backoff of a pool whose passes fail. It begins
	// at passInterval.
	longestRetry = time.Minute
)

// Reconciler keeps pools as their spec says.
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
	// Check says what is wrong with a pool's template and sources, naming the
	// fields, and Validate whether a body can never be made of them as things
	// are. The one is asked in every pass, the other only of what is new: what
	// has been a revision stays one.
	Check    func(*v1alpha1.Pool) error
	Validate func(p *v1alpha1.Pool, sources map[string]any) error
	// Render is a digest of what a sample of the template is rendered to; empty
	// where nothing is. An error means that it cannot be told. Nil: nothing is.
	Render func(ctx context.Context, t *v1alpha1.Template, sources map[string]any) (string, error)
	// Sources reads pools' sources, and Changed tells of pools whose sources may
	// have changed. Nil: there are none.
	Sources Sources
	Changed <-chan event.GenericEvent
	// HashVersion is that of the hash that names new revisions; 0 for the
	// present one.
	HashVersion int

	writes   fresh.Writes
	finder   history.Finder
	refusals refusals
	mu       sync.Mutex
	// passed and reported are when a pool's last pass began, and when its
	// status was last written, retries counts the passes that failed in a row.
	// They pace, and decide nothing.
	passed, reported map[types.NamespacedName]time.Time
	retries          workqueue.TypedRateLimiter[types.NamespacedName]
}

// SetupWithManager has the controller woken by pools, members, claims and
// revisions.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.passed = map[types.NamespacedName]time.Time{}
	r.reported = map[types.NamespacedName]time.Time{}
	r.retries = workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](passInterval, longestRetry)
	b := ctrl.NewControllerManagedBy(mgr)
	if r.Changed != nil {
		b = b.WatchesRawSource(source.Channel(r.Changed, &handler.EnqueueRequestForObject{}))
	}
	return b.
		Named("pool").
		For(&v1alpha1.Pool{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.Member{}, handler.EnqueueRequestsFromMapFunc(poolOfMember)).
		Watches(&v1alpha1.Claim{}, handler.EnqueueRequestsFromMapFunc(poolOfClaim)).
		Watches(&appsv1.ControllerRevision{}, handler.EnqueueRequestsFromMapFunc(poolOfRevision)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, NewQueue: r.NewQueue}).
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

// Reconcile makes one pass over a pool: read, plan, apply, report. One that
// fails is tried again with backoff, whatever else wakes the pool meanwhile.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	key := req.NamespacedName
	if wait := r.tooSoon(key); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	next, err := r.pass(ctx, key)
	switch {
	case errors.Is(err, errUnseen):
		return reconcile.Result{RequeueAfter: unseenRetry}, nil
	case err == nil:
		r.retries.Forget(key)
		return reconcile.Result{RequeueAfter: next}, nil
	}
	// An error that is handed back would be retried without regard to next,
	// and its backoff would begin anew whenever something happens.
	retry := r.retries.When(key)
	if !lost(err) {
		ctrl.LoggerFrom(ctx).Error(err, "the pass failed", "retryAfter", retry)
	}
	return reconcile.Result{RequeueAfter: min(retry, cmp.Or(next, retry))}, nil
}

// pass returns how long until time alone brings the next one; 0 for never.
func (r *Reconciler) pass(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	var p v1alpha1.Pool
	err := r.Client.Get(ctx, key, &p)
	switch {
	case apierrors.IsNotFound(err):
		r.forget(key)
		return 0, r.releaseOrphans(ctx, key)
	case err != nil:
		return 0, err
	}
	w := &world{pool: &p, generation: p.Generation, now: r.Now(), again: r.retries.NumRequeues(key) >= raceRetries}
	if p.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(&p, v1alpha1.FinalizerMembers) {
		if err := r.Client.Update(ctx, &p); err != nil {
			return 0, r.complain(ctx, w, errorf(err, "add finalizer to Pool %s", p.Name))
		}
	}
	if err := r.read(ctx, w); err != nil {
		return 0, r.complain(ctx, w, err)
	}
	if w.finished() {
		return 0, r.complain(ctx, w, r.finish(ctx, w))
	}
	plan := w.snapshot.Plan(w.now)
	r.apply(ctx, w, plan)
	later, err := r.report(ctx, w, plan)
	return w.next(plan, later), errors.Join(append(w.failed, err)...)
}

// tooSoon is how long to wait until the next pass, so that bursts of events
// make one.
func (r *Reconciler) tooSoon(pool types.NamespacedName) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	if wait := remaining(r.passed[pool], passInterval, now); wait > 0 {
		return wait
	}
	r.passed[pool] = now
	return 0
}

// remaining is what is left of an interval. After a clock went back it is none.
func remaining(since time.Time, interval time.Duration, now time.Time) time.Duration {
	wait := since.Add(interval).Sub(now)
	if wait > interval {
		return 0
	}
	return max(0, wait)
}

// forget drops what is kept in memory of a pool that is not there.
func (r *Reconciler) forget(pool types.NamespacedName) {
	r.writes.ForgetAll(pool)
	r.finder.Forget(pool.Namespace, pool.Name, nil, nil)
	r.refusals.forget(pool)
	if r.Sources != nil {
		r.Sources.Forget(pool)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.passed, pool)
	delete(r.reported, pool)
}

// finish lets a deleted pool go, whose members are gone. Its revisions go
// first, and are looked up: the pool is the last that knows of them.
func (r *Reconciler) finish(ctx context.Context, w *world) error {
	key := client.ObjectKeyFromObject(w.pool)
	if err := r.drop(ctx, key, nil); err != nil {
		return err
	}
	if err := r.releaseAll(ctx, r.Reader, key, false); err != nil {
		return err
	}
	if !controllerutil.RemoveFinalizer(w.pool, v1alpha1.FinalizerMembers) {
		return nil
	}
	if err := r.Client.Update(ctx, w.pool); client.IgnoreNotFound(err) != nil {
		return errorf(err, "remove finalizer from Pool %s", w.pool.Name)
	}
	return nil
}

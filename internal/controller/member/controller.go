// Package member is the controller of Members: it moves each slot through its
// life, one step at a time, and has the body follow.
package member

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/controller/fresh"
	"github.com/pawl-dev/pawl/internal/controller/pace"
	"github.com/pawl-dev/pawl/internal/controller/roster"
)

// resync is how often a member is looked at although nothing was heard of it.
const resync = 10 * time.Minute

// unseenRetry is how long the cache may take to show a write.
const unseenRetry = 2 * time.Second

// conflictRetry is how long a lost race waits, in case its winner is not seen.
const conflictRetry = 100 * time.Millisecond

// Reconciler moves members through their lives.
type Reconciler struct {
	// Client reads from the cache and writes to the API server; Reader reads
	// from the API server itself.
	Client client.Client
	Reader client.Reader
	// Roster finds in that cache what belongs to a pool.
	Roster roster.Of
	// Kinds make bodies, of what Sources kept.
	Kinds   Kinds
	Sources Sources
	// Now is the clock, and NewQueue makes a queue that goes by it.
	Now      func() time.Time
	NewQueue pace.NewQueue
	// Changed tells of members whose body may have changed.
	Changed <-chan event.GenericEvent

	writes fresh.Writes
	live   lives
}

// Kinds are the kinds of bodies that there are; nil where one is not.
type Kinds struct {
	Objects, Process, Sim body.Kind
	// NoSim: no body of kind sim is born any more; those that are there live on
	// and end.
	NoSim bool
}

// Bears tells whether bodies of the template may be born.
func (k Kinds) Bears(t *v1alpha1.Template) error {
	if _, err := k.Of(t); err != nil {
		return err
	}
	if t.Sim != nil && k.NoSim {
		return errOff
	}
	return nil
}

var errOff = fmt.Errorf("%w: template: this kind of body is not switched on here; only pawld runs process and, with --sim, sim", body.ErrRefused)

// Of is the kind that a template asks for. An error says that there is none
// here.
func (k Kinds) Of(t *v1alpha1.Template) (body.Kind, error) {
	switch {
	case t.Objects != nil && k.Objects != nil:
		return k.Objects, nil
	case t.Process != nil && k.Process != nil:
		return k.Process, nil
	case t.Sim != nil && k.Sim != nil:
		return k.Sim, nil
	}
	return nil, errOff
}

// CheckLive says which live fields of the template can never be one.
func (k Kinds) CheckLive(t *v1alpha1.Template) error {
	if len(t.LiveFields) == 0 {
		return nil
	}
	kind, err := k.Of(t)
	if err != nil {
		return nil //nolint:nilerr // that is said elsewhere, and no body is born
	}
	l, ok := kind.(body.Liver)
	if !ok {
		return fmt.Errorf("%w: template.liveFields: a body of kind %s takes none", body.ErrRefused, kindOf(t))
	}
	return l.CheckLive(t)
}

// SetupWithManager has the controller woken by members, by the end of the
// bodies' own changes, and by edits of pools that concern living bodies.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("member").
		For(&v1alpha1.Member{}).
		Watches(&v1alpha1.Pool{}, handler.Funcs{
			CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { r.enqueue(ctx, q, e.Object, false) },
			UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { r.enqueue(ctx, q, e.ObjectNew, edited(e)) },
			DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.enqueue(ctx, q, e.Object, false) },
		}).
		WatchesRawSource(source.Channel(r.Changed, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8, NewQueue: r.NewQueue}).
		Complete(r)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// edited tells whether an edit of a pool may concern bodies in service, too:
// its live fields, or that it has none any more.
func edited(e event.UpdateEvent) bool {
	was, ok1 := e.ObjectOld.(*v1alpha1.Pool)
	is, ok2 := e.ObjectNew.(*v1alpha1.Pool)
	return ok1 && ok2 && was.Generation != is.Generation && len(was.Spec.Template.LiveFields)+len(is.Spec.Template.LiveFields) > 0
}

// enqueue wakes the pool's members whose step depends on its spec, or all.
func (r *Reconciler) enqueue(ctx context.Context, q queue, pool client.Object, all bool) {
	members, err := r.Roster.Members(client.ObjectKeyFromObject(pool))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the members of a pool that has changed are not woken", "pool", pool.GetName())
	}
	for _, m := range members {
		serves := m.Status.Phase == v1alpha1.PhaseAvailable || m.Status.Phase == v1alpha1.PhaseClaimed
		if all || !serves {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		}
	}
}

// Reconcile moves one member as far as it can go now.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var m v1alpha1.Member
	if err := r.Client.Get(ctx, req.NamespacedName, &m); err != nil {
		if apierrors.IsNotFound(err) {
			r.writes.Forget(req.NamespacedName, req.Name)
			r.live.forget(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("get Member: %w", err)
	}
	if unseen := r.writes.Unseen(req.NamespacedName, func(string) string { return m.ResourceVersion }); len(unseen) > 0 {
		return r.refresh(ctx, req.NamespacedName)
	}
	s := &step{r: r, member: &m, now: r.Now()}
	wake, err := s.run(ctx)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("member %s: %w", m.Name, s.discreetly(err))
	}
	return reconcile.Result{RequeueAfter: s.until(wake)}, nil
}

// refresh waits for the cache to show this controller's last write. The watch
// tells; where it does not, the object may be gone and made anew.
func (r *Reconciler) refresh(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	var live v1alpha1.Member
	if err := r.Reader.Get(ctx, key, &live); apierrors.IsNotFound(err) {
		r.writes.Forget(key, key.Name)
	}
	return reconcile.Result{RequeueAfter: unseenRetry}, nil
}

// until is how long until the member is looked at again by itself.
func (s *step) until(wake time.Time) time.Duration {
	if wake.IsZero() {
		return resync
	}
	return min(resync, max(wake.Sub(s.r.Now()), time.Millisecond))
}

// oneLine bounds what a body says about itself.
func oneLine(text string) string {
	const most = 1024
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "�")), " ")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most-3], "") + "..."
	}
	return text
}

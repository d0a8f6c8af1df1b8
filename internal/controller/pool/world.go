package pool

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/internal/source"
	"github.com/pawl-dev/pawl/rollout"
)

// errUnseen: the cache has not seen this controller's own last writes.
var errUnseen = errors.New("own writes not seen yet")

// world is all that a pass over a pool read, and what came of it.
type world struct {
	pool       *v1alpha1.Pool
	generation int64
	// members have the places that they have in the snapshot; extra are those
	// whose index another one has.
	members, extra []*v1alpha1.Member
	revisions      []*appsv1.ControllerRevision
	records        map[string]history.Record
	claims         []*v1alpha1.Claim
	// target is the revision that the template is, same are others that say the
	// same, missing those that cannot be built any more.
	target  string
	same    []string
	missing map[string]bool
	// sources are what the pool's sources say, resolved is the condition that
	// tells whether they could be read; without a status it stays what it was.
	sources  *source.Content
	resolved rollout.Condition
	// invalid is why nothing can be done: what is wrong with the template or
	// with a revision. Reason names it, passing tells that it may end by
	// itself.
	invalid  error
	reason   string
	passing  bool
	snapshot rollout.Snapshot
	now      time.Time
	// wake is when time alone changes what was read.
	wake time.Time

	// failed is what went wrong, in order. Again: it has for a while. Stuck is
	// what was refused before, and is not tried in this pass.
	failed []error
	again  bool
	stuck  []error
	// written are the Members that were written, stood the revision on which
	// the pool has come to stand.
	written map[string]bool
	stood   rollout.Revision
	// recorded is the record that was stored last.
	recorded *rollout.Record
}

// read gathers everything that the plan depends on.
func (r *Reconciler) read(ctx context.Context, w *world) error {
	w.records, w.written = map[string]history.Record{}, map[string]bool{}
	if err := r.list(ctx, w); err != nil {
		return err
	}
	if err := r.unseen(ctx, w); err != nil {
		return err
	}
	if err := r.readRevisions(ctx, w); err != nil {
		if lost(err) && !w.again {
			return err
		}
		w.fail(err)
		w.cannot(string(rollout.SourcesUnresolved), err)
		w.passing = !refused(err) || w.resolved.Status == rollout.Unknown
	}
	stored := history.Stored{
		Pool: w.pool, Members: w.members, Claims: w.claims, Revisions: w.revisions,
		Target: w.target, Same: w.same, Missing: w.missing, Invalid: w.invalid,
	}
	s, err := stored.Snapshot(w.now)
	if err != nil {
		return err
	}
	w.snapshot, w.wake = *s, stored.Wake
	r.refusals.recall(w)
	return nil
}

// cannot notes why nothing can be done.
func (w *world) cannot(reason string, err error) { w.reason, w.invalid = reason, err }

// list reads members, claims and revisions from the cache.
func (r *Reconciler) list(ctx context.Context, w *world) error {
	key := client.ObjectKeyFromObject(w.pool)
	members, err := r.Roster.Members(key)
	if err != nil {
		return errorf(err, "list members of Pool %s", w.pool.Name)
	}
	w.members, w.extra = history.Distinct(members)
	var revisions appsv1.ControllerRevisionList
	if err := r.Client.List(ctx, &revisions, client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelPool: w.pool.Name}); err != nil {
		return errorf(err, "list revisions of Pool %s", w.pool.Name)
	}
	for i := range revisions.Items {
		w.revisions = append(w.revisions, &revisions.Items[i])
	}
	w.revisions = history.Of(w.pool.Name, w.revisions)
	if w.claims, err = r.Roster.Claims(key); err != nil {
		return errorf(err, "list claims of Pool %s", w.pool.Name)
	}
	return nil
}

// unseen makes sure that the cache shows this controller's own writes. An
// object that it does not show at all is looked up: it may be gone again.
func (r *Reconciler) unseen(ctx context.Context, w *world) error {
	versions := sync.OnceValue(w.versions) // mostly there are no such writes
	key := client.ObjectKeyFromObject(w.pool)
	unseen := r.writes.Unseen(key, func(object string) string { return versions()[object] })
	for _, object := range unseen {
		if versions()[object] != "" {
			return errUnseen
		}
		if err := r.lookUp(ctx, key, object); err != nil {
			return err
		}
	}
	return nil
}

// versions are the resource versions that were read.
func (w *world) versions() map[string]string {
	versions := make(map[string]string, len(w.members)+len(w.revisions))
	for _, m := range w.members {
		versions["Member/"+m.Name] = m.ResourceVersion
	}
	for _, m := range w.extra {
		versions["Member/"+m.Name] = m.ResourceVersion
	}
	for _, rev := range w.revisions {
		versions["ControllerRevision/"+rev.Name] = rev.ResourceVersion
	}
	return versions
}

func (r *Reconciler) lookUp(ctx context.Context, pool types.NamespacedName, object string) error {
	var o client.Object = &v1alpha1.Member{}
	kind, name := cut(object)
	if kind == "ControllerRevision" {
		o = &appsv1.ControllerRevision{}
	}
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: pool.Namespace, Name: name}, o)
	switch {
	case apierrors.IsNotFound(err):
		r.writes.Forget(pool, object)
		return nil
	case err != nil:
		return errorf(err, "look up %s %s", kind, name)
	default:
		return errUnseen
	}
}

// wrote remembers a write until the cache shows it.
func (r *Reconciler) wrote(w *world, o client.Object) {
	kind := "Member/"
	if _, ok := o.(*appsv1.ControllerRevision); ok {
		kind = "ControllerRevision/"
	}
	r.writes.Wrote(client.ObjectKeyFromObject(w.pool), kind+o.GetName(), o.GetResourceVersion())
}

// finished tells whether a deleted pool has nothing left.
func (w *world) finished() bool {
	return w.snapshot.Deleting && len(w.members) == 0 && len(w.extra) == 0
}

// resync is how often a pool is looked at although nothing was heard of it.
const resync = 10 * time.Minute

// next is how long until time alone brings the next pass.
func (w *world) next(p *rollout.Plan, later time.Duration) time.Duration {
	at := earliest(p.Wake, w.wake)
	if later > 0 {
		at = earliest(at, w.now.Add(later))
	}
	if at.IsZero() {
		return resync
	}
	return min(resync, max(at.Sub(w.now), time.Millisecond))
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// find is the place of the member with the index; -1 if there is none.
func (w *world) find(index int) int {
	i, ok := slices.BinarySearchFunc(w.members, index, func(m *v1alpha1.Member, index int) int { return int(m.Spec.Index) - index })
	if !ok {
		return -1
	}
	return i
}

// member is the one with the index.
func (w *world) member(index int) *v1alpha1.Member {
	if i := w.find(index); i >= 0 {
		return w.members[i]
	}
	return nil
}

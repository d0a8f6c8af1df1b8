package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// errUnseen: the cache has not seen this controller's own last writes.
var errUnseen = errors.New("own writes not seen yet")

// InvalidTemplate is the reason of conditions of a pool whose template is
// wrong.
const InvalidTemplate = "InvalidTemplate"

// world is all that a pass over a pool read.
type world struct {
	pool       *v1alpha1.Pool
	generation int64
	members    []*v1alpha1.Member
	revisions  []*appsv1.ControllerRevision
	records    map[string]history.Record
	waiting    int
	// invalid is what is wrong with the template; nil for nothing.
	invalid  error
	snapshot rollout.Snapshot
	now      time.Time
	// wake is when time alone changes what was read: a hold ends.
	wake time.Time
}

// read gathers everything that the plan depends on.
func (r *Reconciler) read(ctx context.Context, p *v1alpha1.Pool) (*world, error) {
	w := &world{pool: p, generation: p.Generation, now: r.Now()}
	if err := r.list(ctx, w); err != nil {
		return nil, err
	}
	if err := r.unseen(ctx, w); err != nil {
		return nil, err
	}
	for _, m := range w.members {
		w.wake = earliest(w.wake, snapshot.HoldEnds(m))
	}
	if err := r.readRevisions(ctx, w); err != nil {
		return nil, err
	}
	stored := history.Stored{Pool: p, Members: w.members, Revisions: w.revisions, Invalid: w.invalid}
	s, err := stored.Snapshot(w.now)
	if err != nil {
		return nil, err
	}
	w.snapshot = *s
	return w, nil
}

// list reads members, claims and revisions from the cache.
func (r *Reconciler) list(ctx context.Context, w *world) error {
	ns := client.InNamespace(w.pool.Namespace)
	mine := client.MatchingFields{FieldPool: w.pool.Name}
	var members v1alpha1.MemberList
	if err := r.Client.List(ctx, &members, ns, mine, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list members of Pool %s: %w", w.pool.Name, err)
	}
	for i := range members.Items {
		w.members = append(w.members, &members.Items[i])
	}
	slices.SortFunc(w.members, func(a, b *v1alpha1.Member) int { return int(a.Spec.Index) - int(b.Spec.Index) })
	var revisions appsv1.ControllerRevisionList
	if err := r.Client.List(ctx, &revisions, ns, client.MatchingLabels{v1alpha1.LabelPool: w.pool.Name}); err != nil {
		return fmt.Errorf("list revisions of Pool %s: %w", w.pool.Name, err)
	}
	for i := range revisions.Items {
		w.revisions = append(w.revisions, &revisions.Items[i])
	}
	var claims v1alpha1.ClaimList
	if err := r.Client.List(ctx, &claims, ns, mine, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list claims of Pool %s: %w", w.pool.Name, err)
	}
	for i := range claims.Items {
		if c := &claims.Items[i]; c.DeletionTimestamp.IsZero() && (c.Status.Phase == "" || c.Status.Phase == v1alpha1.ClaimPending) {
			w.waiting++
		}
	}
	return nil
}

// unseen makes sure that the cache shows this controller's own writes. An
// object that it does not show at all is looked up: it may be gone again.
func (r *Reconciler) unseen(ctx context.Context, w *world) error {
	versions := make(map[string]string, len(w.members)+len(w.revisions))
	for _, m := range w.members {
		versions["Member/"+m.Name] = m.ResourceVersion
	}
	for _, rev := range w.revisions {
		versions["ControllerRevision/"+rev.Name] = rev.ResourceVersion
	}
	key := client.ObjectKeyFromObject(w.pool)
	unseen := r.writes.Unseen(key, func(object string) string { return versions[object] })
	for _, object := range unseen {
		if versions[object] != "" {
			return errUnseen
		}
		if err := r.lookUp(ctx, key, object); err != nil {
			return err
		}
	}
	return nil
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
		return fmt.Errorf("look up %s %s: %w", kind, name, err)
	default:
		return errUnseen
	}
}

// readRevisions reads what happened to the revisions, and stores that of the
// template if it is new.
func (r *Reconciler) readRevisions(ctx context.Context, w *world) error {
	w.records = map[string]history.Record{}
	for _, rev := range w.revisions {
		rec, err := history.ReadRecord(rev)
		if err != nil {
			return err
		}
		w.records[history.RevisionID(rev)] = rec
	}
	if !w.pool.DeletionTimestamp.IsZero() {
		return nil
	}
	if w.invalid = r.Check(w.pool); w.invalid != nil {
		return nil //nolint:nilerr // it is reported in the pool's conditions
	}
	id, err := history.ID(&w.pool.Spec.Template)
	if err != nil {
		w.invalid = err
		return nil //nolint:nilerr // it is reported in the pool's conditions
	}
	return r.ensure(ctx, w, id)
}

// ensure stores the revision that the template says now, and notes when it
// became the target.
func (r *Reconciler) ensure(ctx context.Context, w *world, id string) error {
	var last int64
	var found *appsv1.ControllerRevision
	for _, rev := range w.revisions {
		last = max(last, rev.Revision)
		if history.RevisionID(rev) == id {
			found = rev
		}
	}
	rec := w.records[id]
	switch {
	case found == nil:
		if w.invalid = r.Validate(w.pool); w.invalid != nil {
			return nil //nolint:nilerr // it is reported in the pool's conditions
		}
		rev, err := history.New(w.pool, id, last+1)
		if err != nil {
			return err
		}
		rec = rec.Renew(w.now)
		if err := history.WriteRecord(rev, rec); err != nil {
			return err
		}
		if err := r.Client.Create(ctx, rev); err != nil {
			return fmt.Errorf("create ControllerRevision %s: %w", rev.Name, err)
		}
		w.revisions = append(w.revisions, rev)
		r.wrote(w, rev)
	case found.Revision < last:
		rec = rec.Renew(w.now)
		found.Revision = last + 1
		if err := r.store(ctx, w, found, rec); err != nil {
			return err
		}
	}
	w.records[id] = rec
	return nil
}

// store writes a revision's record.
func (r *Reconciler) store(ctx context.Context, w *world, rev *appsv1.ControllerRevision, rec history.Record) error {
	if err := history.WriteRecord(rev, rec); err != nil {
		return err
	}
	if err := r.Client.Update(ctx, rev); err != nil {
		return fmt.Errorf("update ControllerRevision %s: %w", rev.Name, err)
	}
	w.records[history.RevisionID(rev)] = rec
	r.wrote(w, rev)
	return nil
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
func (w *world) finished() bool { return w.snapshot.Deleting && len(w.members) == 0 }

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

// member is the one with the index.
func (w *world) member(index int) *v1alpha1.Member {
	i, ok := slices.BinarySearchFunc(w.members, index, func(m *v1alpha1.Member, index int) int { return int(m.Spec.Index) - index })
	if !ok {
		return nil
	}
	return w.members[i]
}

// revision is the stored one with the id.
func (w *world) revision(id rollout.Revision) *appsv1.ControllerRevision {
	for _, rev := range w.revisions {
		if history.RevisionID(rev) == string(id) {
			return rev
		}
	}
	return nil
}

func nowMicro(t time.Time) *metav1.MicroTime {
	m := metav1.NewMicroTime(t.UTC().Truncate(time.Microsecond))
	return &m
}

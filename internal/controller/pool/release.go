package pool

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// release lets a revision go that nobody needs any more. Whatever interrupts
// it, the revision can be released again.
func (r *Reconciler) release(ctx context.Context, rev *appsv1.ControllerRevision) error {
	if controllerutil.RemoveFinalizer(rev, v1alpha1.FinalizerRevision) {
		if err := r.Client.Update(ctx, rev); client.IgnoreNotFound(err) != nil {
			return errorf(err, "remove finalizer from ControllerRevision %s", rev.Name)
		}
	}
	if !rev.DeletionTimestamp.IsZero() {
		return nil
	}
	err := r.Client.Delete(ctx, rev, client.Preconditions{UID: &rev.UID, ResourceVersion: &rev.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return errorf(err, "delete ControllerRevision %s", rev.Name)
	}
	return nil
}

// releaseAll releases the revisions of a pool, or only those that somebody has
// deleted.
func (r *Reconciler) releaseAll(ctx context.Context, from client.Reader, pool types.NamespacedName, deleted bool) error {
	var list appsv1.ControllerRevisionList
	if err := from.List(ctx, &list, client.InNamespace(pool.Namespace), client.MatchingLabels{v1alpha1.LabelPool: pool.Name}); err != nil {
		return errorf(err, "list revisions of Pool %s", pool.Name)
	}
	for i := range list.Items {
		if rev := &list.Items[i]; !deleted || !rev.DeletionTimestamp.IsZero() {
			if err := r.release(ctx, rev); err != nil {
				return err
			}
		}
	}
	return nil
}

// releaseOrphans releases what somebody deletes of a pool that is no more, as
// soon as no member needs it: a pool whose finalizer was taken away must not
// keep its namespace from going.
func (r *Reconciler) releaseOrphans(ctx context.Context, pool types.NamespacedName) error {
	members, err := r.Roster.Members(pool)
	if err != nil {
		return errorf(err, "list members of Pool %s", pool.Name)
	}
	if len(members) > 0 {
		return nil
	}
	if err := r.drop(ctx, pool, nil); err != nil {
		return err
	}
	return r.releaseAll(ctx, r.Client, pool, true)
}

// prune lets revisions go that nobody needs any more.
func (r *Reconciler) prune(ctx context.Context, w *world) error {
	limit := snapshot.DefaultRevisionHistoryLimit
	if l := w.pool.Spec.RevisionHistoryLimit; l != nil {
		limit = int(*l)
	}
	s := &w.snapshot
	keep := map[string]bool{}
	for _, id := range []rollout.Revision{s.Target.ID, s.Current.ID, s.RolledBack.ID} {
		keep[string(id)] = true
	}
	if c := history.Current(w.revisions); c != nil {
		keep[history.RevisionID(c)] = true // also where the target is the same by another name
	}
	gone := history.Prune(w.revisions, keep, limit)
	if len(gone) == 0 {
		return nil
	}
	for _, list := range [][]*v1alpha1.Member{w.members, w.extra} {
		for _, m := range list {
			keep[m.Spec.Revision], keep[m.Status.Revision] = true, true
			for _, id := range snapshot.Granted(m) {
				keep[id] = true
			}
		}
	}
	for _, rev := range history.Prune(w.revisions, keep, limit) {
		if err := r.release(ctx, rev); err != nil {
			return err
		}
	}
	return nil
}

package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/revision"
	"github.com/pawl-dev/pawl/rollout"
)

// readRevisions reads what happened to the revisions, finds that of the
// template, and stores it if it is new.
func (r *Reconciler) readRevisions(ctx context.Context, w *world) error {
	var unread []error
	for _, rev := range w.revisions {
		rec, err := history.ReadRecord(rev)
		if err != nil {
			unread = append(unread, err)
		}
		w.records[history.RevisionID(rev)] = rec
	}
	if !w.pool.DeletionTimestamp.IsZero() {
		return nil // no body is born any more, whatever the records say
	}
	if len(unread) > 0 {
		w.cannot(string(rollout.SourcesUnresolved), errors.Join(unread...))
		return nil
	}
	if err := r.Check(w.pool); err != nil {
		w.cannot(InvalidTemplate, err)
		return nil
	}
	c, err := history.ContentOf(&w.pool.Spec.Template)
	if err != nil {
		w.cannot(InvalidTemplate, err)
		return nil
	}
	if err := r.protect(ctx, w); err != nil {
		return err
	}
	if err := r.retry(ctx, w); err != nil {
		return err
	}
	if err := r.resolve(ctx, w, c); err != nil || w.invalid != nil {
		return err
	}
	if err := r.render(ctx, w, c); err != nil {
		return err
	}
	if err := r.aim(ctx, w, c); err != nil || w.invalid != nil {
		return err
	}
	return r.lookForMissing(ctx, w)
}

// protect sees to it that no revision goes while it may be needed. One that is
// being deleted already cannot be helped.
func (r *Reconciler) protect(ctx context.Context, w *world) error {
	for _, rev := range w.revisions {
		if rev.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(rev, v1alpha1.FinalizerRevision) {
			if err := r.update(ctx, w, rev); err != nil {
				return err
			}
		}
	}
	return nil
}

// retry grants a revision the round that somebody asked for, once.
func (r *Reconciler) retry(ctx context.Context, w *world) error {
	request := w.pool.Annotations[v1alpha1.AnnotationRetry]
	id, _, _ := strings.Cut(request, "@")
	rev := w.revision(rollout.Revision(id))
	if rev == nil || w.records[id].Retried == request {
		return nil
	}
	if err := r.store(ctx, w, rev, w.records[id].Retry(request, w.now)); err != nil {
		return err
	}
	r.Events.Eventf(w.pool, nil, corev1.EventTypeNormal, "Retry", "Retry", "revision %s gets one more round", id)
	return nil
}

// aim finds the revision that the pool's content is, stores it if it is new,
// and notes when it became the target.
func (r *Reconciler) aim(ctx context.Context, w *world, c *history.Content) error {
	live := w.pool.Spec.Template.LiveFields
	found, same, err := r.finder.Find(history.Question{
		Revisions: w.revisions, Records: w.records, Content: c, Live: live, Prefer: w.pool.Status.TargetRevision,
	})
	if err != nil {
		w.cannot(InvalidTemplate, err)
		return nil
	}
	r.finder.Forget(w.pool.Namespace, w.pool.Name, w.revisions, live)
	if found == nil {
		return r.begin(ctx, w, c)
	}
	w.target, w.same = history.RevisionID(found), same
	if err := r.freeze(ctx, w, w.target); err != nil {
		return err
	}
	rec := w.records[w.target]
	adopt := rec.Adopt(found, c)
	if newest := w.revisions[len(w.revisions)-1]; found.Revision >= newest.Revision {
		if adopt {
			return r.store(ctx, w, found, rec)
		}
		return nil
	}
	if found.Revision, err = r.number(ctx, w); err != nil {
		return err
	}
	return r.store(ctx, w, found, rec.Renew(w.now))
}

// number is that of the next revision.
func (r *Reconciler) number(ctx context.Context, w *world) (int64, error) {
	next, changed := history.Next(w.revisions)
	for _, rev := range changed {
		if err := r.update(ctx, w, rev); err != nil {
			return 0, err
		}
	}
	return next, nil
}

// begin stores a new revision.
func (r *Reconciler) begin(ctx context.Context, w *world, c *history.Content) error {
	if err := r.Validate(w.pool, w.sources.Values.Map()); err != nil {
		w.cannot(InvalidTemplate, errors.New(w.sources.Values.Redact(err.Error())))
		return nil
	}
	next, err := r.number(ctx, w)
	if err != nil {
		return err
	}
	rev, err := history.New(w.pool, c, cmp.Or(r.HashVersion, revision.Current), next)
	if err != nil {
		return err
	}
	rec := history.Record{}.Renew(w.now)
	if err := history.WriteRecord(rev, rec); err != nil {
		return err
	}
	if err := r.freeze(ctx, w, history.RevisionID(rev)); err != nil {
		return err
	}
	if err := r.Client.Create(ctx, rev); apierrors.IsAlreadyExists(err) {
		return r.takenRevision(ctx, w, rev)
	} else if err != nil {
		return errorf(err, "create ControllerRevision %s", rev.Name)
	}
	w.target = history.RevisionID(rev)
	w.revisions, w.records[w.target] = append(w.revisions, rev), rec
	r.wrote(w, rev)
	return nil
}

// takenRevision tells why the name of a revision is taken.
func (r *Reconciler) takenRevision(ctx context.Context, w *world, rev *appsv1.ControllerRevision) error {
	var is appsv1.ControllerRevision
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(rev), &is); err != nil {
		return errorf(err, "create ControllerRevision %s, which is there", rev.Name)
	}
	if is.Labels[v1alpha1.LabelPool] == w.pool.Name && history.RevisionID(&is) == history.RevisionID(rev) {
		return fmt.Errorf("create ControllerRevision %s: %w", rev.Name, errRace)
	}
	return fmt.Errorf("create ControllerRevision %s: %w by one that is not Pool %s's: delete that one", rev.Name, errForeign, w.pool.Name)
}

// store writes a revision's record.
func (r *Reconciler) store(ctx context.Context, w *world, rev *appsv1.ControllerRevision, rec history.Record) error {
	if err := history.WriteRecord(rev, rec); err != nil {
		return err
	}
	if err := r.update(ctx, w, rev); err != nil {
		return err
	}
	w.records[history.RevisionID(rev)] = rec
	return nil
}

// update writes a revision.
func (r *Reconciler) update(ctx context.Context, w *world, rev *appsv1.ControllerRevision) error {
	if err := r.Client.Update(ctx, rev); err != nil {
		return errorf(err, "update ControllerRevision %s", rev.Name)
	}
	r.wrote(w, rev)
	return nil
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

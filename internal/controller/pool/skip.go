package pool

import (
	"context"
	"slices"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// unskip takes pawl.dev/skip off members that were skipped for a revision that
// is the target no longer, so that it does not act once more should that
// revision come back.
func (r *Reconciler) unskip(ctx context.Context, w *world) error {
	for i, m := range w.members {
		id, ok := m.Annotations[v1alpha1.AnnotationSkip]
		if !ok || w.snapshot.Members[i].Skipped || w.written[m.Name] || w.means(rollout.Revision(id)) {
			continue
		}
		next := m.DeepCopy()
		delete(next.Annotations, v1alpha1.AnnotationSkip)
		if err := r.Client.Update(ctx, next); err != nil {
			return errorf(err, "remove annotation %s from Member %s", v1alpha1.AnnotationSkip, m.Name)
		}
		w.written[m.Name] = true
		r.wrote(w, next)
	}
	return nil
}

// means tells whether the revision is what the template says, rolled back or not.
func (w *world) means(id rollout.Revision) bool {
	return id == w.snapshot.Target.ID || id == w.snapshot.RolledBack.ID || slices.Contains(w.same, string(id))
}

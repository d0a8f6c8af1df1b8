package pool

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/internal/source"
	"github.com/pawl-dev/pawl/rollout"
)

// Sources reads what decides, beside the template, what a body is, and keeps
// copies of what it says, by revision.
type Sources interface {
	// Resolve reads a pool's sources. Keyed: digests of secrets are stored
	// already. Its error is a *source.Unresolved.
	Resolve(ctx context.Context, p *v1alpha1.Pool, keyed bool) (*source.Content, error)
	// Freeze keeps a copy for the revision. It is idempotent.
	Freeze(ctx context.Context, p *v1alpha1.Pool, id string, c *source.Content) error
	// Frozen reads that copy; source.ErrMissing where it is gone.
	Frozen(ctx context.Context, pool types.NamespacedName, id string, list []source.Source) (*source.Values, error)
	// Drop removes the copies of all revisions that are not to be kept; with
	// none to be kept, everything there is of the pool.
	Drop(ctx context.Context, pool types.NamespacedName, keep map[string]bool) error
	// Forget drops what is kept in memory of a pool that is gone.
	Forget(pool types.NamespacedName)
}

// resolve reads the pool's sources and puts into the content what they say.
func (r *Reconciler) resolve(ctx context.Context, w *world, c *history.Content) error {
	w.sources = &source.Content{}
	w.resolved = rollout.Condition{Status: rollout.True, Reason: "NoSources", Message: "the pool has no sources"}
	if r.Sources != nil {
		if err := r.readSources(ctx, w); err != nil {
			return err
		}
	}
	for _, s := range w.sources.Sources {
		c.Sources = append(c.Sources, history.Source(s))
	}
	return nil
}

// render puts into the content what a sample of its template is rendered to.
func (r *Reconciler) render(ctx context.Context, w *world, c *history.Content) error {
	if r.Render == nil {
		return nil
	}
	digest, err := r.sample(ctx, w, c)
	if err != nil {
		w.resolved = rollout.Condition{Status: rollout.Unknown, Reason: "NotRendered", Message: err.Error()}
		return err
	}
	c.Render = &digest
	return nil
}

func (r *Reconciler) readSources(ctx context.Context, w *world) error {
	spec := &w.pool.Spec
	keyed := len(spec.Sources) > 0 && r.finder.Secret(w.revisions, spec.Template.LiveFields)
	read, err := r.Sources.Resolve(ctx, w.pool, keyed)
	if err != nil {
		return w.unresolved(err)
	}
	w.sources = read
	if len(spec.Sources) > 0 {
		w.resolved = rollout.Condition{Status: rollout.True, Reason: "Resolved", Message: "all sources could be read"}
	}
	return nil
}

// unresolved notes why the sources could not be read. It hands back what is to
// be tried again; of all else, a watch tells when it has changed.
func (w *world) unresolved(err error) error {
	w.resolved = rollout.Condition{Status: rollout.Unknown, Reason: source.Unreachable, Message: err.Error()}
	var u *source.Unresolved
	if !errors.As(err, &u) {
		return err
	}
	w.resolved.Reason = u.Reason
	if !u.Known {
		return err
	}
	w.resolved.Status = rollout.False
	w.cannot(string(rollout.SourcesUnresolved), err)
	return nil
}

// freeze keeps a copy of what the sources say now for the revision.
func (r *Reconciler) freeze(ctx context.Context, w *world, id string) error {
	if r.Sources == nil {
		return nil
	}
	if err := r.Sources.Freeze(ctx, w.pool, id, w.sources); err != nil {
		return errorf(err, "keep a copy of the sources of Pool %s for revision %s", w.pool.Name, id)
	}
	return nil
}

// lookForMissing finds out whether the current revision can still be built: of
// the target there is a copy.
func (r *Reconciler) lookForMissing(ctx context.Context, w *world) error {
	current := history.Current(w.revisions)
	if r.Sources == nil || current == nil || history.RevisionID(current) == w.target {
		return nil
	}
	list, err := frozen(current)
	if err != nil || len(list) == 0 {
		return err
	}
	id := history.RevisionID(current)
	_, err = r.Sources.Frozen(ctx, client.ObjectKeyFromObject(w.pool), id, list)
	if errors.Is(err, source.ErrMissing) {
		w.missing = map[string]bool{id: true}
		return nil
	}
	if err != nil {
		return errorf(err, "read the copy of the sources of revision %s of Pool %s", id, w.pool.Name)
	}
	return nil
}

// frozen are the sources of which there is a copy for the revision.
func frozen(rev *appsv1.ControllerRevision) ([]source.Source, error) {
	c, err := history.ReadContent(rev)
	if err != nil {
		return nil, err
	}
	var list []source.Source
	for _, s := range c.Sources {
		list = append(list, source.Source(s))
	}
	return list, nil
}

// drop removes the copies that no revision needs any more.
func (r *Reconciler) drop(ctx context.Context, pool types.NamespacedName, keep map[string]bool) error {
	if r.Sources == nil {
		return nil
	}
	if err := r.Sources.Drop(ctx, pool, keep); err != nil {
		return errorf(err, "drop copies of the sources of Pool %s", pool.Name)
	}
	return nil
}

// stored are the ids of the stored revisions.
func (w *world) stored() map[string]bool {
	ids := make(map[string]bool, len(w.revisions))
	for _, rev := range w.revisions {
		ids[history.RevisionID(rev)] = true
	}
	return ids
}

// sample is the digest of a rendered sample of the content's template.
func (r *Reconciler) sample(ctx context.Context, w *world, c *history.Content) (string, error) {
	t, err := c.Decisive()
	if err != nil {
		return "", errorf(err, "decode template")
	}
	return r.Render(ctx, t, w.sources.Sample)
}

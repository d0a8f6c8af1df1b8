package source

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// frozenKey names what was frozen for a revision.
type frozenKey struct {
	pool types.NamespacedName
	id   string
}

// Freeze keeps the content for a revision, which is to be stored afterwards, or
// has been: copies that are gone are made again. It is idempotent, and costs
// nothing where all copies are known to be there.
func (r *Resolver) Freeze(ctx context.Context, p *v1alpha1.Pool, id string, c *Content) error {
	pool := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	if len(c.Sources) == 0 {
		return nil
	}
	if err := r.list(ctx); err != nil {
		return err
	}
	for i := range c.Sources {
		s := &c.Sources[i]
		ref := refOf(pool.Name, id, s)
		if r.has(pool, id, ref) {
			continue
		}
		// Noted before it is made, so that it is removed should that be all.
		r.note(pool, id, ref, false)
		if err := r.freeze(ctx, pool, id, s, c.parts[i].freeze(pool, id, s)); err != nil {
			return fmt.Errorf("freeze source %s: %w", s.Name, err)
		}
		r.note(pool, id, ref, true)
	}
	r.values.Add(frozenKey{pool, id}, c.Values)
	return nil
}

// freeze makes one copy, unless it is there.
func (r *Resolver) freeze(ctx context.Context, pool types.NamespacedName, id string, s *Source, o client.Object) error {
	err := r.options.Client.Create(ctx, o)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	ref := refOf(pool.Name, id, s)
	have := ref.object()
	if err := r.options.Reader.Get(ctx, client.ObjectKeyFromObject(o), have); err != nil {
		return err
	}
	if _, ok := thaw(have, pool.Name, id, s); !ok {
		return fmt.Errorf("%s in namespace %s is there, and is not Pawl's: delete it", ref, pool.Namespace)
	}
	return nil
}

// Frozen returns what was frozen for a revision, whose sources are given. It
// looks at the API server where this was not done before. An error that wraps
// ErrMissing says that a copy is gone; any other, that it cannot be told.
func (r *Resolver) Frozen(ctx context.Context, pool types.NamespacedName, id string, sources []Source) (*Values, error) {
	if len(sources) == 0 {
		return newValues(nil), nil
	}
	key := frozenKey{pool, id}
	if have, ok := r.values.Get(key); ok {
		if v, ok := have.(*Values); ok {
			return v, nil
		}
	}
	parts := make([]part, len(sources))
	var gone []error
	for i := range sources {
		s := &sources[i]
		ref := refOf(pool.Name, id, s)
		o := ref.object()
		err := r.options.Reader.Get(ctx, types.NamespacedName{Namespace: pool.Namespace, Name: ref.name}, o)
		found := err == nil
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read source %s as frozen for revision %s: %w", s.Name, id, err)
		}
		if found {
			parts[i], found = thaw(o, pool.Name, id, s)
		}
		if !found {
			r.note(pool, id, ref, false)
			gone = append(gone, fmt.Errorf("%s, with source %s", ref, s.Name))
		}
	}
	if len(gone) > 0 {
		return nil, fmt.Errorf("revision %s: %w: %w", id, ErrMissing, errors.Join(gone...))
	}
	v := newValues(parts)
	r.values.Add(key, v)
	return v, nil
}

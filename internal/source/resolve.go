package source

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// patience is how long a resolution waits for watches that have just begun.
const patience = time.Second

// seen is what a source was resolved from.
type seen struct {
	source v1alpha1.Source
	object *unstructured.Unstructured
}

// Resolve returns what the pool's sources say, and sees to it that a change is
// notified of from now on. Keyed tells that something stored of the pool has
// keyed digests: their key is then not made anew. An error is of type
// *Unresolved, unless ctx ended. It waits a second at most, for what has never
// been read before.
func (r *Resolver) Resolve(ctx context.Context, p *v1alpha1.Pool, keyed bool) (*Content, error) {
	pool := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	wanted := map[watchKey][]*v1alpha1.Source{}
	keys := make([]watchKey, len(p.Spec.Sources))
	var failed []*Unresolved
	for i := range p.Spec.Sources {
		s := &p.Spec.Sources[i]
		key, why := keyOf(p, s)
		if why != nil {
			failed = append(failed, why.of(s.Name))
			continue
		}
		keys[i] = key
		wanted[key] = append(wanted[key], s)
	}
	watches := r.watches.use(pool, wanted)
	if len(failed) > 0 {
		return nil, join(failed)
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	wait(waiting, watches)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	parts := make([]part, len(keys))
	from := make([]seen, len(keys))
	for i, key := range keys {
		s, v := &p.Spec.Sources[i], watches[key].look()
		var why *Unresolved
		if parts[i], why = v.take(s); why != nil {
			failed = append(failed, why.of(s.Name))
		}
		from[i] = seen{*s, v.object}
	}
	if len(failed) > 0 {
		return nil, join(failed)
	}
	return r.content(ctx, pool, parts, from, keyed)
}

// content is that of the parts: what was made of the same before, or else new.
func (r *Resolver) content(ctx context.Context, pool types.NamespacedName, parts []part, from []seen, keyed bool) (*Content, error) {
	m := r.of(pool)
	if m.content != nil && slices.EqualFunc(m.from, from, seen.equal) {
		return m.content, nil
	}
	if m.key == nil && slices.ContainsFunc(parts, func(p part) bool { return p.secret }) {
		key, err := r.key(ctx, pool, keyed)
		if err != nil {
			return nil, err
		}
		m.key = key
	}
	c := &Content{Values: newValues(parts), Sample: map[string]any{}, parts: parts}
	for i := range parts {
		s, err := parts[i].digest(m.key)
		if err != nil {
			return nil, known(FieldNotFound, "%v", err)
		}
		c.Sources = append(c.Sources, s)
		c.Sample[s.Name] = parts[i].sample(&s)
	}
	m.from, m.content = from, c
	return c, nil
}

// equal tells whether a source was resolved from the same.
func (s seen) equal(t seen) bool {
	return s.object == t.object && equalSources(&s.source, &t.source)
}

func equalSources(a, b *v1alpha1.Source) bool {
	return a.Name == b.Name && gvkOf(a) == gvkOf(b) && objectOf(a) == objectOf(b) &&
		slices.Equal(keysWanted(a), keysWanted(b)) && fieldOf(a) == fieldOf(b)
}

func keysWanted(s *v1alpha1.Source) []string {
	switch {
	case s.ConfigMap != nil:
		return s.ConfigMap.Keys
	case s.Secret != nil:
		return s.Secret.Keys
	}
	return nil
}

func fieldOf(s *v1alpha1.Source) string {
	if s.Object == nil {
		return ""
	}
	return s.Object.FieldPath
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/internal/source"
)

// frozen is a source that said something else at a revision, and how to see
// what, or why that is not known.
type frozen struct {
	source, look string
}

// lost is in what sources say something else now than at a revision, more or
// less included. What they say now is what the last target took from them, if
// the pool still names the same ones.
func (p *past) lost(to *appsv1.ControllerRevision) ([]frozen, error) {
	was, err := history.ReadContent(to)
	if err != nil {
		return nil, err
	}
	now, err := p.said()
	if err != nil {
		return nil, err
	}
	var list []frozen
	for i := range was.Sources {
		s := &was.Sources[i]
		is, named := now[s.Name]
		switch {
		case !named:
			is = &history.Source{}
		case is.Digests == nil:
			list = append(list, frozen{s.String(), fmt.Sprintf("in place of which there is %s now; what that says, no revision has taken yet", is)})
			continue
		}
		if keys := missing(s.Digests, is.Digests); len(keys) > 0 || !named {
			list = append(list, frozen{keyed(s, strings.Join(keys, ", ")), "which is kept: " + p.look(history.RevisionID(to), to.Namespace, s)})
		}
		if keys := added(s.Digests, is.Digests); len(keys) > 0 {
			list = append(list, frozen{keyed(is, strings.Join(keys, ", ")), "which was not there then"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if !slices.ContainsFunc(was.Sources, func(s history.Source) bool { return s.Name == name }) {
			list = append(list, frozen{now[name].String(), "which was not there then"})
		}
	}
	return list, nil
}

// said is what the pool's sources say now, by name. One of which no revision has
// taken anything yet has no digests.
func (p *past) said() (map[string]*history.Source, error) {
	now, last := map[string]*history.Source{}, &history.Content{}
	if r := p.last(); r != nil {
		var err error
		if last, err = history.ReadContent(r); err != nil {
			return nil, err
		}
	}
	for i := range p.stored.Pool.Spec.Sources {
		spec := &p.stored.Pool.Spec.Sources[i]
		is := reference(spec)
		for _, s := range last.Sources {
			if s.Name == is.Name && s.String() == is.String() && whole(spec, s.Digests) {
				is.Digests = map[string]string{}
				maps.Copy(is.Digests, s.Digests)
			}
		}
		now[is.Name] = is
	}
	return now, nil
}

// last is the revision that was the target last, also if it was rolled back: it
// has taken what sources say since. Nil if there is none.
func (p *past) last() *appsv1.ControllerRevision {
	if n := len(p.stored.Revisions); n > 0 {
		return p.stored.Revisions[n-1]
	}
	return nil
}

// reference is what the spec says of a source.
func reference(s *v1alpha1.Source) *history.Source {
	switch {
	case s.ConfigMap != nil:
		return &history.Source{Name: s.Name, Kind: "ConfigMap", Object: s.ConfigMap.Name}
	case s.Secret != nil:
		return &history.Source{Name: s.Name, Kind: "Secret", Object: s.Secret.Name}
	case s.Object != nil:
		return &history.Source{Name: s.Name, Kind: s.Object.Kind, Object: s.Object.Name, Field: s.Object.FieldPath}
	}
	return &history.Source{Name: s.Name}
}

// whole tells whether the digests are of the keys that the spec wants.
func whole(s *v1alpha1.Source, digests map[string]string) bool {
	for _, of := range []*v1alpha1.KeysSource{s.ConfigMap, s.Secret} {
		if of == nil || len(of.Keys) == 0 {
			continue
		}
		if wanted := slices.Sorted(slices.Values(of.Keys)); !slices.Equal(wanted, slices.Sorted(maps.Keys(digests))) {
			return false
		}
	}
	return true
}

// missing are the keys whose digests are no more what they were, in order.
func missing(was, is map[string]string) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if is[key] != was[key] {
			keys = append(keys, key)
		}
	}
	return keys
}

// added are the keys that there were not, in order.
func added(was, is map[string]string) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[key]; !ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// look is how to see what a source said at a revision.
func (p *past) look(id, namespace string, s *history.Source) string {
	kind := "configmap"
	if s.Secret {
		kind = "secret"
	}
	return fmt.Sprintf("`kubectl get %s %s -n %s -o yaml`", kind, p.copyName(id, s), namespace)
}

// keyed is what a source's keys are called, as history's differences call one;
// a field has none.
func keyed(s *history.Source, keys string) string {
	if keys == "" {
		return s.String()
	}
	return s.String() + ": " + keys
}

// copyName is the name of the frozen copy of a source.
func (p *past) copyName(id string, s *history.Source) string {
	return source.CopyName(p.stored.Pool.Name, id, s.Name)
}

// sources are what the sources of a revision said.
type sources struct {
	// tree is the text of each key, by the name of the source; of what is secret
	// or cannot be read, its digest.
	tree map[string]map[string]string
	// places is the JSON of what may be shown, by what history's differences
	// call it.
	places map[string][]byte
}

// sources reads what the sources of a revision said, from the frozen copies.
func (p *past) sources(ctx context.Context, k *cluster, id string) (*sources, error) {
	r, known := p.revision(id), &sources{tree: map[string]map[string]string{}, places: map[string][]byte{}}
	if r == nil {
		return known, nil
	}
	c, err := history.ReadContent(r)
	if err != nil {
		return nil, err
	}
	for i := range c.Sources {
		s := &c.Sources[i]
		known.tree[s.Name] = maps.Clone(s.Digests)
		if s.Secret {
			continue
		}
		texts, err := k.texts(ctx, r.Namespace, p.copyName(id, s))
		if err != nil {
			return nil, err
		}
		if err := known.take(s, texts); err != nil {
			return nil, err
		}
	}
	return known, nil
}

// take notes the text of a source, as far as it is known.
func (known *sources) take(s *history.Source, texts map[string]string) error {
	var err error
	for key := range s.Digests {
		text, ok := texts[key]
		if !ok {
			continue
		}
		known.tree[s.Name][key] = text
		if known.places[keyed(s, key)], err = json.Marshal(text); err != nil {
			return fmt.Errorf("encode %s: %w", keyed(s, key), err)
		}
	}
	if known.places[s.String()], err = json.Marshal(known.tree[s.Name]); err != nil {
		return fmt.Errorf("encode %s: %w", s, err)
	}
	return nil
}

// texts are those of a ConfigMap; none of one that is gone, or that may not be
// read.
func (c *cluster) texts(ctx context.Context, namespace, name string) (map[string]string, error) {
	var o corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &o)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil //nolint:nilnil // nothing is known then
	case err != nil:
		return nil, fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	return o.Data, nil
}

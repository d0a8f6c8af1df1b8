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

	"github.com/pawl-dev/pawl/internal/history"
)

// frozen is what a source said at a revision, and how to see it.
type frozen struct {
	source, look string
}

// lost is what sources said at a revision and do not say now, as far as the
// revision of the template knows it.
func (p *past) lost(to *appsv1.ControllerRevision) ([]frozen, error) {
	was, err := history.ReadContent(to)
	if err != nil || len(was.Sources) == 0 {
		return nil, err
	}
	now := map[string]map[string]string{}
	if r := p.revision(p.wanted()); r != nil {
		is, err := history.ReadContent(r)
		if err != nil {
			return nil, err
		}
		for _, s := range is.Sources {
			now[s.Name] = s.Digests
		}
	}
	var list []frozen
	for i := range was.Sources {
		s := &was.Sources[i]
		var keys []string
		for _, key := range slices.Sorted(maps.Keys(s.Digests)) {
			if now[s.Name][key] != s.Digests[key] {
				keys = append(keys, key)
			}
		}
		if len(keys) == 0 {
			continue
		}
		kind := "configmap"
		if s.Secret {
			kind = "secret"
		}
		list = append(list, frozen{
			source: keyed(s, strings.Join(keys, ", ")),
			look:   fmt.Sprintf("`kubectl get %s %s -n %s -o yaml`", kind, p.copyName(history.RevisionID(to), s), to.Namespace),
		})
	}
	return list, nil
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
	return p.stored.Pool.Name + "-" + id + "-" + strings.ReplaceAll(s.Name, "_", "-")
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

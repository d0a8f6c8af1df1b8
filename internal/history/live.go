package history

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/fieldpath"
)

// TemplateFor is the template of which a body of the revision is made and kept
// now: what the revision says, and for the rest (live fields, readiness, the
// time for a boot) what the pool says at present.
//
// Live fields are places, and what stands at a place may be something else in
// the other template: a path leads to the same only if all it passes through is
// the same object (apiVersion, kind, metadata.name), the same element of a list
// (its name) or the same file (its path), as they were written; and a whole
// element is the same only in a list of the same elements. A path that does not
// is no live field of the revision: there all stays as the revision says.
func TemplateFor(r *appsv1.ControllerRevision, now *v1alpha1.Template) (*v1alpha1.Template, error) {
	c, err := ReadContent(r)
	if err != nil {
		return nil, err
	}
	raw, live, err := overlay(c.Template, now)
	if err != nil {
		return nil, fmt.Errorf("ControllerRevision %s: data.template: %w", r.Name, err)
	}
	t, err := parseTemplate(r, raw)
	if err != nil {
		return nil, err
	}
	t.BootTimeout, t.LiveFields = now.BootTimeout, live
	if t.Objects != nil && now.Objects != nil {
		t.Ready = now.Ready
	}
	return t, nil
}

// overlay lays the live fields of the template over the JSON of another one,
// and says which of them it has.
func overlay(raw []byte, now *v1alpha1.Template) ([]byte, []string, error) {
	if len(now.LiveFields) == 0 {
		return raw, nil, nil
	}
	paths, err := fieldpath.ParseAll(now.LiveFields)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // the caller names the object
	}
	text, err := json.Marshal(v1alpha1.Template{Objects: now.Objects, Process: now.Process, Sim: now.Sim})
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // the caller names the object
	}
	from, err := decode(text)
	if err != nil {
		return nil, nil, err
	}
	tree, err := decode(raw)
	if err != nil {
		return nil, nil, err
	}
	p := pair{masked(tree, paths), masked(from, paths)}
	var live []fieldpath.Path
	var names []string
	for i, path := range paths {
		if p.same(path) {
			live, names = append(live, path), append(names, now.LiveFields[i])
		}
	}
	raw, err = json.Marshal(fieldpath.Overlay(tree, from, live))
	return raw, names, err //nolint:wrapcheck // what was decoded can be encoded
}

// masked is a copy of the tree that says nothing where it is live, and is as
// long as before.
func masked(tree any, live []fieldpath.Path) any {
	tree = fieldpath.Clone(tree)
	for _, p := range live {
		if _, err := p.Get(tree); err != nil {
			continue
		}
		if next, err := p.Set(tree, nil); err == nil {
			tree = next
		}
	}
	return tree
}

// pair are two templates, without what is live.
type pair struct{ a, b any }

// same tells whether the path leads to the same in both.
func (p pair) same(path fieldpath.Path) bool {
	if _, err := path[:1].Get(p.a); err != nil {
		return false // another kind of body
	}
	for n, s := range path {
		if s.Name == "" && !p.sameElement(path[:n+1]) {
			return false
		}
	}
	last := len(path) - 1
	return path[last].Name != "" || p.sameList(path[:last])
}

// sameElement tells whether both have the same at the place in a list.
func (p pair) sameElement(at fieldpath.Path) bool {
	a, err1 := at.Get(p.a)
	b, err2 := at.Get(p.b)
	return err1 == nil && err2 == nil && alike(at, a, b)
}

// sameList tells whether both have a list of the same elements.
func (p pair) sameList(at fieldpath.Path) bool {
	x, err1 := at.Get(p.a)
	y, err2 := at.Get(p.b)
	a, isList1 := x.([]any)
	b, isList2 := y.([]any)
	if err1 != nil || err2 != nil || !isList1 || !isList2 || len(a) != len(b) {
		return false
	}
	for i := range a {
		if !alike(at.And(fieldpath.Step{Index: i}), a[i], b[i]) {
			return false
		}
	}
	return true
}

// alike tells whether elements at a place in a list are the same one.
func alike(at fieldpath.Path, a, b any) bool {
	return !slices.ContainsFunc(known(at), func(p fieldpath.Path) bool {
		is, err1 := p.Get(a)
		was, err2 := p.Get(b)
		return (err1 == nil) != (err2 == nil) || !reflect.DeepEqual(is, was)
	})
}

// known are the places by which an element is known, inside of it.
func known(at fieldpath.Path) []fieldpath.Path {
	switch {
	case len(at) == 2 && at[0].Name == "objects":
		return []fieldpath.Path{{{Name: "apiVersion"}}, {{Name: "kind"}}, {{Name: "metadata"}, {Name: "name"}}}
	case at[0].Name == "process":
		return []fieldpath.Path{{{Name: "path"}}}
	}
	return []fieldpath.Path{{{Name: "name"}}}
}

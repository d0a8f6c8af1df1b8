package objects

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pawl-dev/pawl/internal/fieldpath"
)

// keepOwned removes from a manifest what Pawl has applied once and somebody else
// has changed or removed since, which shows in that Pawl does not own it any
// more; what is at or below the paths stays whatever the owner. To apply the
// rest touches nothing that is not Pawl's.
//
// The owner of fields is recorded in the terms of one version of the API. What
// is recorded in another one cannot be compared: then nothing is removed.
func keepOwned(object *unstructured.Unstructured, managed []metav1.ManagedFieldsEntry, paths []fieldpath.Path) error {
	var fields owned
	for _, e := range managed {
		if e.Manager != fieldManager || e.Operation != metav1.ManagedFieldsOperationApply || e.Subresource != "" {
			continue
		}
		if e.APIVersion != object.GetAPIVersion() || e.FieldsV1 == nil {
			return nil
		}
		if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields); err != nil {
			return fmt.Errorf("metadata.managedFields: %w", err)
		}
	}
	k := keeper{paths: paths}
	for _, name := range []string{"apiVersion", "kind"} {
		k.paths = append(k.paths, fieldpath.Path{{Name: name}})
	}
	for _, name := range []string{"name", "namespace", "uid"} {
		k.paths = append(k.paths, fieldpath.Path{{Name: "metadata"}, {Name: name}})
	}
	tree, _ := k.keep(object.Object, fields, nil)
	if m, ok := tree.(map[string]any); ok {
		object.Object = m
	}
	return nil
}

// owned is a node of what is recorded of an owner's fields (FieldsV1): "f:NAME"
// is a field, "k:{…}" the element of a list that has these keys, "v:…" an element
// of a set, and "." the value itself, which may have others' parts. An empty one
// is owned whole, a nil one not at all.
type owned map[string]owned

func (o owned) whole() bool { return o != nil && len(o) == 0 }

// keeper keeps what is owned, or at or below the paths.
type keeper struct{ paths []fieldpath.Path }

// keep returns what stays of a value, and whether anything does.
func (k *keeper) keep(value any, is owned, at fieldpath.Path) (any, bool) {
	if is.whole() || slices.ContainsFunc(k.paths, func(p fieldpath.Path) bool { return at.Within(p) }) {
		return value, true
	}
	switch v := value.(type) {
	case map[string]any:
		return k.keepFields(v, is, at)
	case []any:
		return k.keepElements(v, is, at)
	}
	return value, is != nil
}

// leads tells whether a path goes on below this one.
func (k *keeper) leads(at fieldpath.Path) bool {
	return slices.ContainsFunc(k.paths, func(p fieldpath.Path) bool { return p.Within(at) })
}

func (k *keeper) keepFields(v map[string]any, is owned, at fieldpath.Path) (any, bool) {
	_, itself := is["."]
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if inner, ok := k.keep(v[name], is["f:"+name], at.And(fieldpath.Step{Name: name})); ok {
			out[name] = inner
		}
	}
	return out, itself || len(out) > 0
}

func (k *keeper) keepElements(v []any, is owned, at fieldpath.Path) (any, bool) {
	_, itself := is["."]
	keys := is.keys()
	out := []any{}
	for i, element := range v {
		next := at.And(fieldpath.Step{Index: i})
		part := is.element(element)
		m, isMap := element.(map[string]any)
		if part == nil && k.leads(next) && (len(keys) == 0 || !isMap) {
			out = append(out, element) // no part of it could be told from another one
			continue
		}
		inner, ok := k.keep(element, part, next)
		if !ok {
			continue
		}
		if kept, isMap := inner.(map[string]any); isMap {
			for _, key := range keys { // by which the API server knows it
				if is, stated := m[key]; stated {
					kept[key] = is
				}
			}
		}
		out = append(out, inner)
	}
	return out, itself || len(out) > 0
}

// element is what is recorded of an element of a list; nil for nothing.
func (o owned) element(value any) owned {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		kind, text, _ := strings.Cut(name, ":")
		var want any
		if json.Unmarshal([]byte(text), &want) != nil {
			continue
		}
		if kind == "v" && sameJSON(want, value) || kind == "k" && hasKeys(value, want) {
			return o[name]
		}
	}
	return nil
}

// keys are the names of the keys of a list's elements.
func (o owned) keys() []string {
	for name := range o {
		keys := map[string]any{}
		if text, ok := strings.CutPrefix(name, "k:"); ok && json.Unmarshal([]byte(text), &keys) == nil {
			return slices.Sorted(maps.Keys(keys))
		}
	}
	return nil
}

// hasKeys tells whether an element has the keys. One that it does not state may
// have its default.
func hasKeys(value, keys any) bool {
	m, ok1 := value.(map[string]any)
	want, ok2 := keys.(map[string]any)
	if !ok1 || !ok2 {
		return false
	}
	stated := false
	for name, key := range want {
		is, ok := m[name]
		if ok && !sameJSON(is, key) {
			return false
		}
		stated = stated || ok
	}
	return stated
}

// sameJSON compares values that were decoded in different ways.
func sameJSON(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

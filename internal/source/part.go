package source

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/fieldpath"
)

// What one source may have.
const (
	// maxKeys is the number of keys.
	maxKeys = 256
	// maxBytes is the size of its content: what a ConfigMap or Secret holds.
	maxBytes = 1 << 20
)

const (
	kindConfigMap = "ConfigMap"
	kindSecret    = "Secret"
)

// part is the content of one source.
type part struct {
	// kind, object and field are as in Source; secret too.
	name, kind, object, field string
	secret                    bool
	// keys is the content by key; nil for a field.
	keys map[string][]byte
	// value is that of a field, and text the same in JSON.
	value any
	text  []byte
}

// gvkOf is the kind of the object that a source is read from.
func gvkOf(s *v1alpha1.Source) schema.GroupVersionKind {
	switch {
	case s.ConfigMap != nil:
		return schema.GroupVersionKind{Version: "v1", Kind: kindConfigMap}
	case s.Secret != nil:
		return schema.GroupVersionKind{Version: "v1", Kind: kindSecret}
	case s.Object != nil:
		return schema.FromAPIVersionAndKind(s.Object.APIVersion, s.Object.Kind)
	}
	return schema.GroupVersionKind{}
}

func objectOf(s *v1alpha1.Source) string {
	switch {
	case s.ConfigMap != nil:
		return s.ConfigMap.Name
	case s.Secret != nil:
		return s.Secret.Name
	case s.Object != nil:
		return s.Object.Name
	}
	return ""
}

// extract takes out of an object what a source is about.
func extract(s *v1alpha1.Source, o *unstructured.Unstructured) (part, *Unresolved) {
	p := part{name: s.Name, kind: o.GetKind(), object: o.GetName(), secret: gvkOf(s) != schema.GroupVersionKind{Version: "v1", Kind: kindConfigMap}}
	if s.Object != nil {
		return p.takeField(s.Object.FieldPath, o)
	}
	only := s.ConfigMap
	if only == nil {
		only = s.Secret
	}
	return p.takeKeys(only.Keys, o)
}

func (p part) takeField(field string, o *unstructured.Unstructured) (part, *Unresolved) {
	p.field = field
	path, err := fieldpath.Parse(field)
	if err != nil {
		return p, known(FieldNotFound, "%s: %v", describe(o), err)
	}
	value, err := path.Get(o.Object)
	if err == nil && value == nil {
		err = fmt.Errorf("%s: %w: it is empty", field, fieldpath.ErrAbsent)
	}
	if err != nil {
		return p, known(FieldNotFound, "%s has no field %s (%v): correct fieldPath, or set the field", describe(o), field, err)
	}
	p.value = value
	if p.text, err = json.Marshal(value); err != nil {
		return p, known(FieldNotFound, "%s: %s is no JSON value", describe(o), field)
	}
	return p, p.checkSize(o, len(p.text))
}

func (p part) takeKeys(only []string, o *unstructured.Unstructured) (part, *Unresolved) {
	all, unresolved := keysOf(o)
	if unresolved != nil {
		return p, unresolved
	}
	p.keys = all
	if len(only) > 0 {
		p.keys = map[string][]byte{}
		var lacks []string
		for _, key := range only {
			content, ok := all[key]
			if !ok {
				lacks = append(lacks, key)
			}
			p.keys[key] = content
		}
		if len(lacks) > 0 {
			return p, known(KeyNotFound, "%s has no key %s, but %s: add it, or correct the source's keys",
				describe(o), strings.Join(lacks, ", "), orNone(slices.Sorted(maps.Keys(all))))
		}
	}
	if n := len(p.keys); n > maxKeys {
		return p, known(TooLarge, "%s has %d keys; a source has at most %d: list those that count in the source's keys", describe(o), n, maxKeys)
	}
	size := 0
	for key, content := range p.keys {
		size += len(key) + len(content)
	}
	return p, p.checkSize(o, size)
}

func (p part) checkSize(o *unstructured.Unstructured, size int) *Unresolved {
	if size <= maxBytes {
		return nil
	}
	what := describe(o)
	if p.field != "" {
		what += ": " + p.field
	}
	return known(TooLarge, "%s comes to %d bytes; a source has at most %d", what, size, maxBytes)
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// keysOf is the content of a ConfigMap or Secret by key.
func keysOf(o *unstructured.Unstructured) (map[string][]byte, *Unresolved) {
	all := map[string][]byte{}
	encoded := "binaryData"
	if o.GetKind() == kindSecret {
		encoded = "data"
	} else {
		texts, _, err := unstructured.NestedStringMap(o.Object, "data")
		if err != nil {
			return nil, unknown(Unreachable, err, "%s cannot be read: data is no map of texts", describe(o))
		}
		for key, text := range texts {
			all[key] = []byte(text)
		}
	}
	texts, _, err := unstructured.NestedStringMap(o.Object, encoded)
	if err != nil {
		return nil, unknown(Unreachable, nil, "%s cannot be read: %s is no map of texts", describe(o), encoded)
	}
	for key, text := range texts {
		content, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, unknown(Unreachable, nil, "%s cannot be read: %s.%s is no base64", describe(o), encoded, key)
		}
		all[key] = content
	}
	return all, nil
}

// describe is, for example, "ConfigMap shop/bootstrap".
func describe(o *unstructured.Unstructured) string {
	return what(o.GetKind(), o.GetNamespace(), o.GetName())
}

func what(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// native is what expressions see of the part: for keys a map of texts, or of
// bytes where they are no text.
func (p *part) native() any {
	if p.keys == nil {
		return p.value
	}
	out := make(map[string]any, len(p.keys))
	for key, content := range p.keys {
		out[key] = readable(content)
	}
	return out
}

// readable is a text where it is one, or else bytes.
func readable(content []byte) any {
	if utf8.Valid(content) {
		return string(content)
	}
	return content
}

// equal tells whether two parts say the same.
func (p *part) equal(q *part) bool {
	return p.kind == q.kind && p.secret == q.secret && (p.keys == nil) == (q.keys == nil) &&
		maps.EqualFunc(p.keys, q.keys, bytes.Equal) && reflect.DeepEqual(p.value, q.value)
}

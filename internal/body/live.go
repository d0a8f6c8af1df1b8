package body

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/fieldpath"
)

// LiveFields reads the template's live fields, in their order: places below the
// kind, such as "process", that may be in the template as it is. What may says
// against one becomes its error. Errors wrap ErrRefused and name the path; there
// may be several, joined.
func LiveFields(template *v1alpha1.Template, kind string, may func(fieldpath.Path) error) ([]fieldpath.Path, error) {
	var paths []fieldpath.Path
	var errs []error
	for i, text := range template.LiveFields {
		p, err := liveField(template, kind, text)
		if err == nil {
			err = may(p)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: template.liveFields[%d]: %q: %w", ErrRefused, i, text, err))
			continue
		}
		paths = append(paths, p)
	}
	return paths, errors.Join(errs...)
}

func liveField(template *v1alpha1.Template, kind, text string) (fieldpath.Path, error) {
	p, err := fieldpath.Parse(text)
	switch {
	case err != nil:
		return nil, err
	case p[0].Name != kind:
		return nil, fmt.Errorf("it is not in the template, which has %s", kind)
	}
	return p, lead(reflect.ValueOf(template).Elem(), p, 0)
}

// lead tells whether the path, from step n on, leads from the value to a field
// that there may be. What is only absent may be there: a map takes any name, and
// so does a manifest, of which no schema is known here.
func lead(v reflect.Value, p fieldpath.Path, n int) error {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v = reflect.New(v.Type().Elem())
		}
		v = v.Elem()
	}
	if n == len(p) {
		return nil
	}
	if manifest, ok := reflect.TypeAssert[runtime.RawExtension](v); ok {
		return leadInside(manifest, p, n)
	}
	s := p[n]
	switch {
	case s.Name == "" && v.Kind() == reflect.Slice:
		if s.Index >= v.Len() {
			return fmt.Errorf("template.%s has %d elements", p[:n], v.Len())
		}
		return lead(v.Index(s.Index), p, n+1)
	case s.Name != "" && v.Kind() == reflect.Map:
		return lead(reflect.Zero(v.Type().Elem()), p, n+1)
	case s.Name != "" && v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[metav1.Duration]():
		for f, field := range v.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == s.Name {
				return lead(field, p, n+1)
			}
		}
	}
	return fmt.Errorf("template.%s has no field %s", p[:n], p[n:n+1])
}

func leadInside(manifest runtime.RawExtension, p fieldpath.Path, n int) error {
	var tree any
	raw, err := manifest.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, &tree)
	}
	if err != nil {
		return fmt.Errorf("template.%s: %w", p[:n], err)
	}
	for ; n < len(p); n++ {
		next, err := p[n : n+1].Get(tree)
		_, isMap := tree.(map[string]any)
		switch {
		case err == nil:
			tree = next
		case tree == nil, isMap && p[n].Name != "":
			return nil
		default:
			return fmt.Errorf("template.%s: %w", p[:n], err)
		}
	}
	return nil
}

package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/fieldpath"
	"github.com/pawl-dev/pawl/revision"
)

// Content is everything that decides what a body is.
type Content struct {
	// Template is the JSON of the template's objects, process or sim as they
	// were written, with what its live fields said then: a body is made of it
	// also when they are not live any more, or gone.
	Template json.RawMessage `json:"template"`
	// Live are the paths of what was live then, and so does not decide.
	Live []string `json:"live,omitempty"`
	// Sources are what the content of sources came to; their order does not
	// matter.
	Sources []Source `json:"sources,omitempty"`
	// Render is a digest of what a sample of the template is rendered to, empty
	// where there is nothing to be rendered; nil where nobody kept it.
	Render *string `json:"render,omitempty"`
}

// Source is what the content of one source came to. Only its name and the
// digests decide: the same content elsewhere is the same.
type Source struct {
	Name string `json:"name"`
	// Kind and Object are the kind and the name of what was read, Field the path
	// of an object's field.
	Kind   string `json:"kind,omitempty"`
	Object string `json:"object,omitempty"`
	Field  string `json:"field,omitempty"`
	// Secret: the digests are keyed, and nothing else is kept of the content.
	Secret bool `json:"secret,omitempty"`
	// Digests are by key; that of a field has none.
	Digests map[string]string `json:"digests,omitempty"`
}

// data is what a ControllerRevision holds; it never changes.
type data struct {
	Hash hash `json:"hash"`
	Content
}

// hash is how the revision got its name.
type hash struct {
	Version int `json:"version"`
}

// ContentOf is what the template alone says. How readiness is judged and how
// long a boot may take is not part of it, nor are its live fields.
func ContentOf(t *v1alpha1.Template) (*Content, error) {
	raw, err := json.Marshal(v1alpha1.Template{Objects: t.Objects, Process: t.Process, Sim: t.Sim})
	if err != nil {
		return nil, fmt.Errorf("encode spec.template: %w", err)
	}
	if _, err := fieldpath.ParseAll(t.LiveFields); err != nil {
		return nil, fmt.Errorf("spec.template.liveFields: %w", err)
	}
	return &Content{Template: raw, Live: slices.Sorted(slices.Values(t.LiveFields))}, nil
}

// Decisive is the template but for what was live.
func (c *Content) Decisive() (*v1alpha1.Template, error) {
	raw, err := without(c.Template, c.Live)
	if err != nil {
		return nil, fmt.Errorf("spec.template.liveFields: %w", err)
	}
	var t v1alpha1.Template
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("spec.template: %w", err)
	}
	return &t, nil
}

// without is the JSON of a template without what is at the paths.
func without(raw []byte, paths []string) ([]byte, error) {
	if len(paths) == 0 {
		return raw, nil
	}
	live, err := fieldpath.ParseAll(paths)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the field
	}
	tree, err := decode(raw)
	if err != nil {
		return nil, err
	}
	return json.Marshal(fieldpath.DeleteAll(tree, live)) //nolint:wrapcheck // what was decoded can be encoded
}

// decode reads a tree whose numbers keep all their digits.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	err := d.Decode(&tree)
	return tree, err //nolint:wrapcheck // the caller names the object
}

// ID names the content by a version of the hash.
func (c *Content) ID(version int) (string, error) {
	input, err := c.input()
	if err != nil {
		return "", err
	}
	return revision.Hash(version, input) //nolint:wrapcheck // it says what it hashes
}

// input is what is hashed: the canonical form of the template where that is all
// there is, otherwise of everything.
func (c *Content) input() ([]byte, error) {
	raw, err := without(c.Template, c.Live)
	if err != nil {
		return nil, fmt.Errorf("spec.template.liveFields: %w", err)
	}
	if render := c.render(); len(c.Sources)+len(c.Live) > 0 || render != "" {
		all := map[string]any{"template": json.RawMessage(raw), "sources": c.digests(), "render": render}
		if len(c.Live) > 0 {
			all["live"] = c.Live
		}
		raw, err = json.Marshal(all)
		if err != nil {
			return nil, fmt.Errorf("encode revision: %w", err)
		}
	}
	canonical, err := revision.Canonical(raw)
	if err != nil {
		return nil, fmt.Errorf("spec.template: %w", err)
	}
	return canonical, nil
}

func (c *Content) render() string {
	if c.Render == nil {
		return ""
	}
	return *c.Render
}

// digests are those of the sources, by their names.
func (c *Content) digests() map[string]map[string]string {
	all := make(map[string]map[string]string, len(c.Sources))
	for i := range c.Sources {
		all[c.Sources[i].Name] = c.Sources[i].Digests
	}
	return all
}

// ID names the revision of a template that is neither rendered nor has sources.
func ID(t *v1alpha1.Template) (string, error) {
	c, err := ContentOf(t)
	if err != nil {
		return "", err
	}
	return c.ID(revision.Current)
}

// New makes the ControllerRevision of a pool's content, which the version of
// the hash gave its id.
func New(p *v1alpha1.Pool, c *Content, version int, number int64) (*appsv1.ControllerRevision, error) {
	id, err := c.ID(version)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(data{hash{version}, *c})
	if err != nil {
		return nil, fmt.Errorf("encode revision: %w", err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(p.Name, id), Namespace: p.Namespace,
			Labels:     map[string]string{v1alpha1.LabelPool: p.Name, v1alpha1.LabelRevision: id},
			Finalizers: []string{v1alpha1.FinalizerRevision},
		},
		Data:     runtime.RawExtension{Raw: raw},
		Revision: number,
	}, nil
}

// ReadContent is what a revision holds.
func ReadContent(r *appsv1.ControllerRevision) (*Content, error) {
	var d data
	if err := json.Unmarshal(r.Data.Raw, &d); err != nil {
		return nil, fmt.Errorf("ControllerRevision %s: data: %w", r.Name, err)
	}
	return &d.Content, nil
}

// Template is the template that a revision holds, with what was live then.
func Template(r *appsv1.ControllerRevision) (*v1alpha1.Template, error) {
	c, err := ReadContent(r)
	if err != nil {
		return nil, err
	}
	return parseTemplate(r, c.Template)
}

func parseTemplate(r *appsv1.ControllerRevision, raw []byte) (*v1alpha1.Template, error) {
	var t v1alpha1.Template
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("ControllerRevision %s: data.template: %w", r.Name, err)
	}
	return &t, nil
}

package render

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/revision"
)

// unrendered stands in a sample for what cannot be rendered with its values,
// whatever the reason is called.
const unrendered = "\x00unrendered"

// Sample is a digest of what the renderer makes of a template for a member that
// is always the same, and the given sources. It tells a renderer that renders
// the template differently. A string that cannot be rendered so, because it
// needs a number where the sources have a stand-in, say, counts as that. The
// variant stands for a renderer that differs by nothing else; empty is this one.
//
// It is empty if nothing in the template is rendered and there is no variant. An
// error means that it cannot be told: the template does not compile, or ctx or
// the time was up.
func Sample(ctx context.Context, t *v1alpha1.Template, sources map[string]any, variant string) (string, error) {
	tree, err := texts(t)
	if err != nil {
		return "", err
	}
	scope := Objects
	vars := sampleVariables(sources)
	if t.Process != nil {
		scope, vars["ports"] = Process, samplePorts(t.Process.Ports)
	}
	compiled, err := CompileTree(scope, "template", tree)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	s := &sampler{budget: newBudget(), vars: vars, textual: t.Process != nil}
	out, err := s.render(ctx, compiled.root)
	switch {
	case err != nil:
		return "", err
	case s.rendered == 0 && variant == "":
		return "", nil
	}
	return digest(out, variant)
}

func digest(rendered any, variant string) (string, error) {
	raw, err := json.Marshal(rendered)
	if err == nil {
		raw, err = revision.Canonical(raw)
	}
	if err != nil {
		return "", fmt.Errorf("encode the rendered sample: %w", err)
	}
	h := sha256.New()
	h.Write([]byte(variant + "\n"))
	h.Write(raw)
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// texts are the parts of a template that are rendered and belong to its
// revision.
func texts(t *v1alpha1.Template) (any, error) {
	if p := t.Process; p != nil {
		return processTexts(p), nil
	}
	list := make([]any, len(t.Objects))
	for i, object := range t.Objects {
		tree, err := decode(object)
		if err != nil {
			return nil, fmt.Errorf("template.objects[%d]: %w", i, err)
		}
		list[i] = tree
	}
	return list, nil
}

func processTexts(p *v1alpha1.Process) any {
	env := map[string]any{}
	for name, value := range p.Env {
		env[name] = value
	}
	files := make([]any, len(p.Files))
	for i, f := range p.Files {
		if f.Content != nil {
			files[i] = *f.Content
		}
	}
	out := map[string]any{"command": p.Command, "args": list(p.Args), "env": env, "files": files}
	if r := p.Readiness; r != nil {
		readiness := map[string]any{}
		if r.HTTP != nil && r.HTTP.Path != nil {
			readiness["path"] = *r.HTTP.Path
		}
		if r.Exec != nil {
			readiness["command"] = list(r.Exec.Command)
		}
		if r.Output != nil {
			readiness["match"] = r.Output.Match
		}
		out["readiness"] = readiness
	}
	return out
}

func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, s := range texts {
		out[i] = s
	}
	return out
}

// sampleVariables are those of the member of which samples are made.
func sampleVariables(sources map[string]any) map[string]any {
	return map[string]any{
		"member":  map[string]any{"name": "sample-1", "namespace": "samples", "index": int64(1), "incarnation": int64(2)},
		"pool":    map[string]any{"name": "sample", "namespace": "samples"},
		"sources": sources,
	}
}

func samplePorts(names []string) map[string]any {
	ports := map[string]any{}
	for i, name := range names {
		ports[name] = int64(10001 + i)
	}
	return ports
}

// sampler renders what can be rendered.
type sampler struct {
	budget *budget
	vars   map[string]any
	// textual: whatever an expression comes to becomes text.
	textual bool
	// rendered counts the strings that are more than text.
	rendered int
}

func (s *sampler) render(ctx context.Context, node any) (any, error) {
	var err error
	switch n := node.(type) {
	case leaf:
		return s.leaf(ctx, n)
	case []any:
		out := slices.Clone(n)
		for i := range out {
			if out[i], err = s.render(ctx, n[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(n))
		for _, key := range sortedKeys(n) {
			if out[key], err = s.render(ctx, n[key]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return node, nil
}

func (s *sampler) leaf(ctx context.Context, l leaf) (any, error) {
	s.rendered++
	v, err := s.value(ctx, l.template)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%s: %w", l.field, err)
	case err != nil:
		return unrendered, nil //nolint:nilerr // it is what comes out
	}
	if text, ok := v.(string); ok && strings.HasPrefix(text, "\x00") {
		return strconv.Quote(text), nil // so that nothing looks like unrendered
	}
	return v, nil
}

func (s *sampler) value(ctx context.Context, t *Template) (any, error) {
	if s.textual {
		return t.text(ctx, s.budget, s.vars)
	}
	return t.value(ctx, s.budget, s.vars)
}

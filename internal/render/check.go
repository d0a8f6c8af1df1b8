package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// Check compiles every expression of a pool's template and runs none: it finds
// what is misspelt, names of ports, sources and keys that the pool does not have
// included. It is meant for before anything is touched; its error is of type
// Errors, and each of them begins with its field, such as
// template.objects[1].spec.image.
func Check(spec *v1alpha1.PoolSpec) error {
	template := &spec.Template
	c := &compiler{scope: Objects, sources: append([]v1alpha1.Source{}, spec.Sources...)}
	for i, object := range template.Objects {
		field := "template.objects[" + strconv.Itoa(i) + "]"
		tree, err := decode(object)
		if err != nil {
			c.add(field, err)
			continue
		}
		c.walk(field, tree)
	}
	for i, expression := range template.Ready {
		if _, err := compile(Readiness, expression, 1, 1); err != nil {
			c.add("template.ready["+strconv.Itoa(i)+"]", err)
		}
	}
	if template.Process != nil {
		c.process(template.Process)
	}
	return c.errs.err()
}

func decode(object runtime.RawExtension) (any, error) {
	var tree map[string]any
	raw, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, &tree)
	}
	if err == nil && tree == nil {
		err = fmt.Errorf("there is no manifest")
	}
	return tree, err
}

func (c *compiler) process(p *v1alpha1.Process) {
	c.scope = Process
	c.ports = append([]string{}, p.Ports...)
	c.leaf("template.process.command", p.Command)
	for i, arg := range p.Args {
		c.leaf("template.process.args["+strconv.Itoa(i)+"]", arg)
	}
	for _, name := range sortedKeys(p.Env) {
		c.leaf(join("template.process.env", name), p.Env[name])
	}
	for i, file := range p.Files {
		if file.Content != nil {
			c.leaf("template.process.files["+strconv.Itoa(i)+"].content", *file.Content)
		}
	}
	if p.Readiness != nil {
		c.readiness("template.process.readiness", p.Readiness)
	}
}

func (c *compiler) readiness(field string, r *v1alpha1.Readiness) {
	if r.HTTP != nil && r.HTTP.Path != nil {
		c.leaf(field+".http.path", *r.HTTP.Path)
	}
	if r.Exec != nil {
		for i, word := range r.Exec.Command {
			c.leaf(field+".exec.command["+strconv.Itoa(i)+"]", word)
		}
	}
	if r.Output != nil {
		c.leaf(field+".output.match", r.Output.Match)
	}
}

// checkNames finds names of ports, sources and keys that the pool does not have.
func (c *compiler) checkNames(field string, t *Template) {
	for _, p := range t.programs {
		if p == nil {
			continue
		}
		for _, r := range p.ports {
			if c.ports != nil && r.key == "" && !slices.Contains(c.ports, r.name) {
				c.add(field, fmt.Errorf("ports.%s: the process has no such port; template.process.ports has %s",
					r.name, orNone(c.ports)))
			}
		}
		for _, r := range p.sources {
			if err := c.checkSource(r); c.sources != nil && err != nil {
				c.add(field, err)
			}
		}
	}
}

// checkSource looks a source up that an expression mentions, and its key where
// it is known which there are.
func (c *compiler) checkSource(r reference) error {
	i := slices.IndexFunc(c.sources, func(s v1alpha1.Source) bool { return s.Name == r.name })
	switch {
	case i < 0 && r.key != "":
		return nil // the source is mentioned by itself too
	case i < 0:
		names := make([]string, len(c.sources))
		for i := range c.sources {
			names[i] = c.sources[i].Name
		}
		return fmt.Errorf("%s: the pool has no such source; sources has %s", join("sources", r.name), orNone(names))
	}
	keys := c.sources[i].ConfigMap
	if keys == nil {
		keys = c.sources[i].Secret
	}
	if r.key == "" || keys == nil || len(keys.Keys) == 0 || slices.Contains(keys.Keys, r.key) {
		return nil
	}
	return fmt.Errorf("%s[%q]: this key is not among the source's; sources[%d] has %s",
		join("sources", r.name), r.key, i, strings.Join(keys.Keys, ", "))
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

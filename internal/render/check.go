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

// Check compiles every expression of a pool's template and runs none. It is
// meant for before anything is touched; its error is of type Errors, and each
// of them begins with its field, such as template.objects[1].spec.image.
func Check(template *v1alpha1.Template) error {
	c := &compiler{scope: Objects}
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

// checkPorts finds names of ports that the process does not have.
func (c *compiler) checkPorts(field string, t *Template) {
	if c.ports == nil {
		return
	}
	for _, p := range t.programs {
		if p == nil {
			continue
		}
		for _, name := range p.ports {
			if !slices.Contains(c.ports, name) {
				c.add(field, fmt.Errorf("ports.%s: the process has no such port; template.process.ports has %s",
					name, orNone(c.ports)))
			}
		}
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

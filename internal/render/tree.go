package render

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// Tree is a JSON value in which every string was compiled.
type Tree struct {
	// root mirrors the value; a string that holds an expression or an escape
	// is a leaf in its place.
	root any
}

// leaf is a compiled string and where it stands.
type leaf struct {
	field    string
	template *Template
}

// Errors are all that is wrong with a template, in its order.
type Errors []error

// Error joins them on one line.
func (e Errors) Error() string {
	var b strings.Builder
	for i, err := range e {
		if i == 10 && len(e) > 11 {
			fmt.Fprintf(&b, "; and %d more", len(e)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(err.Error())
	}
	return b.String()
}

// Unwrap gives them to errors.Is and errors.As.
func (e Errors) Unwrap() []error { return e }

// err returns nil if there are none.
func (e Errors) err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// compiler walks values and collects what is wrong with them.
type compiler struct {
	scope       Scope
	expressions int
	errs        Errors
	// ports and sources are what may follow the variables of that name; nil: any.
	ports   []string
	sources []v1alpha1.Source
}

// CompileTree compiles every string in a JSON value: nil, bool, numbers,
// string, []any and map[string]any. The field is the path of the value, which
// errors begin with; an error is of type Errors.
func CompileTree(scope Scope, field string, tree any) (*Tree, error) {
	c := &compiler{scope: scope}
	root := c.walk(field, tree)
	if err := c.errs.err(); err != nil {
		return nil, err
	}
	return &Tree{root}, nil
}

func (c *compiler) walk(field string, value any) any {
	switch v := value.(type) {
	case string:
		return c.leaf(field, v)
	case []any:
		result := make([]any, len(v))
		for i, element := range v {
			result[i] = c.walk(field+"["+strconv.Itoa(i)+"]", element)
		}
		return result
	case map[string]any:
		result := make(map[string]any, len(v))
		for _, key := range sortedKeys(v) {
			result[key] = c.walk(join(field, key), v[key])
		}
		return result
	}
	return value
}

// leaf compiles one string; a plain one stays a string.
func (c *compiler) leaf(field, s string) any {
	if !strings.Contains(s, "${") {
		return s
	}
	t, err := Compile(c.scope, s)
	if err != nil {
		c.add(field, err)
		return nil
	}
	before := c.expressions
	c.expressions += t.expressions()
	if before <= maxExpressions && c.expressions > maxExpressions {
		c.add(field, fmt.Errorf("this is one expression too many: a template has at most %d", maxExpressions))
	}
	c.checkNames(field, t)
	return leaf{field, t}
}

// add records an error, or each of several, with its field.
func (c *compiler) add(field string, err error) {
	all := Errors{err}
	errors.As(err, &all)
	for _, err := range all {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", field, err))
	}
}

// Render returns the value with every string in it rendered. The result shares
// nothing with the tree. The error is the first one, with its field.
func (t *Tree) Render(ctx context.Context, vars map[string]any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	return render(ctx, newBudget(), vars, t.root)
}

func render(ctx context.Context, b *budget, vars map[string]any, node any) (any, error) {
	switch n := node.(type) {
	case leaf:
		v, err := n.template.value(ctx, b, vars)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.field, err)
		}
		return v, nil
	case []any:
		result := make([]any, len(n))
		for i, element := range n {
			v, err := render(ctx, b, vars, element)
			if err != nil {
				return nil, err
			}
			result[i] = v
		}
		return result, nil
	case map[string]any:
		result := make(map[string]any, len(n))
		for _, key := range sortedKeys(n) {
			v, err := render(ctx, b, vars, n[key])
			if err != nil {
				return nil, err
			}
			result[key] = v
		}
		return result, nil
	}
	return node, nil
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// join adds a key to the path of a field.
func join(field, key string) string {
	if plainKey.MatchString(key) {
		return field + "." + key
	}
	return field + "[" + strconv.Quote(key) + "]"
}

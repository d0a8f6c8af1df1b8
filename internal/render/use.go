package render

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types"
)

// Manifests compiles and renders a JSON value with the variables of the scope
// Objects. It has the shape that the objects kind asks for.
func Manifests(ctx context.Context, field string, tree any, vars map[string]any) (any, error) {
	t, err := CompileTree(Objects, field, tree)
	if err != nil {
		return nil, err
	}
	return t.Render(ctx, vars)
}

// Text compiles and renders a string with the variables of the scope Process;
// the result is always a text. It has the shape that the process kind asks for.
func Text(s string, vars map[string]any) (string, error) {
	t, err := Compile(Process, s)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	return t.text(ctx, newBudget(), vars)
}

// Ready evaluates a readiness expression over objects, JSON values in the order
// of the template. It has the shape that the objects kind asks for.
//
// An expression that cannot be evaluated over these objects, because a field is
// missing from a status that is still empty, say, is false, and why says so. An
// error means that it cannot be told: the expression does not compile, is no
// condition, or exceeds a limit.
func Ready(ctx context.Context, expression string, objects []any) (ok bool, why string, err error) {
	p, err := compile(Readiness, expression, 1, 1)
	if err != nil {
		return false, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	v, err := p.eval(ctx, newBudget(), map[string]any{"objects": objects})
	var failed *types.Err
	switch {
	case errors.Is(err, errLimit):
		return false, "", err
	case errors.As(err, &failed):
		return false, failed.Error(), nil
	case err != nil:
		return false, "", err
	}
	b, isBool := v.(types.Bool)
	if !isBool {
		return false, "", fmt.Errorf("it is no condition: it comes to a value of type %s, not bool", v.Type().TypeName())
	}
	return bool(b), "", nil
}

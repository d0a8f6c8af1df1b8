package render

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/utils/lru"
)

// Template is a string that was compiled.
type Template struct {
	segments []segment
	// programs has one for each segment, nil for text.
	programs []*program
}

// program is an expression that was compiled. It is safe for concurrent use.
type program struct {
	cel.Program
	// ports and sources are those that the expression mentions by name.
	ports, sources []reference
}

// programs holds what was compiled lately: the same few expressions are
// rendered for each member and each incarnation.
var programs = lru.New(2 * maxExpressions)

type programKey struct {
	scope  Scope
	source string
}

// Compile reads a template. Its errors say in which line and column they are;
// if there may be several, they are of type Errors.
func Compile(scope Scope, s string) (*Template, error) {
	segments, err := scan(s)
	if err != nil {
		return nil, err
	}
	t := &Template{segments: segments, programs: make([]*program, len(segments))}
	var errs Errors
	for i, seg := range segments {
		if !seg.expr {
			continue
		}
		line, column := lineColumn(s, seg.at)
		if t.programs[i], err = compile(scope, seg.text, line, column); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errs.err(); err != nil {
		return nil, err
	}
	return t, nil
}

// expressions counts the expressions in the template.
func (t *Template) expressions() int {
	n := 0
	for _, p := range t.programs {
		if p != nil {
			n++
		}
	}
	return n
}

// value renders the template. One that is a single expression has its value.
func (t *Template) value(ctx context.Context, b *budget, vars map[string]any) (any, error) {
	if len(t.programs) != 1 || t.programs[0] == nil {
		return t.text(ctx, b, vars)
	}
	v, err := t.programs[0].eval(ctx, b, vars)
	if err != nil {
		return nil, t.errorIn(0, err)
	}
	result, err := b.native(v)
	if err != nil {
		return nil, t.errorIn(0, err)
	}
	return result, nil
}

// text renders the template to a text.
func (t *Template) text(ctx context.Context, b *budget, vars map[string]any) (string, error) {
	var result strings.Builder
	for i, seg := range t.segments {
		if !seg.expr {
			result.WriteString(seg.text)
			continue
		}
		v, err := t.programs[i].eval(ctx, b, vars)
		if err != nil {
			return "", t.errorIn(i, err)
		}
		s, err := b.text(v)
		if err != nil {
			return "", t.errorIn(i, err)
		}
		result.WriteString(s)
	}
	return result.String(), nil
}

func (t *Template) errorIn(segment int, err error) error {
	return fmt.Errorf("${%s}: %w", abbreviate(t.segments[segment].text), err)
}

// compile returns the program of an expression that starts at the line and
// column, which count from 1.
func compile(scope Scope, source string, line, column int) (*program, error) {
	key := programKey{scope, source}
	if cached, ok := programs.Get(key); ok {
		if p, ok := cached.(*program); ok {
			return p, nil
		}
	}
	if strings.TrimSpace(source) == "" {
		return nil, fmt.Errorf("%s: there is no expression%s", words(line, column), escapeHint)
	}
	if n := utf8.RuneCountInString(source); n > maxExpression {
		return nil, fmt.Errorf("%s: the expression is too long: %d characters, at most %d", words(line, column), n, maxExpression)
	}
	environment, ok := environments[scope]
	if !ok {
		return nil, fmt.Errorf("scope %d is unknown", scope)
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, explain(scope, issues, line, column)
	}
	if t := checked.OutputType(); scope == Readiness && !t.IsAssignableType(cel.BoolType) {
		return nil, fmt.Errorf("%s: it is no condition: it comes to a value of type %s, not bool", words(line, column), t)
	}
	prg, err := env.Program(checked, append(guards(), cel.CustomDecoratorV2(orderLiterals))...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", words(line, column), err)
	}
	p := &program{
		Program: prg, ports: references(checked.NativeRep(), "ports"), sources: references(checked.NativeRep(), "sources"),
	}
	programs.Add(key, p)
	return p, nil
}

// explain returns the first of the issues, which as a rule is the cause of the
// others, in words and at its place in the template.
func explain(scope Scope, issues *cel.Issues, line, column int) error {
	first := issues.Errors()[0]
	at := first.Location
	if at.Line() > 1 {
		line, column = line+at.Line()-1, 1
	}
	column += max(at.Column(), 0)
	message := strings.ReplaceAll(first.Message, " (in container '')", "")
	foreign := strings.HasPrefix(message, "undeclared reference") || strings.HasPrefix(message, "Syntax error")
	if foreign && scope != Readiness {
		message += escapeHint
	}
	return fmt.Errorf("%s: %s", words(line, column), strings.Join(strings.Fields(message), " "))
}

// eval runs the program and charges for it. An error wraps that of ctx if the
// time was up, and so says nothing about the expression.
func (p *program) eval(ctx context.Context, b *budget, vars map[string]any) (ref.Val, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("rendering was stopped: %w", err)
	}
	v, details, err := p.ContextEval(ctx, vars)
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return nil, fmt.Errorf("%w: it costs more than %d", errLimit, maxCost)
	case errors.Is(err, interpreter.InterruptError{}):
		return nil, fmt.Errorf("it took too long: %w", ctx.Err())
	case err != nil:
		return nil, err
	}
	cost := details.ActualCost()
	if cost == nil || *cost > b.cost {
		return nil, fmt.Errorf("%w: the template's expressions together cost more than %d", errLimit, maxTotalCost)
	}
	b.cost -= *cost
	return v, nil
}

// abbreviate shortens a source for an error.
func abbreviate(source string) string {
	const most = 60
	source = strings.Join(strings.Fields(source), " ")
	if utf8.RuneCountInString(source) <= most {
		return source
	}
	return string([]rune(source)[:most-1]) + "…"
}

package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	"go.yaml.in/yaml/v3"
)

// expression is a compiled condition on a picture. It is safe for concurrent
// use.
type expression struct {
	text string
	line int
	prg  cel.Program
	// moments are the seconds at which its value may change with time alone.
	moments []int64
}

// holds reports whether the expression is true of the picture.
func (e *expression) holds(p picture) (bool, error) {
	v, _, err := e.prg.Eval(bindings{p})
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("not a truth value: %v", v)
	}
	return bool(b), nil
}

// language is the environment that all expressions share.
var language = sync.OnceValues(func() (*cel.Env, error) {
	o := []cel.EnvOption{
		cel.CustomTypeProvider(newProvider()),
		cel.Variable("t", cel.IntType),
		cel.Variable("claims", cel.MapType(cel.StringType, claimType)),
		cel.Variable("pools", cel.MapType(cel.StringType, poolType)),
		cel.Variable("groups", cel.MapType(cel.StringType, groupType)),
		cel.Variable("budgets", cel.MapType(cel.StringType, budgetType)),
	}
	for name, f := range poolFields {
		o = append(o, cel.Variable(name, f.Type))
	}
	return cel.NewEnv(o...)
})

// expression compiles the text of a node.
func (p *parser) expression(n *yaml.Node, s *Scenario) *expression {
	text := p.word(n, "expression")
	if text == "" {
		return nil
	}
	c, err := compileOnce(text, s)
	if err != nil {
		p.fail(n, "expression %q: %v", text, err)
		return nil
	}
	e := *c
	e.line = n.Line
	return &e
}

// compiled caches the expressions of files with a single pool, by text: the same
// names are valid in all such files.
var compiled sync.Map

func compileOnce(text string, s *Scenario) (*expression, error) {
	if s.several || len(s.groups) > 0 || len(s.budgets) > 0 {
		return compile(text, s)
	}
	known, _ := compiled.Load(text)
	if e, ok := known.(*expression); ok {
		return e, nil
	}
	e, err := compile(text, s)
	if err == nil {
		compiled.Store(text, e)
	}
	return e, err
}

// longestExpression bounds the cost of compiling an expression.
const longestExpression = 4096

func compile(text string, s *Scenario) (*expression, error) {
	if len(text) > longestExpression {
		return nil, fmt.Errorf("longer than %d bytes", longestExpression)
	}
	env, err := language()
	if err != nil {
		return nil, err
	}
	tree, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, errors.New(firstLine(issues.Errors()[0].Message))
	}
	if tree.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("must be true or false, but is a %s", tree.OutputType())
	}
	if loops(tree) > maxLoops {
		return nil, fmt.Errorf("loops are nested more than %d deep", maxLoops)
	}
	r := names{s: s}
	ast.PreOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(r.visit))
	if r.err != nil {
		return nil, r.err
	}
	prg, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, err
	}
	e := &expression{text: text, prg: prg}
	if r.timed {
		slices.Sort(r.numbers)
		e.moments = slices.Compact(r.numbers)
	}
	return e, nil
}

// maxLoops bounds the cost of evaluating an expression.
const maxLoops = 2

// loops returns how deep all, exists, map and filter are nested.
func loops(tree *cel.Ast) (deepest int) {
	root := ast.NavigateAST(tree.NativeRep())
	for _, e := range ast.MatchDescendants(root, ast.KindMatcher(ast.ComprehensionKind)) {
		n := 1
		for p, ok := e.Parent(); ok; p, ok = p.Parent() {
			if p.Kind() == ast.ComprehensionKind {
				n++
			}
		}
		deepest = max(deepest, n)
	}
	return deepest
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// names checks names that the type checker does not know, and collects times.
type names struct {
	s       *Scenario
	timed   bool
	numbers []int64
	err     error
}

func (r *names) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.LiteralKind:
		if i, ok := e.AsLiteral().(types.Int); ok && i >= 0 && int64(i) < int64(longest.Seconds()) {
			r.numbers = append(r.numbers, int64(i), int64(i)+1)
		}
	case ast.IdentKind:
		r.ident(e.AsIdent())
	case ast.SelectKind:
		r.field(e.AsSelect())
	}
}

// ident refuses fields of one pool in a file with several.
func (r *names) ident(name string) {
	if name == "t" {
		r.timed = true
	}
	if _, isSum := tallyNamed(name); isSum || !r.s.several {
		return
	}
	if _, ok := poolFields[name]; ok {
		r.fail("%s belongs to one pool: write pools.NAME.%s", name, name)
	}
}

func (r *names) field(s ast.SelectExpr) {
	name := s.FieldName()
	switch operandName(s.Operand()) {
	case "conditions":
		if !slices.Contains(conditionNames, name) && !slices.Contains(groupConditions, name) {
			r.fail("there is no condition %q", name)
		}
	case "blockers":
		if !slices.Contains(blockerNames, name) {
			r.fail("there is no blocker %q", name)
		}
	case "pools":
		if r.s.pool(name) == nil {
			r.fail("there is no pool %q", name)
		}
	case "groups":
		if !slices.Contains(r.s.groups, name) {
			r.fail("there is no group %q", name)
		}
	case "budgets":
		if !slices.Contains(r.s.budgets, name) {
			r.fail("there is no budget %q", name)
		}
	}
}

func operandName(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.SelectKind:
		return e.AsSelect().FieldName()
	}
	return ""
}

func (r *names) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// bindings are the variables of an expression.
type bindings struct{ p picture }

func (b bindings) Parent() interpreter.Activation { return nil }

func (b bindings) ResolveName(name string) (any, bool) {
	switch name {
	case "t":
		return b.p.seconds(), true
	case "claims":
		return claimTable(b.p), true
	case "pools":
		return poolTable(b.p), true
	}
	names := b.p.poolNames()
	if i, ok := tallyNamed(name); ok {
		sum := 0
		for _, n := range names {
			sum += b.p.pool(n).tallies[i]
		}
		return int64(sum), true
	}
	if f, ok := poolFields[name]; ok && len(names) == 1 {
		v, err := f.GetFrom(b.p.pool(names[0]))
		return v, err == nil
	}
	return nil, false
}

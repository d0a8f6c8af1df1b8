package render

import (
	"cmp"
	"slices"

	"github.com/google/cel-go/common/ast"
)

// reference is what an expression mentions by name: variable.name, or
// variable["name"], and where there is one, the key that follows it in the same
// way.
type reference struct{ name, key string }

// references returns what follows the variable, sorted, each once. What a
// condition has(…) asks for is not among it.
func references(checked *ast.AST, variable string) []reference {
	var found []reference
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		of, name := member(e)
		if isVariable(of, variable) {
			found = append(found, reference{name: name})
			return
		}
		if outer, source := member(of); isVariable(outer, variable) {
			found = append(found, reference{source, name})
		}
	}))
	slices.SortFunc(found, func(a, b reference) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.key, b.key))
	})
	return slices.Compact(found)
}

// member returns, of X.name or X["name"], X and the name; nil for anything else.
func member(e ast.Expr) (of ast.Expr, name string) {
	if e == nil {
		return nil, ""
	}
	switch e.Kind() {
	case ast.SelectKind:
		if s := e.AsSelect(); !s.IsTestOnly() {
			return s.Operand(), s.FieldName()
		}
	case ast.CallKind:
		args := e.AsCall().Args()
		if e.AsCall().FunctionName() == "_[_]" && args[1].Kind() == ast.LiteralKind {
			if name, ok := args[1].AsLiteral().Value().(string); ok {
				return args[0], name
			}
		}
	}
	return nil, ""
}

func isVariable(e ast.Expr, name string) bool {
	return e != nil && e.Kind() == ast.IdentKind && e.AsIdent() == name
}

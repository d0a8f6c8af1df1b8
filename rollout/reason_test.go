package rollout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// TestReasons: every reason is in the table once, with scope and
// sentence.
func TestReasons(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	blockers, whysFound := map[Reason]bool{}, 0
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		kind, isType := v.Type.(*ast.Ident)
		value, isText := v.Values[0].(*ast.BasicLit)
		if !isType || !isText {
			return true
		}
		text := value.Value[1 : len(value.Value)-1]
		switch kind.Name {
		case "Reason":
			r := Reason(text)
			blockers[r] = true
			if r.Rank() == 0 || r.Sentence() == "" || r.Scope() == "" {
				t.Errorf("%s: rank %d, scope %q, sentence %q", r, r.Rank(), r.Scope(), r.Sentence())
			}
		case "Why":
			whysFound++
			if w := Why(text); w.Sentence() == text {
				t.Errorf("%s has no sentence", w)
			}
		}
		return false
	})
	if len(blockers) != len(Reasons()) || whysFound != len(whys) {
		t.Errorf("%d reasons, %d in the table; %d reasons of actions, %d in the table", len(blockers), len(Reasons()), whysFound, len(whys))
	}
	order := []Scope{OfRollout, OfMember, OfTime, OfPool, OfTurn}
	at := 0
	for _, r := range Reasons() {
		for order[at] != r.Scope() {
			if at++; at == len(order) {
				t.Fatalf("%s comes too late for a reason of scope %s", r, r.Scope())
			}
		}
	}
}

package rollout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestRules: each rule names the functions that decide it, and each of them
// exists.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	functions, rules := map[string]bool{}, 0
	var also []string
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			functions[fn.Name.Name] = true
			if name != "rules.go" {
				continue
			}
			rules++
			text := strings.Join(strings.Fields(fn.Doc.Text()), " ")
			if !strings.Contains(text, "Rule "+strconv.Itoa(rules)+":") {
				t.Errorf("%s is function %d of rules.go, and its comment does not name that rule: %q", fn.Name.Name, rules, text)
			}
			_, list, _ := strings.Cut(text, "Also: ")
			for _, part := range regexp.MustCompile(`[;.]`).Split(list, -1) {
				names := regexp.MustCompile(`, (which|by|for) .*`).ReplaceAllString(part, "")
				also = append(also, regexp.MustCompile(`, | and `).Split(names, -1)...)
			}
		}
	}
	if rules != 12 {
		t.Errorf("there are %d rules", rules)
	}
	named := 0
	for _, name := range also {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if named++; !functions[name] {
			t.Errorf("rules.go names %s, and there is no such function", name)
		}
	}
	if named < 30 {
		t.Errorf("rules.go names %d functions besides its own", named)
	}
}

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one fault that is put into the engine.
type mutant struct {
	name   string
	breaks string   // the rule or the promise that does not hold then
	needs  []string // the kinds of tests that have to notice; none: any of them
	beyond string   // what the states would need that they break it; empty: nothing
	hunks  []*hunk
	source string // file and line
}

// hunk replaces lines of one file that stand there together, once.
type hunk struct {
	file     string
	old, new []string
}

// The kinds of tests, as the files say them.
const (
	unitTest = "test"     // a unit test of rollout
	property = "property" // a property of rollout
	scenario = "scenario" // a file in scenarios/
	world    = "world"    // a random world of simulate
)

// load reads the mutants of all *.txt files of the directory.
func load(dir string) ([]*mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var list []*mutant
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		some, err := parse(file, string(text))
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no *.txt file with mutants", dir)
	}
	seen := map[string]string{}
	for _, m := range list {
		if other := seen[m.name]; other != "" {
			return nil, fmt.Errorf("%s: %s is the name of the mutant at %s, too; choose another one", m.source, m.name, other)
		}
		seen[m.name] = m.source
	}
	return list, nil
}

// parse reads a file of mutants:
//
//	# a comment
//	mutant: holds-overlooked
//	breaks: rule 1, a held member is not disrupted
//	needs: scenario, property
//	file: rules.go
//	  lines that stay
//	- lines that go
//	+ lines that come
//
// needs may be left out: then one test of any kind has to notice. A line states: says
// what the bounds of make states-bite would need for it to be found. The file is
// one of rollout/. Lines are compared without the space around them, and those
// that stay or go have to stand in the file exactly once, one after the other. A
// mutant of several changes has a line file: before each.
func parse(name, text string) ([]*mutant, error) {
	var list []*mutant
	for i, line := range strings.Split(text, "\n") {
		at := fmt.Sprintf("%s:%d", name, i+1)
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if key == "mutant" {
			list = append(list, &mutant{name: value, source: at})
			continue
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%s: the first line has to be mutant: NAME", at)
		}
		if err := list[len(list)-1].line(line, key, value); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	}
	for _, m := range list {
		if m.name == "" || m.breaks == "" || len(m.hunks) == 0 {
			return nil, fmt.Errorf("%s: a mutant needs a name, a line breaks: and a line file:", m.source)
		}
	}
	return list, nil
}

// line takes in one line of a mutant.
func (m *mutant) line(line, key, value string) error {
	switch key {
	case "breaks":
		m.breaks = value
		return nil
	case "states":
		m.beyond = value
		return nil
	case "needs":
		for kind := range strings.SplitSeq(value, ",") {
			kind = strings.TrimSpace(kind)
			if !slices.Contains([]string{unitTest, property, scenario, world}, kind) {
				return fmt.Errorf("needs: %q has to be test, property, scenario or world", kind)
			}
			m.needs = append(m.needs, kind)
		}
		return nil
	case "file":
		m.hunks = append(m.hunks, &hunk{file: filepath.Join("rollout", value)})
		return nil
	}
	if len(m.hunks) == 0 || !strings.ContainsAny(line[:1], " +-") {
		return fmt.Errorf("%q is neither a field nor, after file:, a line that begins with a space, + or -", line)
	}
	h, code := m.hunks[len(m.hunks)-1], strings.TrimSpace(line[1:])
	if line[0] != '+' {
		h.old = append(h.old, code)
	}
	if line[0] != '-' {
		h.new = append(h.new, code)
	}
	return nil
}

// checkAll returns which mutants cannot be put in, or cannot be compiled then.
func checkAll(list []*mutant) error {
	files, err := filepath.Glob("rollout/*.go")
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	stdlib := importer.ForCompiler(fset, "source", nil)
	var errs []error
	for _, m := range list {
		changed, err := m.apply()
		if err == nil {
			err = compile(fset, stdlib, files, changed)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", m.source, m.name, err))
		}
	}
	return errors.Join(errs...)
}

// compile checks the types of the engine with some of its files changed.
func compile(fset *token.FileSet, stdlib types.Importer, files []string, changed map[string]string) error {
	var parsed []*ast.File
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		var text any
		if t, ok := changed[name]; ok {
			text = t
		}
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, f)
	}
	config := types.Config{Importer: stdlib}
	_, err := config.Check("rollout", fset, parsed, nil)
	return err
}

// apply returns the files of the engine that the mutant changes, as they are
// then.
func (m *mutant) apply() (map[string]string, error) {
	changed := map[string]string{}
	for _, h := range m.hunks {
		text, ok := changed[h.file]
		if !ok {
			b, err := os.ReadFile(h.file)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		text, err := h.apply(text)
		if err != nil {
			return nil, err
		}
		changed[h.file] = text
	}
	return changed, nil
}

// apply returns the text with the lines replaced.
func (h *hunk) apply(text string) (string, error) {
	lines := strings.Split(text, "\n")
	if len(h.old) == 0 || slices.Equal(h.old, h.new) {
		return "", fmt.Errorf("the change of %s needs lines that stay or go, and has to change something", h.file)
	}
	at, found := 0, 0
	for i := 0; i+len(h.old) <= len(lines); i++ {
		if slices.EqualFunc(lines[i:i+len(h.old)], h.old, func(line, old string) bool { return strings.TrimSpace(line) == old }) {
			at = i
			found++
		}
	}
	switch found {
	case 0:
		return "", fmt.Errorf("%s has no such lines any more; bring the mutant up to date or remove it:\n\t%s", h.file, strings.Join(h.old, "\n\t"))
	case 1:
		return strings.Join(slices.Replace(lines, at, at+len(h.old), h.new...), "\n"), nil
	}
	return "", fmt.Errorf("%s has these lines %d times; add some that stay before or after them:\n\t%s", h.file, found, strings.Join(h.old, "\n\t"))
}

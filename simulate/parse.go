package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Error is one error in a scenario file.
type Error struct {
	File string
	// Line counts from 1; 0 for the file as a whole.
	Line int
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Text
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
}

// parser collects the errors of one file, and the features it needs that the
// simulator does not have yet.
type parser struct {
	file  string
	errs  []*Error
	needs []string
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) {
	e := &Error{File: p.file, Text: fmt.Sprintf(format, args...)}
	if n != nil {
		e.Line = n.Line
	}
	p.errs = append(p.errs, e)
}

// need records a feature that the simulator does not have yet.
func (p *parser) need(what string) {
	if !slices.Contains(p.needs, what) {
		p.needs = append(p.needs, what)
	}
}

// err returns all errors joined, sorted by line; nil for none.
func (p *parser) err() error {
	slices.SortStableFunc(p.errs, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	list := make([]error, len(p.errs))
	for i, e := range p.errs {
		list[i] = e
	}
	return errors.Join(list...)
}

// pair is one entry of a mapping.
type pair struct {
	name       string
	key, value *yaml.Node
}

// mapping returns the entries of a mapping in the order of the file.
func (p *parser) mapping(n *yaml.Node, what string) []pair {
	if n.Kind != yaml.MappingNode {
		p.fail(n, "%s must be a mapping", what)
		return nil
	}
	list := make([]pair, 0, len(n.Content)/2)
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		switch {
		case k.Kind != yaml.ScalarNode:
			p.fail(k, "%s: keys must be plain words", what)
			continue
		case seen[k.Value]:
			p.fail(k, "%s: %q is given twice", what, k.Value)
			continue
		}
		seen[k.Value] = true
		list = append(list, pair{k.Value, k, n.Content[i+1]})
	}
	return list
}

// fields calls the reader of each field of a mapping, and refuses unknown fields.
func (p *parser) fields(n *yaml.Node, what string, read map[string]func(*yaml.Node)) {
	for _, f := range p.mapping(n, what) {
		if r, ok := read[f.name]; ok {
			r(f.value)
		} else {
			p.fail(f.key, "%s: unknown field %q", what, f.name)
		}
	}
}

func (p *parser) list(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "%s must be a list", what)
		return nil
	}
	return n.Content
}

func (p *parser) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		p.fail(n, "%s must be a string", what)
		return ""
	}
	return n.Value
}

// word reads a string that is not empty.
func (p *parser) word(n *yaml.Node, what string) string {
	s := p.text(n, what)
	if s == "" && n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		p.fail(n, "%s must not be empty", what)
	}
	return s
}

// oneOf reads one of the given words.
func (p *parser) oneOf(n *yaml.Node, what string, words ...string) string {
	s := p.text(n, what)
	if !slices.Contains(words, s) {
		p.fail(n, "%s must be one of %s, not %q", what, strings.Join(words, ", "), s)
		return words[0]
	}
	return s
}

// number reads an integer from least to most.
func (p *parser) number(n *yaml.Node, what string, least, most int) int {
	var i int
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Decode(&i) != nil || i < least || i > most {
		p.fail(n, "%s must be a number from %d to %d, not %q", what, least, most, n.Value)
		return least
	}
	return i
}

func (p *parser) truth(n *yaml.Node, what string) bool {
	var b bool
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&b) != nil {
		p.fail(n, "%s must be true or false", what)
	}
	return b
}

// longest is the longest duration in a file, far from the overflow of sums.
const longest = 10 * 365 * 24 * time.Hour

// duration reads a time span such as 1h30m, 0 or more.
func (p *parser) duration(n *yaml.Node, what string) time.Duration {
	if n.Kind == yaml.ScalarNode {
		d, err := time.ParseDuration(n.Value)
		if err == nil && d >= 0 && d <= longest {
			return d
		}
	}
	p.fail(n, "%s must be a duration such as 1h30m or 0s, not %q", what, n.Value)
	return 0
}

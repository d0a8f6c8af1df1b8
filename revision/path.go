package revision

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxPath is the maximum length of a path as text, in bytes.
const maxPath = 256

// path is a place in a document. It is a linked list from the inside out, so
// that a step costs little and text is built only if the path is shown.
type path struct {
	outer *path
	key   string
	index int // of a list's element; -1: a member, named by key
}

func root() *path                     { return &path{key: "template", index: -1} }
func (p *path) member(k string) *path { return &path{outer: p, key: k, index: -1} }
func (p *path) element(i int) *path   { return &path{outer: p, index: i} }

// String returns the path as text: template.process.args[2]. Keys that are not
// plain words are quoted: template.process.env["a.b"]. A text longer than
// maxPath is cut and ends in "…".
func (p *path) String() string {
	var b strings.Builder
	p.write(&b)
	s := b.String()
	if len(s) <= maxPath {
		return s
	}
	cut := maxPath - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func (p *path) write(b *strings.Builder) {
	if p.outer != nil {
		p.outer.write(b)
	}
	switch {
	case p.index >= 0:
		b.WriteString("[" + strconv.Itoa(p.index) + "]")
	case p.outer == nil:
		b.WriteString(p.key)
	case plain(p.key):
		b.WriteString("." + p.key)
	default:
		b.WriteString("[" + strconv.Quote(p.key) + "]")
	}
}

// plain reports whether a key needs no quotes.
func plain(key string) bool {
	for _, c := range []byte(key) {
		word := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
		if !word {
			return false
		}
	}
	return key != ""
}

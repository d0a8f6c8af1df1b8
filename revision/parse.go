package revision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is the maximum nesting of lists and objects; a list in an object has
// depth 2.
const MaxDepth = 128

// parse reads one JSON document into nil, bool, number, string, []any and
// map[string]any. Strings and numbers are in canonical form. An empty list or
// object is returned as nil, and members that are nil are dropped from objects.
func parse(document []byte) (any, error) {
	// The token decoder accepts some invalid syntax, so the syntax is checked
	// first.
	var raw json.RawMessage
	if err := json.Unmarshal(document, &raw); err != nil {
		return nil, fmt.Errorf("parse template: %w", err)
	}
	if !utf8.Valid(document) {
		return nil, errors.New("parse template: invalid UTF-8")
	}
	if i := halfSurrogate(document); i >= 0 {
		return nil, fmt.Errorf("parse template: half a surrogate pair at offset %d", i)
	}
	p := parser{dec: json.NewDecoder(bytes.NewReader(document))}
	p.dec.UseNumber()
	return p.value(root(), 0)
}

// halfSurrogate returns the offset of the first \u escape that is one half of
// a surrogate pair without the other, or -1. encoding/json would replace it
// silently. The document must be valid JSON, in which every backslash begins an
// escape.
func halfSurrogate(document []byte) int {
	for i := 0; i < len(document); i++ {
		if document[i] != '\\' {
			continue
		}
		i++ // the escaped character
		high := codeUnit(document[i:])
		if !utf16.IsSurrogate(high) {
			continue
		}
		next := document[i+5:]
		if next[0] != '\\' || utf16.DecodeRune(high, codeUnit(next[1:])) == utf8.RuneError {
			return i - 1
		}
		i += 6
	}
	return -1
}

// codeUnit reads uXXXX; it returns 0 for anything else.
func codeUnit(b []byte) rune {
	if len(b) < 5 || b[0] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[1:5]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// parser reads values from a document with valid syntax.
type parser struct{ dec *json.Decoder }

func (p parser) value(at *path, depth int) (any, error) {
	token, err := p.dec.Token()
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", at, err)
	}
	switch t := token.(type) {
	case json.Number:
		n, err := parseNumber(t.String())
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", at, err)
		}
		return n, nil
	case json.Delim:
		if depth == MaxDepth {
			return nil, fmt.Errorf("parse %s: nested more than %d deep", at, MaxDepth)
		}
		if t == '[' {
			return p.list(at, depth+1)
		}
		return p.object(at, depth+1)
	default:
		return t, nil
	}
}

// list reads the rest of a list, after its opening bracket.
func (p parser) list(at *path, depth int) (any, error) {
	var list []any
	for p.dec.More() {
		v, err := p.value(at.element(len(list)), depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	if len(list) == 0 {
		return nil, p.end(at)
	}
	return list, p.end(at)
}

// object reads the rest of an object, after its opening brace.
func (p parser) object(at *path, depth int) (any, error) {
	object, seen := map[string]any{}, map[string]bool{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", at, err)
		}
		key, _ := token.(string) // the syntax allows nothing else
		if seen[key] {
			return nil, fmt.Errorf("parse %s: duplicate key", at.member(key))
		}
		seen[key] = true
		v, err := p.value(at.member(key), depth)
		if err != nil {
			return nil, err
		}
		if v != nil {
			object[key] = v
		}
	}
	if len(object) == 0 {
		return nil, p.end(at)
	}
	return object, p.end(at)
}

// end consumes the closing bracket or brace.
func (p parser) end(at *path) error {
	if _, err := p.dec.Token(); err != nil {
		return fmt.Errorf("parse %s: %w", at, err)
	}
	return nil
}

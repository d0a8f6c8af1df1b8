package fieldpath

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a path: how many steps it may have, and how long a list may be.
const (
	maxSteps = 100
	maxIndex = 1_000_000
)

// Parse reads a path. An error says at which character, counted from 1, and
// what is expected there.
func Parse(s string) (Path, error) {
	p := parser{rest: s}
	for p.rest != "" || p.path == nil {
		if err := p.step(); err != nil {
			at := utf8.RuneCountInString(s[:len(s)-len(p.rest)]) + 1
			return nil, fmt.Errorf("path %s: character %d: %w", strconv.Quote(s), at, err)
		}
	}
	return p.path, nil
}

// ParseAll reads several paths. Its error is that of the first bad one.
func ParseAll(texts []string) ([]Path, error) {
	paths := make([]Path, len(texts))
	for i, s := range texts {
		p, err := Parse(s)
		if err != nil {
			return nil, err
		}
		paths[i] = p
	}
	return paths, nil
}

type parser struct {
	rest string
	path Path
}

// step reads the next step. On an error, rest begins where it is.
func (p *parser) step() error {
	if len(p.path) == maxSteps {
		return fmt.Errorf("a path has at most %d steps", maxSteps)
	}
	if strings.HasPrefix(p.rest, "[") {
		p.rest = p.rest[1:]
		return p.brackets()
	}
	switch dot := strings.HasPrefix(p.rest, "."); {
	case p.path == nil:
	case dot:
		p.rest = p.rest[1:]
	default:
		return fmt.Errorf(`a dot, a "[" or the end is expected here; a name with other characters is written ["like this"]`)
	}
	n := 0
	for n < len(p.rest) && letter(p.rest[n], n == 0) {
		n++
	}
	if n == 0 {
		return fmt.Errorf(`a name is expected here; one that is more than letters, digits, "_" and "-" is written ["like this"], an index [0]`)
	}
	p.path, p.rest = append(p.path, Step{Name: p.rest[:n]}), p.rest[n:]
	return nil
}

// brackets reads what follows a "[", and the "]".
func (p *parser) brackets() error {
	step, rest, err := inBrackets(p.rest)
	if err != nil {
		return err
	}
	p.rest = rest
	if !strings.HasPrefix(rest, "]") {
		return fmt.Errorf(`a "]" is expected here`)
	}
	p.path, p.rest = append(p.path, step), rest[1:]
	return nil
}

func inBrackets(s string) (Step, string, error) {
	switch {
	case strings.HasPrefix(s, `"`):
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return Step{}, "", fmt.Errorf("this name in quotes does not end, or has an escape that is none")
		}
		name, _ := strconv.Unquote(quoted)
		return named(name, s[len(quoted):])
	case strings.HasPrefix(s, "'"):
		name, rest, ok := strings.Cut(s[1:], "'")
		if !ok {
			return Step{}, "", fmt.Errorf("this name in quotes does not end")
		}
		return named(name, rest)
	}
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	n, err := strconv.Atoi(s[:digits])
	switch {
	case digits == 0:
		return Step{}, "", fmt.Errorf(`an index such as [0], or a name in quotes, is expected here`)
	case err != nil || n > maxIndex:
		return Step{}, "", fmt.Errorf("an index is at most %d", maxIndex)
	}
	return Step{Index: n}, s[digits:], nil
}

func named(name, rest string) (Step, string, error) {
	if name == "" || !utf8.ValidString(name) {
		return Step{}, "", fmt.Errorf("a name is valid text, and not empty")
	}
	return Step{Name: name}, rest, nil
}

// plain tells whether a name needs no quotes.
func plain(name string) bool {
	for i := range len(name) {
		if !letter(name[i], i == 0) {
			return false
		}
	}
	return name != ""
}

// letter tells whether a name without quotes may have the byte.
func letter(c byte, first bool) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_':
		return true
	}
	return !first && ('0' <= c && c <= '9' || c == '-')
}

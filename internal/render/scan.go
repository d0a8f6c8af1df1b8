package render

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// escapeHint ends errors about what may not have been meant as an expression.
const escapeHint = " (for a literal ${ write $${)"

// segment is a piece of a template: literal text, escapes resolved, or the
// source of an expression.
type segment struct {
	text string
	expr bool
	// at is the byte offset of an expression's source in the template.
	at int
}

// scan cuts a template into segments. Neighbouring pieces of text are one
// segment, and none is empty but an empty expression.
func scan(s string) ([]segment, error) {
	var segments []segment
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			segments = append(segments, segment{text: text.String()})
			text.Reset()
		}
	}
	for i := 0; i < len(s); {
		switch rest := s[i:]; {
		case strings.HasPrefix(rest, "$${"):
			text.WriteString("${")
			i += len("$${")
		case strings.HasPrefix(rest, "${"):
			start := i + len("${")
			end, err := endOfExpression(s, start)
			if err != nil {
				return nil, err
			}
			flush()
			segments = append(segments, segment{text: s[start:end], expr: true, at: start})
			i = end + len("}")
		default:
			text.WriteByte(s[i])
			i++
		}
	}
	flush()
	return segments, nil
}

// endOfExpression returns the offset of the brace that closes the expression
// which starts at start.
func endOfExpression(s string, start int) (int, error) {
	depth := 0
	for i := start; i < len(s); i++ {
		switch c := s[i]; {
		case c == '{':
			depth++
		case c == '}' && depth == 0:
			return i, nil
		case c == '}':
			depth--
		case c == '"' || c == '\'':
			end := endOfString(s, i)
			if end < 0 {
				return 0, fmt.Errorf("%s: the string that starts here does not end", position(s, i))
			}
			i = end - 1
		case strings.HasPrefix(s[i:], "//"):
			line := strings.IndexByte(s[i:], '\n')
			if line < 0 {
				line = len(s) - i
			}
			i += line
		}
	}
	return 0, fmt.Errorf("%s: the ${ that starts here has no closing }%s",
		position(s, start-len("${")), escapeHint)
}

// endOfString returns the offset behind the string literal whose opening quote
// is at i, or -1 if it does not end.
func endOfString(s string, i int) int {
	quote, raw := s[i:i+1], isRaw(s[:i])
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s[i:], triple) {
		quote = triple
	}
	for j := i + len(quote); j < len(s); j++ {
		switch {
		case s[j] == '\\' && !raw:
			j++
		case s[j] == '\n' && len(quote) == 1:
			return -1
		case strings.HasPrefix(s[j:], quote):
			return j + len(quote)
		}
	}
	return -1
}

// isRaw says whether the word directly before a quote makes a raw string of it,
// in which a backslash stands for itself.
func isRaw(before string) bool {
	word := before[strings.LastIndexFunc(before, func(r rune) bool { return !isWord(r) })+1:]
	switch strings.ToLower(word) {
	case "r", "br":
		return true
	}
	return false
}

func isWord(r rune) bool {
	return r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
}

// position says in words where a byte offset is; both numbers start at 1, and
// columns count characters.
func position(s string, offset int) string {
	line, column := lineColumn(s, offset)
	return words(line, column)
}

func words(line, column int) string {
	return fmt.Sprintf("line %d, column %d", line, column)
}

func lineColumn(s string, offset int) (line, column int) {
	before := s[:offset]
	return strings.Count(before, "\n") + 1,
		utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}

package source

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Values are what expressions see of sources.
type Values struct {
	// ByName are the values of ${sources.NAME}: a map for a ConfigMap or Secret,
	// of texts, or bytes where a key's content is no text; any JSON value for a
	// field of an object. Nobody changes them.
	ByName map[string]any

	// redact is nil where there is nothing secret.
	redact func() *redactor
}

// Map is ByName; nil of nil.
func (v *Values) Map() map[string]any {
	if v == nil {
		return nil
	}
	return v.ByName
}

// How much of a Secret is looked for in messages: a shorter text would be found
// everywhere.
const (
	minSecret = 4
	minLine   = 8
)

// redacted stands in messages for what is secret.
const redacted = "[secret]"

// Redact returns a message in which nothing is left of the content of Secrets
// and of whatever is treated as one: neither a key's whole text, nor one of its
// lines, nor either of them quoted or in base64, nor, since messages may have
// been cut, 12 bytes of it in a row. Texts of less than 4 bytes, lines of less
// than 8, are not looked for. Without secrets it is the message as it is; so it
// is of nil.
func (v *Values) Redact(message string) string {
	if v == nil || v.redact == nil {
		return message
	}
	r := v.redact()
	return r.pieces(r.whole.Replace(message))
}

// NewValues are the values by name, and what of them is not to be said.
func NewValues(byName map[string]any, secrets ...[]byte) *Values {
	v := &Values{ByName: byName}
	if len(secrets) > 0 {
		v.redact = sync.OnceValue(func() *redactor { return newRedactor(secrets) })
	}
	return v
}

func newValues(parts []part) *Values {
	byName := make(map[string]any, len(parts))
	var secrets [][]byte
	for i := range parts {
		p := &parts[i]
		byName[p.name] = p.native()
		if p.secret {
			secrets = append(secrets, p.texts()...)
		}
	}
	return NewValues(byName, secrets...)
}

// texts are all that the part holds; of what is base64, also what that means.
func (p *part) texts() [][]byte {
	var all [][]byte
	for _, content := range p.keys {
		all = append(all, content)
	}
	eachText(p.value, func(text string) {
		all = append(all, []byte(text))
		if content, err := base64.StdEncoding.DecodeString(text); err == nil {
			all = append(all, content)
		}
	})
	return all
}

// hide adds the forms in which a secret may stand in a message.
func hide(hidden map[string]bool, content []byte) {
	text := string(content)
	add := func(s string, least int) {
		if len(s) < least {
			return
		}
		hidden[s] = true
		quoted := strconv.Quote(s)
		hidden[quoted[1:len(quoted)-1]] = true
	}
	add(text, minSecret)
	add(strings.TrimSpace(text), minSecret)
	add(strings.Join(strings.Fields(text), " "), minSecret)
	add(base64.StdEncoding.EncodeToString(content), minLine)
	for line := range strings.SplitSeq(text, "\n") {
		add(strings.TrimSpace(line), minLine)
	}
}

// redactor knows what is secret.
type redactor struct {
	whole *strings.Replacer
	// texts are all that have minPiece bytes or more.
	texts []string
}

// minPiece is how many bytes in a row give a secret away.
const minPiece = 12

// pieces replaces what of a secret is left in a message that was cut before it
// came here.
func (r *redactor) pieces(message string) string {
	var out strings.Builder
	shown := 0
	for i := 0; i+minPiece <= len(message); {
		if !r.has(message[i : i+minPiece]) {
			i++
			continue
		}
		end := i + minPiece
		for end < len(message) && r.has(message[end-minPiece+1:end+1]) {
			end++
		}
		out.WriteString(message[shown:i] + redacted)
		shown, i = end, end
	}
	if shown == 0 {
		return message
	}
	return out.String() + message[shown:]
}

func (r *redactor) has(piece string) bool {
	return slices.ContainsFunc(r.texts, func(text string) bool { return strings.Contains(text, piece) })
}

// newRedactor finds the longest first.
func newRedactor(secrets [][]byte) *redactor {
	hidden := map[string]bool{}
	for _, content := range secrets {
		hide(hidden, content)
	}
	texts := make([]string, 0, len(hidden))
	for s := range hidden {
		texts = append(texts, s)
	}
	slices.SortFunc(texts, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	r := &redactor{}
	pairs := make([]string, 0, 2*len(texts))
	for _, s := range texts {
		pairs = append(pairs, s, redacted)
		if len(s) >= minPiece {
			r.texts = append(r.texts, s)
		}
	}
	r.whole = strings.NewReplacer(pairs...)
	return r
}

func eachText(value any, f func(string)) {
	switch v := value.(type) {
	case string:
		f(v)
	case []any:
		for _, e := range v {
			eachText(e, f)
		}
	case map[string]any:
		for _, e := range v {
			eachText(e, f)
		}
	}
}

package revision

import (
	"maps"
	"slices"
	"strconv"
)

// Canonical returns the canonical form of a JSON document, which is JSON too.
// Two documents have the same canonical form exactly if they mean the same, as
// the package comment defines it. The canonical form of a canonical form is
// itself, and that of every empty document is null.
//
// An error names the problem and, except for syntax errors, its path.
func Canonical(document []byte) ([]byte, error) {
	v, err := parse(document)
	if err != nil {
		return nil, err
	}
	return appendValue(make([]byte, 0, len(document)), v), nil
}

// appendValue appends the JSON text of a value as parse returns it.
func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case number:
		return append(dst, v...)
	case string:
		return appendString(dst, v)
	case []any:
		return appendList(dst, v)
	case map[string]any:
		return appendObject(dst, v)
	default:
		return append(dst, "null"...)
	}
}

func appendList(dst []byte, list []any) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendValue(dst, v)
	}
	return append(dst, ']')
}

// appendObject sorts the keys by their bytes, which for UTF-8 is the order of
// code points.
func appendObject(dst []byte, object map[string]any) []byte {
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, key)
		dst = append(dst, ':')
		dst = appendValue(dst, object[key])
	}
	return append(dst, '}')
}

// appendString escapes only what JSON requires. encoding/json escapes more, and
// differs between releases.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

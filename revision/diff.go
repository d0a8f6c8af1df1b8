package revision

import (
	"fmt"
	"maps"
	"slices"
)

// MaxDiff is the number of paths that Diff returns at most.
const MaxDiff = 16

// Diff returns the paths at which two documents differ, such as
// template.process.args[2], sorted by key, and by index in a list. A subtree
// that only one document has is one path, its outermost. Documents with the
// same canonical form have no difference. If there are more than [MaxDiff]
// paths, the last string counts the rest: "and 3 more". A path of more than 256
// bytes is cut.
//
// A document that [Canonical] refuses differs as a whole from every other.
func Diff(a, b []byte) []string {
	before, errBefore := parse(a)
	after, errAfter := parse(b)
	if errBefore != nil || errAfter != nil {
		if slices.Equal(a, b) {
			return nil
		}
		return []string{root().String()}
	}
	var paths []string
	more := 0
	onDifference(func(at *path, _, _ any) {
		if len(paths) == MaxDiff {
			more++
			return
		}
		paths = append(paths, at.String())
	}).values(root(), before, after)
	if more > 0 {
		paths[MaxDiff-1] = fmt.Sprintf("and %d more", more+1)
	}
	return paths
}

// Change is one difference between two documents.
type Change struct {
	// Path is the place, written as by Diff.
	Path string
	// Before and After are the canonical forms of the two values at Path; nil if
	// the document has none.
	Before, After []byte
}

// Changes returns all differences of two documents, in the order of [Diff]. A
// document that [Canonical] refuses is an error.
func Changes(a, b []byte) ([]Change, error) {
	before, err := parse(a)
	if err != nil {
		return nil, err
	}
	after, err := parse(b)
	if err != nil {
		return nil, err
	}
	var found []Change
	onDifference(func(at *path, a, b any) {
		found = append(found, Change{Path: at.String(), Before: text(a), After: text(b)})
	}).values(root(), before, after)
	return found, nil
}

// text returns the canonical form of a value that parse returned.
func text(v any) []byte {
	if v == nil {
		return nil
	}
	return appendValue(nil, v)
}

// onDifference is called for each difference of two documents.
type onDifference func(at *path, a, b any)

func (d onDifference) values(at *path, a, b any) {
	switch a := a.(type) {
	case []any:
		if b, ok := b.([]any); ok {
			d.lists(at, a, b)
			return
		}
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			d.objects(at, a, b)
			return
		}
	default:
		if scalar(b) && a == b {
			return
		}
	}
	d(at, a, b)
}

func (d onDifference) lists(at *path, a, b []any) {
	both := min(len(a), len(b))
	for i := range both {
		d.values(at.element(i), a[i], b[i])
	}
	for i := both; i < len(a); i++ {
		d(at.element(i), a[i], nil)
	}
	for i := both; i < len(b); i++ {
		d(at.element(i), nil, b[i])
	}
}

func (d onDifference) objects(at *path, a, b map[string]any) {
	keys := slices.Collect(maps.Keys(a))
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		// No member is nil, so an absent member differs from every present one.
		d.values(at.member(key), a[key], b[key])
	}
}

// scalar reports whether a value is neither a list nor an object. Only scalars
// can be compared with ==.
func scalar(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}

package revision

import (
	"fmt"
	"maps"
	"slices"
)

// MaxDiff is the number of paths that Diff returns at most.
const MaxDiff = 16

// Diff returns the paths in which two documents differ, such as
// template.process.args[2]: sorted by key, a list's elements by index. What
// only one of them has is named by its outermost path. Documents with one
// canonical form have no difference. At most [MaxDiff] strings are returned,
// the last of which then says how many there are besides, "and 3 more"; a path
// of more than 256 bytes is cut.
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
	var d differ
	d.values(root(), before, after)
	if d.more > 0 {
		last := len(d.paths) - 1
		d.paths[last] = fmt.Sprintf("and %d more", d.more+1)
	}
	return d.paths
}

// differ collects paths until there are enough, and counts from there.
type differ struct {
	paths []string
	more  int
}

func (d *differ) add(at *path) {
	if len(d.paths) == MaxDiff {
		d.more++
		return
	}
	d.paths = append(d.paths, at.String())
}

func (d *differ) values(at *path, a, b any) {
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
	d.add(at)
}

func (d *differ) lists(at *path, a, b []any) {
	both := min(len(a), len(b))
	for i := range both {
		d.values(at.element(i), a[i], b[i])
	}
	for i := both; i < max(len(a), len(b)); i++ {
		d.add(at.element(i))
	}
}

func (d *differ) objects(at *path, a, b map[string]any) {
	keys := slices.Collect(maps.Keys(a))
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		// No member is nil: an absent one differs from all that are there.
		d.values(at.member(key), a[key], b[key])
	}
}

// scalar says whether a value is neither a list nor an object, and therefore
// comparable.
func scalar(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}

// Package fieldpath names places in JSON trees, as users write them:
// spec.containers[0].image, metadata.labels["a.b/c"].
//
// A tree is a JSON value: nil, bool, numbers, string, []any, map[string]any.
//
// A path is names and indices. A name follows a dot, but for the first one;
// one that is more than letters, digits, "_" and "-", or begins with a digit or
// "-", is written in brackets and quotes, single or double ones. An index, from
// 0, is written in brackets.
package fieldpath

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Path is where a value stands in a tree. The empty one is the tree itself.
type Path []Step

// Step leads from a value to one inside of it: to the field Name of a map or,
// where Name is empty, to the element Index of a list.
type Step struct {
	Name  string
	Index int
}

// ErrAbsent says that there is nothing at a path. Test with errors.Is.
var ErrAbsent = errors.New("there is nothing at this path")

// String writes the path; Parse reads it back.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.Name == "":
			fmt.Fprintf(&b, "[%d]", s.Index)
		case !plain(s.Name):
			b.WriteString("[" + strconv.Quote(s.Name) + "]")
		case i > 0:
			b.WriteString("." + s.Name)
		default:
			b.WriteString(s.Name)
		}
	}
	return b.String()
}

// And is the path with one more step.
func (p Path) And(s Step) Path { return append(slices.Clone(p), s) }

// Within tells whether the path is at or below the other one.
func (p Path) Within(other Path) bool {
	return len(p) >= len(other) && slices.Equal(p[:len(other)], other)
}

// Compare orders paths: an earlier element of a list before a later one, and
// everything after what it is within.
func (p Path) Compare(other Path) int {
	return slices.CompareFunc(p, other, func(a, b Step) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return a.Index - b.Index
	})
}

// Get returns the value at the path, which shares memory with the tree. An
// error wraps ErrAbsent and says how far the path leads.
func (p Path) Get(tree any) (any, error) {
	for i, s := range p {
		next, err := s.into(tree)
		if err != nil {
			return nil, p.at(i, err)
		}
		tree = next
	}
	return tree, nil
}

// Set puts the value at the path and returns the tree, which is changed in
// place where that is possible. Maps that are missing on the way are made;
// elements of lists are not, which is an error that wraps ErrAbsent and leaves
// the tree as it was. The value is not copied.
func (p Path) Set(tree, value any) (any, error) { return p.set(0, tree, value) }

func (p Path) set(i int, tree, value any) (any, error) {
	if i == len(p) {
		return value, nil
	}
	s := p[i]
	if tree == nil && s.Name != "" {
		tree = map[string]any{}
	}
	inner, err := s.into(tree)
	if _, isMap := tree.(map[string]any); err != nil && (!isMap || s.Name == "") {
		return nil, p.at(i, err)
	}
	if inner, err = p.set(i+1, inner, value); err != nil {
		return nil, err
	}
	switch t := tree.(type) {
	case map[string]any:
		t[s.Name] = inner
	case []any:
		t[s.Index] = inner
	}
	return tree, nil
}

// Delete removes what is at the path, if anything is, and returns the tree,
// which is changed in place where that is possible. Later elements of a list
// move up. The tree itself is not removed.
func (p Path) Delete(tree any) any {
	if len(p) == 0 {
		return tree
	}
	s := p[0]
	inner, err := s.into(tree)
	if err != nil {
		return tree
	}
	switch t := tree.(type) {
	case map[string]any:
		if len(p) == 1 {
			delete(t, s.Name)
		} else {
			t[s.Name] = p[1:].Delete(inner)
		}
	case []any:
		if len(p) == 1 {
			return slices.Delete(t, s.Index, s.Index+1)
		}
		t[s.Index] = p[1:].Delete(inner)
	}
	return tree
}

// DeleteAll removes what is at any of the paths, each meant for the tree as it
// is given, and returns the tree as Delete does.
func DeleteAll(tree any, paths []Path) any {
	for _, p := range slices.Backward(sorted(paths)) {
		tree = p.Delete(tree)
	}
	return tree
}

// Overlay brings what is at the paths in from to tree: what is there is put
// in, what is not is removed. A path that leads nowhere in tree, because a list
// on its way is too short, changes nothing. It returns the tree as Set does;
// nothing of from is shared.
func Overlay(tree, from any, paths []Path) any {
	var gone []Path
	for _, p := range sorted(paths) {
		value, err := p.Get(from)
		if err != nil {
			gone = append(gone, p)
			continue
		}
		if next, err := p.Set(tree, Clone(value)); err == nil {
			tree = next
		}
	}
	return DeleteAll(tree, gone)
}

// Clone copies a tree.
func Clone(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for name, v := range t {
			out[name] = Clone(v)
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, v := range t {
			out[i] = Clone(v)
		}
		return out
	}
	return tree
}

// sorted is the paths in order, each once, and none within another.
func sorted(paths []Path) []Path {
	paths = slices.SortedFunc(slices.Values(paths), Path.Compare)
	return slices.CompactFunc(paths, func(outer, p Path) bool { return p.Within(outer) })
}

// into takes the step.
func (s Step) into(tree any) (any, error) {
	switch t := tree.(type) {
	case map[string]any:
		if s.Name == "" {
			return nil, fmt.Errorf("%w: it is a map, and has no index [%d]", ErrAbsent, s.Index)
		}
		if v, ok := t[s.Name]; ok {
			return v, nil
		}
		return nil, fmt.Errorf("%w: it has no field %s", ErrAbsent, strconv.Quote(s.Name))
	case []any:
		if s.Name != "" {
			return nil, fmt.Errorf("%w: it is a list, and has no field %s; write an index such as [0]", ErrAbsent, strconv.Quote(s.Name))
		}
		if s.Index >= 0 && s.Index < len(t) {
			return t[s.Index], nil
		}
		return nil, fmt.Errorf("%w: it is a list of %d, and has no index [%d]", ErrAbsent, len(t), s.Index)
	case nil:
		return nil, fmt.Errorf("%w: it is empty", ErrAbsent)
	}
	return nil, fmt.Errorf("%w: it is neither a map nor a list", ErrAbsent)
}

// at says where an error is: behind the first n steps.
func (p Path) at(n int, err error) error {
	if n == 0 {
		return err
	}
	return fmt.Errorf("%s: %w", p[:n], err)
}

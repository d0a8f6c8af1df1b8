package fieldpath

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	t.Parallel()
	name := func(s string) Step { return Step{Name: s} }
	index := func(n int) Step { return Step{Index: n} }
	tests := map[string]struct {
		reason string
		text   string
		want   Path
		again  string // as written again, where that differs
		err    string
	}{
		"one name":          {"the shortest", "spec", Path{name("spec")}, "", ""},
		"an index":          {"of a list", "spec.containers[0].image", Path{name("spec"), name("containers"), index(0), name("image")}, "", ""},
		"quotes":            {"labels have dots and slashes", `metadata.labels["a.b/c"].x`, Path{name("metadata"), name("labels"), name("a.b/c"), name("x")}, "", ""},
		"single quotes":     {"as in fieldRef", `metadata.labels['a.b"c']`, Path{name("metadata"), name("labels"), name(`a.b"c`)}, `metadata.labels["a.b\"c"]`, ""},
		"needless quotes":   {"a name is a name", `["spec"]["x-y_1"]`, Path{name("spec"), name("x-y_1")}, "spec.x-y_1", ""},
		"a list of lists":   {"indices follow each other", "[3][0]", Path{index(3), index(0)}, "", ""},
		"a digit in front":  {"needs quotes, so that it is no index", `data["0"]`, Path{name("data"), name("0")}, "", ""},
		"leading zeros":     {"a number all the same", "a[007]", Path{name("a"), index(7)}, "a[7]", ""},
		"nothing":           {"the whole tree has no name", "", nil, "", "character 1: a name is expected here"},
		"a dot in front":    {"that is jsonpath's", ".spec", nil, "", "character 1: a name is expected here"},
		"a dot at the end":  {"something is missing", "spec.", nil, "", "character 6: a name is expected here"},
		"two dots":          {"jsonpath's search", "spec..image", nil, "", "character 6: a name is expected here"},
		"a dot, an index":   {"easily mistyped", "a.[0]", nil, "", "character 3: a name is expected here"},
		"a wildcard":        {"one path is one place", "objects[*].spec", nil, "", "character 9: an index such as [0]"},
		"a negative index":  {"counted from 0", "a[-1]", nil, "", "character 3: an index such as [0]"},
		"a huge index":      {"no list is that long", "a[99999999999999999999]", nil, "", "character 3: an index is at most 1000000"},
		"no bracket":        {"not closed", "a[0", nil, "", `character 4: a "]" is expected here`},
		"no quote":          {"not closed", `a["b]`, nil, "", "character 3: this name in quotes does not end"},
		"no single quote":   {"not closed", `a['b]`, nil, "", "character 3: this name in quotes does not end"},
		"an empty name":     {"no field has one", `a[""]`, nil, "", "character 3: a name is valid text, and not empty"},
		"a slash":           {"needs quotes", "labels.a/b", nil, "", `character 9: a dot, a "[" or the end is expected here`},
		"beyond ASCII":      {"characters are counted, not bytes", `["ä"].ö`, nil, "", "character 7: a name is expected here"},
		"a space":           {"nothing is trimmed", "spec ", nil, "", "character 5: a dot"},
		"a name, no dot":    {"after a bracket", "a[0]b", nil, "", "character 5: a dot"},
		"far too many":      {"bounded", strings.Repeat("[0]", maxSteps+1), nil, "", "a path has at most 100 steps"},
		"as many as may be": {"the bound itself is fine", strings.TrimSuffix(strings.Repeat("a.", maxSteps), "."), Path(repeat(name("a"), maxSteps)), "", ""},
	}
	for label, tt := range tests {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(tt.text)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("%s: error %v, want %q", tt.reason, err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tt.reason, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tt.reason, diff)
			}
			want := tt.again
			if want == "" {
				want = tt.text
			}
			if got.String() != want {
				t.Errorf("%s: written again %s, want %s", tt.reason, got, want)
			}
		})
	}
}

func repeat(s Step, n int) []Step {
	out := make([]Step, n)
	for i := range out {
		out[i] = s
	}
	return out
}

const pod = `{"metadata":{"labels":{"a.b/c":"x"}},"spec":{"containers":[{"image":"one"},{"image":"two"}],"host":null}}`

func TestPath_Get(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ reason, path, want, err string }{
		"a leaf":           {"the value", `metadata.labels["a.b/c"]`, `"x"`, ""},
		"a list's element": {"by its index", "spec.containers[1]", `{"image":"two"}`, ""},
		"null":             {"is a value", "spec.host", "null", ""},
		"no field":         {"said with what leads there", "spec.nodeName", "", `spec: there is nothing at this path: it has no field "nodeName"`},
		"no root field":    {"nothing leads there", "status", "", `there is nothing at this path: it has no field "status"`},
		"beyond the list":  {"and how long it is", "spec.containers[2].image", "", "spec.containers: there is nothing at this path: it is a list of 2, and has no index [2]"},
		"a list's name":    {"the cure is named", "spec.containers.image", "", `spec.containers: there is nothing at this path: it is a list, and has no field "image"; write an index such as [0]`},
		"a map's index":    {"the other way round", "spec[0]", "", "spec: there is nothing at this path: it is a map, and has no index [0]"},
		"into a text":      {"nothing is inside", "spec.containers[0].image.tag", "", "spec.containers[0].image: there is nothing at this path: it is neither a map nor a list"},
		"into null":        {"nothing is inside", "spec.host.name", "", "spec.host: there is nothing at this path: it is empty"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(t, tt.path).Get(tree(t, pod))
			if message(err) != tt.err || err != nil && !errors.Is(err, ErrAbsent) {
				t.Fatalf("%s: error %v, want %q", tt.reason, err, tt.err)
			}
			if err == nil && text(t, got) != tt.want {
				t.Errorf("%s: %s, want %s", tt.reason, text(t, got), tt.want)
			}
		})
	}
}

func TestPath_Set(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ reason, tree, path, want, err string }{
		"another value":     {"replaced", `{"a":{"b":1}}`, "a.b", `{"a":{"b":"new"}}`, ""},
		"an element":        {"replaced", `{"a":[1,2]}`, "a[1]", `{"a":[1,"new"]}`, ""},
		"missing maps":      {"are made", `{}`, "a.b.c", `{"a":{"b":{"c":"new"}}}`, ""},
		"null on the way":   {"is an empty map", `{"a":null}`, "a.b", `{"a":{"b":"new"}}`, ""},
		"a missing element": {"nobody knows what else it holds", `{"a":[1]}`, "a[1].b", `{"a":[1]}`, "a: there is nothing at this path: it is a list of 1, and has no index [1]"},
		"a missing list":    {"as well", `{"x":{}}`, "x.a.b[0]", `{"x":{}}`, "x.a.b: there is nothing at this path: it is empty"},
		"into a text":       {"is not overwritten", `{"a":"text"}`, "a.b", `{"a":"text"}`, "a: there is nothing at this path: it is neither a map nor a list"},
		"a list's name":     {"is not overwritten", `{"a":[]}`, "a.b", `{"a":[]}`, `a: there is nothing at this path: it is a list, and has no field "b"; write an index such as [0]`},
		"a map's index":     {"is not overwritten", `{"a":{}}`, "a[0]", `{"a":{}}`, "a: there is nothing at this path: it is a map, and has no index [0]"},
		"no tree at all":    {"a map is made", `null`, "a", `{"a":"new"}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := tree(t, tt.tree)
			got, err := parse(t, tt.path).Set(before, "new")
			if err != nil {
				got = before
			}
			if message(err) != tt.err || text(t, got) != tt.want {
				t.Errorf("%s: %s, error %v; want %s, %q", tt.reason, text(t, got), err, tt.want, tt.err)
			}
		})
	}
}

func TestDeleteAll(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		paths  []string
		want   string
	}{
		"a field":             {"goes", []string{"a"}, `{"l":[1,2,3],"m":{"x":1,"y":2}}`},
		"a field inside":      {"its map stays", []string{"m.x"}, `{"a":1,"l":[1,2,3],"m":{"y":2}}`},
		"elements":            {"as they were counted before", []string{"l[0]", "l[1]"}, `{"a":1,"l":[3],"m":{"x":1,"y":2}}`},
		"elements, backwards": {"whatever the order", []string{"l[1]", "l[0]"}, `{"a":1,"l":[3],"m":{"x":1,"y":2}}`},
		"twice":               {"once", []string{"l[1]", "l[1]"}, `{"a":1,"l":[1,3],"m":{"x":1,"y":2}}`},
		"what is not there":   {"no change", []string{"b", "m.z", "l[9]", "a.b", "m[0]", "l.x"}, `{"a":1,"l":[1,2,3],"m":{"x":1,"y":2}}`},
		"all, and a part":     {"the whole decides", []string{"m.x", "m"}, `{"a":1,"l":[1,2,3]}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := text(t, DeleteAll(tree(t, `{"a":1,"l":[1,2,3],"m":{"x":1,"y":2}}`), all(t, tt.paths)))
			if got != tt.want {
				t.Errorf("%s: %s, want %s", tt.reason, got, tt.want)
			}
		})
	}
}

func TestOverlay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason     string
		tree, from string
		paths      []string
		want       string
	}{
		"another value":    {"only what is named", `{"a":1,"b":1}`, `{"a":2,"b":2}`, []string{"a"}, `{"a":2,"b":1}`},
		"a new value":      {"maps are made", `{}`, `{"a":{"b":2,"c":3}}`, []string{"a.b"}, `{"a":{"b":2}}`},
		"no value":         {"removed", `{"a":{"b":1,"c":1}}`, `{"a":{}}`, []string{"a.b"}, `{"a":{"c":1}}`},
		"null":             {"is a value", `{"a":1}`, `{"a":null}`, []string{"a"}, `{"a":null}`},
		"a whole list":     {"as long as it is now", `{"l":[1]}`, `{"l":[2,3]}`, []string{"l"}, `{"l":[2,3]}`},
		"a shorter list":   {"what has no counterpart goes", `{"l":[1,2,3]}`, `{"l":[4]}`, []string{"l[1]", "l[0]", "l[2]"}, `{"l":[4]}`},
		"a longer list":    {"an element is no whole", `{"l":[{"x":1}]}`, `{"l":[{"x":2},{"x":3}]}`, []string{"l[0].x", "l[1].x"}, `{"l":[{"x":2}]}`},
		"another shape":    {"leads nowhere", `{"a":"text"}`, `{"a":{"b":1}}`, []string{"a.b"}, `{"a":"text"}`},
		"a part of a part": {"the whole decides", `{"a":{"b":1,"c":1}}`, `{"a":{"b":2}}`, []string{"a.c", "a"}, `{"a":{"b":2}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := tree(t, tt.from)
			got := Overlay(tree(t, tt.tree), from, all(t, tt.paths))
			if text(t, got) != tt.want {
				t.Errorf("%s: %s, want %s", tt.reason, text(t, got), tt.want)
			}
			if text(t, from) != text(t, tree(t, tt.from)) {
				t.Errorf("%s: the tree it is taken from became %s", tt.reason, text(t, from))
			}
		})
	}
}

// What is overlaid is at its paths and nowhere else, is shared with nobody, and
// changes nothing when it is overlaid again. The paths have names alone: a list
// gets shorter each time an element goes.
func TestOverlay_Properties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, from := trees(3).Draw(t, "tree"), trees(3).Draw(t, "from")
		paths := rapid.SliceOfN(names(), 1, 4).Draw(t, "paths")
		given := Clone(from)
		once := Overlay(Clone(before), from, paths)
		if diff := cmp.Diff(once, Overlay(Clone(once), from, paths)); diff != "" {
			t.Errorf("again: (-once +twice)\n%s", diff)
		}
		for _, p := range paths {
			if parent, err := p[:len(p)-1].Get(before); err != nil || parent == nil {
				return // maps may be made on the way
			}
		}
		if diff := cmp.Diff(DeleteAll(Clone(before), paths), DeleteAll(Clone(once), paths)); diff != "" {
			t.Errorf("beside the paths: (-before +after)\n%s", diff)
		}
		for _, p := range paths {
			if again, err := p.And(Step{Name: "inside"}).Set(once, "mark"); err == nil {
				once = again
			}
		}
		if diff := cmp.Diff(given, from); diff != "" {
			t.Errorf("shared: (-before +after)\n%s", diff)
		}
	})
}

// Nothing panics, wherever a path leads, and no list gets longer.
func TestOverlay_Lists(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, from := trees(3).Draw(t, "tree"), trees(3).Draw(t, "from")
		got := Overlay(Clone(before), from, rapid.SliceOfN(mixed(), 1, 4).Draw(t, "paths"))
		list, ok := before.([]any)
		if after, still := got.([]any); ok && (!still || len(after) > len(list)) {
			t.Errorf("%v became %v", before, got)
		}
	})
}

func names() *rapid.Generator[Path] { return pathsOf(Step{Name: "a"}, Step{Name: "b.c"}) }

func mixed() *rapid.Generator[Path] {
	return pathsOf(Step{Name: "a"}, Step{Name: "b.c"}, Step{Index: 0}, Step{Index: 1})
}

func pathsOf(steps ...Step) *rapid.Generator[Path] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(steps), 1, 3), func(s []Step) Path { return s })
}

func trees(depth int) *rapid.Generator[any] {
	leaves := rapid.SampledFrom([]any{nil, "text", true, 1.5})
	if depth == 0 {
		return leaves
	}
	inner := trees(depth - 1)
	return rapid.OneOf(leaves,
		rapid.Map(rapid.SliceOfN(inner, 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b.c"}), inner, 0, 2), func(m map[string]any) any { return m }))
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"spec.containers[0].image", `metadata.labels["a.b/c"]`, "a['b']", "a[", `["\u00e4"]`, "[1000001]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse(s)
		if err != nil {
			return
		}
		again, err := Parse(p.String())
		if err != nil {
			t.Fatalf("%q was read and written as %q: %v", s, p, err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Fatalf("%q, written as %q: (-first +again)\n%s", s, p, diff)
		}
		tree, err := p.Set(nil, "x")
		if err != nil {
			return // an index: lists are not made
		}
		if v, err := p.Get(tree); v != "x" || err != nil {
			t.Fatalf("%q: set, and then %v, %v", s, v, err)
		}
		if _, err := p.Get(p.Delete(tree)); !errors.Is(err, ErrAbsent) {
			t.Fatalf("%q: deleted, and then %v", s, err)
		}
	})
}

func parse(t *testing.T, s string) Path {
	t.Helper()
	p, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func all(t *testing.T, texts []string) []Path {
	t.Helper()
	paths, err := ParseAll(texts)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func tree(t *testing.T, s string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

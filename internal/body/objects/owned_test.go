package objects

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/fieldpath"
)

func paths(t *testing.T, texts ...string) []fieldpath.Path {
	t.Helper()
	list, err := fieldpath.ParseAll(texts)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestKeepOwned(t *testing.T) {
	t.Parallel()
	const head = `"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"}`
	tests := map[string]struct {
		reason, spec, fields string
		live                 []string
		want                 string
	}{
		"all owned":          {"stays", `{"a":1,"b":{"c":2}}`, `{"f:a":{},"f:b":{"f:c":{}}}`, nil, `{"a":1,"b":{"c":2}}`},
		"a field":            {"somebody else has it now", `{"a":1,"b":2}`, `{"f:a":{}}`, nil, `{"a":1}`},
		"a live field":       {"whoever has it", `{"a":1,"b":2}`, `{".":{}}`, []string{"spec.b"}, `{"b":2}`},
		"inside live":        {"all of it", `{"b":{"c":1,"d":2}}`, `{"f:b":{"f:c":{}}}`, []string{"spec.b"}, `{"b":{"c":1,"d":2}}`},
		"a map owned whole":  {"stays whole", `{"a":{"b":1}}`, `{"f:a":{}}`, nil, `{"a":{"b":1}}`},
		"an empty map":       {"is owned itself", `{"a":{}}`, `{"f:a":{".":{}}}`, nil, `{"a":{}}`},
		"what it held":       {"somebody has removed it", `{"a":{"b":1}}`, `{"f:a":{".":{}}}`, nil, `{"a":{}}`},
		"a list":             {"known by keys", `{"l":[{"name":"x","v":1},{"name":"y","v":2}]}`, `{"f:l":{"k:{\"name\":\"y\"}":{".":{},"f:name":{},"f:v":{}}}}`, nil, `{"l":[{"name":"y","v":2}]}`},
		"a part of it":       {"and its keys", `{"l":[{"name":"x","v":1,"w":1}]}`, `{"f:l":{"k:{\"name\":\"x\"}":{"f:w":{}}}}`, nil, `{"l":[{"name":"x","w":1}]}`},
		"a default key":      {"which the template leaves out", `{"l":[{"port":80,"v":1}]}`, `{"f:l":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:port":{},"f:v":{}}}}`, nil, `{"l":[{"port":80,"v":1}]}`},
		"another key":        {"is another element", `{"l":[{"port":80,"protocol":"UDP"}]}`, `{"f:l":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:port":{}}}}`, nil, `{}`},
		"live in a list":     {"with its keys", `{"l":[{"name":"x","v":1,"w":1},{"name":"y","v":2}]}`, `{"f:l":{"k:{\"name\":\"y\"}":{"f:name":{},"f:v":{}}}}`, []string{"spec.l[0].v"}, `{"l":[{"name":"x","v":1},{"name":"y","v":2}]}`},
		"live, no keys":      {"the element, or nobody knows which it is", `{"l":[{"name":"x","v":1}]}`, `{"f:l":{".":{}}}`, []string{"spec.l[0].v"}, `{"l":[{"name":"x","v":1}]}`},
		"a set":              {"by its values", `{"l":["x","y"]}`, `{"f:l":{"v:\"y\"":{}}}`, nil, `{"l":["y"]}`},
		"a list owned whole": {"stays whole", `{"l":["x","y"]}`, `{"f:l":{}}`, nil, `{"l":["x","y"]}`},
		"nothing owned":      {"there is nothing to say", `{"a":1}`, ``, nil, ``},
		"no record, live":    {"only that", `{"a":1,"b":2}`, ``, []string{"spec.b"}, `{"b":2}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := parseJSON(t, `{`+head+`,"spec":`+tt.spec+`}`)
			if err := keepOwned(o, managed("v1", tt.fields), paths(t, tt.live...)); err != nil {
				t.Fatal(err)
			}
			want := parseJSON(t, `{`+head+`}`)
			if tt.want != "" {
				want = parseJSON(t, `{`+head+`,"spec":`+tt.want+`}`)
			}
			if tt.want == "{}" {
				unstructured.RemoveNestedField(want.Object, "spec")
			}
			if diff := cmp.Diff(want.Object, o.Object); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tt.reason, diff)
			}
		})
	}
	o := parseJSON(t, `{`+head+`,"spec":{"a":1}}`)
	before := o.DeepCopy()
	if err := keepOwned(o, managed("v1beta1", `{}`), nil); err != nil || !cmp.Equal(before, o) {
		t.Errorf("what is recorded in terms of another version cannot be compared: %v, %v", o.Object, err)
	}
	if err := keepOwned(o, managed("v1", `[`), nil); err == nil {
		t.Error("a record that cannot be read is an error")
	}
}

// managed is the record that Pawl applied the fields of spec; of other owners,
// too, which does not matter.
func managed(version, spec string) []metav1.ManagedFieldsEntry {
	all := []metav1.ManagedFieldsEntry{
		{Manager: "pawl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a":{},"f:b":{}}}`)},
		{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a":{},"f:b":{}}}`)},
		{Manager: "pawl", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a":{},"f:b":{}}}`)},
	}
	if spec != "" {
		all = append(all, metav1.ManagedFieldsEntry{
			Manager: "pawl", Operation: metav1.ManagedFieldsOperationApply, APIVersion: version,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":` + spec + `}`),
		})
	}
	return all
}

func parseJSON(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return &o
}

// Whatever is recorded: nothing is made up, and what is live stays.
func TestKeepOwned_Properties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := drawTree(3).Draw(t, "value")
		text, _ := json.Marshal(drawOwned(3).Draw(t, "owned"))
		object := map[string]any{"apiVersion": "v1", "kind": "Thing", "spec": value}
		o := &unstructured.Unstructured{Object: fieldpath.Clone(object).(map[string]any)}
		live := fieldpath.Path{{Name: "spec"}, {Name: "a"}}
		if err := keepOwned(o, managed("v1", string(text)), []fieldpath.Path{live}); err != nil {
			t.Fatal(err)
		}
		if !partOf(o.Object, object) {
			t.Errorf("%v is no part of %v", o.Object, object)
		}
		want, err1 := live.Get(object)
		got, err2 := live.Get(o.Object)
		if (err1 == nil) != (err2 == nil) || !cmp.Equal(want, got) {
			t.Errorf("the live field is %v, %v; it was %v, %v", got, err2, want, err1)
		}
	})
}

func drawTree(depth int) *rapid.Generator[any] {
	leaves := rapid.SampledFrom([]any{"x", int64(1), true})
	if depth == 0 {
		return leaves
	}
	inner := drawTree(depth - 1)
	return rapid.OneOf(leaves,
		rapid.Map(rapid.SliceOfN(inner, 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "name"}), inner, 0, 3), func(m map[string]any) any { return m }))
}

func drawOwned(depth int) *rapid.Generator[map[string]any] {
	if depth == 0 {
		return rapid.Just(map[string]any{})
	}
	inner := rapid.Map(drawOwned(depth-1), func(m map[string]any) any { return m })
	return rapid.MapOfN(rapid.SampledFrom([]string{".", "f:a", "f:b", "f:name", `k:{"name":"x"}`, `k:{"name":1,"a":"x"}`, `v:"x"`, "v:1", "i:0", "k:", "?"}), inner, 0, 4)
}

// partOf tells whether a is b with parts left out.
func partOf(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		m, ok := b.(map[string]any)
		for k, v := range a {
			ok = ok && partOf(v, m[k])
		}
		return ok
	case []any:
		l, ok := b.([]any)
		for _, v := range a {
			i := 0
			for i < len(l) && !partOf(v, l[i]) {
				i++
			}
			if i == len(l) {
				return false
			}
			l = l[i+1:]
		}
		return ok
	}
	return cmp.Equal(a, b)
}

func TestKind_CheckLive(t *testing.T) {
	t.Parallel()
	k := &Kind{}
	with := func(live ...string) *v1alpha1.Template {
		in := template(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a"}]}}`)
		in.LiveFields = live
		return in
	}
	ok := with("objects[0].metadata.labels", `objects[0].metadata.annotations["a.b/c"]`, "objects[0].spec.containers[0].image", "objects[0].spec.nodeName")
	if err := k.CheckLive(ok); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{
		"objects":                           "name a field of an object",
		"objects[0]":                        "name a field of an object",
		"objects[0].metadata":               "known by its metadata.name",
		"objects[0].metadata.name":          "known by its metadata.name",
		"objects[0].metadata.namespace":     "known by its metadata.namespace",
		"objects[0].kind":                   "known by its kind",
		"objects[0].apiVersion":             "known by its apiVersion",
		"objects[0].status.phase":           "for others to write",
		"objects[1].spec":                   "template.objects has 1 elements",
		"objects.spec":                      "template.objects has no field spec",
		"objects[0].spec.containers[1].env": "template.objects[0].spec.containers: there is nothing at this path: it is a list of 1",
		"objects[0].metadata.labels.a.b":    "neither a map nor a list",
		"process.stop":                      "it is not in the template, which has objects",
		"spec.replicas":                     "it is not in the template, which has objects",
		"objects[*].spec":                   "character 9",
	} {
		err := k.CheckLive(with("objects[0].spec", path))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `template.liveFields[1]: "`+path+`": `) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

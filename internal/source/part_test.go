package source

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// object is one of the kind in the namespace shop, with more fields.
func object(kind, name string, more map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop"},
	}}
	maps.Copy(o.Object, more)
	return o
}

func fromConfigMap(keys ...string) *v1alpha1.Source {
	return &v1alpha1.Source{Name: "boot", ConfigMap: &v1alpha1.KeysSource{Name: "b", Keys: keys}}
}

func fromSecret(keys ...string) *v1alpha1.Source {
	return &v1alpha1.Source{Name: "tls", Secret: &v1alpha1.KeysSource{Name: "t", Keys: keys}}
}

func fromField(kind, path string) *v1alpha1.Source {
	return &v1alpha1.Source{Name: "field", Object: &v1alpha1.ObjectSource{APIVersion: "v1", Kind: kind, Name: "o", FieldPath: path}}
}

func TestExtract(t *testing.T) {
	config := object("ConfigMap", "b", map[string]any{
		"data": map[string]any{"a": "1", "b": "2\n"}, "binaryData": map[string]any{"bin": "//4=", "text": "aGk="},
	})
	secret := object("Secret", "t", map[string]any{"data": map[string]any{"crt": "Y2VydA==", "jks": "/w=="}})
	widget := object("Widget", "o", map[string]any{"spec": map[string]any{
		"image": "a:1", "n": int64(3), "list": []any{map[string]any{"x": nil}}, "nothing": nil, "off": false,
	}})
	many := map[string]any{}
	for i := range 300 {
		many[strings.Repeat("k", i+1)] = ""
	}
	cases := map[string]struct {
		reason string
		source *v1alpha1.Source
		object *unstructured.Unstructured
		want   any
		secret bool
		err    string // its reason, a colon and words of it
	}{
		"All keys":       {"without keys, all count", fromConfigMap(), config, map[string]any{"a": "1", "b": "2\n", "bin": []byte{0xff, 0xfe}, "text": "hi"}, false, ""},
		"Some keys":      {"with keys, those do", fromConfigMap("b", "bin"), config, map[string]any{"b": "2\n", "bin": []byte{0xff, 0xfe}}, false, ""},
		"No keys":        {"an empty one is empty", fromConfigMap(), object("ConfigMap", "b", nil), map[string]any{}, false, ""},
		"Missing key":    {"a key that is missing is no empty one", fromConfigMap("a", "x", "y"), config, nil, false, "KeyNotFound: ConfigMap shop/b has no key x, y, but a, b, bin, text: add it"},
		"No key at all":  {"also of an empty object", fromSecret("x"), object("Secret", "t", nil), nil, true, "KeyNotFound: Secret shop/t has no key x, but none"},
		"Secret":         {"a Secret's data is decoded", fromSecret(), secret, map[string]any{"crt": "cert", "jks": []byte{0xff}}, true, ""},
		"Not base64":     {"what cannot be read says nothing of what it is", fromSecret(), object("Secret", "t", map[string]any{"data": map[string]any{"a": "hunter2!"}}), nil, true, "Unreachable: Secret shop/t cannot be read: data.a is no base64"},
		"Not texts":      {"nor is what has another shape", fromConfigMap(), object("ConfigMap", "b", map[string]any{"data": []any{}}), nil, false, "Unreachable: ConfigMap shop/b cannot be read"},
		"Field":          {"a field has a value of any kind", fromField("Widget", "spec.image"), widget, "a:1", true, ""},
		"Number":         {"numbers stay numbers", fromField("Widget", "spec.n"), widget, int64(3), true, ""},
		"False":          {"false is a value", fromField("Widget", "spec.off"), widget, false, true, ""},
		"List":           {"and so are lists", fromField("Widget", "spec.list"), widget, []any{map[string]any{"x": nil}}, true, ""},
		"Missing field":  {"a field that is missing is no empty one", fromField("Widget", "spec.containers[0].image"), widget, nil, true, `FieldNotFound: Widget shop/o has no field spec.containers[0].image`},
		"Null":           {"nor is null", fromField("Widget", "spec.nothing"), widget, nil, true, "FieldNotFound: Widget shop/o has no field spec.nothing"},
		"Bad path":       {"a path has to be one", fromField("Widget", "spec..x"), widget, nil, true, "FieldNotFound: Widget shop/o: path"},
		"Of a ConfigMap": {"a field of a ConfigMap is no secret", fromField("ConfigMap", "data.a"), config, "1", false, ""},
		"Of a Secret":    {"one of a Secret is", fromField("Secret", "data.crt"), secret, "Y2VydA==", true, ""},
		"Many keys":      {"there is a limit to keys", fromConfigMap(), object("ConfigMap", "b", map[string]any{"data": many}), nil, false, "TooLarge: ConfigMap shop/b has 300 keys; a source has at most 256: list those"},
		"Large":          {"and to bytes", fromField("Widget", "spec"), object("Widget", "o", map[string]any{"spec": strings.Repeat("x", maxBytes)}), nil, true, "TooLarge: Widget shop/o: spec comes to 1048578 bytes; a source has at most 1048576"},
		"Just so":        {"which a ConfigMap may reach", fromConfigMap(), object("ConfigMap", "b", map[string]any{"data": map[string]any{"k": strings.Repeat("x", maxBytes-1)}}), map[string]any{"k": strings.Repeat("x", maxBytes-1)}, false, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := extract(c.source, c.object)
			if p.secret != c.secret {
				t.Errorf("%s: secret: %v", c.reason, p.secret)
			}
			if c.err != "" {
				if err == nil || !strings.HasPrefix(err.Reason+": "+err.Error(), c.err) {
					t.Fatalf("%s: got %v, want %s…", c.reason, err, c.err)
				}
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("content in an error: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, p.native()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// digestOf is a source's digests of an object.
func digestOf(t *testing.T, s *v1alpha1.Source, o *unstructured.Unstructured, key string) map[string]string {
	t.Helper()
	p, unresolved := extract(s, o)
	if unresolved != nil {
		t.Fatal(unresolved)
	}
	got, err := p.digest([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return got.Digests
}

func TestPart_digest(t *testing.T) {
	config := func(data map[string]any) *unstructured.Unstructured {
		return object("ConfigMap", "b", map[string]any{"data": data})
	}
	got := digestOf(t, fromConfigMap(), config(map[string]any{"a": "hello\n", "b": ""}), "")
	want := map[string]string{
		"a": "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03", // echo hello | sha256sum
		"b": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a plain digest is what sha256sum prints (-want +got):\n%s", diff)
	}
	secret := object("Secret", "t", map[string]any{"data": map[string]any{"a": "aGk=", "b": "aGk="}})
	one, other := digestOf(t, fromSecret(), secret, "key one"), digestOf(t, fromSecret(), secret, "key two")
	if diff := cmp.Diff(one, digestOf(t, fromSecret(), secret, "key one")); diff != "" {
		t.Errorf("the same is the same: %s", diff)
	}
	if one["a"] == other["a"] {
		t.Error("digests of secrets depend on the key")
	}
	if one["a"] == one["b"] {
		t.Error("digests show that two keys have the same content")
	}
	// printf "tls\na\nhi" | openssl dgst -sha256 -hmac "key one"
	if want := "hmac-sha256:144c90d1697abf4e7d5bc8f5485a0734d5247bccf2384198eebe7b74d23bb719"; one["a"] != want {
		t.Errorf("digests are stored: they must not change from one version to the next: got %s, want %s", one["a"], want)
	}
	elsewhere := fromSecret()
	elsewhere.Secret.Name = "another"
	if digestOf(t, elsewhere, secret, "key one")["a"] != one["a"] {
		t.Error("it is content that counts, not where it is from")
	}
	field := func(value any) map[string]string {
		return digestOf(t, fromField("ConfigMap", "x"), object("ConfigMap", "o", map[string]any{"x": value}), "")
	}
	same := [][2]any{{int64(1), 1.0}, {map[string]any{"a": "b", "c": "d"}, map[string]any{"c": "d", "a": "b"}}}
	for _, pair := range same {
		if field(pair[0])[""] != field(pair[1])[""] {
			t.Errorf("%v and %v are the same", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]any{{int64(1), "1"}, {"a", "b"}, {[]any{"a", "b"}, []any{"b", "a"}}, {true, false}} {
		if field(pair[0])[""] == field(pair[1])[""] {
			t.Errorf("%v and %v are not the same", pair[0], pair[1])
		}
	}
}

func TestPart_sample(t *testing.T) {
	p, _ := extract(fromField("Widget", "spec"), object("Widget", "o", map[string]any{"spec": map[string]any{
		"a": "x", "n": int64(3), "f": 1.5, "b": true, "z": nil, "l": []any{"y", int64(1)},
	}}))
	s, err := p.digest([]byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	d := s.Digests[""]
	want := map[string]any{"a": d, "n": int64(0), "f": 0.0, "b": false, "z": nil, "l": []any{d, int64(0)}}
	if diff := cmp.Diff(want, p.sample(&s)); diff != "" {
		t.Errorf("what stands for a secret has its shape and nothing else (-want +got):\n%s", diff)
	}
	p, _ = extract(fromSecret(), object("Secret", "t", map[string]any{"data": map[string]any{"crt": "Y2VydA==", "jks": "/w=="}}))
	if s, err = p.digest([]byte("k")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"crt": s.Digests["crt"], "jks": []byte(s.Digests["jks"])}, p.sample(&s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p, _ = extract(fromConfigMap(), object("ConfigMap", "b", map[string]any{"data": map[string]any{"a": "1"}}))
	if diff := cmp.Diff(map[string]any{"a": "1"}, p.sample(&s)); diff != "" {
		t.Errorf("what is no secret stands for itself (-want +got):\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	spec := func(o v1alpha1.ObjectSource) *v1alpha1.PoolSpec {
		return &v1alpha1.PoolSpec{Sources: []v1alpha1.Source{*fromConfigMap(), {Name: "x", Object: &o}}}
	}
	cases := map[string]struct {
		reason string
		object v1alpha1.ObjectSource
		want   string
	}{
		"Fine":    {"a path and a version", v1alpha1.ObjectSource{APIVersion: "apps/v1", FieldPath: `spec["a.b"][0]`}, ""},
		"Path":    {"a path has to be one", v1alpha1.ObjectSource{APIVersion: "v1", FieldPath: "spec."}, "sources[1].object.fieldPath: "},
		"Version": {"and so has a version", v1alpha1.ObjectSource{APIVersion: "a/b/c", FieldPath: "spec"}, "sources[1].object.apiVersion: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := Check(spec(c.object))
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
			}
		})
	}
}

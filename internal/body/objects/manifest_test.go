package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

func testSlot() body.Slot {
	return body.Slot{
		Namespace: "shop", Pool: "web", Member: "web-3", Index: 3, UID: "member-uid",
		Incarnation: 7, Revision: "r1", ServiceAccount: "bodies",
	}
}

// asIs renders nothing.
func asIs(_ context.Context, _ string, tree any, _ map[string]any) (any, error) { return tree, nil }

func template(manifests ...string) *v1alpha1.Template {
	t := &v1alpha1.Template{}
	for _, m := range manifests {
		t.Objects = append(t.Objects, runtime.RawExtension{Raw: []byte(m)})
	}
	return t
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	m.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	return m
}

func TestKind_manifests(t *testing.T) {
	k := &Kind{render: asIs, mapper: mapper()}
	in := template(
		`{"apiVersion": "v1", "kind": "ConfigMap", "data": {"n": 1}}`,
		`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "else", "labels": {"app": "a", "pawl.dev/member": "forged"},
		  "annotations": {"pawl.dev/member-uid": "forged", "b": "c"}, "uid": "u", "resourceVersion": "1", "creationTimestamp": null, "generation": 3, "managedFields": [], "selfLink": "/x"}}`,
		`{"apiVersion": "v1", "kind": "Node", "metadata": null}`,
	)
	got, err := k.manifests(context.Background(), testSlot(), in)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.locate(context.Background(), testSlot(), got); err != nil {
		t.Fatal(err)
	}
	labels := map[string]any{"pawl.dev/pool": "web", "pawl.dev/member": "web-3", "pawl.dev/incarnation": "7", "pawl.dev/revision": "r1"}
	annotations := map[string]any{"pawl.dev/member-uid": "member-uid"}
	with := func(m map[string]any, key, value string) map[string]any {
		result := map[string]any{key: value}
		maps.Copy(result, m)
		return result
	}
	want := []map[string]any{
		{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"n": int64(1)},
			"metadata": map[string]any{"name": "web-3", "namespace": "shop", "labels": labels, "annotations": annotations}},
		{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "d", "namespace": "else", "labels": with(labels, "app", "a"), "annotations": with(annotations, "b", "c")}},
		{"apiVersion": "v1", "kind": "Node",
			"metadata": map[string]any{"name": "web-3", "labels": labels, "annotations": annotations}},
	}
	for i, m := range got {
		if diff := cmp.Diff(want[i], m.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m.field, diff)
		}
	}
	resources := []string{"configmaps", "deployments.apps", "nodes"}
	for i, m := range got {
		if got := m.resource.GroupResource().String(); got != resources[i] {
			t.Errorf("%s is one of %s, got %s", m, resources[i], got)
		}
	}
}

func TestKind_manifests_Refused(t *testing.T) {
	cases := map[string]struct{ reason, manifest, want string }{
		"None":            {"an empty template", "", "template.objects: there are none"},
		"JSON":            {"what is no JSON", "{", "template.objects[0]: "},
		"List":            {"what is no object", "[]", "template.objects[0]: json: cannot unmarshal array"},
		"Null":            {"nothing", "null", "template.objects[0]: there is no manifest"},
		"Kind":            {"no kind", `{"apiVersion": "v1"}`, "template.objects[0].kind: it must be set"},
		"Version":         {"no version", `{"kind": "A"}`, "template.objects[0].apiVersion: it must be set"},
		"VersionType":     {"a version that is a number", `{"apiVersion": 1, "kind": "A"}`, "template.objects[0].apiVersion: it must be set, to a string"},
		"VersionForm":     {"a version that is none", `{"apiVersion": "a/b/c", "kind": "A"}`, "template.objects[0].apiVersion: unexpected GroupVersion string"},
		"Metadata":        {"metadata that is no map", `{"apiVersion": "v1", "kind": "A", "metadata": []}`, "template.objects[0].metadata: it must be a map"},
		"Name":            {"a name that is a number, which would be lost", `{"apiVersion": "v1", "kind": "A", "metadata": {"name": 1}}`, "template.objects[0].metadata.name: it must be a string"},
		"EmptyName":       {"a name that came out empty", `{"apiVersion": "v1", "kind": "A", "metadata": {"name": ""}}`, "template.objects[0].metadata.name: it must be a string, and not an empty one"},
		"EmptyNamespace":  {"a namespace that came out empty", `{"apiVersion": "v1", "kind": "A", "metadata": {"namespace": ""}}`, "template.objects[0].metadata.namespace: it must be"},
		"Comma":           {"a name that would break the UID apart", `{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a,b"}}`, `template.objects[0].metadata.name: "a,b" must not hold a comma`},
		"Label":           {"labels that are numbers, which would be lost", `{"apiVersion": "v1", "kind": "A", "metadata": {"labels": {"a": 1}}}`, "template.objects[0].metadata.labels: it must be a map of strings; write a number as ${string(…)}"},
		"Annotations":     {"annotations that are no map", `{"apiVersion": "v1", "kind": "A", "metadata": {"annotations": "a"}}`, "template.objects[0].metadata.annotations: it must be a map of strings"},
		"OwnerReferences": {"an owner", `{"apiVersion": "v1", "kind": "A", "metadata": {"ownerReferences": []}}`, "template.objects[0].metadata.ownerReferences: it must not be set: a body has no owner"},
		"GenerateName":    {"a name that nobody knows", `{"apiVersion": "v1", "kind": "A", "metadata": {"generateName": "a-"}}`, "template.objects[0].metadata.generateName: it must not be set"},
	}
	k := &Kind{render: asIs}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			in := &v1alpha1.Template{}
			if c.manifest != "" {
				in = template(c.manifest)
			}
			err := k.Validate(testSlot(), in)
			if !errors.Is(err, body.ErrRefused) || !strings.HasPrefix(err.Error(), "refused: "+c.want) {
				t.Errorf("%s is refused by name: got %v, want %q", c.reason, err, c.want)
			}
		})
	}
}

func TestKind_manifests_RenderErrors(t *testing.T) {
	cases := map[string]struct {
		reason  string
		err     error
		refused bool
	}{
		"Template": {"an error of the template is its fault", errors.New("template.objects[0].a: division by zero"), true},
		"Stopped":  {"an end of the context is not", fmt.Errorf("stopped: %w", context.Canceled), false},
		"Late":     {"nor is a deadline", fmt.Errorf("late: %w", context.DeadlineExceeded), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			k := &Kind{render: func(context.Context, string, any, map[string]any) (any, error) { return nil, c.err }}
			_, err := k.manifests(context.Background(), testSlot(), template(`{}`))
			if err == nil || errors.Is(err, body.ErrRefused) != c.refused || !errors.Is(err, c.err) {
				t.Errorf("%s: got %v", c.reason, err)
			}
		})
	}
}

func TestKind_Validate_Account(t *testing.T) {
	slot := testSlot()
	slot.ServiceAccount = ""
	err := (&Kind{render: asIs}).Validate(slot, template(`{"apiVersion": "v1", "kind": "A"}`))
	if !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), "spec.serviceAccountName") {
		t.Errorf("no rights without an account: got %v", err)
	}
}

func TestParseUID(t *testing.T) {
	in := []reference{
		{schema.GroupResource{Resource: "pods"}, "shop", "web-0", "1"},
		{schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, "", "system:x", "2"},
	}
	uid := in[0].String() + "," + in[1].String()
	if want := "pods/shop/web-0/1,clusterroles.rbac.authorization.k8s.io//system:x/2"; uid != want {
		t.Errorf("got %s, want %s", uid, want)
	}
	got, err := parseUID(uid)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, got, cmp.AllowUnexported(reference{})); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func FuzzParseUID(f *testing.F) {
	for _, s := range []string{"", "a", "pods/a/b/c", "pods//b/c,x.y/a/b/c", ",", "///", "pods/a/b/c,", "./a/b/c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		references, err := parseUID(s)
		if err != nil {
			return
		}
		var parts []string
		for _, r := range references {
			parts = append(parts, r.String())
		}
		again, err := parseUID(strings.Join(parts, ","))
		if err != nil || !cmp.Equal(references, again, cmp.AllowUnexported(reference{})) {
			t.Errorf("%q is read as %v, and that as %v, %v", s, references, again, err)
		}
	})
}

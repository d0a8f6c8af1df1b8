//go:build integration

package apitest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// deadline bounds every wait for something that comes within milliseconds on
// an idle machine.
const deadline = 30 * time.Second

var (
	pools      = schema.GroupVersionResource{Group: "pawl.dev", Version: "v1alpha1", Resource: "pools"}
	members    = schema.GroupVersionResource{Group: "pawl.dev", Version: "v1alpha1", Resource: "members"}
	claims     = schema.GroupVersionResource{Group: "pawl.dev", Version: "v1alpha1", Resource: "claims"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	roles      = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	bindings   = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	reviews    = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
	revisions  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
)

func TestMain(m *testing.M) {
	os.Exit(pawldtest.Main(m, pawldtest.WithoutControllers(), pawldtest.WithSim()))
}

// api is the shared API server, as one user sees it.
type api struct {
	t      *testing.T
	client dynamic.Interface
}

func admin(t *testing.T) api {
	t.Helper()
	return as(t, "")
}

// as is the API server as user sees it; empty: the administrator.
func as(t *testing.T, user string) api {
	t.Helper()
	config := rest.CopyConfig(pawldtest.Shared(t).Config)
	config.Impersonate.UserName = user
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return api{t, client}
}

var count atomic.Int64

// unique is a name that no other test has.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, count.Add(1)) }

// namespace makes a namespace for one test.
func (a api) namespace() string {
	a.t.Helper()
	name := unique("test")
	a.create(namespaces, "", fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, name))
	return name
}

// create makes an object that has to be accepted.
func (a api) create(r schema.GroupVersionResource, namespace, manifest string) *unstructured.Unstructured {
	a.t.Helper()
	o, err := a.tryCreate(r, namespace, manifest)
	if err != nil {
		a.t.Fatalf("create %s: %v", r.Resource, err)
	}
	return o
}

// tryCreate makes an object and refuses unknown fields.
func (a api) tryCreate(r schema.GroupVersionResource, namespace, manifest string) (*unstructured.Unstructured, error) {
	a.t.Helper()
	return a.client.Resource(r).Namespace(namespace).Create(context.Background(), a.parse(manifest), metav1.CreateOptions{FieldValidation: "Strict"})
}

func (a api) parse(manifest string) *unstructured.Unstructured {
	a.t.Helper()
	var o unstructured.Unstructured
	if err := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), len(manifest)).Decode(&o); err != nil {
		a.t.Fatalf("%v in %s", err, manifest)
	}
	return &o
}

// write is a JSON merge patch on the main endpoint, or on a subresource.
type write struct{ subresource, patch string }

// spec patches the spec, through the main endpoint.
func spec(patch string) write { return write{"", `{"spec":` + patch + `}`} }

// status patches the status, through the status endpoint.
func status(patch string) write { return write{"status", `{"status":` + patch + `}`} }

// annotate sets an annotation.
func annotate(key, value string) write {
	return write{"", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)}
}

func (a api) patch(r schema.GroupVersionResource, namespace, name string, w write) (*unstructured.Unstructured, error) {
	var subresources []string
	if w.subresource != "" {
		subresources = []string{w.subresource}
	}
	return a.client.Resource(r).Namespace(namespace).Patch(context.Background(), name, types.MergePatchType,
		[]byte(w.patch), metav1.PatchOptions{FieldValidation: "Strict"}, subresources...)
}

// apply makes writes that have to be accepted.
func (a api) apply(r schema.GroupVersionResource, namespace, name string, writes []write) {
	a.t.Helper()
	for _, w := range writes {
		if _, err := a.patch(r, namespace, name, w); err != nil {
			a.t.Fatalf("prepare %s with %s: %v", name, w.patch, err)
		}
	}
}

// expect compares an error with the message that is wanted; empty: none.
func expect(t *testing.T, reason string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: refused: %v", reason, err)
	case want != "" && err == nil:
		t.Errorf("%s: accepted, want %q", reason, want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("%s: refused with %q, want %q", reason, err, want)
	}
}

// eventually polls until check is satisfied.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, deadline, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

// right is what a user may do in a namespace.
type right struct{ verb, group, resource, subresource, name string }

// grant gives a user rights, and waits until the authorizer knows.
func (a api) grant(namespace, user string, rights ...right) {
	a.t.Helper()
	for _, r := range rights {
		name := unique("right")
		resource := r.resource
		if r.subresource != "" {
			resource += "/" + r.subresource
		}
		names := ""
		if r.name != "" {
			names = ", resourceNames: [" + r.name + "]"
		}
		a.create(roles, namespace, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: %s},
			rules: [{apiGroups: [%q], resources: [%q], verbs: [%s]%s}]}`, name, r.group, resource, r.verb, names))
		a.create(bindings, namespace, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: %s},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %s}, subjects: [{kind: User, name: %s}]}`, name, name, user))
		eventually(a.t, "grant "+r.verb+" on "+resource, func() error { return a.allowed(namespace, user, r) })
	}
}

func (a api) allowed(namespace, user string, r right) error {
	review := a.create(reviews, "", fmt.Sprintf(`{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, spec: {user: %s,
		resourceAttributes: {namespace: %s, verb: %s, group: %q, resource: %s, subresource: %q, name: %q}}}`,
		user, namespace, r.verb, r.group, r.resource, r.subresource, r.name))
	if ok, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); !ok {
		return fmt.Errorf("%s may not yet: %v", user, authorizationv1.ResourceAttributes{Verb: r.verb, Resource: r.resource})
	}
	return nil
}

// inNamespace applies an admission policy and its binding, in force in one
// namespace only, for as long as the test runs.
func (a api) inNamespace(namespace, policy, binding string) {
	a.t.Helper()
	b := a.parse(binding)
	scope := map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}}
	if err := unstructured.SetNestedMap(b.Object, scope, "spec", "matchResources", "namespaceSelector"); err != nil {
		a.t.Fatal(err)
	}
	for _, o := range []*unstructured.Unstructured{a.parse(policy), b} {
		r, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if _, err := a.client.Resource(r).Create(context.Background(), o, metav1.CreateOptions{}); err != nil {
			a.t.Fatal(err)
		}
		a.t.Cleanup(func() {
			if err := a.client.Resource(r).Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}); err != nil {
				a.t.Error(err)
			}
		})
	}
}

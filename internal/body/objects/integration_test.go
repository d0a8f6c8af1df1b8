//go:build integration

package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/pawldtest"
	"github.com/pawl-dev/pawl/internal/render"
)

// deadline bounds every wait for something that comes within milliseconds on
// an idle machine.
const deadline = 60 * time.Second

// everything is what an account needs.
const everything = "get,list,watch,create,patch,delete"

func TestMain(m *testing.M) {
	os.Exit(pawldtest.Main(m, pawldtest.WithoutControllers(), pawldtest.WithControllerManager()))
}

// world is a namespace of the API server, with an account and a kind.
type world struct {
	t         *testing.T
	ctx       context.Context
	admin     dynamic.Interface
	namespace string
	kind      *Kind
	// told has the names of members that the kind notified of.
	told *inbox
	// faults, if set, sees every request of the kind before it is sent.
	faults atomic.Pointer[func(*http.Request, http.RoundTripper) (*http.Response, error)]
}

var worlds atomic.Int64

// newWorld makes a world whose account has the verbs on the resources, which
// are given as plural.group.
func newWorld(t *testing.T, verbs string, resources ...string) *world {
	t.Helper()
	shared := rest.CopyConfig(pawldtest.Shared(t).Config)
	admin, err := dynamic.NewForConfig(shared)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ctx: t.Context(), admin: admin, namespace: fmt.Sprintf("world-%d", worlds.Add(1)), told: &inbox{}}
	w.create("namespaces", fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, w.namespace))
	if len(resources) > 0 {
		w.grant("bodies", verbs, resources...)
	}
	shared.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{w, next} })
	httpClient, err := rest.HTTPClientFor(pawldtest.Shared(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(pawldtest.Shared(t).Config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	w.kind = New(Options{Config: shared, Mapper: mapper, Render: render.Manifests, Ready: render.Ready, Notify: w.told.notify})
	t.Cleanup(w.kind.Close)
	return w
}

// transport hands requests to the world's faults.
type transport struct {
	*world
	next http.RoundTripper
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if f := t.faults.Load(); f != nil {
		return (*f)(r, t.next)
	}
	return t.next.RoundTrip(r)
}

func (w *world) fault(f func(*http.Request, http.RoundTripper) (*http.Response, error)) {
	if f == nil {
		w.faults.Store(nil)
		return
	}
	w.faults.Store(&f)
}

type inbox struct {
	mu   sync.Mutex
	seen map[string]int
}

func (i *inbox) notify(namespace, member string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen == nil {
		i.seen = map[string]int{}
	}
	i.seen[namespace+"/"+member]++
}

func (i *inbox) count(namespace, member string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.seen[namespace+"/"+member]
}

// grant gives rights in the world's namespace to its account of that name, or
// to a group, and waits until they are in force.
func (w *world) grant(subject, verbs string, resources ...string) {
	w.t.Helper()
	w.grantIn(w.namespace, subject, verbs, resources...)
}

func (w *world) grantIn(namespace, subject, verbs string, resources ...string) {
	w.t.Helper()
	name := fmt.Sprintf("grant-%d", worlds.Add(1))
	var rules []string
	for _, r := range resources {
		gr := schema.ParseGroupResource(r)
		rules = append(rules, fmt.Sprintf(`{apiGroups: [%q], resources: [%s], verbs: [%s]}`, gr.Group, gr.Resource, verbs))
	}
	kind, where := "Role", ""
	if namespace != "" {
		where = ", namespace: " + namespace
	} else {
		kind = "ClusterRole"
	}
	subjects := fmt.Sprintf(`{kind: ServiceAccount, name: %s, namespace: %s}`, subject, w.namespace)
	if strings.HasPrefix(subject, "system:") {
		subjects = fmt.Sprintf(`{kind: Group, apiGroup: rbac.authorization.k8s.io, name: %q}`, subject)
	}
	w.create(strings.ToLower(kind)+"s.rbac.authorization.k8s.io", fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %s%s}, rules: [%s]}`,
		kind, name, where, strings.Join(rules, ",")))
	w.create(strings.ToLower(kind)+"bindings.rbac.authorization.k8s.io", fmt.Sprintf(
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: %sBinding, metadata: {name: %s%s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}, subjects: [%s]}`,
		kind, name, where, kind, name, subjects))
	w.eventually("the grant is in force", func() error {
		for _, r := range resources {
			for verb := range strings.SplitSeq(verbs, ",") {
				if err := w.allowed(namespace, subject, verb, schema.ParseGroupResource(r)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (w *world) allowed(namespace, subject, verb string, r schema.GroupResource) error {
	who := fmt.Sprintf(`user: "system:serviceaccount:%s:%s"`, w.namespace, subject)
	if strings.HasPrefix(subject, "system:") {
		who = fmt.Sprintf("groups: [%q]", subject)
	}
	review := w.create("subjectaccessreviews.authorization.k8s.io", fmt.Sprintf(
		`{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, spec: {%s, resourceAttributes: {namespace: %q, verb: %s, group: %q, resource: %s}}}`,
		who, namespace, verb, r.Group, r.Resource))
	if ok, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); !ok {
		return fmt.Errorf("%s may not %s %s yet", subject, verb, r)
	}
	return nil
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	var o unstructured.Unstructured
	if err := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), len(manifest)).Decode(&o); err != nil {
		t.Fatalf("%v in %s", err, manifest)
	}
	return &o
}

func (w *world) resource(plural, namespace string) dynamic.ResourceInterface {
	gr := schema.ParseGroupResource(plural)
	r := w.admin.Resource(gr.WithVersion("v1"))
	if namespace == "" {
		return r
	}
	return r.Namespace(namespace)
}

// create makes an object as the administrator, in the namespace it names.
func (w *world) create(plural, manifest string) *unstructured.Unstructured {
	w.t.Helper()
	o := parse(w.t, manifest)
	created, err := w.resource(plural, o.GetNamespace()).Create(w.ctx, o, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatalf("create %s: %v", plural, err)
	}
	return created
}

// get reads an object of the world's namespace; nil if there is none.
func (w *world) get(plural, name string) *unstructured.Unstructured {
	w.t.Helper()
	o, err := w.resource(plural, w.namespace).Get(w.ctx, name, metav1.GetOptions{})
	if err != nil {
		if strings.Contains(err.Error(), "not found") {
			return nil
		}
		w.t.Fatalf("get %s %s: %v", plural, name, err)
	}
	return o
}

func (w *world) patch(plural, name, patch string, subresources ...string) *unstructured.Unstructured {
	w.t.Helper()
	o, err := w.resource(plural, w.namespace).Patch(w.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	if err != nil {
		w.t.Fatalf("patch %s %s: %v", plural, name, err)
	}
	return o
}

func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(w.ctx, 20*time.Millisecond, deadline, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		w.t.Fatalf("%s: %v", what, last)
	}
}

func (w *world) slot(index int32) body.Slot {
	name := fmt.Sprintf("web-%d", index)
	return body.Slot{
		Namespace: w.namespace, Pool: "web", Member: name, Index: index, UID: "uid-of-" + name,
		Incarnation: 1, Revision: "r1", ServiceAccount: "bodies",
	}
}

func (w *world) template(manifests ...string) *v1alpha1.Template {
	w.t.Helper()
	t := &v1alpha1.Template{}
	for _, m := range manifests {
		raw, err := parse(w.t, m).MarshalJSON()
		if err != nil {
			w.t.Fatal(err)
		}
		t.Objects = append(t.Objects, runtime.RawExtension{Raw: raw})
	}
	return t
}

func (w *world) mustCreate(slot body.Slot, t *v1alpha1.Template) body.Observation {
	w.t.Helper()
	o, err := w.kind.Create(w.ctx, slot, t)
	if err != nil {
		w.t.Fatalf("create: %v", err)
	}
	return o
}

func (w *world) mustObserve(slot body.Slot, t *v1alpha1.Template) body.Observation {
	w.t.Helper()
	o, err := w.kind.Observe(w.ctx, slot, t)
	if err != nil {
		w.t.Fatalf("observe: %v", err)
	}
	return o
}

func (w *world) mustDelete(slot body.Slot, uid string) {
	w.t.Helper()
	if err := w.kind.Delete(w.ctx, slot, uid); err != nil {
		w.t.Fatalf("delete: %v", err)
	}
}

// wantError checks that err is of a kind and says what it should.
func (w *world) wantError(reason string, err, kind error, parts ...string) {
	w.t.Helper()
	if err == nil {
		w.t.Fatalf("%s: got no error, want %v", reason, kind)
	}
	for _, other := range []error{body.ErrOccupied, body.ErrNoRoom, body.ErrRefused} {
		if errors.Is(err, other) != errors.Is(kind, other) {
			w.t.Fatalf("%s: got error %q, want kind %v", reason, err, kind)
		}
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			w.t.Errorf("%s: got error %q, want %q in it", reason, err, part)
		}
	}
}

const (
	configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "${member.name}-config"}, data: {index: "${string(member.index)}"}}`
	secret    = `{apiVersion: v1, kind: Secret, metadata: {name: "${member.name}-secret", labels: {app: web}}, stringData: {a: b}}`
	pod       = `{apiVersion: v1, kind: Pod, spec: {containers: [{name: main, image: "example.com/${pool.name}:1", args: ["--index=${member.index}"]}]}}`
	service   = `{apiVersion: v1, kind: Service, spec: {clusterIP: None, ports: [{port: 80}], selector: {app: "${member.name}"}}}`
)

func (w *world) resourceOf(plural string) schema.GroupVersionResource {
	return schema.ParseGroupResource(plural).WithVersion("v1")
}

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no more"))

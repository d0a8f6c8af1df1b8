package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// bench is a Resolver with an API server that is not real. What sources are read
// from is in world; what Pawl writes itself is in stored.
type bench struct {
	*Resolver

	t      *testing.T
	world  *dynamicfake.FakeDynamicClient
	stored client.WithWatch
	told   chan types.NamespacedName
	// writes is how many writes succeed before the first that does not; -1: all
	// do. The one that fails is lost in the half of cases in which it was made.
	writes int
	lost   bool
	reads  int
}

var errCrash = errors.New("crash")

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, told: make(chan types.NamespacedName, 100), writes: -1}
	b.world = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		corev1.SchemeGroupVersion.WithResource("configmaps"): "ConfigMapList",
		corev1.SchemeGroupVersion.WithResource("secrets"):    "SecretList",
		widgets.GroupVersion().WithResource("widgets"):       "WidgetList",
	})
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b.stored = fake.NewClientBuilder().WithScheme(scheme).Build()
	b.restart()
	t.Cleanup(func() { b.Close() })
	return b
}

// restart begins with nothing remembered.
func (b *bench) restart() {
	if b.Resolver != nil {
		b.Close()
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{kindConfigMap, kindSecret} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(widgets, meta.RESTScopeNamespace)
	b.Resolver = New(Options{Mapper: mapper, Client: b.writer(), Reader: b.reader(), Notify: func(p types.NamespacedName) {
		select {
		case b.told <- p:
		default:
		}
	}})
	b.watches.dial = func(namespace, account string) (dynamic.Interface, error) {
		if namespace != "shop" || account != "reader" {
			b.t.Errorf("read as %s/%s", namespace, account)
		}
		return b.world, nil
	}
}

// writer fails as the bench says.
func (b *bench) writer() client.Client {
	fail := func(write func() error) error {
		if b.writes == 0 {
			if !b.lost {
				_ = write()
			}
			return errCrash
		}
		b.writes--
		return write()
	}
	return interceptor.NewClient(b.stored, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return fail(func() error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return fail(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return fail(func() error { return c.Delete(ctx, o, opts...) })
		},
	})
}

// reader counts.
func (b *bench) reader() client.Reader {
	return interceptor.NewClient(b.stored, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			b.reads++
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			b.reads++
			return c.List(ctx, l, opts...)
		},
	})
}

// put makes or changes what a source is read from.
func (b *bench) put(o *unstructured.Unstructured) {
	b.t.Helper()
	gvr, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	at := b.world.Resource(gvr).Namespace(o.GetNamespace())
	_, err := at.Update(context.Background(), o, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = at.Create(context.Background(), o, metav1.CreateOptions{})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func config(data map[string]any) *unstructured.Unstructured {
	return object("ConfigMap", "b", map[string]any{"data": data})
}

func secretOf(data map[string]any) *unstructured.Unstructured {
	return object("Secret", "t", map[string]any{"data": data})
}

func customWidget(spec any) *unstructured.Unstructured {
	o := object("Widget", "o", map[string]any{"spec": spec})
	o.SetGroupVersionKind(widgets)
	return o
}

func poolOf(sources ...*v1alpha1.Source) *v1alpha1.Pool {
	p := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	p.Spec.ServiceAccountName = new("reader")
	for _, s := range sources {
		p.Spec.Sources = append(p.Spec.Sources, *s)
	}
	return p
}

func fromWidget(path string) *v1alpha1.Source {
	s := fromField("Widget", path)
	s.Object.APIVersion = "example.com/v1"
	return s
}

func (b *bench) resolve(p *v1alpha1.Pool) *Content {
	b.t.Helper()
	c, err := b.Resolve(context.Background(), p, false)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// hear waits until the pool is told of.
func (b *bench) hear(reason string) {
	b.t.Helper()
	select {
	case p := <-b.told:
		if p != poolA {
			b.t.Errorf("%s: told of %s", reason, p)
		}
	case <-time.After(10 * time.Second):
		b.t.Fatalf("%s: not told", reason)
	}
}

// resolved waits until the pool's content is so.
func (b *bench) resolved(p *v1alpha1.Pool, want map[string]any) *Content {
	b.t.Helper()
	for {
		c, err := b.Resolve(context.Background(), p, false)
		if err == nil && cmp.Equal(c.Values.ByName, want) {
			return c
		}
		b.hear(fmt.Sprintf("waiting for %v, have %v, %v", want, c, err))
	}
}

// left are the names of what Pawl keeps, sorted.
func (b *bench) left() []string {
	b.t.Helper()
	var names []string
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}} {
		if err := b.stored.List(context.Background(), list, client.HasLabels{v1alpha1.LabelSource}); err != nil {
			b.t.Fatal(err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			m := o.(client.Object)
			names = append(names, fmt.Sprintf("%T %s", o, m.GetName())[len("*v1."):])
			if m.GetNamespace() != "shop" || !slices.Equal(m.GetFinalizers(), []string{v1alpha1.FinalizerRevision}) {
				b.t.Errorf("%s/%s has finalizers %v", m.GetNamespace(), m.GetName(), m.GetFinalizers())
			}
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	slices.Sort(names)
	return names
}

var (
	allSources = []*v1alpha1.Source{fromConfigMap(), fromSecret("crt", "jks"), fromWidget("spec.image")}
	allKept    = []string{"ConfigMap a-rev1-boot", "Secret a-rev1-field", "Secret a-rev1-tls", "Secret a-source-key"}
	allValues  = map[string]any{
		"boot":  map[string]any{"install.sh": "echo 1\n", "bin": []byte{0xff}},
		"tls":   map[string]any{"crt": "hunter2", "jks": []byte{0xfe}},
		"field": map[string]any{"tag": "v1", "n": int64(9007199254740993)},
	}
)

// full is a bench on which all sources of a pool are there.
func full(t *testing.T) (*bench, *v1alpha1.Pool) {
	t.Helper()
	b := newBench(t)
	b.put(object("ConfigMap", "b", map[string]any{"data": map[string]any{"install.sh": "echo 1\n"}, "binaryData": map[string]any{"bin": "/w=="}}))
	b.put(secretOf(map[string]any{"crt": "aHVudGVyMg==", "jks": "/g==", "other": "eA=="}))
	b.put(customWidget(map[string]any{"image": map[string]any{"tag": "v1", "n": int64(9007199254740993)}}))
	return b, poolOf(allSources...)
}

func TestResolver_Resolve(t *testing.T) {
	b, p := full(t)
	c := b.resolve(p)
	if diff := cmp.Diff(allValues, c.Values.ByName); diff != "" {
		t.Errorf("what the sources say (-want +got):\n%s", diff)
	}
	var got []string
	for _, s := range c.Sources {
		got = append(got, fmt.Sprintf("%s %s %s %s %v %v", s.Name, s.Kind, s.Object, s.Field, s.Secret, slices.Sorted(maps.Keys(s.Digests))))
		for key, digest := range s.Digests {
			if keyed := strings.HasPrefix(digest, "hmac-sha256:"); keyed != s.Secret || len(digest) < 64 {
				t.Errorf("digest of %s %s: %s", s.Name, key, digest)
			}
		}
	}
	want := []string{"boot ConfigMap b  false [bin install.sh]", "tls Secret t  true [crt jks]", "field Widget o spec.image true []"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in the order of the pool's (-want +got):\n%s", diff)
	}
	if text := fmt.Sprint(c.Sources, c.Sample); strings.Contains(text, "hunter2") || strings.Contains(text, "v1") {
		t.Errorf("secret content is in %s", text)
	}
	if again := b.resolve(p); again != c {
		t.Error("what has not changed is the same content")
	}
	if diff := cmp.Diff([]string{"Secret a-source-key"}, b.left()); diff != "" {
		t.Errorf("only the key of digests is made (-want +got):\n%s", diff)
	}
	b.restart()
	if diff := cmp.Diff(c.Sources, b.resolve(p).Sources); diff != "" {
		t.Errorf("digests outlive a restart (-want +got):\n%s", diff)
	}
}

func TestResolver_Resolve_changes(t *testing.T) {
	b, p := newBench(t), poolOf(fromConfigMap("k"))
	_, err := b.Resolve(context.Background(), p, false)
	var u *Unresolved
	if !errors.As(err, &u) || u.Reason != NotFound || !u.Known || err.Error() != "source boot: ConfigMap shop/b is not there: create it" {
		t.Fatalf("what is not there is said: %v", err)
	}
	b.put(config(map[string]any{"k": "1"}))
	first := b.resolved(p, map[string]any{"boot": map[string]any{"k": "1"}})
	b.put(config(map[string]any{"k": "2"}))
	second := b.resolved(p, map[string]any{"boot": map[string]any{"k": "2"}})
	if first.Sources[0].Digests["k"] == second.Sources[0].Digests["k"] {
		t.Error("another content has another digest")
	}
	// The same pool wants another key from now on, which is not there.
	p.Spec.Sources[0].ConfigMap.Keys = []string{"x"}
	if _, err = b.Resolve(context.Background(), p, false); err == nil || !strings.Contains(err.Error(), "has no key x, but k") {
		t.Errorf("got %v", err)
	}
	if n := len(b.watches.running); n != 1 {
		t.Errorf("%d watches of one object", n)
	}
	b.put(config(map[string]any{"k": "2", "x": "3"}))
	b.resolved(p, map[string]any{"boot": map[string]any{"x": "3"}})
	other := poolOf(fromConfigMap())
	other.Name = "b"
	b.resolve(other)
	if n := len(b.watches.running); n != 1 {
		t.Errorf("%d watches where two pools share one", n)
	}
	p.Spec.Sources = nil
	if c := b.resolve(p); len(c.Sources) != 0 || len(c.Values.ByName) != 0 {
		t.Errorf("no sources, no content: %v", c)
	}
	if n := len(b.watches.running); n != 1 {
		t.Errorf("%d watches where another pool still needs one", n)
	}
	b.Forget(poolB)
	if n := len(b.watches.running); n != 0 {
		t.Errorf("%d watches that nobody needs", n)
	}
}

func TestResolver_Resolve_key(t *testing.T) {
	b, p := full(t)
	_, err := b.Resolve(context.Background(), p, true)
	var u *Unresolved
	if !errors.As(err, &u) || u.Reason != DigestKeyLost || u.Known || !strings.Contains(err.Error(), "Secret shop/a-source-key is gone") {
		t.Errorf("a key that is lost is not made anew where there are digests already: %v", err)
	}
	if left := b.left(); len(left) > 0 {
		t.Errorf("made %v", left)
	}
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a-source-key", Namespace: "shop"}, Data: map[string][]byte{"key": make([]byte, 32)}}
	if err := b.stored.Create(context.Background(), foreign); err != nil {
		t.Fatal(err)
	}
	if _, err = b.Resolve(context.Background(), p, false); err == nil || !strings.Contains(err.Error(), "is not what Pawl makes by that name: delete it") {
		t.Errorf("somebody else's is not used: %v", err)
	}
	if err := b.stored.Delete(context.Background(), foreign); err != nil {
		t.Fatal(err)
	}
	c := b.resolve(p)
	if left := b.left(); !slices.Equal(left, []string{"Secret a-source-key"}) {
		t.Fatalf("where there are none it is: %v", left)
	}
	var s corev1.Secret
	if err := b.stored.Get(context.Background(), types.NamespacedName{Namespace: "shop", Name: "a-source-key"}, &s); err != nil {
		t.Fatal(err)
	}
	if s.Immutable == nil || !*s.Immutable || len(s.Data["key"]) != 32 {
		t.Errorf("the key is %v", s)
	}
	other := poolOf(allSources...)
	other.Name = "b"
	if b.resolve(other).Sources[1].Digests["crt"] == c.Sources[1].Digests["crt"] {
		t.Error("each pool has a key of its own")
	}
}

func TestResolver_Resolve_account(t *testing.T) {
	b, p := newBench(t), poolOf(fromConfigMap())
	p.Spec.ServiceAccountName = nil
	if _, err := b.Resolve(context.Background(), p, false); err == nil || !strings.Contains(err.Error(), "spec.serviceAccountName is not set") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.Resolve(ctx, poolOf(fromConfigMap()), false); !errors.Is(err, context.Canceled) {
		t.Errorf("that the time was up says nothing of sources: %v", err)
	}
}

func (b *bench) freeze(p *v1alpha1.Pool, id string) *Content {
	b.t.Helper()
	c := b.resolve(p)
	if err := b.Freeze(context.Background(), p, id, c); err != nil {
		b.t.Fatal(err)
	}
	return c
}

func TestResolver_Freeze(t *testing.T) {
	b, p := full(t)
	c := b.freeze(p, "rev1")
	if diff := cmp.Diff(allKept, b.left()); diff != "" {
		t.Errorf("there is a copy of each source (-want +got):\n%s", diff)
	}
	reads := b.reads
	for range 3 {
		b.freeze(p, "rev1")
		if _, err := b.Frozen(context.Background(), poolA, "rev1", c.Sources); err != nil {
			t.Fatal(err)
		}
	}
	if b.reads != reads {
		t.Errorf("%d reads for what is known", b.reads-reads)
	}
	b.put(config(map[string]any{"install.sh": "echo 2\n"}))
	b.restart()
	v, err := b.Frozen(context.Background(), poolA, "rev1", c.Sources)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(allValues, v.ByName); diff != "" {
		t.Errorf("what was frozen is what was said then (-want +got):\n%s", diff)
	}
	if v.Redact("hunter2") != redacted {
		t.Error("what is secret stays so")
	}
	var m corev1.ConfigMap
	if err := b.stored.Get(context.Background(), types.NamespacedName{Namespace: "shop", Name: "a-rev1-boot"}, &m); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{v1alpha1.LabelPool: "a", v1alpha1.LabelRevision: "rev1", v1alpha1.LabelSource: "boot"}
	if diff := cmp.Diff(want, m.Labels); diff != "" || m.Immutable == nil || !*m.Immutable {
		t.Errorf("immutable %v, labels (-want +got):\n%s", m.Immutable, diff)
	}
	none, err := b.Frozen(context.Background(), poolA, "other", nil)
	if err != nil || len(none.ByName) != 0 {
		t.Errorf("without sources there is nothing to read: %v, %v", none, err)
	}
}

func TestResolver_Frozen_missing(t *testing.T) {
	b, p := full(t)
	c := b.freeze(p, "rev1")
	b.restart()
	if err := b.Drop(context.Background(), poolA, map[string]bool{"rev1": true}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Frozen(context.Background(), poolA, "rev1", c.Sources); err != nil {
		t.Fatal(err)
	}
	gone := &corev1.Secret{}
	if err := b.stored.Get(context.Background(), types.NamespacedName{Namespace: "shop", Name: "a-rev1-tls"}, gone); err != nil {
		t.Fatal(err)
	}
	gone.Finalizers = nil
	if err := errors.Join(b.stored.Update(context.Background(), gone), b.stored.Delete(context.Background(), gone)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Frozen(context.Background(), poolA, "rev1", c.Sources); err != nil {
		t.Errorf("what is remembered is still known: %v", err)
	}
	b.values.Clear()
	_, err := b.Frozen(context.Background(), poolA, "rev1", c.Sources)
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "Secret a-rev1-tls, with source tls") || strings.Contains(err.Error(), "boot") {
		t.Errorf("what is gone is named: %v", err)
	}
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a-rev1-tls", Namespace: "shop"}, Data: map[string][]byte{"crt": nil, "jks": nil}}
	if err := b.stored.Create(context.Background(), foreign); err != nil {
		t.Fatal(err)
	}
	if _, err = b.Frozen(context.Background(), poolA, "rev1", c.Sources); !errors.Is(err, ErrMissing) {
		t.Errorf("somebody else's is not it: %v", err)
	}
	if err = b.Freeze(context.Background(), p, "rev1", b.resolve(p)); err == nil || !strings.Contains(err.Error(), "Secret a-rev1-tls in namespace shop is there, and is not Pawl's: delete it") {
		t.Errorf("and keeps it from being made: %v", err)
	}
	if err := b.stored.Delete(context.Background(), foreign); err != nil {
		t.Fatal(err)
	}
	b.freeze(p, "rev1")
	b.restart()
	if _, err := b.Frozen(context.Background(), poolA, "rev1", c.Sources); err != nil {
		t.Errorf("as long as the sources say the same, it can be made again: %v", err)
	}
}

func TestResolver_Drop(t *testing.T) {
	b, p := full(t)
	b.freeze(p, "rev1")
	first := b.resolve(p).Sources
	b.put(config(map[string]any{"install.sh": "echo 2\n"}))
	b.freeze(p, "rev2")
	b.freeze(p, "rev3")
	other := poolOf(fromConfigMap())
	other.Name = "b"
	b.freeze(other, "rev1")
	stored := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{
		Name: "a-rev3", Namespace: "shop", Labels: map[string]string{v1alpha1.LabelPool: "a", v1alpha1.LabelRevision: "rev3"},
	}}
	if err := b.stored.Create(context.Background(), stored); err != nil {
		t.Fatal(err)
	}
	drop := func(keep map[string]bool, restart bool) {
		t.Helper()
		if restart {
			b.restart()
		}
		if err := b.Drop(context.Background(), poolA, keep); err != nil {
			t.Fatal(err)
		}
	}
	drop(map[string]bool{"rev1": true}, true)
	want := slices.Sorted(slices.Values(append(slices.Clone(allKept), "ConfigMap a-rev3-boot", "Secret a-rev3-field", "Secret a-rev3-tls", "ConfigMap b-rev1-boot")))
	if diff := cmp.Diff(want, b.left()); diff != "" {
		t.Errorf("what is kept, or stored, stays (-want +got):\n%s", diff)
	}
	reads := b.reads
	drop(map[string]bool{"rev1": true, "rev3": true}, false)
	if b.reads != reads {
		t.Errorf("%d reads where there is nothing to do", b.reads-reads)
	}
	v, err := b.Frozen(context.Background(), poolA, "rev1", first)
	if err != nil {
		t.Fatal(v, err)
	}
	drop(nil, false)
	if diff := cmp.Diff([]string{"ConfigMap b-rev1-boot"}, b.left()); diff != "" {
		t.Errorf("without a pool nothing is kept (-want +got):\n%s", diff)
	}
	b.resolve(p)
	if diff := cmp.Diff([]string{"ConfigMap b-rev1-boot", "Secret a-source-key"}, b.left()); diff != "" {
		t.Errorf("the next pool of that name has a key of its own (-want +got):\n%s", diff)
	}
	drop(nil, false)
	if diff := cmp.Diff([]string{"ConfigMap b-rev1-boot"}, b.left()); diff != "" {
		t.Errorf("which goes with it (-want +got):\n%s", diff)
	}
	if _, err := b.Frozen(context.Background(), poolA, "rev1", b.resolve(p).Sources); !errors.Is(err, ErrMissing) {
		t.Errorf("what was dropped is not remembered: %v", err)
	}
}

// TestResolver_crash: whichever write is the last, and whether or not it was
// made, everything is there after one more try, or nothing is left over.
func TestResolver_crash(t *testing.T) {
	const all = 4 // the key, and three copies
	for n := range all + 1 {
		for i := range 4 {
			lost, restart := i%2 == 0, i/2 == 0
			t.Run(fmt.Sprintf("%d writes, lost %v, restart %v", n, lost, restart), func(t *testing.T) {
				b, p := full(t)
				b.writes, b.lost = n, lost
				c, err := b.Resolve(context.Background(), p, false)
				if err == nil {
					err = b.Freeze(context.Background(), p, "rev1", c)
				}
				if (err == nil) != (n == all) {
					t.Fatalf("got %v", err)
				}
				b.writes = -1
				if restart {
					b.restart()
				}
				if err := b.Drop(context.Background(), poolA, map[string]bool{}); err != nil {
					t.Fatal(err)
				}
				if left := slices.DeleteFunc(b.left(), func(s string) bool { return s == "Secret a-source-key" }); len(left) > 0 {
					t.Errorf("copies of a revision that was never stored: %v", left)
				}
				b.freeze(p, "rev1")
				if diff := cmp.Diff(allKept, b.left()); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
	for n := range 2 * all { // each is let go, and then deleted
		t.Run(fmt.Sprintf("dropped after %d writes", n), func(t *testing.T) {
			b, p := full(t)
			b.freeze(p, "rev1")
			b.writes, b.lost = n, n%2 == 0
			if err := b.Drop(context.Background(), poolA, nil); !errors.Is(err, errCrash) {
				t.Fatalf("got %v", err)
			}
			b.writes = -1
			for _, restart := range []bool{false, true} {
				if restart {
					b.restart()
				}
				if err := b.Drop(context.Background(), poolA, nil); err != nil {
					t.Fatal(err)
				}
			}
			var all corev1.SecretList
			var maps corev1.ConfigMapList
			if err := errors.Join(b.stored.List(context.Background(), &all), b.stored.List(context.Background(), &maps)); err != nil {
				t.Fatal(err)
			}
			if len(all.Items)+len(maps.Items) > 0 {
				t.Errorf("left over: %v, %v", all.Items, maps.Items)
			}
		})
	}
}

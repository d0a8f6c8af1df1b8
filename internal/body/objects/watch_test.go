package objects

import (
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// told collects notifications.
type told struct {
	mu   sync.Mutex
	seen []string
}

func (n *told) notify(namespace, member string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = append(n.seen, namespace+"/"+member)
}

func (n *told) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := n.seen
	n.seen = nil
	return seen
}

func fakeAccount(objects ...runtime.Object) *account {
	scheme := runtime.NewScheme()
	_ = metav1.AddMetaToScheme(scheme)
	return &account{namespace: "shop", name: "bodies", metadata: metadatafake.NewSimpleMetadataClient(scheme, objects...)}
}

func manifestIn(resource, namespace string) manifest {
	m := manifest{Unstructured: &unstructured.Unstructured{Object: map[string]any{}}, resource: schema.GroupVersionResource{Version: "v1", Resource: resource}}
	m.SetNamespace(namespace)
	return m
}

func TestWatches_tell(t *testing.T) {
	n := &told{}
	w := newWatches(n.notify)
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "else", Labels: map[string]string{v1alpha1.LabelMember: "web-3"}}}
	w.tell("shop", o)
	w.tell("shop", cache.DeletedFinalStateUnknown{Key: "else/x", Obj: o})
	if got := fmt.Sprint(n.take()); got != "[shop/web-3 shop/web-3]" {
		t.Errorf("the Member is in the account's namespace, wherever the object is, and its end counts even if it was not seen: got %s", got)
	}
}

func TestTrim(t *testing.T) {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: "b", UID: "c", ResourceVersion: "d", Annotations: map[string]string{"x": "y"},
		Labels: map[string]string{v1alpha1.LabelMember: "web-3", "x": "y"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}}
	got, err := trim(o)
	if err != nil {
		t.Fatal(err)
	}
	m := got.(*metav1.PartialObjectMetadata)
	if len(m.Annotations)+len(m.ManagedFields) != 0 || len(m.Labels) != 1 || m.Name != "a" || m.UID != "c" {
		t.Errorf("only what tells whose it is stays: got %+v", m.ObjectMeta)
	}
}

// TestWatches_Bounded: watches that see nothing make room for others, and what
// does not fit is not watched, which is said.
func TestWatches_Bounded(t *testing.T) {
	w := newWatches((&told{}).notify)
	t.Cleanup(w.close)
	now := time.Unix(0, 0)
	w.now = func() time.Time { return now }
	acc := fakeAccount()
	for i := range maxWatches {
		w.ensure(acc, []manifest{manifestIn("pods", fmt.Sprintf("n%d", i))})
	}
	if w.ensure(acc, []manifest{manifestIn("pods", "more")}); len(w.running) != maxWatches {
		t.Errorf("%d watches, want %d", len(w.running), maxWatches)
	}
	now = now.Add(idleWatch + time.Second)
	w.ensure(acc, []manifest{manifestIn("pods", "n0")})
	w.ensure(acc, []manifest{manifestIn("pods", "more")})
	if len(w.running) != 2 {
		t.Errorf("those that were not used for long and see nothing are ended: %d are left, want 2", len(w.running))
	}
}

func TestWatches_close(t *testing.T) {
	w := newWatches((&told{}).notify)
	acc := fakeAccount()
	w.ensure(acc, []manifest{manifestIn("pods", "a")})
	w.close()
	w.close()
	if w.ensure(acc, []manifest{manifestIn("pods", "a")}) || len(w.running) != 0 {
		t.Error("nothing is watched after the end, and that is said")
	}
}

//go:build integration

package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// Files of a set beside the objects, which are in *.yaml.
const (
	fileAt  = "at"       // when the set was written
	fileSim = "sim.json" // the journal of simulated bodies
)

// set is what an API server held of one namespace. Its times are moved, so that
// it was written just now.
type set struct {
	name, namespace string
	objects         []*unstructured.Unstructured
	sim             string
	// uids map the UIDs of the objects as they were stored to those that they
	// have got since.
	uids map[string]string

	// What of objects is Pawl's own, typed, with the UIDs of now once the set is
	// loaded.
	pools     []v1alpha1.Pool
	members   []v1alpha1.Member
	claims    []v1alpha1.Claim
	revisions []appsv1.ControllerRevision
	// moves are the pools with a member that is not settled, served those with one
	// that is or was in service.
	moves, served map[string]bool
}

// readSet reads the files in dir.
func readSet(t testing.TB, dir string) *set {
	t.Helper()
	s := &set{name: filepath.Base(dir), uids: map[string]string{}, moves: map[string]bool{}, served: map[string]bool{}}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(readFile(t, filepath.Join(dir, fileAt))))
	if err != nil {
		t.Fatal(err)
	}
	passed := time.Since(at)
	s.sim = shift(readFile(t, filepath.Join(dir, fileSim)), passed)
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		r := yamlutil.NewYAMLReader(bufio.NewReader(strings.NewReader(shift(readFile(t, f), passed))))
		for {
			doc, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			o := &unstructured.Unstructured{}
			var text []byte
			if err == nil {
				text, err = yaml.YAMLToJSON(doc)
			}
			if err == nil {
				err = o.UnmarshalJSON(text)
			}
			if err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			s.objects = append(s.objects, o)
		}
	}
	slices.SortStableFunc(s.objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	s.namespace = s.objects[0].GetNamespace()
	return s
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var timeText = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// shift moves all times in the text, which keep their number of digits: a Member
// has exactly six after the point. With it, no state of a set depends on the
// date on which it is read.
func shift(text string, by time.Duration) string {
	return timeText.ReplaceAllStringFunc(text, func(s string) string {
		layout := "2006-01-02T15:04:05Z07:00"
		if dot := strings.IndexByte(s, '.'); dot >= 0 {
			digits := strings.IndexAny(s[dot:], "Z+-") - 1
			layout = "2006-01-02T15:04:05." + strings.Repeat("0", digits) + "Z07:00"
		}
		t, err := time.Parse(layout, s)
		if err != nil {
			return s
		}
		return t.Add(by).Format(layout)
	})
}

// rank is the order in which objects are created. A quota comes last, since it
// would refuse what it counts.
func rank(o client.Object) int {
	order := []string{"ServiceAccount", "Role", "RoleBinding", "ConfigMap", "Secret", "Pool", "Claim", "Member", "body", "ControllerRevision", "ResourceQuota"}
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if o.GetLabels()[v1alpha1.LabelMember] != "" {
		kind = "body"
	}
	return slices.Index(order, kind)
}

// load creates the objects of the set, as the controllers would: the rules of
// the API server hold. Nothing else may write meanwhile.
func (w *world) load(s *set) {
	w.t.Helper()
	w.namespace = s.namespace
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	for _, o := range s.objects {
		w.make(s, o)
	}
	// Each UID is known now.
	for i, o := range s.objects {
		s.objects[i] = s.mapped(w.t, o)
		w.complete(s.objects[i])
	}
	for _, o := range s.objects {
		if o.GetDeletionTimestamp() != nil {
			if err := w.c.Delete(w.t.Context(), o.DeepCopy()); err != nil {
				w.t.Fatalf("delete %s %s: %v", o.GetKind(), o.GetName(), err)
			}
		}
	}
	s.sim = s.replacer().Replace(s.sim)
	s.sort(w.t)
}

// make creates the object as it was when it was new, and notes its UID.
func (w *world) make(s *set, stored *unstructured.Unstructured) {
	w.t.Helper()
	o := s.mapped(w.t, stored)
	for _, field := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	if o.GetKind() == "Member" {
		o.SetAnnotations(nil)
		unstructured.RemoveNestedField(o.Object, "spec", "claim")
		unstructured.RemoveNestedField(o.Object, "spec", "disruption")
	}
	w.create(o)
	s.uids[string(stored.GetUID())] = string(o.GetUID())
}

// complete brings the object from what it was when it was new to what was
// stored.
func (w *world) complete(stored *unstructured.Unstructured) {
	w.t.Helper()
	status, hasStatus, err := unstructured.NestedMap(stored.Object, "status")
	if err != nil {
		w.t.Fatal(err)
	}
	if stored.GetKind() == "Member" {
		// A claim or a disruption can come only to a member in service.
		early := runtime.DeepCopyJSON(status)
		early["phase"] = string(v1alpha1.PhaseAvailable)
		w.patch(stored, "status", map[string]any{"status": early})
		w.patch(stored, "", map[string]any{"spec": stored.Object["spec"], "metadata": map[string]any{"annotations": stored.GetAnnotations()}})
	}
	if hasStatus {
		w.patch(stored, "status", map[string]any{"status": status})
	}
	if fields := stored.GetManagedFields(); len(fields) > 0 {
		// Otherwise the fields of a body would be this test's, and stay when Pawl
		// no longer names them.
		w.patch(stored, "", map[string]any{"metadata": map[string]any{"managedFields": fields}})
	}
}

// patch writes part of the object, or of its subresource.
func (w *world) patch(o *unstructured.Unstructured, subresource string, part map[string]any) {
	w.t.Helper()
	text, err := json.Marshal(part)
	if err == nil {
		p := client.RawPatch("application/merge-patch+json", text)
		if subresource == "" {
			err = w.c.Patch(w.t.Context(), o.DeepCopy(), p)
		} else {
			err = w.c.SubResource(subresource).Patch(w.t.Context(), o.DeepCopy(), p)
		}
	}
	if err != nil {
		w.t.Fatalf("complete %s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

// mapped is the object with the UIDs of now in place of those that were stored,
// wherever they stand: in a member's claim and in the UID of its body, in the
// marks of a body, in the failures that a revision records.
func (s *set) mapped(t testing.TB, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	text, err := o.MarshalJSON()
	out := &unstructured.Unstructured{}
	if err == nil {
		err = out.UnmarshalJSON([]byte(s.replacer().Replace(string(text))))
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (s *set) replacer() *strings.Replacer {
	var pairs []string
	for stored, now := range s.uids {
		pairs = append(pairs, stored, now)
	}
	return strings.NewReplacer(pairs...)
}

// sort reads what of the objects is Pawl's own.
func (s *set) sort(t testing.TB) {
	t.Helper()
	var errs []error
	for _, o := range s.objects {
		switch o.GetKind() {
		case "Pool":
			errs = append(errs, read(&s.pools, o))
		case "Member":
			errs = append(errs, read(&s.members, o))
		case "Claim":
			errs = append(errs, read(&s.claims, o))
		case "ControllerRevision":
			errs = append(errs, read(&s.revisions, o))
		}
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i := range s.members {
		if m := &s.members[i]; unsettled(m) {
			s.moves[m.Spec.Pool] = true
		}
		if s.members[i].Status.ServedSince != nil {
			s.served[s.members[i].Spec.Pool] = true
		}
	}
}

// read appends the object to the list.
func read[T any](list *[]T, o *unstructured.Unstructured) error {
	var next T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &next); err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	*list = append(*list, next)
	return nil
}

// each lists the objects in the namespace.
func (w *world) each(list client.ObjectList, f func(client.Object)) {
	w.t.Helper()
	if err := w.c.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		f(o.(client.Object))
		return nil
	})
}

// dump lists the objects of a kind as the API server has them.
func (w *world) dump(apiVersion, kind string) []*unstructured.Unstructured {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	var all []*unstructured.Unstructured
	w.each(list, func(o client.Object) { all = append(all, o.(*unstructured.Unstructured)) })
	return all
}

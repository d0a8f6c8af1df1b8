//go:build integration

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// reader is an account that may do this with one object.
func (w *world) reader(name, group, resource, object string, verbs ...string) {
	w.t.Helper()
	m := metav1.ObjectMeta{Name: name, Namespace: w.namespace}
	w.create(&rbacv1.Role{ObjectMeta: m, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{object}, Verbs: verbs},
		{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"get", "create", "patch", "delete"}},
	}})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: m, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: w.namespace}},
	})
}

// madeOf is a pool with a source and, of each member, one object.
func (w *world) madeOf(name string, n int32, source v1alpha1.Source, object string) *v1alpha1.Pool {
	return &v1alpha1.Pool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
		Spec: v1alpha1.PoolSpec{
			Replicas: &n, ServiceAccountName: new("reader"), Sources: []v1alpha1.Source{source},
			Update:   &v1alpha1.Update{Type: new(v1alpha1.UpdateRollingUpdate)},
			Template: v1alpha1.Template{Objects: []runtime.RawExtension{{Raw: []byte(object)}}},
		},
	}
}

// saying is a ConfigMap with one key.
func (w *world) saying(name, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}, Data: map[string]string{"text": text}}
}

// texts are what the members' ConfigMaps say, in the order of their names.
func (w *world) texts(pool string) string {
	w.t.Helper()
	var list corev1.ConfigMapList
	if err := w.c.List(w.t.Context(), &list, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelPool: pool}, client.HasLabels{v1alpha1.LabelMember}); err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for i := range list.Items {
		all = append(all, list.Items[i].Data["text"])
	}
	return strings.Join(all, ",")
}

// copies are the names of what is kept of a pool's sources.
func (w *world) copies(pool string) []string {
	w.t.Helper()
	var names []string
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}} {
		if err := w.c.List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelPool: pool}, client.HasLabels{v1alpha1.LabelSource}); err != nil {
			w.t.Fatal(err)
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			names = append(names, o.(client.Object).GetName())
			return nil
		})
	}
	slices.Sort(names)
	return names
}

// everything is all that the API server shows of the namespace, by kind and
// name, as JSON.
func (w *world) everything() map[string]string {
	w.t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(pawldtest.Shared(w.t).Config)
	if err != nil {
		w.t.Fatal(err)
	}
	lists, err := d.ServerPreferredNamespacedResources()
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]string{}
	for _, group := range lists {
		for _, r := range group.APIResources {
			if !slices.Contains(r.Verbs, "list") {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(group.GroupVersion)
			list.SetKind(r.Kind + "List")
			if err := w.c.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
				w.t.Fatal(err)
			}
			for i := range list.Items {
				text, err := json.Marshal(list.Items[i].Object)
				if err != nil {
					w.t.Fatal(err)
				}
				all[r.Kind+" "+list.Items[i].GetName()] = string(text)
			}
		}
	}
	return all
}

// TestSource_secret: what a Secret says is nowhere but in itself, in the copies
// that are kept of it, and where the template puts it: whatever goes wrong with
// it, and whoever speaks about that.
func TestSource_secret(t *testing.T) {
	w := shared(t)
	password := "Hunter_2-" + rand.String(12)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "creds", Namespace: w.namespace}, StringData: map[string]string{"password": password, "unused": "x"}})
	w.reader("reader", "", "secrets", "creds", "list", "watch")
	source := v1alpha1.Source{Name: "creds", Secret: &v1alpha1.KeysSource{Name: "creds", Keys: []string{"password"}}}
	failing := func(p *v1alpha1.Pool) *v1alpha1.Pool {
		p.Spec.Update.FailureLimit = intOrString(1)
		return p
	}
	w.create(w.madeOf("good", 2, source, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"${member.name}"},"stringData":{"password":"${sources.creds.password}"}}`))
	w.create(failing(w.madeOf("refused", 1, source, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${member.name}","labels":{"no":"${sources.creds.password}!"}}}`)))
	w.create(failing(w.madeOf("unrendered", 1, source, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${member.name}"},"data":{"a":"${sources.creds[sources.creds.password]}"}}`)))
	talking := failing(w.madeOf("talking", 1, source, `{}`))
	talking.Spec.Template = v1alpha1.Template{Process: &v1alpha1.Process{
		Command: "/bin/sh", Args: []string{"-c", `echo "cannot log in with $PASSWORD" >&2; exit 3`}, Env: map[string]string{"PASSWORD": "${sources.creds.password}", envRun: w.run},
	}}
	w.create(talking)
	w.updated("good", 2)
	w.reason("unrendered", v1alpha1.ConditionStalled, "InvalidTemplate")
	for _, pool := range []string{"refused", "talking"} {
		w.eventually("it is said what went wrong", func() error {
			if m := w.members(pool); len(m) != 1 || !strings.Contains(m[0].Status.Message, "[secret]") {
				return errors.New(list(m))
			}
			return nil
		})
	}
	// Of the value of another day too there is a digest, and nothing else.
	old := password
	password = "Hunter_3-" + rand.String(12)
	w.eventually("edit the secret", func() error {
		return w.c.Update(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "creds", Namespace: w.namespace}, StringData: map[string]string{"password": password}})
	})
	w.eventually("it rolls", func() error {
		m := w.members("good")
		if len(m) != 2 || m[0].Status.Incarnation != 2 || m[1].Status.Incarnation != 2 || m[1].Status.Phase != v1alpha1.PhaseAvailable {
			return errors.New(list(m))
		}
		return nil
	})
	allowed := []string{"Secret creds", "Secret good-0", "Secret good-1"}
	for _, pool := range []string{"good", "refused", "unrendered", "talking"} {
		for _, name := range w.copies(pool) {
			allowed = append(allowed, "Secret "+name)
		}
	}
	holders := 0
	for name, text := range w.everything() {
		for _, value := range []string{old, password} {
			if !strings.Contains(text, value) && !strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(value))) {
				continue
			}
			if holders++; !slices.Contains(allowed, name) {
				t.Errorf("%s holds the secret: %s", name, text)
			}
		}
	}
	if holders < 5 { // creds, two bodies, two copies of good
		t.Errorf("the secret was found in %d objects only: the test sees nothing", holders)
	}
	log, err := os.ReadFile(filepath.Join(pawldtest.Shared(t).Dir, "pawld.log"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(log), old) || strings.Contains(string(log), password) {
		t.Error("the log holds the secret")
	}
}

// TestSource_forbidden: the right that is missing is named, and is all that it
// takes.
func TestSource_forbidden(t *testing.T) {
	w := shared(t)
	w.create(w.saying("boot", "one"))
	source := v1alpha1.Source{Name: "boot", ConfigMap: &v1alpha1.KeysSource{Name: "boot"}}
	w.create(w.madeOf("web", 1, source, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${member.name}"},"data":"${sources.boot}"}`))
	c := w.condition("web", v1alpha1.ConditionSourcesResolved, "Forbidden",
		"source boot: service account "+w.namespace+"/reader may not read ConfigMap "+w.namespace+"/boot: grant it the verbs list and watch on configmaps (name boot) in namespace "+w.namespace)
	if c.Status != metav1.ConditionFalse {
		t.Errorf("got %+v", c)
	}
	w.condition("web", v1alpha1.ConditionUpdated, "SourcesUnresolved")
	w.reader("reader", "", "configmaps", "boot", "list", "watch")
	w.updated("web", 1)
	if got := w.texts("web"); got != "one" {
		t.Errorf("the body says %q", got)
	}
}

// TestSource_rollback: what failed goes back to what the last good revision was
// made from, although the ConfigMap still says what is bad.
func TestSource_rollback(t *testing.T) {
	w := shared(t)
	w.reader("reader", "", "configmaps", "boot", "list", "watch")
	w.create(w.saying("boot", "good"))
	source := v1alpha1.Source{Name: "boot", ConfigMap: &v1alpha1.KeysSource{Name: "boot", Keys: []string{"text"}}}
	p := w.madeOf("web", 3, source, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${member.name}"},"data":{"text":"${sources.boot.text}"}}`)
	p.Spec.Template.Ready = []string{`objects[0].data.text != "bad"`}
	p.Spec.Template.BootTimeout = &metav1.Duration{Duration: time.Second}
	p.Spec.Update.FailureLimit, p.Spec.Update.OnFailure = intOrString(1), new(v1alpha1.FailureRollback)
	w.create(p)
	w.updated("web", 3)
	w.recovered("web")
	if err := w.c.Update(t.Context(), w.saying("boot", "bad")); err != nil {
		t.Fatal(err)
	}
	w.reason("web", v1alpha1.ConditionUpdated, "RolledBack")
	w.eventually("all are made from what was good", func() error {
		if got := w.texts("web"); got != "good,good,good" || w.pool("web").Status.Free != 3 {
			return fmt.Errorf("%s: %s", got, describe(w.pool("web")))
		}
		return nil
	})
	if err := w.c.Update(t.Context(), w.saying("boot", "better")); err != nil {
		t.Fatal(err)
	}
	w.updated("web", 3)
	if got := w.texts("web"); got != "better,better,better" {
		t.Errorf("the bodies say %q", got)
	}
}

// TestSource_copiesGo: copies go with their revision, and with their pool. So do
// those of a revision that was never stored.
func TestSource_copiesGo(t *testing.T) {
	server := pawldtest.Start(t)
	w := newWorld(t, server.Config)
	w.reader("reader", "", "configmaps", "boot", "list", "watch")
	w.create(w.saying("boot", "1"))
	source := v1alpha1.Source{Name: "boot", ConfigMap: &v1alpha1.KeysSource{Name: "boot"}}
	p := w.madeOf("web", 1, source, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${member.name}"},"data":"${sources.boot}"}`)
	p.Spec.RevisionHistoryLimit = new(int32(1))
	w.create(p)
	w.updated("web", 1)
	for _, text := range []string{"2", "3", "4"} {
		if err := w.c.Update(t.Context(), w.saying("boot", text)); err != nil {
			t.Fatal(err)
		}
		w.eventually("it says "+text, func() error {
			if got := w.texts("web"); got != text {
				return errors.New(got)
			}
			return nil
		})
		w.updated("web", 1)
	}
	kept := func() error {
		var want []string
		for _, rev := range w.revisions("web") {
			want = append(want, rev.Name+"-boot")
		}
		slices.Sort(want)
		if got := w.copies("web"); !slices.Equal(got, want) || len(want) != 2 {
			return fmt.Errorf("copies %v of revisions %v", got, want)
		}
		return nil
	}
	w.eventually("copies go with their revision", kept)

	// Killed between the copy and the revision, whose content was withdrawn
	// meanwhile.
	server.Kill()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	orphan := w.saying("web-neverstored0-boot", "5")
	orphan.Labels = map[string]string{v1alpha1.LabelPool: "web", v1alpha1.LabelRevision: "neverstored0", v1alpha1.LabelSource: "boot"}
	orphan.Finalizers, orphan.Immutable = []string{v1alpha1.FinalizerRevision}, new(true)
	w.create(orphan)
	server.Kill()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	w.eventually("what was left over goes", kept)

	if err := w.c.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.gone(p)
	if left := w.copies("web"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestSource_deleted: what a body was made from outlives the source, and a
// member that fails meanwhile comes back as it was.
func TestSource_deleted(t *testing.T) {
	w := shared(t)
	w.reader("reader", "", "configmaps", "boot", "list", "watch")
	w.create(w.saying("boot", "one"))
	source := v1alpha1.Source{Name: "boot", ConfigMap: &v1alpha1.KeysSource{Name: "boot"}}
	p := w.madeOf("web", 2, source, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${member.name}"},"data":"${sources.boot}"}`)
	p.Spec.Update.Partition = new(int32(2))
	w.create(p)
	w.updated("web", 2)
	w.recovered("web")
	if err := w.c.Delete(t.Context(), w.saying("boot", "")); err != nil {
		t.Fatal(err)
	}
	w.condition("web", v1alpha1.ConditionSourcesResolved, "NotFound", "source boot: ConfigMap "+w.namespace+"/boot is not there: create it")
	w.condition("web", v1alpha1.ConditionUpdated, "SourcesUnresolved")
	if err := w.c.Delete(t.Context(), w.saying("web-1", "")); err != nil {
		t.Fatal(err)
	}
	if m := w.members("web"); len(m) != 2 || m[0].Status.Incarnation != 1 || m[0].Status.Phase != v1alpha1.PhaseAvailable {
		t.Errorf("a source that is gone disturbs nobody: %s", list(m))
	}
	w.create(w.saying("boot", "two"))
	w.eventually("it comes back as it was", func() error {
		m := w.members("web")
		if len(m) != 2 || m[1].Status.Incarnation != 2 || m[1].Status.Phase != v1alpha1.PhaseAvailable || w.texts("web") != "one,one" {
			return fmt.Errorf("%s: %s", w.texts("web"), list(m))
		}
		return nil
	})
}

// TestSource_field: a field of any object is a source, as soon as there are such
// objects.
func TestSource_field(t *testing.T) {
	w := shared(t)
	group := "e2e-" + w.run + ".example.com"
	w.reader("reader", group, "images", "golden", "list", "watch")
	source := v1alpha1.Source{Name: "image", Object: &v1alpha1.ObjectSource{APIVersion: group + "/v1", Kind: "Image", Name: "golden", FieldPath: `status.latest["tag.name"]`}}
	w.create(w.madeOf("web", 1, source, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${member.name}"},"data":{"text":"${sources.image}"}}`))
	w.condition("web", v1alpha1.ConditionSourcesResolved, "KindNotServed", "does not serve kind Image in "+group+"/v1")

	definition := &unstructured.Unstructured{}
	raw := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"images.%[1]s"},"spec":{
		"group":%[1]q,"scope":"Namespaced","names":{"plural":"images","kind":"Image"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`, group)
	if err := json.Unmarshal([]byte(raw), &definition.Object); err != nil {
		t.Fatal(err)
	}
	w.create(definition)
	t.Cleanup(func() { _ = w.c.Delete(t.Context(), definition) })
	w.condition("web", v1alpha1.ConditionSourcesResolved, "NotFound", "source image: Image "+w.namespace+"/golden is not there")

	golden := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Image", "metadata": map[string]any{"name": "golden", "namespace": w.namespace}, "spec": "x",
	}}
	w.eventually("the kind is served", func() error { return w.c.Create(t.Context(), golden.DeepCopy()) })
	w.condition("web", v1alpha1.ConditionSourcesResolved, "FieldNotFound", `has no field status.latest["tag.name"]`)
	set := func(tag, note string) {
		t.Helper()
		w.eventually("set "+tag, func() error {
			if err := w.c.Get(t.Context(), client.ObjectKeyFromObject(golden), golden); err != nil {
				return err
			}
			golden.Object["status"] = map[string]any{"latest": map[string]any{"tag.name": tag}, "note": note}
			return w.c.Update(t.Context(), golden)
		})
	}
	for _, tag := range []string{"v1", "v2"} {
		set(tag, "")
		w.eventually("it is made of "+tag, func() error {
			if got := w.texts("web"); got != tag {
				return fmt.Errorf("%q: %s", got, describe(w.pool("web")))
			}
			return nil
		})
		w.updated("web", 1)
	}
	set("v2", "another field")
	if n := len(w.revisions("web")); n != 2 {
		t.Errorf("%d revisions of two contents", n)
	}
	// The definition goes, and with it the object.
	if err := w.c.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	w.eventually("that is said", func() error {
		c := meta.FindStatusCondition(w.pool("web").Status.Conditions, v1alpha1.ConditionSourcesResolved)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "NotFound" && c.Reason != "KindNotServed" {
			return errors.New(describe(w.pool("web")))
		}
		return nil
	})
	if got := w.texts("web"); got != "v2" {
		t.Errorf("the body says %q", got)
	}
}

//go:build integration

package objects

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

const (
	settings   = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "${member.name}-settings"}, data: {mode: one}}`
	deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {tier: a}}, spec: {replicas: 1, selector: {matchLabels: {app: "${member.name}"}},
		template: {metadata: {labels: {app: "${member.name}"}}, spec: {containers: [{name: main, image: "one:1", env: [{name: A, value: a}]}, {name: side, image: "side:1"}]}}}}`
)

// next is the slot as an update to revision r finds it.
func next(slot body.Slot, o body.Observation, r string) body.Slot {
	slot.Incarnation, slot.Revision, slot.Known = slot.Incarnation+1, r, []string{o.UID}
	return slot
}

func (w *world) mustUpdate(slot body.Slot, t *v1alpha1.Template) body.Observation {
	w.t.Helper()
	o, err := w.kind.Update(w.ctx, slot, t)
	if err != nil {
		w.t.Fatalf("update: %v", err)
	}
	if o.Incarnation != slot.Incarnation || o.Revision != slot.Revision {
		w.t.Fatalf("updated, it is incarnation %d of revision %s", o.Incarnation, o.Revision)
	}
	return o
}

func (w *world) uid(plural, name string) types.UID {
	w.t.Helper()
	o := w.get(plural, name)
	if o == nil {
		return ""
	}
	return o.GetUID()
}

func TestKind_Update(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "secrets", "deployments.apps")
	slot, before := w.slot(0), w.template(configMap, deployment)
	was := w.mustCreate(slot, before)
	config, deploy := w.uid("configmaps", "web-0-config"), w.uid("deployments.apps", "web-0")
	w.patch("deployments.apps", "web-0", `{"metadata": {"annotations": {"of": "others"}}, "spec": {"replicas": 3}}`)

	after := w.template(
		strings.Replace(configMap, "string(member.index)", "string(member.incarnation)", 1),
		strings.NewReplacer("one:1", "two:1", ", env: [{name: A, value: a}]", "").Replace(deployment), secret)
	slot = next(slot, was, "r2")
	is := w.mustUpdate(slot, after)

	if c := w.get("configmaps", "web-0-config"); c.GetUID() != config || c.Object["data"].(map[string]any)["index"] != "2" {
		t.Errorf("the object that is there is written: UID %s, was %s; %v", c.GetUID(), config, c.Object["data"])
	}
	d := w.get("deployments.apps", "web-0")
	if d.GetUID() != deploy || d.GetAnnotations()["of"] != "others" || at(d, "spec.replicas") != int64(1) {
		t.Errorf("what the template names is as it says, the rest as others left it: %v, %v", d.GetAnnotations(), d.Object["spec"])
	}
	if at(d, "spec.template.spec.containers[0].image") != "two:1" || at(d, "spec.template.spec.containers[0].env") != nil {
		t.Errorf("what the template names no more is gone: %v", at(d, "spec.template.spec.containers[0]"))
	}
	if w.uid("secrets", "web-0-secret") == "" || !strings.Contains(is.UID, "secrets/") || !strings.HasPrefix(is.UID, was.UID) {
		t.Errorf("what is new in the template is made, and of the body: %s, was %s", is.UID, was.UID)
	}

	w.readOnly()
	if again := w.mustUpdate(slot, after); again.UID != is.UID {
		t.Errorf("again, nothing changes: %s, was %s", again.UID, is.UID)
	}
	w.fault(nil)

	fewer := next(slot, is, "r1")
	o := w.mustUpdate(fewer, before)
	if w.uid("secrets", "web-0-secret") != "" || o.UID != was.UID {
		t.Errorf("what is known of the body and not named any more is deleted; left is %s, was %s", o.UID, was.UID)
	}
	if seen := w.mustObserve(fewer, before); seen.Incarnation != 3 || seen.Revision != "r1" || seen.UID != was.UID {
		t.Errorf("and observed: %+v", seen)
	}
}

// readOnly has the test fail if the kind writes.
func (w *world) readOnly() {
	w.fault(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method != http.MethodGet {
			w.t.Errorf("%s %s: nothing should be written", r.Method, r.URL.Path)
		}
		return next.RoundTrip(r)
	})
}

// An object that cannot become what the template says is told in the API
// server's words, and nothing is touched.
func TestKind_Update_Refused(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "deployments.apps")
	slot, before := w.slot(0), w.template(configMap, deployment)
	was := w.mustCreate(slot, before)
	version := w.get("configmaps", "web-0-config").GetResourceVersion()

	after := w.template(strings.Replace(configMap, "data: {index", `data: {more: "1", index`, 1), settings,
		strings.Replace(deployment, `{app: "${member.name}"}`, `{app: other}`, 2))
	slot = next(slot, was, "r2")
	_, err := w.kind.Update(w.ctx, slot, after)
	w.wantError("a selector cannot change", err, body.ErrRefused, "template.objects[2]", "update Deployment", "field is immutable")
	if w.get("configmaps", "web-0-config").GetResourceVersion() != version || w.uid("configmaps", "web-0-settings") != "" {
		t.Error("nothing was written, also not of what could have been")
	}

	for _, template := range []*v1alpha1.Template{after, w.template(settings), w.template(strings.Replace(configMap, "${", "${nothing.", 1))} {
		seen := w.mustObserve(slot, template)
		if seen.Incarnation != 1 || seen.Revision != "r1" || seen.State == body.Absent {
			t.Errorf("as the revision that it could not become, it is seen as what it is: %+v", seen)
		}
	}
	seen := slot
	seen.Incarnation, seen.Revision = 1, "r1"
	if o := w.mustObserve(seen, before); o.UID != was.UID || o.State != was.State {
		t.Errorf("as what it is, it is as it was: %+v", o)
	}
	slot.Incarnation, slot.Revision = 3, "r1"
	if o := w.mustUpdate(slot, before); o.UID != was.UID {
		t.Errorf("it becomes the next incarnation of what it was: %s, was %s", o.UID, was.UID)
	}
}

// Whatever is lost on the way, the next call goes on, also to another revision.
func TestKind_Update_CutShort(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "secrets")
	slot := w.slot(0)
	was := w.mustCreate(slot, w.template(configMap, secret))
	config := w.uid("configmaps", "web-0-config")
	slot = next(slot, was, "r2")
	wider := w.template(configMap, settings, strings.Replace(secret, "a: b", "a: c", 1))

	writes := 0
	w.fault(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPatch && !strings.Contains(r.URL.RawQuery, "dryRun") {
			if writes++; writes > 2 {
				return nil, errors.New("cut")
			}
		}
		return next.RoundTrip(r)
	})
	_, err := w.kind.Update(w.ctx, slot, wider)
	w.wantError("an answer that is lost says nothing", err, nil, "cut")
	w.fault(nil)

	before := slot
	before.Incarnation, before.Revision = 1, "r1"
	if o := w.mustObserve(before, w.template(configMap, secret)); o.State == body.Absent || o.Incarnation != 1 {
		t.Errorf("half way, it is not gone: %+v", o)
	}
	half := w.mustObserve(slot, wider)
	if half.State != body.Down || half.Incarnation != 2 || !strings.Contains(half.Message, "secret is missing") {
		t.Errorf("nor is it what it should be: %+v", half)
	}

	// Another revision is wanted meanwhile, which does not name what was added.
	slot.Revision = "r3"
	slot.Known = append(slot.Known, half.UID)
	o := w.mustUpdate(slot, w.template(configMap))
	if w.uid("configmaps", "web-0-config") != config || w.uid("configmaps", "web-0-settings") != "" || w.uid("secrets", "web-0-secret") != "" {
		t.Errorf("what neither names is gone, what both name stays: %s", o.UID)
	}
}

func TestKind_Update_Foreign(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "secrets")
	slot := w.slot(0)
	_, err := w.kind.Update(w.ctx, slot, w.template(configMap))
	w.wantError("there has to be something", err, body.ErrOccupied, "there is no body to update")

	was := w.mustCreate(slot, w.template(configMap))
	slot = next(slot, was, "r2")
	w.create("configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+w.namespace+`, name: web-0-settings}, data: {of: others}}`)
	_, err = w.kind.Update(w.ctx, slot, w.template(configMap, settings))
	w.wantError("a stranger is left alone", err, body.ErrOccupied, "ConfigMap "+w.namespace+"/web-0-settings is not Pawl's")
	if diff := cmp.Diff(map[string]any{"of": "others"}, w.get("configmaps", "web-0-settings").Object["data"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if c := w.get("configmaps", "web-0-config"); c.GetLabels()["pawl.dev/incarnation"] != "1" {
		t.Error("and so is the body, as long as the name is taken")
	}

	// A namesake that somebody puts in its place at the last moment is not touched.
	w.fault(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPatch {
			w.fault(nil)
			if err := w.resource("configmaps", w.namespace).Delete(w.ctx, "web-0-config", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			w.create("configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+w.namespace+`, name: web-0-config}, data: {of: others}}`)
		}
		return next.RoundTrip(r)
	})
	_, err = w.kind.Update(w.ctx, slot, w.template(configMap))
	w.wantError("the UID is the condition", err, nil, "web-0-config")
	if diff := cmp.Diff(map[string]any{"of": "others"}, w.get("configmaps", "web-0-config").Object["data"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := w.resource("configmaps", w.namespace).Delete(w.ctx, "web-0-config", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	slot.Known = nil
	slot = next(slot, w.mustCreate(slot, w.template(configMap)), "r3")
	w.patch("configmaps", "web-0-config", `{"metadata": {"finalizers": ["example.com/wait"]}}`)
	if err := w.resource("configmaps", w.namespace).Delete(w.ctx, "web-0-config", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := w.kind.Update(w.ctx, slot, w.template(configMap))
	if err != nil || o.State != body.Booting || o.Incarnation == slot.Incarnation || !strings.Contains(o.Message, "is still terminating, held by example.com/wait") {
		t.Errorf("what terminates is waited for: %+v, %v", o, err)
	}
	w.patch("configmaps", "web-0-config", `{"metadata": {"finalizers": null}}`)
}

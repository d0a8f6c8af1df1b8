//go:build integration

package objects

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/fieldpath"
)

// at is what an object says at a path; nil for nothing.
func at(o *unstructured.Unstructured, path string) any {
	p, err := fieldpath.Parse(path)
	if err != nil {
		panic(err)
	}
	v, _ := p.Get(o.Object)
	return v
}

func (w *world) live(t *v1alpha1.Template, paths ...string) *v1alpha1.Template {
	w.t.Helper()
	t.LiveFields = paths
	if err := w.kind.CheckLive(t); err != nil {
		w.t.Fatal(err)
	}
	return t
}

func (w *world) mustApplyLive(slot body.Slot, t *v1alpha1.Template) {
	w.t.Helper()
	if err := w.kind.ApplyLive(w.ctx, slot, t); err != nil {
		w.t.Fatalf("apply live fields: %v", err)
	}
}

func TestKind_ApplyLive(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "deployments.apps")
	slot := w.slot(0)
	paths := []string{"objects[0].data", "objects[1].metadata.labels.tier", "objects[1].spec.template.spec.containers[1].image"}
	now := func(edits ...string) *v1alpha1.Template {
		return w.live(w.template(configMap, strings.NewReplacer(edits...).Replace(deployment)), paths...)
	}
	w.mustCreate(slot, now())
	config, deploy := w.get("configmaps", "web-0-config"), w.get("deployments.apps", "web-0")
	w.readOnly()
	w.mustApplyLive(slot, now())
	w.fault(nil)

	// Whoever holds the member has made it his own.
	w.patch("deployments.apps", "web-0", `{"spec": {"replicas": 5, "template": {"metadata": {"labels": {"of": "others"}}}}}`)
	w.jsonPatch("deployments.apps", "web-0", `[{"op": "remove", "path": "/spec/template/spec/containers/0/env"},
		{"op": "add", "path": "/spec/template/spec/containers/0", "value": {"name": "injected", "image": "injected:1"}}]`)
	w.mustApplyLive(slot, now("tier: a", "tier: b", "side:1", "side:2"))

	if c := w.get("configmaps", "web-0-config"); c.GetResourceVersion() != config.GetResourceVersion() {
		t.Error("an object of which nothing has changed is not written")
	}
	d := w.get("deployments.apps", "web-0")
	if d.GetUID() != deploy.GetUID() || d.GetLabels()["tier"] != "b" || d.GetLabels()["pawl.dev/incarnation"] != "1" {
		t.Errorf("live fields are as the template says now, of the same body: %v", d.GetLabels())
	}
	var images []any
	for _, i := range []string{"0", "1", "2"} {
		images = append(images, at(d, "spec.template.spec.containers["+i+"].image"))
	}
	if diff := cmp.Diff([]any{"injected:1", "one:1", "side:2"}, images); diff != "" {
		t.Errorf("a container is known by its name, not by its place: (-want +got)\n%s", diff)
	}
	if at(d, "spec.replicas") != int64(5) || at(d, "spec.template.metadata.labels.of") != "others" || at(d, "spec.template.spec.containers[1].env") != nil {
		t.Errorf("what somebody has changed or removed, and is not live, stays so: %v", d.Object["spec"])
	}

	w.readOnly()
	w.mustApplyLive(slot, now("tier: a", "tier: b", "side:1", "side:2"))
	w.fault(nil)

	w.mustApplyLive(slot, now("tier: a", "", "side:1", "side:2"))
	if d := w.get("deployments.apps", "web-0"); d.GetLabels()["tier"] != "" || at(d, "spec.template.spec.containers[0].name") != "injected" {
		t.Errorf("what the template says no more at a live field is gone, and nothing else: %v", d.GetLabels())
	}

	later := slot
	later.Incarnation = 2
	w.readOnly()
	w.mustApplyLive(later, now("tier: a", "tier: z"))
	w.mustApplyLive(w.slot(1), now("tier: a", "tier: z"))
	w.fault(nil)
}

func (w *world) jsonPatch(plural, name, patch string) {
	w.t.Helper()
	_, err := w.resource(plural, w.namespace).Patch(w.ctx, name, "application/json-patch+json", []byte(patch), metav1.PatchOptions{})
	if err != nil {
		w.t.Fatalf("patch %s %s: %v", plural, name, err)
	}
}

func TestKind_ApplyLive_Refused(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "deployments.apps")
	slot := w.slot(0)
	paths := []string{"objects[0].data", "objects[1].spec.selector"}
	w.mustCreate(slot, w.live(w.template(configMap, deployment), paths...))
	edited := w.live(w.template(strings.Replace(configMap, "data: {index", "data: {more: x, index", 1),
		strings.Replace(deployment, "matchLabels: {", "matchLabels: {more: x, ", 1)), paths...)
	err := w.kind.ApplyLive(w.ctx, slot, edited)
	w.wantError("the API server's words", err, body.ErrRefused, "template.objects[1]: update the live fields of Deployment", "field is immutable")
	if c := w.get("configmaps", "web-0-config"); at(c, "data.more") != "x" {
		t.Error("one object that is refused keeps no other from it")
	}
}

// What is updated where it is has the live fields of then.
func TestKind_Update_Live(t *testing.T) {
	w := newWorld(t, everything, "configmaps")
	slot := w.slot(0)
	template := w.live(w.template(configMap), "objects[0].metadata.labels")
	was := w.mustCreate(slot, template)
	slot = next(slot, was, "r2")
	edited := w.live(w.template(strings.Replace(configMap, "metadata: {", "metadata: {labels: {tier: a}, ", 1)), "objects[0].metadata.labels")
	w.mustUpdate(slot, edited)
	w.readOnly()
	w.mustApplyLive(slot, edited)
	w.fault(nil)
	if c := w.get("configmaps", "web-0-config"); c.GetLabels()["tier"] != "a" || c.GetLabels()["pawl.dev/member"] != "web-0" {
		t.Errorf("the template's labels and Pawl's: %v", c.GetLabels())
	}
}

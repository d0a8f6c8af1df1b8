//go:build integration

package objects

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/body"
)

const (
	once   = `{apiVersion: v1, kind: Pod, spec: {restartPolicy: Never, containers: [{name: main, image: "one:1", command: [serve]}]}}`
	failed = `{"status": {"phase": "Failed", "reason": "Evicted", "message": "no memory"}}`
)

// What has ended is made anew when the body is updated, healed as well, and
// what has not stays.
func TestKind_Update_Ended(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "pods", "jobs.batch")
	slot, template := w.slot(0), w.template(configMap, once)
	was := w.mustCreate(slot, template)
	config, pod := w.uid("configmaps", "web-0-config"), w.uid("pods", "web-0")
	w.patch("pods", "web-0", failed, "status")
	if o := w.mustObserve(slot, template); o.State != body.Exited {
		t.Fatalf("it is %+v", o)
	}

	slot = next(slot, was, "r1")
	bad := w.template(configMap, strings.Replace(once, "one:1", "", 1))
	_, err := w.kind.Update(w.ctx, slot, bad)
	w.wantError("nothing is deleted for what is never made", err, body.ErrRefused, "template.objects[1]", "image")
	if w.uid("pods", "web-0") != pod || w.get("configmaps", "web-0-config").GetLabels()["pawl.dev/incarnation"] != "1" {
		t.Error("refused, all is as it was")
	}

	o := w.mustUpdate(slot, template)
	again := w.uid("pods", "web-0")
	if o.State == body.Exited || again == pod || again == "" || w.uid("configmaps", "web-0-config") != config {
		t.Errorf("the Pod is another, the ConfigMap the same: %+v", o)
	}
	w.patch("pods", "web-0", failed, "status")
	w.readOnly()
	if o := w.mustUpdate(slot, template); o.State != body.Exited || w.uid("pods", "web-0") != again {
		t.Errorf("each incarnation ends once: %+v", o)
	}
	w.fault(nil)

	slot = next(slot, w.mustObserve(slot, template), "r2")
	later := w.template(configMap, strings.Replace(once, "serve", "other", 1))
	w.mustUpdate(slot, later)
	if at(w.get("pods", "web-0"), "spec.containers[0].command[0]") != "other" {
		t.Error("it is what it could not have become")
	}
	w.patch("pods", "web-0", `{"status": {"phase": "Succeeded"}}`, "status")
	kept := w.uid("pods", "web-0")
	slot = next(slot, w.mustObserve(slot, later), "r3")
	later.Ready = []string{`objects[1].status.phase == "Succeeded"`}
	if o := w.mustUpdate(slot, later); o.State != body.Ready || w.uid("pods", "web-0") != kept {
		t.Errorf("what has come to its end as it should is kept: %+v", o)
	}
	slot = next(slot, w.mustObserve(slot, later), "r4")
	later.Ready = nil
	if o := w.mustUpdate(slot, later); o.State == body.Exited || w.uid("pods", "web-0") == kept {
		t.Errorf("what has come to its end otherwise is made anew: %+v", o)
	}
}

// Whatever interrupts it, and however long the end takes, the next call goes on.
func TestKind_Update_Ending(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "pods")
	slot, template := w.slot(0), w.template(configMap, once)
	was := w.mustCreate(slot, template)
	pod := w.uid("pods", "web-0")
	w.patch("pods", "web-0", failed, "status")
	w.patch("pods", "web-0", `{"metadata": {"finalizers": ["example.com/wait"]}}`)
	before := slot
	slot = next(slot, was, "r2")
	for range 2 {
		o, err := w.kind.Update(w.ctx, slot, template)
		if err != nil || o.State != body.Booting || o.Incarnation != 1 || !strings.Contains(o.Message, "held by example.com/wait") {
			t.Fatalf("until it is gone it boots: %+v, %v", o, err)
		}
	}
	if o := w.mustObserve(before, template); o.State == body.Absent || o.Incarnation != 1 {
		t.Errorf("and is what it was: %+v", o)
	}
	if w.get("configmaps", "web-0-config").GetLabels()["pawl.dev/incarnation"] != "1" {
		t.Error("nothing else is touched")
	}
	w.patch("pods", "web-0", `{"metadata": {"finalizers": null}}`)
	w.fault(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPatch && !strings.Contains(r.URL.RawQuery, "dryRun") && strings.Contains(r.URL.Path, "pods") {
			return nil, errors.New("cut")
		}
		return next.RoundTrip(r)
	})
	_, err := w.kind.Update(w.ctx, slot, template)
	w.wantError("cut short", err, nil, "cut")
	w.fault(nil)
	if o := w.mustObserve(before, template); o.State == body.Absent || o.State == body.Exited {
		t.Errorf("half way, it is neither gone nor ended: %+v", o)
	}
	if w.mustUpdate(slot, template); w.uid("pods", "web-0") == pod || w.uid("pods", "web-0") == "" {
		t.Error("the Pod is another one")
	}
}

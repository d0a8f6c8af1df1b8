//go:build integration

package objects

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/internal/body"
)

const running = `{"status": {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}], "conditions": [{"type": "Ready", "status": "True"}]}}`

// watched waits until no change of the body can be missed any more.
func (w *world) watched(slot body.Slot, manifests ...string) {
	w.t.Helper()
	w.eventually("the body is watched", func() error {
		if o := w.mustObserve(slot, w.template(manifests...)); o.Recheck != 0 {
			return fmt.Errorf("look again in %s", o.Recheck)
		}
		return nil
	})
}

// tells does something and waits until the kind has noticed.
func (w *world) tells(slot body.Slot, what string, do func()) {
	w.t.Helper()
	before := w.told.count(slot.Namespace, slot.Member)
	do()
	w.eventually("it is told of: "+what, func() error {
		if w.told.count(slot.Namespace, slot.Member) == before {
			return errors.New("not told")
		}
		return nil
	})
}

// TestKind_Life follows the body of a member from its birth to its end, by
// nothing but notifications.
func TestKind_Life(t *testing.T) {
	w := newWorld(t, everything, "pods", "services")
	slot, template := w.slot(1), w.template(pod, service)
	want := body.Observation{State: body.Absent}
	expect := func(reason string) {
		t.Helper()
		got := w.mustObserve(slot, template)
		got.UID, got.BornAt, got.Recheck = "", want.BornAt, 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	expect("before there is one")
	w.watched(slot, pod, service)

	w.tells(slot, "the birth", func() { w.mustCreate(slot, template) })
	want = body.Observation{State: body.Booting, Incarnation: 1, Revision: "r1", Address: "web-1." + w.namespace + ".svc:80",
		Message: "Pod " + w.namespace + "/web-1: Pod is in the Pending phase"}
	expect("a Pod that has not started boots")

	w.tells(slot, "what it waits for", func() {
		w.patch("pods", "web-1", `{"status": {"phase": "Pending", "containerStatuses": [{"name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such\nimage"}}}]}}`, "status")
	})
	want.Message = "Pod " + w.namespace + "/web-1: container main: ImagePullBackOff: no such image"
	expect("it says what it waits for")

	w.tells(slot, "it runs", func() { w.patch("pods", "web-1", running, "status") })
	want.State, want.Message = body.Ready, ""
	expect("and is ready")

	w.tells(slot, "it crashes", func() {
		w.patch("pods", "web-1", `{"status": {"phase": "Failed", "containerStatuses": [{"name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]}}`, "status")
	})
	want.State, want.Message = body.Exited, "Pod "+w.namespace+"/web-1 has failed: container main exited with 3: Error"
	expect("it does not come back by itself")

	uid := w.mustObserve(slot, template).UID
	w.tells(slot, "the end", func() { w.mustDelete(slot, uid) })
	want = body.Observation{State: body.Absent}
	w.eventually("it is gone", func() error {
		if o := w.mustObserve(slot, template); o.State != body.Absent {
			return fmt.Errorf("%+v", o)
		}
		return nil
	})
	expect("nothing is left")
}

func TestKind_Observe_Missing(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "secrets")
	slot, template := w.slot(0), w.template(configMap, secret)
	o := w.mustCreate(slot, template)
	w.watched(slot, configMap, secret)
	w.tells(slot, "somebody deletes a part", func() {
		if err := w.resource("configmaps", w.namespace).Delete(w.ctx, "web-0-config", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	got := w.mustObserve(slot, template)
	if got.State != body.Down || got.Message != "ConfigMap "+w.namespace+"/web-0-config is missing" || got.Incarnation != 1 {
		t.Errorf("a body without a part is down: got %+v", got)
	}
	if !strings.HasSuffix(o.UID, ","+got.UID) {
		t.Errorf("its UID lists what is left: got %s of %s", got.UID, o.UID)
	}
	w.mustDelete(slot, got.UID)
	if got := w.mustObserve(slot, template); got.State != body.Absent {
		t.Errorf("all gone is absent: got %+v", got)
	}
}

// TestKind_Observe_Strangers: what is not the Member's is not its body.
func TestKind_Observe_Strangers(t *testing.T) {
	w := newWorld(t, everything, "configmaps")
	template, slot := w.template(configMap), w.slot(0)
	earlier := slot
	earlier.UID = "earlier"
	o := w.mustCreate(earlier, template)
	if got := w.mustObserve(slot, template); got.State != body.Absent {
		t.Errorf("the body of an earlier Member of the name: got %+v", got)
	}
	w.mustDelete(slot, o.UID)
	if w.get("configmaps", "web-0-config") == nil {
		t.Error("is not this Member's to delete")
	}
	w.mustDelete(earlier, o.UID)

	later := slot
	later.Incarnation, later.Revision = 4, "r9"
	w.mustCreate(later, template)
	if got := w.mustObserve(slot, template); got.State != body.Ready || got.Incarnation != 4 || got.Revision != "r9" {
		t.Errorf("another incarnation is told as what it is: got %+v", got)
	}
}

// TestKind_Observe_Unreachable: what cannot be read is never absent.
func TestKind_Observe_Unreachable(t *testing.T) {
	w := newWorld(t, everything, "configmaps")
	slot, template := w.slot(0), w.template(configMap)
	w.mustCreate(slot, template)
	answer := func(code int) func(*http.Request, http.RoundTripper) (*http.Response, error) {
		return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
			return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
		}
	}
	for _, code := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusForbidden, http.StatusUnauthorized} {
		w.fault(answer(code)) //nolint:bodyclose // the client closes it
		if o, err := w.kind.Observe(w.ctx, slot, template); err == nil {
			t.Errorf("an answer of %d is no observation: got %+v", code, o)
		}
		if err := w.kind.Delete(w.ctx, slot, "configmaps/"+w.namespace+"/web-0-config/u"); err == nil {
			t.Errorf("nor is anything deleted by %d", code)
		}
	}
	w.fault(nil)
	slot.ServiceAccount = ""
	if _, err := w.kind.Observe(w.ctx, slot, template); err == nil || !strings.Contains(err.Error(), "serviceAccountName") {
		t.Errorf("without an account nothing can be told: got %v", err)
	}
}

func TestKind_Ready(t *testing.T) {
	w := newWorld(t, everything, "pods", "configmaps")
	slot, template := w.slot(0), w.template(pod, configMap)
	template.Ready = []string{
		`objects[0].status.podIP == "10.1.2.3"`,
		`objects.all(o, o.metadata.labels["pawl.dev/member"] == "web-0") && objects[1].data.index == "0"`,
	}
	w.mustCreate(slot, template)
	w.watched(slot, pod, configMap)
	if o := w.mustObserve(slot, template); o.State != body.Booting || o.Message != `not yet: objects[0].status.podIP == "10.1.2.3" (no such key: podIP)` {
		t.Errorf("an expression over what is not there yet is false: got %+v", o)
	}
	w.tells(slot, "an IP", func() {
		w.patch("pods", "web-0", `{"status": {"podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}}`, "status")
	})
	if o := w.mustObserve(slot, template); o.State != body.Ready || o.Address != "10.1.2.3" {
		t.Errorf("all expressions hold, whatever kstatus thinks: got %+v", o)
	}
	template.Ready = template.Ready[:1]
	w.tells(slot, "another IP", func() {
		w.patch("pods", "web-0", `{"status": {"podIP": "10.1.2.4", "podIPs": [{"ip": "10.1.2.4"}]}}`, "status")
	})
	if o := w.mustObserve(slot, template); o.State != body.Booting {
		t.Errorf("an expression that holds no more: got %+v", o)
	}
	template.Ready = []string{"objects[0].status.podIP"}
	if o, err := w.kind.Observe(w.ctx, slot, template); err == nil || !strings.Contains(err.Error(), "template.ready[0]: it is no condition") {
		t.Errorf("what is no condition cannot be told: got %+v, %v", o, err)
	}
}

// TestKind_WithoutWatch: an account that may not watch is asked for more often,
// and no longer once it may.
func TestKind_WithoutWatch(t *testing.T) {
	w := newWorld(t, "get,create,patch,delete", "configmaps")
	slot, template := w.slot(0), w.template(configMap)
	if o := w.mustCreate(slot, template); o.State != body.Ready || o.Recheck != recheckLate {
		t.Errorf("a ready body is looked at now and then: got %+v", o)
	}
	if o := w.mustObserve(w.slot(1), template); o.State != body.Absent || o.Recheck != recheckSoon {
		t.Errorf("one that is to change is looked at soon: got %+v", o)
	}
	w.grant("bodies", "list,watch", "configmaps")
	w.watched(slot, configMap)
	w.tells(slot, "a change", func() { w.patch("configmaps", "web-0-config", `{"data": {"x": "y"}}`) })
}

// TestKind_WatchLost: whoever relies on a watch hears of it when the right to
// it is withdrawn.
func TestKind_WatchLost(t *testing.T) {
	w := newWorld(t, everything, "configmaps")
	slot, template := w.slot(0), w.template(configMap)
	w.mustCreate(slot, template)
	w.watched(slot, configMap)
	key := watchKey{w.namespace, "bodies", w.resourceOf("configmaps"), w.namespace}
	w.tells(slot, "the loss", func() {
		w.kind.watches.running[key].fail(forbidden)
	})
	if o := w.mustObserve(slot, template); o.Recheck == 0 {
		t.Errorf("it is looked at again: got %+v", o)
	}
}

func TestKind_Delete(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "secrets", "pods")
	slot, template := w.slot(0), w.template(configMap, secret)
	o := w.mustCreate(slot, template)

	var order []string
	w.fault(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodDelete {
			payload, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(payload)))
			order = append(order, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]+" "+strings.TrimSpace(string(payload)))
		}
		return next.RoundTrip(r)
	})
	c, s := w.get("configmaps", "web-0-config"), w.get("secrets", "web-0-secret")
	w.mustDelete(slot, o.UID)
	w.mustDelete(slot, o.UID)
	w.mustDelete(slot, "")
	w.fault(nil)
	payload := `{"kind":"DeleteOptions","apiVersion":"%s","preconditions":{"uid":"%s"},"propagationPolicy":"Background"}`
	want := []string{fmt.Sprintf("web-0-secret "+payload, "v1", s.GetUID()), fmt.Sprintf("web-0-config "+payload, "v1", c.GetUID())}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("one deletion each, the last object first, by UID, dependents in the background (-want +got):\n%s", diff)
	}

	again := slot
	again.Incarnation = 2
	w.mustCreate(again, template)
	w.mustDelete(slot, o.UID)
	if o := w.mustObserve(again, template); o.State != body.Ready {
		t.Errorf("an old UID does nothing to new objects: got %+v", o)
	}

	w.patch("secrets", "web-0-secret", `{"metadata": {"annotations": null}}`)
	uid := w.mustObserve(again, template).UID + "," + fmt.Sprintf("secrets/%s/web-0-secret/%s", w.namespace, w.get("secrets", "web-0-secret").GetUID())
	w.mustDelete(again, uid)
	if w.get("secrets", "web-0-secret") == nil {
		t.Error("what has lost its marks is nobody's to delete")
	}
	if w.get("configmaps", "web-0-config") != nil {
		t.Error("the rest goes")
	}
	if err := w.kind.Delete(w.ctx, slot, "nonsense"); err == nil {
		t.Error("what is no UID of a body is an error, not a success")
	}
}

// TestKind_Delete_Rights: an object that may not be deleted is named, and does
// not spare the others.
func TestKind_Delete_Rights(t *testing.T) {
	w := newWorld(t, everything, "configmaps")
	w.grant("bodies", "get,create,patch", "secrets")
	slot, template := w.slot(0), w.template(configMap, secret)
	o := w.mustCreate(slot, template)
	err := w.kind.Delete(w.ctx, slot, o.UID)
	w.wantError("the account may not", err, nil, "delete Secret "+w.namespace+"/web-0-secret", "cannot delete")
	if w.get("configmaps", "web-0-config") != nil {
		t.Error("the rest goes")
	}
}

// TestKind_Owners: a foreground cascading deletion of whatever the body might
// be thought to belong to leaves it alone.
func TestKind_Owners(t *testing.T) {
	w := newWorld(t, everything, "configmaps")
	slot, template := w.slot(0), w.template(configMap)
	owner := w.create("configmaps", fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: %s, labels: {pawl.dev/pool: web}}}`, w.namespace))
	dependent := w.create("configmaps", fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: dependent, namespace: %s, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: web, uid: %s}]}}`, w.namespace, owner.GetUID()))
	w.mustCreate(slot, template)
	foreground := metav1.DeletePropagationForeground
	if err := w.resource("configmaps", w.namespace).Delete(w.ctx, "web", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the garbage collector has been at work", func() error {
		if w.get("configmaps", dependent.GetName()) != nil || w.get("configmaps", "web") != nil {
			return errors.New("not yet")
		}
		return nil
	})
	if o := w.mustObserve(slot, template); o.State != body.Ready {
		t.Errorf("the body stands: got %+v", o)
	}
}

// TestKind_Deployment: kstatus knows more than Pods, and deleting in the
// background takes what the object has made with it.
func TestKind_Deployment(t *testing.T) {
	w := newWorld(t, everything, "deployments.apps")
	slot := w.slot(0)
	template := w.template(`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1, selector: {matchLabels: {app: "${member.name}"}},
		template: {metadata: {labels: {app: "${member.name}"}}, spec: {containers: [{name: main, image: example.com/web}]}}}}`)
	o := w.mustCreate(slot, template)
	if o.State != body.Booting || !strings.HasPrefix(o.UID, "deployments.apps/"+w.namespace+"/web-0/") {
		t.Errorf("got %+v", o)
	}
	w.eventually("kstatus explains", func() error {
		if o := w.mustObserve(slot, template); o.Message != "Deployment "+w.namespace+"/web-0: Available: 0/1" {
			return fmt.Errorf("got %+v", o)
		}
		return nil
	})
	pods := func() int {
		list, err := w.resource("pods", w.namespace).List(w.ctx, metav1.ListOptions{LabelSelector: "app=web-0"})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	w.eventually("its Pod is made", func() error {
		if pods() != 1 {
			return errors.New("no Pod")
		}
		return nil
	})
	w.mustDelete(slot, o.UID)
	w.eventually("and goes with it", func() error {
		if pods() != 0 {
			return errors.New("a Pod is left")
		}
		return nil
	})
}

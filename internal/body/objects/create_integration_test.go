//go:build integration

package objects

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

func TestKind_Create(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "secrets")
	slot, template := w.slot(3), w.template(configMap, secret)
	o := w.mustCreate(slot, template)

	c, s := w.get("configmaps", "web-3-config"), w.get("secrets", "web-3-secret")
	want := body.Observation{
		State: body.Ready, Incarnation: 1, Revision: "r1", BornAt: c.GetCreationTimestamp().Time,
		UID: fmt.Sprintf("configmaps/%s/web-3-config/%s,secrets/%s/web-3-secret/%s", w.namespace, c.GetUID(), w.namespace, s.GetUID()),
	}
	o.Recheck = 0
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("what was made is observed at once (-want +got):\n%s", diff)
	}
	wantLabels := map[string]string{"app": "web", "pawl.dev/pool": "web", "pawl.dev/member": "web-3", "pawl.dev/incarnation": "1", "pawl.dev/revision": "r1"}
	if diff := cmp.Diff(wantLabels, s.GetLabels()); diff != "" {
		t.Errorf("its own labels and Pawl's (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"pawl.dev/member-uid": "uid-of-web-3"}, c.GetAnnotations()); diff != "" {
		t.Errorf("the Member's UID (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"index": "3"}, c.Object["data"]); diff != "" {
		t.Errorf("expressions are filled in (-want +got):\n%s", diff)
	}
	if owners := c.GetOwnerReferences(); len(owners) > 0 {
		t.Errorf("a body has no owner, got %v", owners)
	}
	if m := c.GetManagedFields(); len(m) != 1 || m[0].Manager != "pawl" || m[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("its fields are owned by server-side apply, got %v", m)
	}

	w.mustCreate(slot, template)
	if again := w.get("configmaps", "web-3-config"); again.GetResourceVersion() != c.GetResourceVersion() {
		t.Error("a second call writes nothing")
	}
}

func TestKind_Create_Rights(t *testing.T) {
	w := newWorld(t, everything, "configmaps")
	slot := w.slot(0)

	_, err := w.kind.Create(w.ctx, slot, w.template(configMap, secret))
	w.wantError("an account that may not read a kind makes nothing of it", err, body.ErrRefused,
		"template.objects[1]", `User "system:serviceaccount:`+w.namespace+`:bodies" cannot get resource "secrets"`)
	if w.get("configmaps", "web-0-config") != nil {
		t.Error("and nothing else either")
	}

	w.grant("bodies", "get", "secrets")
	_, err = w.kind.Create(w.ctx, slot, w.template(configMap, secret))
	w.wantError("nor one that may read only", err, body.ErrRefused, "template.objects[1]", `cannot patch resource "secrets"`)
	if w.get("configmaps", "web-0-config") != nil {
		t.Error("what was made before the refusal is taken back")
	}

	slot.ServiceAccount = "nobody"
	_, err = w.kind.Create(w.ctx, slot, w.template(configMap))
	w.wantError("another account has its own rights", err, body.ErrRefused, "nobody", "cannot get")
	slot.ServiceAccount = ""
	_, err = w.kind.Create(w.ctx, slot, w.template(configMap))
	w.wantError("without an account there is no right, not Pawl's own", err, body.ErrRefused, "spec.serviceAccountName is not set")

	w.grant("system:serviceaccounts:"+w.namespace, everything, "configmaps")
	slot.ServiceAccount = "nobody"
	w.mustCreate(slot, w.template(configMap)) // rights that the account has by its groups count
}

func TestKind_Create_Elsewhere(t *testing.T) {
	w, other := newWorld(t, everything, "configmaps"), newWorld(t, everything, "configmaps")
	slot := w.slot(0)
	elsewhere := w.template(configMap, strings.Replace(configMap, "metadata: {", "metadata: {namespace: "+other.namespace+", ", 1))
	_, err := w.kind.Create(w.ctx, slot, elsewhere)
	w.wantError("another namespace takes rights there", err, body.ErrRefused, `in the namespace "`+other.namespace+`"`)
	w.grantIn(other.namespace, "bodies", everything, "configmaps")
	o := w.mustCreate(slot, elsewhere)
	if other.get("configmaps", "web-0-config") == nil {
		t.Error("with them, the object is where it should be")
	}

	class := fmt.Sprintf(`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: "%s-${member.name}"}, value: 7}`, w.namespace)
	_, err = w.kind.Create(w.ctx, w.slot(1), w.template(class))
	w.wantError("so does what is in no namespace", err, body.ErrRefused, "at the cluster scope")
	w.grantIn("", "bodies", everything, "priorityclasses.scheduling.k8s.io")
	c := w.mustCreate(w.slot(1), w.template(class))
	w.eventually("it is watched too", func() error {
		if o := w.mustObserve(w.slot(1), w.template(class)); o.State != body.Ready || o.Recheck != 0 {
			return fmt.Errorf("got %+v", o)
		}
		return nil
	})
	w.mustDelete(w.slot(1), c.UID)
	w.mustDelete(slot, o.UID)
	for what, got := range map[string]body.Observation{"cluster": w.mustObserve(w.slot(1), w.template(class)), "elsewhere": w.mustObserve(slot, elsewhere)} {
		if got.State != body.Absent {
			t.Errorf("%s: deleted as well, got %+v", what, got)
		}
	}
}

func TestKind_Create_Refused(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "pods", "services", "widgets.example.com", "claims.pawl.dev")
	cases := map[string]struct {
		reason, manifest string
		want             []string
	}{
		"Schema":       {"a field that the kind does not have", `{apiVersion: v1, kind: Pod, spec: {foo: 1, containers: [{name: a, image: b}]}}`, []string{"template.objects[1]", ".spec.foo: field not declared in schema"}},
		"Type":         {"a number where a text should be", `{apiVersion: v1, kind: ConfigMap, data: {a: "${member.index}"}}`, []string{"template.objects[1]", ".data.a: expected string"}},
		"Invalid":      {"what the API server's validation finds", `{apiVersion: v1, kind: Pod, spec: {containers: []}}`, []string{"spec.containers: Required value"}},
		"CustomSchema": {"also of a custom resource", `{apiVersion: pawl.dev/v1alpha1, kind: Claim, spec: {nothing: 1}}`, []string{".spec.nothing: field not declared in schema"}},
		"Name":         {"a name that is none", `{apiVersion: v1, kind: ConfigMap, metadata: {name: A_B}}`, []string{"metadata.name: Invalid value"}},
		"Kind":         {"a kind that is not served", `{apiVersion: example.com/v1, kind: Widget}`, []string{"template.objects[1]: example.com/v1, Kind=Widget: the API server does not serve this kind"}},
		"Same":         {"the same object twice", configMap, []string{"template.objects[1]: it is the same object as template.objects[0], ConfigMap"}},
		"Scope":        {"a namespace where there is none", `{apiVersion: v1, kind: Node, metadata: {namespace: a}}`, []string{"template.objects[1].metadata.namespace: it must not be set"}},
		"Namespace":    {"a namespace that does not exist", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: nowhere}}`, []string{"nowhere"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w.t = t
			_, err := w.kind.Create(t.Context(), w.slot(0), w.template(configMap, c.manifest))
			w.wantError(c.reason, err, body.ErrRefused, c.want...)
			if w.get("configmaps", "web-0-config") != nil {
				t.Errorf("%s: nothing of the body is left behind", c.reason)
			}
		})
	}
}

func TestKind_Create_Occupied(t *testing.T) {
	template := (&world{t: t}).template(secret, configMap)
	other := func(change func(*body.Slot)) func(*world) {
		return func(w *world) {
			s := w.slot(0)
			change(&s)
			w.mustCreate(s, template)
		}
	}
	cases := map[string]struct {
		reason, want string
		prepare      func(*world)
	}{
		"Foreign": {"a stranger's object", "is not Pawl's", func(w *world) {
			w.create("configmaps", fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: web-0-config, namespace: %s}}`, w.namespace))
		}},
		"Incarnation": {"the body of an earlier incarnation", "is of incarnation 7, not 1", other(func(s *body.Slot) { s.Incarnation = 7 })},
		"Revision":    {"a body of this incarnation but another revision is not this body", "is of revision r0, not r1", other(func(s *body.Slot) { s.Revision = "r0" })},
		"Member":      {"the body of an earlier Member of the same name", "belongs to another Member of the same name", other(func(s *body.Slot) { s.UID = "another" })},
		"Pool":        {"the body of another pool", "belongs to member web-0 of pool shop", other(func(s *body.Slot) { s.Pool = "shop" })},
		"Terminating": {"one that is about to go", "is still terminating, held by example.com/wait", func(w *world) {
			o := w.mustCreate(w.slot(0), template)
			w.patch("configmaps", "web-0-config", `{"metadata": {"finalizers": ["example.com/wait"]}}`)
			w.mustDelete(w.slot(0), o.UID)
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everything, "configmaps", "secrets")
			c.prepare(w)
			before := w.get("configmaps", "web-0-config")
			hadSecret := w.get("secrets", "web-0-secret") != nil
			_, err := w.kind.Create(w.ctx, w.slot(0), template)
			w.wantError(c.reason, err, body.ErrOccupied, "web-0-", c.want)
			if diff := cmp.Diff(before, w.get("configmaps", "web-0-config")); diff != "" {
				t.Errorf("%s is left as it was (-want +got):\n%s", c.reason, diff)
			}
			if !hadSecret && w.get("secrets", "web-0-secret") != nil {
				t.Errorf("%s: nothing is made beside it", c.reason)
			}
		})
	}
}

// TestKind_Create_AfterTerminating: once the namesake is gone, the next
// incarnation takes its place.
func TestKind_Create_AfterTerminating(t *testing.T) {
	w := newWorld(t, everything, "configmaps")
	template, slot := w.template(configMap), w.slot(0)
	first := w.mustCreate(slot, template)
	w.patch("configmaps", "web-0-config", `{"metadata": {"finalizers": ["example.com/wait"]}}`)
	w.mustDelete(slot, first.UID)
	if o := w.mustObserve(slot, template); o.State != body.Stopping || o.UID != first.UID {
		t.Errorf("it is on its way out: got %+v", o)
	}
	next := slot
	next.Incarnation = 2
	_, err := w.kind.Create(w.ctx, next, template)
	w.wantError("the old body is in the way", err, body.ErrOccupied, "is still terminating")
	w.patch("configmaps", "web-0-config", `{"metadata": {"finalizers": null}}`)
	o := w.mustCreate(next, template)
	if o.Incarnation != 2 || o.UID == first.UID {
		t.Errorf("a new body: got %+v", o)
	}
	w.mustDelete(slot, first.UID)
	if o := w.mustObserve(next, template); o.State != body.Ready {
		t.Errorf("the old body's UID does not end the new one: got %+v", o)
	}
}

// TestApply_Namesake: one that appears after the name was found free is left
// alone, whatever it holds.
func TestApply_Namesake(t *testing.T) {
	w := newWorld(t, everything, "configmaps")
	b := &builder{slot: w.slot(0)}
	var err error
	if b.account, err = w.kind.accounts.get(w.namespace, "bodies"); err != nil {
		t.Fatal(err)
	}
	manifests, err := w.kind.manifests(w.ctx, w.slot(0), w.template(configMap))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.kind.locate(w.ctx, w.slot(0), manifests); err != nil {
		t.Fatal(err)
	}
	// The stranger's object has just the data that Pawl would write, so that
	// server-side apply by itself would find nothing to object to.
	stranger := w.create("configmaps", fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: web-0-config, namespace: %s}, data: {index: "0"}}`, w.namespace))
	_, err = b.make(w.ctx, manifests[0])
	w.wantError("the name is taken", err, body.ErrOccupied, "is not Pawl's")
	if diff := cmp.Diff(stranger, w.get("configmaps", "web-0-config")); diff != "" {
		t.Errorf("the stranger's object is as it was (-want +got):\n%s", diff)
	}
}

// TestKind_Create_Race: of Pawl and a stranger who both want a name, one gets
// it, and the other is told.
func TestKind_Create_Race(t *testing.T) {
	w := newWorld(t, everything, "configmaps")
	template := w.template(configMap)
	wins := 0
	for i := range int32(60) {
		var group sync.WaitGroup
		var ours, theirs error
		group.Go(func() { _, ours = w.kind.Create(w.ctx, w.slot(i), template) })
		group.Go(func() {
			o := parse(t, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: web-%d-config}}`, i))
			// As many requests as Pawl needs, so that either may win.
			_, _ = w.resource("configmaps", w.namespace).Get(w.ctx, o.GetName(), metav1.GetOptions{})
			_, theirs = w.resource("configmaps", w.namespace).Create(w.ctx, o, metav1.CreateOptions{})
		})
		group.Wait()
		live := w.get("configmaps", fmt.Sprintf("web-%d-config", i))
		isOurs := live.GetLabels()[v1alpha1.LabelMember] != ""
		switch {
		case ours == nil && apierrors.IsAlreadyExists(theirs) && isOurs:
			wins++
		case errors.Is(ours, body.ErrOccupied) && theirs == nil && !isOurs:
		default:
			t.Fatalf("round %d: Pawl got %v, the stranger %v, and the object has labels %v", i, ours, theirs, live.GetLabels())
		}
	}
	t.Logf("Pawl won %d of 60", wins)
}

// TestKind_Create_CutShort: a creation that is cut short at any request, before
// or after the API server has dealt with it, goes on at the next call, and
// makes nothing twice.
func TestKind_Create_CutShort(t *testing.T) {
	errCut := errors.New("cable pulled")
	for _, lost := range []bool{false, true} {
		for n := 1; ; n++ {
			w := newWorld(t, everything, "configmaps", "secrets")
			slot, template := w.slot(0), w.template(configMap, secret)
			w.kind.watches.close() // their requests would count
			requests := 0
			w.fault(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if requests++; requests != n {
					return next.RoundTrip(r)
				}
				if lost {
					if response, err := next.RoundTrip(r); err == nil {
						_ = response.Body.Close()
					}
				}
				return nil, errCut
			})
			_, err := w.kind.Create(w.ctx, slot, template)
			if err == nil {
				if n != 5 {
					t.Errorf("two reads and two writes make the body; it took %d requests", n-1)
				}
				break
			}
			w.wantError("the world could not be reached", err, nil)
			w.fault(nil)
			partial := w.mustObserve(slot, template)
			made := w.get("configmaps", "web-0-config")
			if (partial.State == body.Absent) != (made == nil) {
				t.Errorf("request %d, answer lost %v: observed %+v with the ConfigMap made: %v", n, lost, partial, made != nil)
			}
			whole := w.mustCreate(slot, template)
			if whole.State != body.Ready || strings.Count(whole.UID, ",") != 1 {
				t.Errorf("request %d, answer lost %v: the next call completes it, got %+v", n, lost, whole)
			}
			if made != nil && w.get("configmaps", "web-0-config").GetUID() != made.GetUID() {
				t.Errorf("request %d, answer lost %v: what was made stays", n, lost)
			}
		}
	}
}

func TestKind_Create_Quota(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "secrets")
	w.create("resourcequotas", fmt.Sprintf(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: %s}, spec: {hard: {secrets: "0"}}}`, w.namespace))
	w.eventually("the quota is counted", func() error {
		if q := w.get("resourcequotas", "q"); q.Object["status"].(map[string]any)["used"] == nil {
			return errors.New("not yet")
		}
		return nil
	})
	_, err := w.kind.Create(w.ctx, w.slot(0), w.template(configMap, secret))
	w.wantError("a quota that is used up is no fault of the template", err, body.ErrNoRoom, "exceeded quota: q", "template.objects[1]")
	if w.get("configmaps", "web-0-config") != nil {
		t.Error("a body that has no room holds no part of it")
	}
	w.patch("resourcequotas", "q", `{"spec": {"hard": {"secrets": "1"}}}`)
	w.eventually("with room it is made", func() error {
		_, err := w.kind.Create(w.ctx, w.slot(0), w.template(configMap, secret))
		return err
	})
}

// TestKind_OneMemberFails: a template that cannot be rendered for one member
// harms no other.
func TestKind_OneMemberFails(t *testing.T) {
	w := newWorld(t, everything, "configmaps", "secrets")
	template := w.template(configMap, `{apiVersion: v1, kind: Secret, stringData: {a: "${string(6 / (3 - member.index))}"}}`)
	w.mustCreate(w.slot(0), template)
	_, err := w.kind.Create(w.ctx, w.slot(3), template)
	w.wantError("member 3 is refused", err, body.ErrRefused, "template.objects[1].stringData.a: ${string(6 / (3 - member.index))}: division by zero")
	if w.get("configmaps", "web-3-config") != nil {
		t.Error("nothing of it is made")
	}
	if err := w.kind.Validate(w.slot(3), template); !errors.Is(err, body.ErrRefused) {
		t.Errorf("that can be known beforehand: got %v", err)
	}
	if err := w.kind.Validate(w.slot(0), template); err != nil {
		t.Errorf("and so can that member 0 is fine: got %v", err)
	}
	o := w.mustObserve(w.slot(3), template)
	if o.State != body.Absent || !strings.Contains(o.Message, "division by zero") {
		t.Errorf("it is known to have no body: got %+v", o)
	}
	if o := w.mustObserve(w.slot(0), template); o.State != body.Ready {
		t.Errorf("member 0 is untouched: got %+v", o)
	}

	// If there is a body all the same, nobody may call it absent.
	w.mustCreate(w.slot(3), w.template(configMap))
	_, err = w.kind.Observe(w.ctx, w.slot(3), template)
	w.wantError("its state cannot be told", err, nil, "the state of ConfigMap", "cannot be told")
}

//go:build integration

package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// widgets is a CustomResourceDefinition of a group of the world's own.
type widgets struct {
	*world
	group string
}

func newWidgets(t *testing.T) widgets {
	t.Helper()
	w := newWorld(t, everything)
	d := widgets{w, w.namespace + ".example.com"}
	w.create("customresourcedefinitions.apiextensions.k8s.io", fmt.Sprintf(
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.%[1]s}, spec: {group: %[1]s, scope: Namespaced,
			names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}, versions: %[2]s}}`, d.group, versions(true, true)))
	t.Cleanup(d.drop)
	w.grant("bodies", everything, "widgets."+d.group, "configmaps")
	d.eventually("both versions are served", func() error {
		for _, version := range []string{"v1", "v1alpha1"} {
			if _, err := d.in(version); err != nil {
				return err
			}
		}
		return nil
	})
	return d
}

// versions is a list of two, of which v1 is stored.
func versions(v1, v1alpha1 bool) string {
	const version = `{"name": %q, "served": %v, "storage": %v, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}`
	return fmt.Sprintf("["+version+","+version+"]", "v1", v1, true, "v1alpha1", v1alpha1, false)
}

func (d widgets) name() string { return "widgets." + d.group }

func (d widgets) manifest() string {
	return `{apiVersion: ` + d.group + `/v1alpha1, kind: Widget, spec: {size: 1}}`
}

// in lists the widgets in a version, as the administrator.
func (d widgets) in(version string) (int, error) {
	r := schema.GroupVersionResource{Group: d.group, Version: version, Resource: "widgets"}
	list, err := d.admin.Resource(r).Namespace(d.namespace).List(d.ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}

// serve says which versions are, and waits until that is so.
func (d widgets) serve(v1, v1alpha1 bool) {
	d.t.Helper()
	crds := d.resource("customresourcedefinitions.apiextensions.k8s.io", "")
	if _, err := crds.Patch(d.ctx, d.name(), "application/merge-patch+json", []byte(`{"spec": {"versions": `+versions(v1, v1alpha1)+`}}`), metav1.PatchOptions{}); err != nil {
		d.t.Fatal(err)
	}
	d.eventually("the versions are served, or not", func() error {
		for version, want := range map[string]bool{"v1": v1, "v1alpha1": v1alpha1} {
			if _, err := d.in(version); isUnknown(err) == want || err != nil && !isUnknown(err) {
				return fmt.Errorf("%s: want it served: %v; %w", version, want, err)
			}
		}
		return nil
	})
}

// drop deletes the definition, and with it all widgets.
func (d widgets) drop() {
	ctx := context.WithoutCancel(d.ctx)
	_ = d.resource("customresourcedefinitions.apiextensions.k8s.io", "").Delete(ctx, d.name(), metav1.DeleteOptions{})
}

// restarted returns a kind that knows nothing of what was served before.
func (w *world) restarted() *Kind {
	w.t.Helper()
	httpClient, err := rest.HTTPClientFor(pawldtest.Shared(w.t).Config)
	if err != nil {
		w.t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(pawldtest.Shared(w.t).Config, httpClient)
	if err != nil {
		w.t.Fatal(err)
	}
	k := New(Options{Config: w.kind.accounts.config, Mapper: mapper, Render: w.kind.render, Ready: w.kind.ready, Notify: w.told.notify})
	w.t.Cleanup(k.Close)
	return k
}

// present waits until the body is observed as there; it must never be Absent.
func (w *world) present(k *Kind, slot body.Slot, uid string, manifests ...string) {
	w.t.Helper()
	w.eventually("the body is seen", func() error {
		o, err := k.Observe(w.ctx, slot, w.template(manifests...))
		if err != nil {
			return err
		}
		if o.State != body.Ready || o.UID != uid {
			w.t.Fatalf("got %+v, want the body %s", o, uid)
		}
		return nil
	})
}

// TestKind_VersionNotServed: the version that a body was made in is served no
// more; it is the same body in the other one.
func TestKind_VersionNotServed(t *testing.T) {
	d := newWidgets(t)
	slot, template := d.slot(0), d.template(d.manifest(), configMap)
	o := d.mustCreate(slot, template)
	d.watched(slot, d.manifest(), configMap)

	d.serve(true, false)
	d.present(d.kind, slot, o.UID, d.manifest(), configMap)
	restarted := d.restarted()
	d.present(restarted, slot, o.UID, d.manifest(), configMap)
	d.watched(slot, d.manifest(), configMap)
	d.tells(slot, "a change in the other version", func() {
		d.patch("widgets."+d.group, "web-0", `{"spec": {"size": 2}}`)
	})

	for name, k := range map[string]*Kind{"knew the version": d.kind, "never knew it": restarted} {
		_, err := k.Create(d.ctx, d.slot(1), template)
		d.wantError("a body in the old version is refused by who "+name, err, body.ErrRefused, "template.objects[0]", "does not serve this kind")
	}

	broken := d.template(d.manifest(), `{apiVersion: v1, kind: ConfigMap, metadata: {name: "${nonsense}"}}`)
	if o, err := restarted.Observe(d.ctx, slot, broken); err == nil {
		t.Errorf("nor is it lost if the template cannot be rendered: got %+v", o)
	}

	d.mustDelete(slot, o.UID)
	if n, err := d.in("v1"); n != 0 || err != nil {
		t.Errorf("it is deleted in the other version: %d are left, %v", n, err)
	}
	if o := d.mustObserve(slot, template); o.State != body.Absent {
		t.Errorf("the API server says of each object that it is gone: got %+v", o)
	}
}

// TestKind_DiscoveryFails: if it cannot be told what is served, it cannot be
// told that a body is gone.
func TestKind_DiscoveryFails(t *testing.T) {
	d := newWidgets(t)
	slot, template := d.slot(0), d.template(d.manifest())
	o := d.mustCreate(slot, template)
	restarted := d.restarted()
	answer := func(r *http.Request, code int) *http.Response {
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("page not found")), Request: r}
	}
	unknown := func(reason string) {
		t.Helper()
		for _, k := range []*Kind{d.kind, restarted} {
			k.now = func() time.Time { return time.Now().Add(time.Hour) }
			for range 2 {
				if o, err := k.Observe(d.ctx, slot, template); err == nil {
					t.Errorf("%s: got %+v, want an error", reason, o)
				}
			}
			k.now = time.Now
		}
	}

	d.fault(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/namespaces/") {
			return answer(r, http.StatusNotFound), nil
		}
		return next.RoundTrip(r)
	})
	unknown("what is served does not know its path")
	if err := d.kind.Delete(d.ctx, slot, o.UID); err == nil {
		t.Error("nor is it known to be deleted")
	}

	d.serve(true, false)
	for _, path := range []string{"/apis", "/apis/" + d.group + "/v1"} {
		for _, code := range []int{http.StatusServiceUnavailable, http.StatusForbidden, http.StatusNotFound} {
			d.fault(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if r.URL.Path == path {
					return answer(r, code), nil
				}
				return next.RoundTrip(r)
			})
			unknown(fmt.Sprintf("%s answers %d", path, code))
		}
	}
	d.fault(nil)
	d.present(d.kind, slot, o.UID, d.manifest())
}

// TestKind_AggregatedAPI: what an aggregated API holds that does not answer
// cannot be told.
func TestKind_AggregatedAPI(t *testing.T) {
	w := newWorld(t, everything)
	group := w.namespace + ".example.com"
	w.grant("bodies", everything, "gadgets."+group)
	w.create("apiservices.apiregistration.k8s.io", fmt.Sprintf(
		`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.%[1]s}, spec: {group: %[1]s, version: v1, groupPriorityMinimum: 100, versionPriority: 1,
			insecureSkipTLSVerify: true, service: {name: nobody, namespace: %[2]s}}}`, group, w.namespace))
	t.Cleanup(func() {
		_ = w.resource("apiservices.apiregistration.k8s.io", "").Delete(context.WithoutCancel(w.ctx), "v1."+group, metav1.DeleteOptions{})
	})
	w.eventually("the group is listed", func() error {
		_, err := w.kind.discover(w.ctx, group)
		if err == nil {
			return errors.New("its resources are known")
		}
		return nil
	})
	k := w.restarted()
	k.now = func() time.Time { return time.Now().Add(time.Hour) }
	template := w.template(`{apiVersion: ` + group + `/v1, kind: Gadget}`)
	for range 2 {
		if o, err := k.Observe(w.ctx, w.slot(0), template); err == nil || errors.Is(err, errNotServed) {
			t.Errorf("got %+v, %v, want an error", o, err)
		}
	}
	_, err := k.Create(w.ctx, w.slot(0), template)
	w.wantError("nor is a body refused for that", err, nil)
	if err := k.Delete(w.ctx, w.slot(0), "gadgets."+group+"/"+w.namespace+"/web-0/u"); err == nil {
		t.Error("nor deleted")
	}
}

// TestKind_DefinitionDeleted: with its definition, an object is gone; but not in
// the first moment.
func TestKind_DefinitionDeleted(t *testing.T) {
	d := newWidgets(t)
	slot, template := d.slot(0), d.template(d.manifest(), configMap)
	o := d.mustCreate(slot, template)
	alone := d.slot(1)
	d.mustCreate(alone, d.template(d.manifest()))
	d.drop()
	kinds := map[string]*Kind{"knew the kind": d.kind, "never knew it": d.restarted()}
	for name, k := range kinds {
		d.eventually("discovery shows it to who "+name, func() error {
			o, err := k.Observe(d.ctx, slot, template)
			switch {
			case err == nil && o.State == body.Absent:
				t.Fatalf("nothing is gone at once: got %+v", o)
			case !errors.Is(err, errNotServed):
				return fmt.Errorf("got %+v, %w", o, err)
			}
			return nil
		})
		if o, err := k.Observe(d.ctx, alone, d.template(d.manifest())); err == nil {
			t.Errorf("nor is the body of %s: got %+v", alone.Member, o)
		}
		k.now = func() time.Time { return time.Now().Add(settle) }
		if o, err := k.Observe(d.ctx, alone, d.template(d.manifest())); err != nil || o.State != body.Absent {
			t.Errorf("who %s sees no body then: got %+v, %v", name, o, err)
		}
		got, err := k.Observe(d.ctx, slot, template)
		if err != nil || got.State != body.Down || got.Message != "Widget web-0 is missing" && got.Message != "Widget "+d.namespace+"/web-0 is missing" {
			t.Errorf("who %s sees what is left of the other: got %+v, %v", name, got, err)
		}
	}
	d.mustDelete(slot, o.UID)
	if o := d.mustObserve(slot, template); o.State != body.Absent {
		t.Errorf("the rest of it is deleted: got %+v", o)
	}
}

// TestKind_Observe_Incarnation: where names depend on the incarnation, what a
// birth left behind that was cut short is found under its own.
func TestKind_Observe_Incarnation(t *testing.T) {
	const (
		first  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "${member.name}-${string(member.incarnation)}"}}`
		second = `{apiVersion: v1, kind: Secret, metadata: {name: "${member.name}-${string(member.incarnation)}"}}`
	)
	w := newWorld(t, everything, "configmaps", "secrets")
	slot, template := w.slot(0), w.template(first, second)
	o := w.mustCreate(slot, template)
	next := slot
	next.Incarnation, next.Revision = 2, "r2"
	if got := w.mustObserve(next, template); got.State != body.Absent {
		t.Errorf("it has not been born: got %+v", got)
	}
	w.fault(func(r *http.Request, following http.RoundTripper) (*http.Response, error) {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/configmaps/") {
			return nil, errors.New("cable pulled")
		}
		return following.RoundTrip(r)
	})
	if _, err := w.kind.Create(w.ctx, next, w.template(second, first)); err == nil {
		t.Fatal("want the birth cut short")
	}
	w.fault(nil)
	got := w.mustObserve(next, template)
	if got.State != body.Down || got.Incarnation != 2 || got.Revision != "r2" || !strings.HasPrefix(got.UID, "secrets/"+w.namespace+"/web-0-2/") || strings.Contains(got.UID, ",") {
		t.Errorf("what there is of it is found: got %+v", got)
	}
	w.mustDelete(next, got.UID)
	if got := w.mustObserve(next, template); got.State != body.Absent {
		t.Errorf("and can be ended: got %+v", got)
	}
	if got := w.mustObserve(slot, template); got.State != body.Ready || got.UID != o.UID {
		t.Errorf("the body before it stands: got %+v", got)
	}
}

package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

func TestIsGone(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		reason        string
		err           error
		gone, unknown bool
	}{
		"Object":      {"the API server names the object", apierrors.NewNotFound(pods, "a"), true, false},
		"Wrapped":     {"whoever passes it on", fmt.Errorf("read: %w", apierrors.NewNotFound(pods, "a")), true, false},
		"Other":       {"something that the object's API needs is not there", apierrors.NewNotFound(schema.GroupResource{Resource: "tenants"}, "b"), false, false},
		"Path":        {"a path that is not known", apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "404 page not found", 0, true), false, true},
		"Proxy":       {"not said by an API server, though the client fills in the name", apierrors.NewGenericServerResponse(404, "get", pods, "a", "<html>", 0, true), false, true},
		"Bare":        {"a status that says nothing", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 404, Reason: metav1.StatusReasonNotFound}}, false, true},
		"Forbidden":   {"not to be told", apierrors.NewForbidden(pods, "a", errors.New("no")), false, false},
		"Unavailable": {"not reached", apierrors.NewServiceUnavailable("x"), false, false},
		"None":        {"no error", nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isGone(c.err, "a"); got != c.gone {
				t.Errorf("%s: gone %v, want %v", c.reason, got, c.gone)
			}
			if got := isUnknown(c.err); got != c.unknown {
				t.Errorf("%s: unknown resource %v, want %v", c.reason, got, c.unknown)
			}
		})
	}
}

// TestDiscover: no answer but a complete one says what is served.
func TestDiscover(t *testing.T) {
	const (
		groups = `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "other.io"}, {"name": "example.com", "versions": [{"groupVersion": "example.com/v1", "version": "v1"}, {"groupVersion": "example.com/v2", "version": "v2"}]}]}`
		v1     = `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1", "resources": [{"name": "widgets", "kind": "Widget", "namespaced": true}]}`
		v2     = `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v2", "resources": []}`
	)
	whole := map[string]string{"/apis": groups, "/apis/example.com/v1": v1, "/apis/example.com/v2": v2}
	without := func(path, answer string) map[string]string { return merge(whole, map[string]string{path: answer}) }
	for name, c := range map[string]struct {
		reason  string
		answers map[string]string
		group   string
		want    int
		fails   bool
	}{
		"Whole":    {"all have answered", whole, "example.com", 1, false},
		"NoGroup":  {"the list does not have the group", whole, "gone.example.com", 0, false},
		"Groups":   {"no list of groups", without("/apis", ""), "example.com", 0, true},
		"Empty":    {"a list of no groups is not an API server's", without("/apis", `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`), "example.com", 0, true},
		"OtherDoc": {"something else answers", without("/apis", "<html>"), "example.com", 0, true},
		"Version":  {"a version that is listed does not answer", without("/apis/example.com/v2", ""), "example.com", 0, true},
		"Core":     {"the core group is no exception", whole, "", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.answers[r.URL.Path] == "" {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(c.answers[r.URL.Path]))
			}))
			defer server.Close()
			got, err := newDiscover(&rest.Config{Host: server.URL})(context.Background(), c.group)
			if (err != nil) != c.fails || len(got) != c.want {
				t.Errorf("%s: got %v, %v", c.reason, got, err)
			}
		})
	}
}

func TestAbsences(t *testing.T) {
	var a absences
	widget, gadget := schema.GroupKind{Kind: "Widget"}, schema.GroupKind{Kind: "Gadget"}
	start := time.Unix(1900000000, 0)
	for _, step := range []struct {
		reason string
		kind   schema.GroupKind
		after  time.Duration
		lasts  bool
	}{
		{"a kind that was there a moment ago", widget, 0, false},
		{"it may come back", widget, settle - 1, false},
		{"another has its own time", gadget, settle, false},
		{"it does not come back", widget, settle, true},
	} {
		if err := a.notServed(step.kind, start.Add(step.after)); (err == nil) != step.lasts || err != nil && !errors.Is(err, errNotServed) {
			t.Errorf("%s: got %v", step.reason, err)
		}
	}
	a.isServed(widget)
	if a.notServed(widget, start.Add(2*settle)) == nil {
		t.Error("it has come back, and the time begins anew")
	}
}

func TestOfOneIncarnation(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		have   []string // incarnations; "" is missing
		want   string
	}{
		"Own":      {"all are of the slot's", []string{"7", "7"}, "[7 7]"},
		"Partial":  {"some of the slot's", []string{"", "7"}, "[ 7]"},
		"Mixed":    {"the next body has taken a name already", []string{"8", "7"}, "[ 7]"},
		"Other":    {"there is only another", []string{"", "8"}, "[ 8]"},
		"Others":   {"one body at a time", []string{"6", "8", "6"}, "[6  6]"},
		"Unmarked": {"one that cannot be told is another", []string{"x", "7"}, "[ 7]"},
		"None":     {"nothing at all", []string{"", ""}, "[ ]"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := make([]*unstructured.Unstructured, len(c.have))
			for i, n := range c.have {
				if n != "" {
					objects[i] = object(t, config)
					objects[i].SetLabels(map[string]string{v1alpha1.LabelIncarnation: n})
				}
			}
			p := parts{objects: objects}
			p.ofOneIncarnation(7)
			got := make([]string, len(objects))
			for i, o := range objects {
				if o != nil {
					got[i] = o.GetLabels()[v1alpha1.LabelIncarnation]
				}
			}
			if fmt.Sprint(got) != c.want {
				t.Errorf("%s: got %v, want %s", c.reason, got, c.want)
			}
		})
	}
}

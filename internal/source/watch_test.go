package source

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

var (
	widgets = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	poolA   = types.NamespacedName{Namespace: "shop", Name: "a"}
	poolB   = types.NamespacedName{Namespace: "shop", Name: "b"}
)

func mappingOf(scope meta.RESTScope) *meta.RESTMapping {
	return &meta.RESTMapping{Resource: widgets.GroupVersion().WithResource("widgets"), GroupVersionKind: widgets, Scope: scope}
}

// watching is a watch of a Widget by two pools: a wants spec.a, b spec.b. What
// they are told of is in told, and forgotten by want.
type watching struct {
	*objectWatch

	t    *testing.T
	told []string
}

func newWatching(t *testing.T) *watching {
	t.Helper()
	w := &watching{t: t}
	w.objectWatch = &objectWatch{
		key:     watchKey{"shop", "reader", widgets, "o"},
		title:   "Widget shop/o",
		notify:  func(p types.NamespacedName) { w.told = append(w.told, p.Name) },
		settled: make(chan struct{}),
		users:   map[types.NamespacedName][]*v1alpha1.Source{poolA: {fromField("Widget", "spec.a")}, poolB: {fromField("Widget", "spec.b")}},
	}
	return w
}

func (w *watching) want(reason string, told ...string) {
	w.t.Helper()
	slices.Sort(w.told)
	if !slices.Equal(w.told, told) {
		w.t.Errorf("%s: told %v, want %v", reason, w.told, told)
	}
	w.told = nil
}

func (w *watching) reason() string {
	_, why := w.look().take(fromField("Widget", "spec.a"))
	if why == nil {
		return ""
	}
	return why.Reason
}

func widget(a, b any) *unstructured.Unstructured {
	return object("Widget", "o", map[string]any{"spec": map[string]any{"a": a, "b": b}})
}

func TestObjectWatch(t *testing.T) {
	w := newWatching(t)
	settled := func() bool {
		select {
		case <-w.settled:
			return true
		default:
			return false
		}
	}
	if got := w.reason(); got != NotRead || settled() {
		t.Errorf("at first nothing is known: %q, settled %v", got, settled())
	}
	w.hears()
	if got := w.reason(); got != NotRead || settled() {
		t.Errorf("a watch that has told nothing yet does not say that there is nothing: %q", got)
	}
	_ = w.Replace([]any{widget("1", "1")}, "")
	if got := w.reason(); got != "" || !settled() {
		t.Errorf("then it is known: %q, settled %v", got, settled())
	}
	w.want("all hear of it", "a", "b")
	_ = w.Update(widget("2", "1"))
	w.want("a change is for whom it concerns", "a")
	_ = w.Update(object("Widget", "o", map[string]any{"spec": map[string]any{"a": "2", "b": "1"}, "status": "x"}))
	w.want("what counts for nobody wakes nobody")
	_ = w.Update(object("Widget", "another", nil))
	w.want("nor does another object")
	_ = w.Delete(widget(nil, nil))
	if got := w.reason(); got != NotFound {
		t.Errorf("what is gone is not there: %q", got)
	}
	w.want("all hear of it", "a", "b")
	_ = w.Add(widget("2", "1"))
	w.want("and of its return", "a", "b")
	_ = w.Replace(nil, "")
	if got := w.reason(); got != NotFound {
		t.Errorf("a list without it says so too: %q", got)
	}
	w.want("all hear of it", "a", "b")
}

func TestObjectWatch_fail(t *testing.T) {
	w := newWatching(t)
	_ = w.Replace([]any{widget("1", "1")}, "")
	if got := w.reason(); got != NotRead {
		t.Errorf("a list is worth nothing as long as changes are not heard of: %q", got)
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "o", errors.New("no"))
	w.fail(w.explain(mappingOf(meta.RESTScopeNamespace), forbidden))
	if got := w.reason(); got != Forbidden {
		t.Errorf("got %q", got)
	}
	w.want("it is told", "a", "b")
	w.fail(w.explain(mappingOf(meta.RESTScopeNamespace), forbidden))
	w.want("once")
	w.hears()
	if got := w.reason(); got != "" {
		t.Errorf("what was seen is known again: %q", got)
	}
	w.want("and that is told", "a", "b")
	w.leave(poolA)
	w.fail(unknown(Unreachable, nil, "x"))
	w.want("who has left hears nothing", "b")
	if !w.leave(poolB) {
		t.Error("nobody is left")
	}
}

func TestObjectWatch_explain(t *testing.T) {
	gr := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	namespaced, everywhere := mappingOf(meta.RESTScopeNamespace), mappingOf(meta.RESTScopeRoot)
	cases := map[string]struct {
		reason  string
		mapping *meta.RESTMapping
		err     error
		want    string
		known   bool
	}{
		"Forbidden": {"the right that is missing is named", namespaced, apierrors.NewForbidden(gr, "", nil),
			"Forbidden: service account shop/reader may not read Widget shop/o: grant it the verbs list and watch on widgets.example.com (name o) in namespace shop", true},
		"Forbidden everywhere": {"for what is in no namespace too", everywhere, apierrors.NewForbidden(gr, "", nil),
			"Forbidden: service account shop/reader may not read Widget shop/o: grant it the verbs list and watch on widgets.example.com (name o)", true},
		"No kind":     {"a kind may not be there", nil, &meta.NoKindMatchError{GroupKind: widgets.GroupKind()}, "KindNotServed: the API server does not serve kind Widget in example.com/v1: install its definition, or correct object.apiVersion and kind", true},
		"No more":     {"or be gone", namespaced, apierrors.NewNotFound(gr, ""), "KindNotServed: the API server does not serve kind Widget in example.com/v1: install its definition, or correct object.apiVersion and kind", true},
		"Down":        {"anything else may pass", namespaced, errors.New("connection refused"), "Unreachable: Widget shop/o cannot be read: connection refused", false},
		"No mapping":  {"also before the kind is known", nil, errors.New("timeout"), "Unreachable: Widget shop/o cannot be read: timeout", false},
		"No discover": {"who may not ask for kinds is Pawl", nil, apierrors.NewForbidden(gr, "", errors.New("x")), "Unreachable: Widget shop/o cannot be read: widgets.example.com is forbidden: x", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := newWatching(t).explain(c.mapping, c.err)
			if got.Reason+": "+got.Error() != c.want || got.Known != c.known {
				t.Errorf("%s:\ngot  %s: %s, known %v\nwant %s, known %v", c.reason, got.Reason, got, got.Known, c.want, c.known)
			}
		})
	}
}

func TestJoin(t *testing.T) {
	cause := errors.New("cause")
	a, b := unknown(NotRead, cause, "x").of("a"), known(NotFound, "y").of("b")
	err := join([]*Unresolved{a, b})
	var u *Unresolved
	if !errors.As(err, &u) || u.Reason != NotFound || !u.Known || err.Error() != "source a: x; source b: y" || !errors.Is(err, cause) {
		t.Errorf("what is known comes first, and all is said: %+v", err)
	}
	if join(nil) != nil {
		t.Error("of none there is none")
	}
}

package history

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/revision"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// Names that were given are kept: a pool that was made by an earlier release
// must find its revision.
func TestContent_ID(t *testing.T) {
	t.Parallel()
	template := json.RawMessage(`{"process":{"command":"/bin/true","args":["a"]}}`)
	boot := Source{Name: "boot", Kind: "ConfigMap", Object: "bootstrap", Digests: map[string]string{"a": "1", "b": "2"}}
	token := Source{Name: "token", Secret: true, Digests: map[string]string{"": "3"}}
	tests := map[string]struct {
		reason  string
		content Content
		want    string
	}{
		"template":       {"as the first release named it", Content{Template: template}, "rs8tg2ncd2rg"},
		"rendered":       {"what is not rendered adds nothing", Content{Template: template, Render: new("")}, "rs8tg2ncd2rg"},
		"rendered, more": {"what is does", Content{Template: template, Render: new("x")}, "2pjjbnfvlhkz"},
		"sources":        {"sources count", Content{Template: template, Sources: []Source{boot, token}}, "5ft8j9kmlbzt"},
		"order":          {"their order does not", Content{Template: template, Sources: []Source{token, boot}}, "5ft8j9kmlbzt"},
		"elsewhere": {"nor where they are from", Content{Template: template, Sources: []Source{
			{Name: "boot", Kind: "Secret", Object: "other", Digests: boot.Digests}, token,
		}}, "5ft8j9kmlbzt"},
		"spelling": {"nor how the template is spelled", Content{
			Template: json.RawMessage(`{"process":{"args":["\u0061"],"command":"/bin/true","env":{}}}`), Sources: []Source{boot, token},
		}, "5ft8j9kmlbzt"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.content.ID(1)
			if err != nil || got != tt.want {
				t.Errorf("%s: %s instead of %s, %v", tt.reason, got, tt.want, err)
			}
		})
	}
}

func TestContentOf_liveFields(t *testing.T) {
	t.Parallel()
	p := process("a", "1s")
	p.LiveFields = []string{"process.stop", `process.env["A.B"]`, "process.files[0].content", "sim.version"}
	p.Process.Files = []v1alpha1.File{{Path: "x", Content: new("live")}}
	c, err := ContentOf(p)
	if err != nil {
		t.Fatal(err)
	}
	said := `{"process":{"command":"/bin/true","args":["a"],"env":{"A.B":"live"},"files":[{"path":"x","content":"live"}],"stop":{"grace":"1s"}}}`
	if string(c.Template) != said {
		t.Errorf("the revision holds %s instead of %s", c.Template, said)
	}
	id, err := c.ID(1)
	if err != nil {
		t.Fatal(err)
	}
	p.Process.Files[0].Content, p.Process.Stop, p.Process.Env = new("other"), nil, nil
	if again, err := ID(p); err != nil || again != id {
		t.Errorf("what is live decides: %s became %s, %v", id, again, err)
	}
	p.Process.Files[0].Path = "y"
	if again, err := ID(p); err != nil || again == id {
		t.Errorf("what is not live does not: %s, %v", again, err)
	}
	bare := process("a", "1s")
	bare.Process.Files, bare.Process.Stop, bare.Process.Env = []v1alpha1.File{{Path: "x"}}, nil, map[string]string{}
	if again, err := ID(bare); err != nil || again == id {
		t.Errorf("a template that lacks what was live is the same revision: %s, %v", again, err)
	}
	p.LiveFields = []string{"process[0"}
	if _, err := ContentOf(p); err == nil || !strings.Contains(err.Error(), "spec.template.liveFields") {
		t.Errorf("a path that is none: %v", err)
	}
}

// What is left keeps its digits.
func TestContentOf_numbers(t *testing.T) {
	t.Parallel()
	c, err := ContentOf(&v1alpha1.Template{
		Objects:    []runtime.RawExtension{{Raw: []byte(`{"a":9007199254740993,"b":1}`)}},
		LiveFields: []string{"objects[0].b"},
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := without(c.Template, c.Live)
	if want := `{"objects":[{"a":9007199254740993}]}`; err != nil || string(raw) != want {
		t.Errorf("%s instead of %s, %v", raw, want, err)
	}
}

// process is a template with one argument and a time to stop.
func process(arg, grace string) *v1alpha1.Template {
	d, err := time.ParseDuration(grace)
	if err != nil {
		panic(err)
	}
	return &v1alpha1.Template{Process: &v1alpha1.Process{
		Command: "/bin/true", Args: []string{arg}, Env: map[string]string{"A.B": "live"},
		Stop: &v1alpha1.Stop{Grace: &metav1.Duration{Duration: d}},
	}}
}

func TestTemplateFor(t *testing.T) {
	t.Parallel()
	rev := store(t, process("old", "1s"), nil)
	now := process("new", "9s")
	now.LiveFields, now.BootTimeout = []string{"process.stop", "process.readiness"}, &metav1.Duration{Duration: time.Hour}
	got, err := TemplateFor(rev, now)
	if err != nil {
		t.Fatal(err)
	}
	want := process("old", "9s")
	want.LiveFields, want.BootTimeout = now.LiveFields, now.BootTimeout
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is live is today's, all else the revision's (-want +got)\n%s", diff)
	}
	now.Process.Stop = nil
	if got, err = TemplateFor(rev, now); err != nil || got.Process.Stop != nil {
		t.Errorf("a live field that is gone: %+v, %v", got.Process.Stop, err)
	}
	rev = store(t, &v1alpha1.Template{Process: &v1alpha1.Process{Command: "/bin/true", Files: []v1alpha1.File{{Path: "x", Content: new("then")}}}, LiveFields: []string{"process.files[0]"}}, nil)
	now.Process.Files = []v1alpha1.File{{Path: "x", Content: new("now")}}
	for text, live := range map[string][]string{"then": nil, "now": {"process.files[0]"}} {
		now.LiveFields = live
		if got, err = TemplateFor(rev, now); err != nil || len(got.Process.Files) != 1 || *got.Process.Files[0].Content != text {
			t.Errorf("live %v: %+v, %v", live, got.Process.Files, err)
		}
	}
	other := &v1alpha1.Template{Sim: &v1alpha1.Sim{Version: new("1")}, LiveFields: []string{"sim.version"}, Ready: []string{"true"}}
	if got, err = TemplateFor(rev, other); err != nil || got.Sim != nil || got.Process == nil || got.Ready != nil {
		t.Errorf("of another kind of body nothing is live: %+v, %v", got, err)
	}
}

// store is the revision of a template with sources, of the pool web.
func store(t *testing.T, template *v1alpha1.Template, c *Content) *appsv1.ControllerRevision {
	t.Helper()
	base, err := ContentOf(template)
	if err != nil {
		t.Fatal(err)
	}
	if c != nil {
		base.Sources, base.Render = c.Sources, c.Render
	}
	p := pool("1")
	p.Spec.Template = *template
	rev, err := New(p, base, revision.Current, 1)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	boot := func(a, b string) []Source {
		return []Source{{Name: "boot", Kind: "ConfigMap", Object: "bootstrap", Digests: map[string]string{"install.sh": a, "other": b}}}
	}
	field := func(value string) []Source {
		return []Source{{Name: "image", Kind: "Deployment", Object: "web", Field: "spec.image", Digests: map[string]string{"": value}}}
	}
	tests := map[string]struct {
		reason        string
		before, after *v1alpha1.Template
		was, is       Content
		live          []string
		want          []string
	}{
		"nothing":   {"what is equal differs in nothing", process("a", "1s"), process("a", "1s"), Content{}, Content{}, nil, nil},
		"template":  {"by path", process("a", "1s"), process("b", "2s"), Content{}, Content{}, nil, []string{"template.process.args[0]", "template.process.stop.grace"}},
		"live":      {"what is live is no difference", process("a", "1s"), process("b", "2s"), Content{}, Content{}, []string{"process.stop"}, []string{"template.process.args[0]"}},
		"kind":      {"another kind of body", process("a", "1s"), &v1alpha1.Template{Sim: &v1alpha1.Sim{Version: new("1")}}, Content{}, Content{}, nil, []string{"template.process", "template.sim"}},
		"key":       {"by object and key", process("a", "1s"), process("a", "1s"), Content{Sources: boot("1", "2")}, Content{Sources: boot("9", "2")}, nil, []string{"ConfigMap bootstrap: install.sh"}},
		"field":     {"by object and field", process("a", "1s"), process("a", "1s"), Content{Sources: field("1")}, Content{Sources: field("2")}, nil, []string{"Deployment web: spec.image"}},
		"added":     {"a source as a whole", process("a", "1s"), process("a", "1s"), Content{}, Content{Sources: append(boot("1", "2"), field("1")...)}, nil, []string{"ConfigMap bootstrap", "Deployment web: spec.image"}},
		"removed":   {"a source as a whole", process("a", "1s"), process("a", "1s"), Content{Sources: boot("1", "2")}, Content{}, nil, []string{"ConfigMap bootstrap"}},
		"renderer":  {"where nothing else differs", process("a", "1s"), process("a", "1s"), Content{Render: new("1")}, Content{Render: new("2")}, nil, []string{Renderer}},
		"rendered":  {"another template is rendered to something else", process("a", "1s"), process("b", "1s"), Content{Render: new("1")}, Content{Render: new("2")}, nil, []string{"template.process.args[0]"}},
		"not known": {"of the former format", process("a", "1s"), process("a", "1s"), Content{}, Content{Render: new("2")}, nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Differences(store(t, tt.before, &tt.was), store(t, tt.after, &tt.is), tt.live)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tt.reason, diff)
			}
		})
	}
}

func TestFew(t *testing.T) {
	t.Parallel()
	for want, list := range map[string][]string{"": nil, "a": {"a"}, "a, b": {"a", "b"}, "a, b and 2 more": {"a", "b", "c", "d"}} {
		if got := Few(list, 2); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}

func TestFinder_Find(t *testing.T) {
	t.Parallel()
	first, second := store(t, process("a", "1s"), nil), store(t, process("a", "2s"), &Content{Render: new("r"), Sources: []Source{{Name: "s", Digests: map[string]string{"k": "1"}}}})
	third := store(t, process("a", "3s"), &Content{Render: new("r"), Sources: []Source{{Name: "s", Digests: map[string]string{"k": "1"}}}})
	second.Revision, third.Revision = 2, 3
	all := []*appsv1.ControllerRevision{first, second, third}
	one, two, three := RevisionID(first), RevisionID(second), RevisionID(third)
	source := []Source{{Name: "s", Digests: map[string]string{"k": "1"}}}
	tests := map[string]struct {
		reason string
		q      Question
		now    *v1alpha1.Template
		found  string
		same   []string
	}{
		"none":        {"a template that is new", Question{}, process("b", "1s"), "", nil},
		"first":       {"the first", Question{}, process("a", "1s"), one, nil},
		"sources":     {"another source is another revision", Question{Content: &Content{Sources: source}}, process("a", "1s"), "", nil},
		"second":      {"all of it is the same", Question{Content: &Content{Sources: source, Render: new("r")}}, process("a", "2s"), two, nil},
		"render":      {"all but what it is rendered to", Question{Content: &Content{Sources: source, Render: new("x")}}, process("a", "2s"), "", nil},
		"unknown":     {"nobody kept what the first is rendered to", Question{Content: &Content{Render: new("x")}}, process("a", "1s"), one, nil},
		"adopted":     {"it was found out since", Question{Content: &Content{Render: new("x")}, Records: map[string]Record{one: {Render: new("y")}}}, process("a", "1s"), "", nil},
		"template":    {"where the template is all that is known", Question{TemplateOnly: true}, process("a", "2s"), two, nil},
		"live":        {"what is live makes no difference: the later one", Question{TemplateOnly: true, Live: []string{"process.stop"}}, process("a", "5s"), three, []string{two}},
		"live, known": {"or the one that is preferred, which is the same as none with other sources", Question{TemplateOnly: true, Live: []string{"process.stop"}, Prefer: one}, process("a", "5s"), one, nil},
		"live, anew":  {"what is rendered without it cannot be compared", Question{Content: &Content{Sources: source, Render: new("x")}, Live: []string{"process.stop"}}, process("a", "5s"), three, []string{two}},
		"live, all":   {"nor where all is known", Question{Content: &Content{Sources: source, Render: new("r")}, Live: []string{"process.stop"}, Prefer: two}, process("a", "5s"), two, []string{three}},
	}
	var shared Finder
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.now.LiveFields = tt.q.Live
			c, err := ContentOf(tt.now)
			if err != nil {
				t.Fatal(err)
			}
			if tt.q.Content != nil {
				c.Sources, c.Render = tt.q.Content.Sources, tt.q.Content.Render
			}
			tt.q.Content, tt.q.Revisions = c, all
			for range 2 {
				found, same, err := shared.Find(tt.q)
				id := ""
				if found != nil {
					id = RevisionID(found)
				}
				if err != nil || id != tt.found || !cmp.Equal(same, tt.same) {
					t.Errorf("%s: %s and %v instead of %s and %v, %v", tt.reason, id, same, tt.found, tt.same, err)
				}
			}
		})
	}
}

func TestFinder_Forget(t *testing.T) {
	t.Parallel()
	var f Finder
	a, b := store(t, process("a", "1s"), nil), store(t, process("b", "1s"), nil)
	for _, r := range []*appsv1.ControllerRevision{a, b} {
		if _, err := f.sums(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	if f.Forget("default", "we", nil, nil); len(f.known) != 2 {
		t.Error("those of another pool are forgotten")
	}
	if f.Forget("default", "web", []*appsv1.ControllerRevision{a}, nil); len(f.known) != 1 {
		t.Errorf("%d are remembered", len(f.known))
	}
	bad := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-x"}, Data: runtime.RawExtension{Raw: []byte("{")}}
	if !f.Secret([]*appsv1.ControllerRevision{bad}, nil) || f.Secret([]*appsv1.ControllerRevision{a}, nil) {
		t.Error("what cannot be read may hold a secret, and what holds none does not")
	}
	if _, _, err := f.Find(Question{Revisions: []*appsv1.ControllerRevision{bad}, Content: &Content{Template: json.RawMessage("{}")}}); err == nil ||
		!strings.Contains(err.Error(), "ControllerRevision web-x") {
		t.Errorf("a revision that cannot be read: %v", err)
	}
}

func TestRecord_Retry(t *testing.T) {
	t.Parallel()
	rec := Record{
		Failures: []Failure{{ID: "a", Incarnation: 2, Count: 1, At: *snapshot.Micro(noon), Message: "no such file"}},
		Failed:   1, Halted: true, RolledBack: true, Stood: 3,
	}
	got := rec.Retry("r@1", noon)
	if got.Halted || got.RolledBack || got.Failed != 0 || got.Stood != 3 || got.Retried != "r@1" || !got.Failures[0].Forgiven {
		t.Errorf("%+v", got)
	}
	if !rec.Halted || rec.Failures[0].Forgiven {
		t.Error("the record that there was has changed")
	}
}

// A record fits into an annotation however many bodies fail, and whatever they
// say.
func TestRecord_size(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("\x00<\"&>\\ü", 200)
	var all rollout.Record
	for i := range rollout.MaxFailures {
		all.Failures = append(all.Failures, rollout.Failure{
			ID: "01234567-89ab-cdef-0123-456789abcdef", Index: 100000 + i, Incarnation: 1 << 40, Count: 1000, At: noon, Forgiven: true, Message: words,
		})
	}
	rev := revisions(1)[0]
	record(t, rev, Record{}.Take(&all))
	if n := len(rev.Annotations[v1alpha1.AnnotationRecord]); n > 200<<10 {
		t.Errorf("%d bytes", n)
	}
	few := rollout.Record{Failures: all.Failures[:3]}
	if got := (Record{}).Take(&few).Failures[0].Message; len(got) > maxMessage || len(got) < maxMessage-8 || strings.ContainsRune(got, 0) {
		t.Errorf("a message of %d bytes: %q", len(got), got)
	}
}

func FuzzReadContent(f *testing.F) {
	f.Add([]byte(`{"hash":{"version":1},"template":{"sim":{"version":"1"}}}`), "sim.version")
	f.Add([]byte(`{"hash":{"version":2},"template":{"process":{"args":["${sources.a}"],"stop":{"grace":"1s"}}},`+
		`"sources":[{"name":"a","kind":"Secret","object":"x","secret":true,"digests":{"k":"hmac-sha256:00"}}],"render":"abc"}`), `process.args[0]`)
	f.Add([]byte(`{"template":{"objects":[{"a":9007199254740993,"b":[{}],"c":null}]},"render":""}`), `objects[0]["a"]`)
	f.Fuzz(func(t *testing.T, data []byte, live string) {
		rev := revisions(1)[0]
		rev.Data.Raw = data
		c, err := ReadContent(rev)
		if err != nil {
			return
		}
		id, err := c.ID(revision.Current)
		if err != nil {
			return
		}
		again, err := New(pool("1"), c, revision.Current, 1)
		if err != nil {
			t.Fatalf("content that has an id cannot be stored: %v", err)
		}
		if RevisionID(again) != id {
			t.Fatalf("id %s becomes %s", id, RevisionID(again))
		}
		var finder Finder
		found, _, err := finder.Find(Question{Revisions: []*appsv1.ControllerRevision{again}, Content: c, Live: paths(live)})
		if err == nil && found == nil {
			t.Fatal("it does not find itself")
		}
		places, err := Differences(rev, again, paths(live))
		if err == nil && len(places) > 0 {
			t.Fatalf("it differs from itself in %v", places)
		}
	})
}

// paths are the one that is given, if any.
func paths(live string) []string {
	if live == "" {
		return nil
	}
	return []string{live}
}

func FuzzReadRecord(f *testing.F) {
	f.Add(`{"failures":[{"id":"a","index":1,"incarnation":2,"count":1,"at":"2031-05-01T12:00:00.000000Z","message":"x"}],"failed":1,"halted":true}`)
	f.Add(`{"stood":9223372036854775807,"stoodAt":null,"retried":"a@b","render":""}`)
	f.Fuzz(func(t *testing.T, text string) {
		rev := revisions(1)[0]
		rev.Annotations = map[string]string{v1alpha1.AnnotationRecord: text}
		rec, err := ReadRecord(rev)
		if err != nil {
			return
		}
		record(t, rev, rec)
		again, err := ReadRecord(rev)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		engine := again.Engine("r0")
		if rec = rec.Stand(map[string]Record{"x": again}, noon); rec.Stood <= 0 {
			t.Fatalf("it stood %d times", rec.Stood)
		}
		again.Take(&engine)
		again.Retry("r0@1", noon)
	})
}

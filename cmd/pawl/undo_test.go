package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
)

// broken is the pool of daemons once it stands on its third revision and its
// template is edited to what cannot be built.
func broken(t *testing.T, edit func(*v1alpha1.Pool)) []client.Object {
	t.Helper()
	p, objects := daemons(t)
	third := objects[3].(*appsv1.ControllerRevision)
	if err := history.WriteRecord(third, history.Record{Stood: 2, StoodAt: micro(0)}); err != nil {
		t.Fatal(err)
	}
	p.Status.CurrentRevision = history.RevisionID(third)
	edit(p)
	return objects
}

func unreadable(p *v1alpha1.Pool) {
	p.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionSourcesResolved, Status: metav1.ConditionFalse, Reason: "NotFound", Message: "ConfigMap boot is not there",
	}}
}

// TestUndo_broken: what cannot be built is no revision, and what is left to go
// back to is the one on which the pool stands.
func TestUndo_broken(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*v1alpha1.Pool){
		"template": func(p *v1alpha1.Pool) { p.Spec.Template.Process.Args = []string{"${nope("} },
		"sources": func(p *v1alpha1.Pool) {
			p.Spec.Template.Process.Args = []string{"four"}
			unreadable(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{{"undo", "web"}, {"undo", "web", "--to", "7"}} {
				term := newTerminal(t, broken(t, edit)...)
				if got := term.do(t.Context(), args...); got != 0 || !strings.HasPrefix(term.out.String(), "pool web: the template of revision 7 (") || strings.Contains(term.out.String(), "already") {
					t.Errorf("%v: exit status %d: %s%s", args, got, &term.out, &term.err)
				}
				if got := strings.Join(poolOf(t, term).Spec.Template.Process.Args, " "); got != "--listen three" {
					t.Errorf("%v: the arguments are %s", args, got)
				}
			}
			for _, args := range [][]string{{"diff", "web"}, {"diff", "web", "7"}} {
				term := newTerminal(t, broken(t, edit)...)
				if got := term.do(t.Context(), args...); got != 1 || !strings.HasPrefix(term.out.String(), "--- revision 7 (") ||
					!strings.Contains(term.out.String(), "\n+++ a template of which there is no revision\n") || !strings.Contains(term.out.String(), "template.process.args[0]") && !strings.Contains(term.out.String(), "process.args[0]") {
					t.Errorf("%v: exit status %d: %s%s", args, got, &term.out, &term.err)
				}
			}
			term := newTerminal(t, broken(t, edit)...)
			if got := term.do(t.Context(), "retry", "web"); got != 1 {
				t.Errorf("another round of what the template does not say: %s", &term.out)
			}
		})
	}
}

// TestUndo_elsewhere: where the template is that of the current revision, going
// further back is no cure.
func TestUndo_elsewhere(t *testing.T) {
	t.Parallel()
	term := newTerminal(t, broken(t, unreadable)...)
	if got := term.do(t.Context(), "undo", "web"); got != 1 || !strings.Contains(term.err.String(), "already, and that is not what is wrong: ConfigMap boot is not there; to go further back, name a revision with --to") {
		t.Errorf("exit status %d: %s%s", got, &term.out, &term.err)
	}
	if got := term.do(t.Context(), "undo", "web", "--to", "7"); got != 0 || !strings.Contains(term.out.String(), "the template is that of revision 7 (") {
		t.Errorf("exit status %d: %s%s", got, &term.out, &term.err)
	}
	if got := term.do(t.Context(), "undo", "web", "--to", "4"); got != 0 || strings.Contains(term.out.String(), "is back") || !strings.Contains(term.out.String(), "sources cannot be read now") {
		t.Errorf("exit status %d: %s%s", got, &term.out, &term.err)
	}
}

// TestUndo_sourcesNow: a revision is back only with the sources that it had, no
// fewer and no more.
func TestUndo_sourcesNow(t *testing.T) {
	t.Parallel()
	boot := history.Source{Name: "boot", Kind: "ConfigMap", Object: "bootstrap", Digests: map[string]string{"a": "sha256:1"}}
	more := boot
	more.Digests = map[string]string{"a": "sha256:1", "b": "sha256:2"}
	other := history.Source{Name: "extra", Kind: "Secret", Object: "tls", Secret: true, Digests: map[string]string{"k": "hmac-sha256:3"}}
	spec := v1alpha1.Source{Name: "boot", ConfigMap: &v1alpha1.KeysSource{Name: "bootstrap"}}
	extra := v1alpha1.Source{Name: "extra", Secret: &v1alpha1.KeysSource{Name: "tls"}}
	for name, tt := range map[string]struct {
		reason string
		was    []history.Source
		is     []history.Source // nil: the edit is not stored yet
		spec   []v1alpha1.Source
		says   string // empty: the revision is back
	}{
		"the same":         {"nothing is in the way", []history.Source{boot}, []history.Source{boot}, []v1alpha1.Source{spec}, ""},
		"none":             {"nothing is in the way", nil, nil, nil, ""},
		"not stored":       {"what was stored last tells", []history.Source{boot}, nil, []v1alpha1.Source{spec}, ""},
		"source added":     {"the old template with it is a third revision", []history.Source{boot}, []history.Source{boot, other}, []v1alpha1.Source{spec, extra}, "Secret tls, which was not there then"},
		"first source":     {"also if there was none", nil, []history.Source{other}, []v1alpha1.Source{extra}, "Secret tls, which was not there then"},
		"added, unstored":  {"also before it is stored", []history.Source{boot}, nil, []v1alpha1.Source{spec, extra}, "Secret tls, which was not there then"},
		"key added":        {"so is a key", []history.Source{boot}, []history.Source{more}, []v1alpha1.Source{spec}, "ConfigMap bootstrap: b, which was not there then"},
		"key removed":      {"it is kept", []history.Source{more}, []history.Source{boot}, []v1alpha1.Source{spec}, "ConfigMap bootstrap: b, which is kept: `kubectl get configmap web-"},
		"source removed":   {"it is kept", []history.Source{boot}, []history.Source{}, nil, "ConfigMap bootstrap: a, which is kept: `kubectl get configmap web-"},
		"removed, not yet": {"the spec says so", []history.Source{boot}, nil, nil, "ConfigMap bootstrap: a, which is kept: `kubectl get configmap web-"},
		"another object": {
			"nobody knows yet what that says",
			[]history.Source{boot}, nil,
			[]v1alpha1.Source{{Name: "boot", ConfigMap: &v1alpha1.KeysSource{Name: "newer"}}}, "in place of which there is ConfigMap newer now",
		},
		"other keys": {
			"nobody knows yet what those say",
			[]history.Source{boot}, nil,
			[]v1alpha1.Source{{Name: "boot", ConfigMap: &v1alpha1.KeysSource{Name: "bootstrap", Keys: []string{"a", "c"}}}}, "no revision has taken yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := world(t)
			p.Spec.Template.Sim.Version = new("1")
			objects := []client.Object{p, sourcedAt(t, p, 1, tt.was)}
			p.Spec.Template.Sim.Version = new("2")
			p.Spec.Sources = tt.spec
			p.Status.CurrentRevision = history.RevisionID(objects[1].(*appsv1.ControllerRevision))
			p.Status.TargetRevision = p.Status.CurrentRevision
			if tt.is != nil {
				second := sourcedAt(t, p, 2, tt.is)
				p.Status.TargetRevision = history.RevisionID(second)
				objects = append(objects, second)
			}
			term := newTerminal(t, objects...)
			got := term.do(t.Context(), "undo", "web")
			if tt.says == "" {
				if got != 0 || !strings.Contains(term.out.String(), " is back, in place of ") {
					t.Errorf("%s: exit status %d: %s%s", tt.reason, got, &term.out, &term.err)
				}
				return
			}
			if got != 1 || !strings.Contains(term.err.String(), tt.says) || *poolOf(t, term).Spec.Template.Sim.Version != "2" {
				t.Errorf("%s: exit status %d: %s%s", tt.reason, got, &term.out, &term.err)
			}
			got = term.do(t.Context(), "undo", "web", "--template-only")
			if got != 0 || strings.Contains(term.out.String(), "back") || !strings.Contains(term.out.String(), "another revision than "+p.Status.CurrentRevision) {
				t.Errorf("%s: exit status %d: %s%s", tt.reason, got, &term.out, &term.err)
			}
		})
	}
}

// sourcedAt is a revision of the pool's template with what sources came to; the
// first one stood.
func sourcedAt(t *testing.T, p *v1alpha1.Pool, number int64, list []history.Source) *appsv1.ControllerRevision {
	t.Helper()
	content, err := history.ContentOf(&p.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	content.Sources = list
	r, err := history.New(p, content, 1, number)
	if err == nil && number == 1 {
		err = history.WriteRecord(r, history.Record{Stood: 1, StoodAt: micro(0)})
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestUndo_noCurrent: before a body has recovered there is nothing to go back to
// but what is named.
func TestUndo_noCurrent(t *testing.T) {
	t.Parallel()
	_, objects := daemons(t)
	if err := history.WriteRecord(objects[1].(*appsv1.ControllerRevision), history.Record{}); err != nil {
		t.Fatal(err)
	}
	term := newTerminal(t, objects...)
	want := "error: pool web: it has no current revision, since no body of it has recovered yet; name a revision with --to, as `pawl history web` lists them\n"
	if got := term.do(t.Context(), "undo", "web"); got != 1 || term.err.String() != want {
		t.Errorf("exit status %d: %s%s", got, &term.out, &term.err)
	}
	if got := term.do(t.Context(), "undo", "web", "--to", "4"); got != 0 || !strings.Contains(term.out.String(), "the template of revision 4 (") {
		t.Errorf("exit status %d: %s%s", got, &term.out, &term.err)
	}
	term = newTerminal(t, objects...)
	if got := term.do(t.Context(), "diff", "web"); got != 1 || !strings.HasPrefix(term.out.String(), "--- revision 4 (") {
		t.Errorf("it compares with what the members run: exit status %d: %s%s", got, &term.out, &term.err)
	}
	if got := term.do(t.Context(), "history", "web"); got != 0 || strings.Contains(term.out.String(), "current") {
		t.Errorf("exit status %d: %s%s", got, &term.out, &term.err)
	}
	if got := term.do(t.Context(), "explain", "web"); got != 0 || !strings.Contains(term.out.String(), "; there is no current revision, since no body of the pool has recovered yet\n") {
		t.Errorf("exit status %d: %s%s", got, &term.out, &term.err)
	}
	if got := term.do(t.Context(), "skip", "web/0"); got != 1 || !strings.Contains(term.err.String(), "there is no current revision to fall back to") {
		t.Errorf("exit status %d: %s%s", got, &term.out, &term.err)
	}
}

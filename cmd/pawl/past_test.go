package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
)

// madeAt has an object be made at the time.
func madeAt(r client.Object, at *metav1.MicroTime) { r.SetCreationTimestamp(metav1.NewTime(at.Time)) }

// daemons is a pool of processes that went through three templates: the first
// stood, the second was halted, and the third says what is wanted now. The port
// is live.
func daemons(t *testing.T) (p *v1alpha1.Pool, objects []client.Object) {
	t.Helper()
	p = &v1alpha1.Pool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 5, ResourceVersion: "77"},
		Spec: v1alpha1.PoolSpec{Replicas: new(int32(1)), Template: v1alpha1.Template{Process: &v1alpha1.Process{
			Command: "/usr/bin/web", Args: []string{"--listen", "one"}, Env: map[string]string{"MODE": "a"},
			Files: []v1alpha1.File{{Path: "live", Content: new("then")}},
		}, LiveFields: []string{"process.files[0].content"}}},
	}
	rolling := v1alpha1.UpdateRollingUpdate
	p.Spec.Update = &v1alpha1.Update{Type: &rolling}
	p.Status.ObservedGeneration = 5
	first := keep(t, p, 4, history.Record{Stood: 1, StoodAt: micro(-3 * 60 * 60e9), TargetSince: micro(-4 * 60 * 60e9)})
	madeAt(first, micro(-4*60*60e9))
	p.Spec.Template.Process.Args = []string{"--listen", "two", strings.Repeat("x", 80)}
	bad := keep(t, p, 6, history.Record{Failed: 3, Halted: true, TargetSince: micro(-2 * 60 * 60e9)})
	madeAt(bad, micro(-2*60*60e9))
	p.Spec.Template.Process.Args = []string{"--listen", "three"}
	p.Spec.Template.Process.Env = map[string]string{"MODE": "b", "NEW": "1"}
	third := keep(t, p, 7, history.Record{Failed: 1, TargetSince: micro(-60e9)})
	madeAt(third, micro(-60e9))
	p.Spec.Template.Process.Files[0].Content = new("now")
	p.Status.TargetRevision, p.Status.CurrentRevision = history.RevisionID(third), history.RevisionID(first)
	m := member(0, v1alpha1.PhaseAvailable, history.RevisionID(first))
	return p, []client.Object{p, first, bad, third, m}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	_, objects := daemons(t)
	for name, args := range map[string][]string{
		"history.txt":      {"history", "web"},
		"history-wide.txt": {"history", "web", "-o", "wide"},
		"history.json":     {"history", "web", "-o", "json"},
		"history.yaml":     {"history", "web", "-o", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), args...); got != 0 {
				t.Fatalf("exit status %d: %s", got, &term.err)
			}
			golden(t, name, term.out.String())
		})
	}
}

func TestHistory_none(t *testing.T) {
	t.Parallel()
	_, objects := daemons(t)
	term := newTerminal(t, objects[0])
	if got := term.do(t.Context(), "history", "web"); got != 0 || term.out.String() != "" || !strings.HasPrefix(term.err.String(), "pool web has no revisions yet; is `pawl controller`") {
		t.Errorf("exit status %d, it says %q, %q", got, &term.out, &term.err)
	}
	if got := term.do(t.Context(), "history", "web", "-o", "json"); got != 0 || term.out.String() != "[]\n" {
		t.Errorf("exit status %d, it says %q, %q", got, &term.out, &term.err)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	_, objects := daemons(t)
	for name, tt := range map[string]struct {
		args   []string
		status int
	}{
		"diff.txt":      {[]string{"web"}, 1},
		"diff-full.txt": {[]string{"web", "--full"}, 1},
		"diff.json":     {[]string{"web", "-o", "json"}, 1},
		"diff-long.txt": {[]string{"web", "6"}, 1},
		"diff-same.txt": {[]string{"web", "7"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), append([]string{"diff"}, tt.args...)...); got != tt.status || term.err.Len() > 0 {
				t.Fatalf("exit status %d: %s", got, &term.err)
			}
			golden(t, name, term.out.String())
			if name != "diff-full.txt" {
				return
			}
			again := newTerminal(t, objects...)
			if again.do(t.Context(), append([]string{"diff", "-o", "yaml"}, tt.args[:1]...)...); again.out.String() != term.out.String() {
				t.Errorf("as YAML it says\n%s", &again.out)
			}
		})
	}
}

func TestDiff_default(t *testing.T) {
	t.Parallel()
	p, objects := daemons(t)
	first := objects[1].(*appsv1.ControllerRevision)
	third := objects[3].(*appsv1.ControllerRevision)
	if err := history.WriteRecord(third, history.Record{Stood: 2, StoodAt: micro(0)}); err != nil {
		t.Fatal(err)
	}
	term := newTerminal(t, objects...)
	if got := term.do(t.Context(), "diff", "web"); got != 1 || !strings.HasPrefix(term.out.String(), "--- revision 4 ("+history.RevisionID(first)+")\n") {
		t.Errorf("the target is the current one, and a member is left behind: exit status %d\n%s%s", got, &term.out, &term.err)
	}
	term = newTerminal(t, p, first, objects[2], third)
	if got := term.do(t.Context(), "diff", "web"); got != 0 || !strings.HasPrefix(term.out.String(), "pool web: nothing differs; no member runs anything but revision 7 (") {
		t.Errorf("nobody is left behind: exit status %d\n%s%s", got, &term.out, &term.err)
	}
}

func TestDiff_trouble(t *testing.T) {
	t.Parallel()
	_, objects := daemons(t)
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no pool":     {[]string{"webb"}, "error: pool \"webb\" not found in namespace default; `pawl get` lists the pools\n"},
		"no revision": {[]string{"web", "5"}, "error: pool web has no revision 5, or no longer; `pawl history web` lists those it has\n"},
		"no argument": {nil, "error: POOL is missing\nsee `pawl diff --help`\n"},
		"too many":    {[]string{"web", "6", "7"}, "error: one POOL and one REVISION at a time, not 3 arguments\nsee `pawl diff --help`\n"},
	} {
		term := newTerminal(t, objects...)
		if got := term.do(t.Context(), append([]string{"diff"}, tt.args...)...); got != 2 || term.err.String() != tt.says {
			t.Errorf("%s: exit status %d: %q, want %q", name, got, &term.err, tt.says)
		}
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	_, objects := daemons(t)
	for name, tt := range map[string]struct {
		reason string
		args   []string
		args0  string // the process's last argument afterwards
	}{
		"undo.txt":         {"the template has moved on from the current revision", nil, "one"},
		"undo-to.txt":      {"any revision may be named", []string{"--to", "6"}, strings.Repeat("x", 80)},
		"undo-dry-run.txt": {"a dry run says what it would do", []string{"--dry-run"}, "three"},
		"undo-nothing.txt": {"what is there is not put back", []string{"--to", "7"}, "three"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), append([]string{"undo", "web"}, tt.args...)...); got != 0 {
				t.Fatalf("%s: exit status %d: %s", tt.reason, got, &term.err)
			}
			golden(t, name, term.out.String())
			got := poolOf(t, term).Spec.Template
			if last := got.Process.Args[len(got.Process.Args)-1]; last != tt.args0 {
				t.Errorf("%s: the last argument is %s, want %s", tt.reason, last, tt.args0)
			}
			if live := *got.Process.Files[0].Content; live != "now" {
				t.Errorf("%s: the live field says %q", tt.reason, live)
			}
		})
	}
}

// poolOf reads the pool of the terminal's server.
func poolOf(t *testing.T, term *terminal) *v1alpha1.Pool {
	t.Helper()
	var p v1alpha1.Pool
	if err := term.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

func TestUndo_default(t *testing.T) {
	t.Parallel()
	_, objects := daemons(t)
	third := objects[3].(*appsv1.ControllerRevision)
	// The second stood once, before it halted.
	err := history.WriteRecord(objects[2].(*appsv1.ControllerRevision), history.Record{Stood: 1, StoodAt: micro(-time.Hour), Halted: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := history.WriteRecord(third, history.Record{Stood: 2, StoodAt: micro(0)}); err != nil {
		t.Fatal(err)
	}
	term := newTerminal(t, objects...)
	if got := term.do(t.Context(), "undo", "web"); got != 0 || !strings.HasPrefix(term.out.String(), "pool web: the template of revision 4 (") {
		t.Errorf("the target is the current one: it is the one before, but not one that halted: exit status %d: %s%s", got, &term.out, &term.err)
	}
	term = newTerminal(t, objects[0], objects[2], third, objects[4])
	want := "error: pool web: it has stood on no other revision than 7 (" + history.RevisionID(third) + "); name one with --to, as `pawl history web` lists them\n"
	if got := term.do(t.Context(), "undo", "web"); got != 1 || term.err.String() != want {
		t.Errorf("a revision that halted is never gone back to by itself: exit status %d: %s%s", got, &term.out, &term.err)
	}
}

func TestUndo_unknown(t *testing.T) {
	t.Parallel()
	_, objects := daemons(t)
	term := newTerminal(t, objects...)
	want := "error: pool web has no revision 8, or no longer; `pawl history web` lists those it has\n"
	if got := term.do(t.Context(), "undo", "web", "--to", "8"); got != 1 || term.err.String() != want {
		t.Errorf("exit status %d: %s%s", got, &term.out, &term.err)
	}
}

// sourced is a pool whose template stayed what it is while its sources changed.
func sourced(t *testing.T) (p *v1alpha1.Pool, objects []client.Object) {
	t.Helper()
	p, _ = world(t)
	p.Spec.Sources = []v1alpha1.Source{
		{Name: "boot_strap", ConfigMap: &v1alpha1.KeysSource{Name: "bootstrap"}},
		{Name: "image", Object: &v1alpha1.ObjectSource{APIVersion: "example.org/v1", Kind: "Machine", Name: "golden", FieldPath: "status.image"}},
		{Name: "tls", Secret: &v1alpha1.KeysSource{Name: "tls"}},
	}
	content, err := history.ContentOf(&p.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	var revisions []*appsv1.ControllerRevision
	for n, digests := range []string{"abc", "xyz"} {
		content.Sources = []history.Source{
			{Name: "boot_strap", Kind: "ConfigMap", Object: "bootstrap", Digests: map[string]string{"install.sh": "sha256:" + digests[:1], "same": "sha256:0"}},
			{Name: "image", Kind: "Machine", Object: "golden", Field: "status.image", Secret: true, Digests: map[string]string{"": "hmac-sha256:" + digests[1:2]}},
			{Name: "tls", Kind: "Secret", Object: "tls", Secret: true, Digests: map[string]string{"a": "hmac-sha256:" + digests[2:], "b": "hmac-sha256:" + digests[2:]}},
		}
		r, err := history.New(p, content, 1, int64(n+1))
		if err == nil {
			err = history.WriteRecord(r, history.Record{StoodAt: micro(0), Stood: int64(1 - n)})
		}
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, r)
		objects = append(objects, r, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: r.Name + "-boot-strap"},
			Data:       map[string]string{"install.sh": "#!/bin/sh\necho " + digests + "\n", "same": "as ever"},
		})
	}
	p.Status.CurrentRevision, p.Status.TargetRevision = history.RevisionID(revisions[0]), history.RevisionID(revisions[1])
	return p, append(objects, p)
}

func TestDiff_sources(t *testing.T) {
	t.Parallel()
	_, objects := sourced(t)
	for name, args := range map[string][]string{
		"diff-sources.txt":      {"diff", "web"},
		"diff-sources-full.txt": {"diff", "web", "--full"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), args...); got != 1 {
				t.Fatalf("exit status %d: %s", got, &term.err)
			}
			golden(t, name, term.out.String())
		})
	}
}

// TestUndo_sources: what a template cannot bring back is said, and nothing is
// done unless that is wanted.
func TestUndo_sources(t *testing.T) {
	t.Parallel()
	_, objects := sourced(t)
	term := newTerminal(t, objects...)
	if got := term.do(t.Context(), "undo", "web"); got != 1 {
		t.Errorf("exit status %d: %s", got, &term.err)
	}
	golden(t, "undo-sources.txt", term.err.String())
	if got := term.do(t.Context(), "undo", "web", "--template-only"); got != 1 || strings.Contains(term.err.String(), "--template-only") {
		t.Errorf("the template is the same, so that nothing is left to do: exit status %d: %s%s", got, &term.out, &term.err)
	}
	p := poolOf(t, term)
	p.Spec.Template.Sim.Version = new("3")
	p.Status.TargetRevision = ""
	if err := term.client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got := term.do(t.Context(), "undo", "web"); got != 1 || !strings.HasSuffix(term.err.String(), ", or go on with the template alone, which makes another revision of it: --template-only\n") {
		t.Errorf("exit status %d: %s%s", got, &term.out, &term.err)
	}
	if got := term.do(t.Context(), "undo", "web", "--template-only"); got != 0 || !strings.HasPrefix(term.out.String(), "pool web: the template of revision 1 (") {
		t.Errorf("exit status %d: %s%s", got, &term.out, &term.err)
	}
	if got := *poolOf(t, term).Spec.Template.Sim.Version; got != "2" {
		t.Errorf("the version is %s", got)
	}
}

// TestUndo_race: an edit that comes in between is not overwritten.
func TestUndo_race(t *testing.T) {
	t.Parallel()
	_, objects := daemons(t)
	term := newTerminal(t, objects...)
	edited := false
	term.client = interceptor.NewClient(term.client, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if !edited {
				edited = true
				p := poolOf(t, term)
				p.Spec.Template.Process.Command = "/usr/bin/other"
				if err := c.Update(ctx, p); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, patch, opts...)
		},
	})
	if got := term.do(t.Context(), "undo", "web"); got != 1 || term.err.String() != "error: pool web was edited meanwhile, and is left alone; look at it, and ask again\n" {
		t.Errorf("exit status %d: %s%s", got, &term.out, &term.err)
	}
	if p := poolOf(t, term); p.Spec.Template.Process.Command != "/usr/bin/other" || len(p.Spec.Template.Process.Env) != 2 {
		t.Errorf("the edit is gone: %+v", p.Spec.Template.Process)
	}
}

// TestUndoing: one kind of template gives way to another.
func TestUndoing(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	p.ResourceVersion = "9"
	old := keep(t, p, 1, history.Record{})
	p.Spec.Template = v1alpha1.Template{Process: &v1alpha1.Process{Command: "x"}}
	patch, err := undoing(p, old)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(patch, &got); err != nil {
		t.Fatal(err)
	}
	err = json.Unmarshal([]byte(`[
		{"op": "replace", "path": "/metadata/resourceVersion", "value": "9"},
		{"op": "remove", "path": "/spec/template/process"},
		{"op": "add", "path": "/spec/template/sim", "value": {"version": "2"}}]`), &want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
)

// manifest is a pool that there is not yet.
const manifest = `# several documents, of which one is a pool
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: pawl.dev/v1alpha1
kind: Pool
metadata: {name: fresh}
spec:
  replicas: 3
  template: {sim: {version: "1", boot: 20s, stop: 3s}}
`

func TestPreview(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pool.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	applied := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(applied, []byte(`{apiVersion: pawl.dev/v1alpha1, kind: Pool, metadata: {name: web}, spec: {template: {sim: {version: "3"}}, update: {maxUnavailable: 2}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"preview.txt":            {"web"},
		"preview-wide.txt":       {"web", "-o", "wide"},
		"preview.json":           {"web", "-o", "json"},
		"preview.yaml":           {"web", "-o", "yaml"},
		"preview-set.txt":        {"web", "--set", "update.maxUnavailable=2", "--set", "template.sim.version=3", "--boot", "1m"},
		"preview-manual.txt":     {"web", "--set", "update.type=Manual"},
		"preview-paused.txt":     {"web", "--set", "update.paused=true"},
		"preview-impossible.txt": {"web", "--set", "spec.update.minAvailable=4"},
		"preview-window.txt":     {"web", "--set", `update.windows=[{schedule: "0 2 * * *", duration: 1h}]`},
		"preview-partition.txt":  {"web", "--set", "update.partition=1", "--set", "replicas=6"},
		"preview-fill.txt":       {"-f", file},
		"preview-apply.txt":      {"-f", applied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, objects := world(t)
			for i, o := range objects {
				if m, ok := o.(*v1alpha1.Member); ok {
					m.Status.BootTook = &metav1.Duration{Duration: time.Duration(20+i) * time.Second}
				}
			}
			term := newTerminal(t, objects...)
			tries := dryRuns(t, term)
			if got := term.do(t.Context(), append([]string{"preview"}, args...)...); got != 0 {
				t.Fatalf("exit status %d: %s", got, &term.err)
			}
			golden(t, name, term.out.String())
			if changes := len(args) > 1 && args[1] != "-o"; changes != (*tries == 1) {
				t.Errorf("it asked for %d dry runs", *tries)
			}
			unchanged(t, term, objects)
		})
	}
}

// dryRuns has the server do dry runs, which the fake one does not, and counts
// them.
func dryRuns(t *testing.T, term *terminal) *int {
	t.Helper()
	tries := 0
	term.client = interceptor.NewClient(term.client, interceptor.Funcs{
		Patch: func(ctx context.Context, server client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			dry := client.PatchOptions{}
			dry.ApplyOptions(options)
			if len(dry.DryRun) == 0 {
				return server.Patch(ctx, o, patch, options...)
			}
			tries++
			copied, _ := o.DeepCopyObject().(client.Object)
			if err := server.Get(ctx, client.ObjectKeyFromObject(o), copied); err != nil {
				return err
			}
			copied.SetResourceVersion("")
			sandbox := fake.NewClientBuilder().WithScheme(server.Scheme()).WithObjects(copied).WithReturnManagedFields().Build()
			dry.DryRun = nil
			return sandbox.Patch(ctx, o, patch, &dry)
		},
		Create: func(ctx context.Context, server client.WithWatch, o client.Object, options ...client.CreateOption) error {
			tries++
			return server.Create(ctx, o, options...)
		},
	})
	return &tries
}

// unchanged checks that the server still has what it had.
func unchanged(t *testing.T, term *terminal, objects []client.Object) {
	t.Helper()
	for _, o := range objects {
		now, _ := o.DeepCopyObject().(client.Object)
		if err := term.client.Get(t.Context(), client.ObjectKeyFromObject(o), now); err != nil {
			t.Fatal(err)
		}
		if now.GetResourceVersion() != "999" { // what the fake server begins with
			t.Errorf("%s has been written: version %s", o.GetName(), now.GetResourceVersion())
		}
	}
	var pools v1alpha1.PoolList
	if err := term.client.List(t.Context(), &pools); err != nil || len(pools.Items) != 1 {
		t.Errorf("%d pools, %v", len(pools.Items), err)
	}
}

// What is stored decides as it would in the controller: how long bodies had to be
// ready, until when members are held, and that a revision that failed once starts
// clean when it becomes the target anew.
func TestPreview_stored(t *testing.T) {
	t.Parallel()
	p, objects := world(t)
	p.Spec.Update.MinReadySeconds = new(int32(10))
	*p.Spec.Template.Sim.Version = "3"
	failed := keep(t, p, 3, history.Record{Failed: 3, Failures: []history.Failure{{ID: "mweb-1", Index: 1, Incarnation: 1, Count: 1, At: *micro(-time.Hour)}}})
	*p.Spec.Template.Sim.Version = "2"
	for _, o := range objects {
		if m, ok := o.(*v1alpha1.Member); ok {
			m.Status.BootTook = &metav1.Duration{Duration: 25 * time.Second}
		}
	}
	objects[4].SetAnnotations(map[string]string{v1alpha1.AnnotationHold: `{"until": "2031-05-01T12:30:00Z"}`})
	term := newTerminal(t, append([]client.Object{failed}, objects...)...)
	dryRuns(t, term)
	if got := term.do(t.Context(), "preview", "web", "--set", "template.sim.version=3", "-o", "json"); got != 0 {
		t.Fatalf("exit status %d: %s", got, &term.err)
	}
	var told foretold
	if err := json.Unmarshal(term.out.Bytes(), &told); err != nil {
		t.Fatal(err)
	}
	if boot := time.Duration(told.Boot.Takes); boot != 15*time.Second {
		t.Errorf("a boot is taken to take %s, of which 10s of being ready are not left out", boot)
	}
	if !told.Finishes || told.Target != history.RevisionID(failed) || len(told.Moves) != 4 {
		t.Errorf("a failure of long ago keeps the rollout: %+v", told.Forecast)
	}
	at := map[int]time.Duration{}
	for _, m := range told.Moves {
		at[m.Index] = time.Duration(m.At)
	}
	if at[1] < 30*time.Minute {
		t.Errorf("member 1 is held for half an hour, and goes after %s", at[1])
	}
}

func TestPreview_many(t *testing.T) {
	t.Parallel()
	p, objects := world(t)
	p.Spec.Replicas = new(int32(60))
	objects = objects[:3]
	for i := range 60 {
		m := member(int32(i), v1alpha1.PhaseAvailable, p.Status.CurrentRevision)
		if i%2 == 1 {
			m.Status.Phase = v1alpha1.PhaseClaimed
			m.Spec.Claim = &v1alpha1.MemberClaim{Name: fmt.Sprint("c", i)}
		}
		objects = append(objects, m)
	}
	term := newTerminal(t, objects...)
	dryRuns(t, term)
	if got := term.do(t.Context(), "preview", "web", "--set", "update.maxUnavailable=50%"); got != 0 {
		t.Fatalf("exit status %d: %s", got, &term.err)
	}
	golden(t, "preview-many.txt", term.out.String())
	term.do(t.Context(), "preview", "web", "-o", "json")
	if n := strings.Count(term.out.String(), `"index"`); n != 60 {
		t.Errorf("JSON tells of %d members, not of all 60", n)
	}
}

func TestPreview_usage(t *testing.T) {
	t.Parallel()
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	head := "apiVersion: pawl.dev/v1alpha1\nkind: Pool\n"
	for name, tt := range map[string]struct {
		reason string
		args   []string
		says   string
	}{
		"nothing":         {"there has to be a pool", nil, "POOL is missing; name one, or a manifest with -f"},
		"two pools":       {"one at a time", []string{"a", "b"}, "one POOL at a time, not 2: a b"},
		"negative":        {"bodies take some time", []string{"web", "--boot", "-1s"}, "--boot and --stop must not be negative"},
		"no value":        {"how to write it is said", []string{"web", "--set", "replicas"}, "--set replicas: write PATH=VALUE, such as update.maxUnavailable=2"},
		"bad path":        {"where the path is wrong is said", []string{"web", "--set", "update..x=1"}, `--set update..x=1: path "update..x": character 8`},
		"bad YAML":        {"the value is named", []string{"web", "--set", "replicas=[1"}, "--set replicas=[1: the value is no YAML"},
		"unknown field":   {"the path is named", []string{"web", "--set", "update.maxUnavailabel=2"}, `--set update.maxUnavailabel=2: there is no field "spec.update.maxUnavailabel"`},
		"wrong type":      {"what it takes is said", []string{"web", "--set", "update.paused=maybe"}, "--set update.paused=maybe: spec.update.paused takes true or false, not a string"},
		"not a number":    {"what it takes is said", []string{"web", "--set", "replicas=many"}, "--set replicas=many: spec.replicas takes a whole number, not a string"},
		"too deep":        {"a number has no fields", []string{"web", "--set", "replicas.x=1"}, "--set replicas.x=1: spec.replicas: there is nothing at this path"},
		"no such element": {"the list's length is said", []string{"web", "--set", "update.windows[2].schedule=x"}, "--set update.windows[2].schedule=x: spec.update"},
		"bad duration":    {"it is passed on", []string{"web", "--set", "template.bootTimeout=soon"}, "--set template.bootTimeout=soon: time: invalid duration"},
		"no file":         {"the file is named", []string{"-f", "/nowhere/x.yaml"}, "-f /nowhere/x.yaml: open /nowhere/x.yaml: no such file or directory"},
		"no pool in it":   {"what was looked for is said", []string{"-f", write("kind: ConfigMap\napiVersion: v1\n")}, "there is no Pool of pawl.dev/v1alpha1 in it"},
		"two in it":       {"one at a time", []string{"-f", write(head + "metadata: {name: a}\n---\n" + head + "metadata: {name: b}\n")}, "one pool at a time, not a and b"},
		"nameless":        {"it cannot be compared", []string{"-f", write(head)}, "metadata.name is missing"},
		"wrong in it":     {"fields are checked", []string{"-f", write(head + "metadata: {name: a}\nspec: {replica: 3}\n")}, `there is no field "spec.replica"`},
		"another pool":    {"they contradict each other", []string{"b", "-f", write(head + "metadata: {name: a}\n")}, "is about pool a, not about b"},
		"other namespace": {"they contradict each other", []string{"-n", "one", "-f", write(head + "metadata: {name: a, namespace: two}\n")}, "is about namespace two, not about one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, objects := world(t)
			term := newTerminal(t, objects...)
			status := term.do(t.Context(), append([]string{"preview"}, tt.args...)...)
			if status != 2 || !strings.Contains(term.err.String(), tt.says) || term.out.Len() > 0 {
				t.Errorf("%s: exit status %d, it says %q, want %q", tt.reason, status, &term.err, tt.says)
			}
		})
	}
}

func TestPropose(t *testing.T) {
	t.Parallel()
	const (
		spec  = `{"template":{"sim":{"version":"2"}},"update":{"type":"RollingUpdate","maxUnavailable":2}}`
		next  = `{"apiVersion":"pawl.dev/v1alpha1","kind":"Pool","metadata":{"name":"web"},"spec":` + spec + `}`
		surge = `{"apiVersion":"pawl.dev/v1alpha1","kind":"Pool","metadata":{"name":"web"},"spec":{"template":{"sim":{"version":"2"}},"update":{"type":"RollingUpdate","maxSurge":1}}}`
	)
	apply := func(owner, manifest string) func(*testing.T, *terminal) {
		return func(t *testing.T, term *terminal) {
			t.Helper()
			p := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
			patch := client.RawPatch(types.ApplyPatchType, []byte(manifest))
			if err := term.client.Patch(t.Context(), p, patch, client.FieldOwner(owner), client.ForceOwnership); err != nil {
				t.Fatal(err)
			}
		}
	}
	annotate := func(t *testing.T, term *terminal) {
		t.Helper()
		p := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		raw, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": map[string]string{lastApplied: surge}}, "spec": map[string]any{"update": map[string]any{"maxSurge": 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := term.client.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, raw)); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(*testing.T, *terminal) {}
	for name, tt := range map[string]struct {
		reason  string
		prepare func(*testing.T, *terminal)
		server  error
		set     []string
		want    string // of replicas and update
		says    string
	}{
		"never applied":  {"what the manifest leaves out stays", nothing, nil, nil, `4 {"type":"RollingUpdate","maxUnavailable":2}`, ""},
		"applied before": {"what was applied last and is left out goes", annotate, nil, nil, `4 {"type":"RollingUpdate","maxUnavailable":2}`, ""},
		"server side":    {"what its owner leaves out goes", apply("flux", surge), nil, nil, `4 {"type":"RollingUpdate","maxUnavailable":2}`, ""},
		"not allowed":    {"the manifest is taken as it is, with the number of members that the pool has, and that is said", nothing, forbidden, nil, `4 {"type":"RollingUpdate","maxUnavailable":2}`, "the server has not checked this"},
		"and set":        {"fields are set on top", nothing, nil, []string{"update.maxUnavailable=", "replicas=5"}, `5 {"type":"RollingUpdate"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, objects := world(t)
			term := newTerminal(t)
			term.client = fake.NewClientBuilder().WithScheme(term.client.Scheme()).WithObjects(objects...).WithReturnManagedFields().Build()
			tt.prepare(t, term)
			dryRuns(t, term)
			if tt.server != nil {
				refuse(term, tt.server)
			}
			e := &edit{name: "web", manifest: []byte(next)}
			for _, arg := range tt.set {
				s, err := parseSetting(arg)
				if err != nil {
					t.Fatal(err)
				}
				e.set = append(e.set, s)
			}
			k, err := term.connect()
			if err != nil {
				t.Fatal(err)
			}
			pr, err := k.propose(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			update, err := json.Marshal(pr.pool.Spec.Update)
			if err != nil {
				t.Fatal(err)
			}
			replicas := "-"
			if n := pr.pool.Spec.Replicas; n != nil {
				replicas = fmt.Sprint(*n)
			}
			if got := replicas + " " + string(update); got != tt.want {
				t.Errorf("%s: replicas and update are %s, want %s", tt.reason, got, tt.want)
			}
			if notes := strings.Join(pr.notes, "; "); !strings.Contains(notes, tt.says) || (notes == "") != (tt.says == "") {
				t.Errorf("%s: the notes are %q, want %q", tt.reason, notes, tt.says)
			}
		})
	}
}

var forbidden = apierrors.NewForbidden(schema.GroupResource{Group: "pawl.dev", Resource: "pools"}, "web", errors.New("not you"))

// refuse has the server take no patch.
func refuse(term *terminal, err error) {
	term.client = interceptor.NewClient(term.client, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			if review, ok := o.(*authorizationv1.SelfSubjectAccessReview); ok {
				review.Status.Allowed = !errors.Is(err, forbidden)
				return nil
			}
			return err
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return err
		},
	})
}

func TestPreview_refused(t *testing.T) {
	t.Parallel()
	_, objects := world(t)
	term := newTerminal(t, objects...)
	refuse(term, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("Pool").GroupKind(), "web", field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), -1, "should be greater than or equal to 0")}))
	status := term.do(t.Context(), "preview", "web", "--set", "replicas=-1")
	if want := "error: the server would not take this: Pool.pawl.dev \"web\" is invalid: spec.replicas: Invalid value: -1"; status != 1 || !strings.HasPrefix(term.err.String(), want) {
		t.Errorf("exit status %d, it says %q", status, &term.err)
	}
	refuse(term, forbidden)
	if status := term.do(t.Context(), "preview", "web", "--set", "update.maxUnavailable=2"); status != 0 || !strings.Contains(term.out.String(), "note: the server has not checked this") {
		t.Errorf("exit status %d, it says %s%s", status, &term.out, &term.err)
	}
	if status := term.do(t.Context(), "preview", "webb"); status != 1 || !strings.Contains(term.err.String(), `pool "webb" not found`) {
		t.Errorf("exit status %d, it says %q", status, &term.err)
	}
}

// Whatever is set, there is a pool or an error, and never a panic.
func FuzzSetting(f *testing.F) {
	for _, arg := range []string{
		"replicas=3", "update.maxUnavailable=50%", "template.sim.version=2", "update.windows=[{schedule: \"@daily\"}]", "template=",
		"template.objects[0].spec=1", "=", "[0]=1", "spec=", `update["type"]=x`, "update.paused=yes", "replicas=1e9", "update=~", "a.b.c.d=e",
	} {
		f.Add(arg)
	}
	version := "1"
	p := &v1alpha1.Pool{Spec: v1alpha1.PoolSpec{Template: v1alpha1.Template{Sim: &v1alpha1.Sim{Version: &version}}}}
	f.Fuzz(func(t *testing.T, arg string) {
		s, err := parseSetting(arg)
		if err != nil {
			return
		}
		before := p.DeepCopy()
		got, err := s.into(p)
		if (got == nil) == (err == nil) {
			t.Errorf("%q: %v and %v", arg, got, err)
		}
		if !reflect.DeepEqual(before, p) {
			t.Errorf("%q changes the pool that it is given", arg)
		}
	})
}

// Whatever is in a file, there is a pool or an error, and never a panic.
func FuzzManifest(f *testing.F) {
	for _, text := range []string{manifest, "", "---\n---\n", "{}", "kind: Pool\napiVersion: pawl.dev/v1alpha1\nmetadata: {name: a}\nspec: {replicas: x}\n", "- 1", "a: *b", "\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var e edit
		err := e.read("-", bytes.NewReader(data))
		if e.manifest == nil && err == nil {
			t.Errorf("neither a pool nor an error")
		}
		if err == nil && e.name == "" {
			t.Errorf("a pool without a name")
		}
	})
}

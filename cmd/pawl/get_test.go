package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// tables serves the rows of pools as an API server does.
func tables(t *testing.T) *httptest.Server {
	t.Helper()
	row := func(namespace, name string, cells ...any) metav1.TableRow {
		meta, err := json.Marshal(&metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		})
		if err != nil {
			t.Fatal(err)
		}
		return metav1.TableRow{Cells: append([]any{name}, cells...), Object: runtime.RawExtension{Raw: meta}}
	}
	columns := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string"}, {Name: "Free", Type: "integer"}, {Name: "State", Type: "string"}, {Name: "Next", Type: "string", Priority: 1},
	}
	web := row("default", "web", 3, "UpdateBlocked", "member 0: it is claimed")
	db := row("shop", "db", 2, "AllMembersCurrent", "nothing to do")
	rows := map[string][]metav1.TableRow{
		"/apis/pawl.dev/v1alpha1/pools":                        {web, db},
		"/apis/pawl.dev/v1alpha1/namespaces/default/pools":     {web},
		"/apis/pawl.dev/v1alpha1/namespaces/default/pools/web": {web},
		"/apis/pawl.dev/v1alpha1/namespaces/shop/pools/db":     {db},
		"/apis/pawl.dev/v1alpha1/namespaces/empty/pools":       {},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		list, ok := rows[r.URL.Path]
		if !ok || r.Header.Get("Accept") != acceptTable {
			http.Error(w, "404 page not found", http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(&metav1.Table{
			TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}, ColumnDefinitions: columns, Rows: list,
		})
	}))
	t.Cleanup(server.Close)
	return server
}

func TestGet_table(t *testing.T) {
	t.Parallel()
	config := kubeconfig(t, tables(t).URL)
	for name, tt := range map[string]struct {
		args []string
		out  string
		err  string
	}{
		"all":  {nil, "NAME   FREE   STATE\nweb    3      UpdateBlocked\n", ""},
		"one":  {[]string{"web"}, "NAME   FREE   STATE\nweb    3      UpdateBlocked\n", ""},
		"two":  {[]string{"web", "web"}, "NAME   FREE   STATE\nweb    3      UpdateBlocked\nweb    3      UpdateBlocked\n", ""},
		"wide": {[]string{"-n", "shop", "db", "-o", "wide"}, "NAME   FREE   STATE               NEXT\ndb     2      AllMembersCurrent   nothing to do\n", ""},
		"everywhere": {
			[]string{"-A"},
			"NAMESPACE   NAME   FREE   STATE\ndefault     web    3      UpdateBlocked\nshop        db     2      AllMembersCurrent\n", "",
		},
		"none": {[]string{"-n", "empty"}, "", "there are no pools in namespace empty\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, out, problems := call(t, "pawl", append([]string{"get", "--kubeconfig", config}, tt.args...)...)
			if status != 0 || out != tt.out || problems != tt.err {
				t.Errorf("exit status %d\n%s%s", status, out, problems)
			}
		})
	}
}

func TestGet_objects(t *testing.T) {
	t.Parallel()
	p, _ := world(t)
	other := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
	for name, tt := range map[string]struct {
		args []string
		has  []string
	}{
		"one":        {[]string{"web", "-o", "yaml"}, []string{"kind: Pool\n", "name: web\n"}},
		"list":       {[]string{"-o", "json"}, []string{`"kind": "PoolList"`, `"name": "web"`}},
		"names":      {[]string{"-o", "name"}, []string{"pool.pawl.dev/web\n"}},
		"everywhere": {[]string{"-A", "-o", "name"}, []string{"pool.pawl.dev/web\n", "pool.pawl.dev/db\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, p.DeepCopy(), other.DeepCopy())
			if got := term.do(t.Context(), append([]string{"get"}, tt.args...)...); got != 0 {
				t.Fatalf("exit status %d: %s", got, &term.err)
			}
			for _, want := range tt.has {
				if !strings.Contains(term.out.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, &term.out)
				}
			}
		})
	}
}

func TestGet_holds(t *testing.T) {
	t.Parallel()
	p, objects := world(t)
	p.Status.Rollout.Blockers = append(p.Status.Rollout.Blockers,
		v1alpha1.Blocker{Reason: "Held", Count: 2, Example: "web-1"}, v1alpha1.Blocker{Reason: "Partitioned", Count: 1, Example: "web-3"})
	objects[4].SetAnnotations(map[string]string{v1alpha1.AnnotationHold: `{"reason":"debugging","until":"2031-05-01T16:00:00Z"}`})
	objects[6].SetAnnotations(map[string]string{v1alpha1.AnnotationHold: `{"reason":"in nobody's way"}`})
	term := newTerminal(t, objects...)
	k, err := term.connect()
	if err != nil {
		t.Fatal(err)
	}
	g := &get{program: term.program}
	for name, tt := range map[string]struct {
		pools []string
		want  string
	}{
		"all":    {nil, "web-1 is held until 2031-05-01T16:00:00Z (for 4h): debugging\n"},
		"this":   {[]string{"web"}, "web-1 is held until 2031-05-01T16:00:00Z (for 4h): debugging\n"},
		"others": {[]string{"db"}, ""},
	} {
		term.out.Reset()
		if err := g.holds(t.Context(), k, tt.pools); err != nil || term.out.String() != tt.want {
			t.Errorf("%s: it says %q, want %q, %v", name, &term.out, tt.want, err)
		}
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	p, objects := world(t)
	objects = append(objects, claimed("mine", func(*v1alpha1.Claim) {}), &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "db"}})
	for name, tt := range map[string]struct {
		args []string
		want []string
	}{
		"pools":           {[]string{"claim", ""}, []string{p.Name}},
		"one is enough":   {[]string{"status", "web", ""}, nil},
		"several":         {[]string{"pause", "web", ""}, []string{p.Name}},
		"claims":          {[]string{"release", ""}, []string{"mine"}},
		"pools, slots":    {[]string{"explain", ""}, []string{p.Name}},
		"slots":           {[]string{"explain", "web/"}, []string{"web/0", "web/1", "web/2", "web/3"}},
		"pools of slots":  {[]string{"hold", ""}, []string{"web/"}},
		"held slots":      {[]string{"hold", "web/"}, []string{"web/0", "web/1", "web/2", "web/3"}},
		"pools, history":  {[]string{"history", ""}, []string{p.Name}},
		"revisions":       {[]string{"diff", "web", ""}, []string{"9pddxxgw7rvz", "s66lgtrnbk28"}},
		"two revisions":   {[]string{"diff", "web", "1", ""}, nil},
		"to a revision":   {[]string{"undo", "web", "--to", ""}, []string{"9pddxxgw7rvz", "s66lgtrnbk28"}},
		"output formats":  {[]string{"get", "-o", ""}, []string{"json", "yaml", "wide", "name"}},
		"only those":      {[]string{"status", "-o", ""}, []string{"json", "yaml"}},
		"commands, a few": {[]string{"re"}, []string{"recycle", "release", "renew", "resume", "retry"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), append([]string{cobra.ShellCompNoDescRequestCmd}, tt.args...)...); got != 0 {
				t.Fatalf("exit status %d: %s", got, &term.err)
			}
			lines := strings.Split(strings.TrimSpace(term.out.String()), "\n")
			if got := lines[:len(lines)-1]; !slices.Equal(got, tt.want) { // the last one is for the shell
				t.Errorf("%v: %v, want %v", tt.args, got, tt.want)
			}
		})
	}
}

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// TestPreview_denied: what admission forbids is no question of who may ask.
func TestPreview_denied(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pool.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"edit":   {"preview", "web", "--set", "replicas=9"},
		"create": {"preview", "-f", file},
	} {
		for user, err := range map[string]error{
			"may":     apierrors.NewForbidden(schema.GroupResource{Group: "pawl.dev", Resource: "pools"}, "web", errors.New("ValidatingAdmissionPolicy 'size' denied request: too many")),
			"may not": forbidden,
		} {
			_, objects := world(t)
			term := newTerminal(t, objects...)
			refuse(term, err)
			got := term.do(t.Context(), args...)
			switch denied := strings.HasPrefix(term.err.String(), "error: the server would not take this: pools.pawl.dev \"web\" is forbidden: "); {
			case user == "may" && (got != 1 || !denied):
				t.Errorf("%s: exit status %d: %s%s", name, got, &term.out, &term.err)
			case user == "may not" && (got != 0 || !strings.Contains(term.out.String(), "you may not ask it for a dry run")):
				t.Errorf("%s: exit status %d: %s%s", name, got, &term.out, &term.err)
			}
		}
	}
}

// TestPreview_unresolved: while sources cannot be read nothing moves, whatever
// else is edited.
func TestPreview_unresolved(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		set    string
		moves  bool
		says   string
	}{
		"template": {"a new template is not rolled out either", "template.sim.version=3", false, "note: nothing moves while this is so: ConfigMap boot is not there\n"},
		"update":   {"nor is the old one", "update.maxUnavailable=2", false, "note: nothing moves while this is so: ConfigMap boot is not there\n"},
		"sources":  {"others may be there", `sources=[{name: a, configMap: {name: b}}]`, true, "As it is, they cannot: ConfigMap boot is not there\n"},
		"account":  {"another one may read them", "serviceAccountName=reader", true, "As it is, they cannot: ConfigMap boot is not there\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, objects := world(t)
			unreadable(p)
			p.Spec.Sources = []v1alpha1.Source{{Name: "a", ConfigMap: &v1alpha1.KeysSource{Name: "boot"}}}
			term := newTerminal(t, objects...)
			dryRuns(t, term)
			got := term.do(t.Context(), "preview", "web", "--set", tt.set)
			if moves := !strings.Contains(term.out.String(), "  SourcesUnresolved  "); got != 0 || moves != tt.moves || !strings.Contains(term.out.String(), tt.says) {
				t.Errorf("%s: exit status %d: %s%s", tt.reason, got, &term.out, &term.err)
			}
		})
	}
}

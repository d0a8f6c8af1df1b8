package layers

import (
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/pawl-dev/pawl"

// layer is a place in the house.
type layer struct {
	// path is the folder it has, with everything below. A * is one name: each
	// such folder is a layer of its own.
	path string
	// may is what its packages import of this module, apart from one another:
	// a package, or with /... a folder.
	may []string
	// pure: beyond that, the standard library only.
	pure bool
	// why is said to whoever breaks it.
	why string
}

// house is every layer there is. Of several that fit a package, the last one
// decides.
var house = []layer{
	{path: "revision", pure: true, why: "what a revision is must not depend on anything that changes"},
	{path: "rollout", pure: true, why: "the engine is pure, and a library for other operators"},
	{path: "api", why: "the API knows nothing of what is made of it"},
	{path: "config", why: "manifests are read, not acted on"},
	{path: "snapshot", may: core("api/..."), why: "it turns API objects into the engine's input, and does nothing else"},
	{path: "preview", may: []string{"rollout/..."}, pure: true, why: "a forecast is the engine's, and knows neither the API nor the simulator"},
	{path: "permit", may: core("snapshot/..."), why: "authors of operators import it; it must stay small"},
	{path: "simulate", may: core("api/...", "snapshot/...", "permit/...", "preview/..."), why: "the simulator runs the real engine, not the real controllers"},
	{path: "internal/*", may: outside("internal/body", "internal/fieldpath"), why: "adapters never import one another; whoever needs two takes one as an interface"},
	{path: "internal/fieldpath", pure: true, why: "it names places in JSON, whatever that is of"},
	{path: "internal/body", may: outside("internal/fieldpath"), why: "it is the interface that bodies of all kinds implement"},
	{path: "internal/body/*", may: outside("internal/body", "internal/fieldpath"), why: "kinds of bodies never import one another, or another adapter"},
	{path: "internal/controller/*", may: outside("internal/..."), why: "controllers know the adapters, and not the program around them"},
	{path: "internal/operator", may: outside("internal/..."), why: "it puts controllers and adapters together"},
	{path: "internal/live", may: outside("internal/..."), why: "it runs the operator against a real API server, and is no part of it"},
	{path: "internal/layers", why: "it only looks"},
	{path: "cmd/*", may: outside("internal/..."), why: "a program is made of the layers below it, not of other programs"},
	{path: "standalone", may: outside("internal/..."), why: "a program is made of the layers below it, not of other programs"},
	{path: "examples", may: outside("internal/..."), why: "examples show what is there, and nothing depends on them"},
}

// core is the pure packages and what else is given.
func core(also ...string) []string {
	return append([]string{"rollout/...", "revision/..."}, also...)
}

// outside is everything below internal, and what else is given.
func outside(also ...string) []string {
	return append(core("api/...", "config/...", "snapshot/...", "permit/...", "preview/...", "simulate/..."), also...)
}

// pkg is a package and what it imports, not counting its tests.
type pkg struct {
	ImportPath string
	Imports    []string
}

func TestLayers(t *testing.T) {
	t.Parallel()
	pkgs := list(t, "../..")
	imports := 0
	for _, p := range pkgs {
		imports += len(p.Imports)
	}
	if len(pkgs) < 10 || imports < 100 {
		t.Fatalf("found %d packages with %d imports only", len(pkgs), imports)
	}
	for _, broken := range check(pkgs) {
		t.Error(broken)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		from   string
		to     []string
		want   []string
	}{
		"down":                {"the direction that is meant", "cmd/pawl", []string{"fmt", module + "/internal/operator", "github.com/spf13/cobra"}, nil},
		"own folder":          {"a layer may have packages", "internal/body/process", []string{module + "/internal/body/process/gate"}, nil},
		"shared interface":    {"what implements it imports it", "internal/body/sim", []string{module + "/internal/body"}, nil},
		"engine, standard":    {"the standard library is allowed", "rollout", []string{"encoding/json", "time"}, nil},
		"engine, a library":   {"nothing else is", "rollout", []string{"k8s.io/api/core/v1"}, []string{"rollout imports k8s.io/api/core/v1"}},
		"engine, the API":     {"not even our own", "rollout", []string{module + "/api/v1alpha1"}, []string{"rollout imports api/v1alpha1"}},
		"simulator, above":    {"up is the wrong direction", "simulate", []string{module + "/internal/render"}, []string{"simulate imports internal/render"}},
		"permit, the API":     {"the API is for snapshot, simulate, internal and cmd", "permit", []string{module + "/api/v1alpha1"}, []string{"permit imports api/v1alpha1"}},
		"two adapters":        {"adapters never meet", "internal/render", []string{module + "/internal/history"}, []string{"internal/render imports internal/history"}},
		"two kinds of bodies": {"nor do bodies", "internal/body/sim", []string{module + "/internal/body/process"}, []string{"internal/body/sim imports internal/body/process"}},
		"a body, an adapter":  {"nor a body and an adapter", "internal/body/objects", []string{module + "/internal/render"}, []string{"internal/body/objects imports internal/render"}},
		"two controllers":     {"they share adapters", "internal/controller/pool", []string{module + "/internal/history"}, nil},
		"a similar name":      {"a folder is not a prefix", "internal/bodyguard", []string{module + "/internal/render"}, []string{"internal/bodyguard imports internal/render"}},
		"a similar target":    {"a folder is not a prefix", "snapshot", []string{module + "/rolloutx"}, []string{"snapshot imports rolloutx"}},
		"no layer":            {"a new folder needs a place", "utils", nil, []string{"utils has no place"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, broken := range check([]pkg{{ImportPath: module + "/" + tt.from, Imports: tt.to}}) {
				short, _, _ := strings.Cut(broken, ":")
				got = append(got, short)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tt.reason, diff)
			}
		})
	}
}

// check returns a sentence for each import that goes the wrong way.
func check(pkgs []pkg) []string {
	var broken []string
	for _, p := range pkgs {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		l, own := find(from)
		if own == "" {
			broken = append(broken, from+" has no place: give it one in internal/layers, or move it to where it belongs")
			continue
		}
		for _, imported := range p.Imports {
			to, ours := strings.CutPrefix(imported, module+"/")
			allowed := !l.pure || standard(imported)
			if ours {
				allowed = matches(to, own+"/...") || slices.ContainsFunc(l.may, func(m string) bool { return matches(to, m) })
			}
			if !allowed {
				broken = append(broken, fmt.Sprintf("%s imports %s: %s", from, to, l.why))
			}
		}
	}
	return broken
}

// find returns the layer of a package and the folder that fits, empty if none.
func find(p string) (layer, string) {
	for _, l := range slices.Backward(house) {
		names := strings.Split(p, "/")
		n := strings.Count(l.path, "/") + 1
		if len(names) < n {
			continue
		}
		folder := strings.Join(names[:n], "/")
		if ok, err := path.Match(l.path, folder); ok && err == nil {
			return l, folder
		}
	}
	return layer{}, ""
}

// matches says whether a package is the one that is allowed, or in the folder.
func matches(p, allowed string) bool {
	folder, all := strings.CutSuffix(allowed, "/...")
	return p == folder || all && strings.HasPrefix(p, folder+"/")
}

// standard says whether a path is the standard library's, whose first element
// has no dot.
func standard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".")
}

// list reads what every package below the root imports, standalone's included:
// it parses the files rather than asks go list, which would load all of
// Kubernetes, and whose reads go test does not see when it caches a result.
func list(t *testing.T, root string) []pkg {
	t.Helper()
	context := build.Default
	context.BuildTags = []string{"integration"}
	var pkgs []pkg
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if skip(d.Name()) && dir != root {
			return fs.SkipDir
		}
		p, err := context.ImportDir(dir, 0)
		if none := new(build.NoGoError); errors.As(err, &none) {
			return nil
		}
		name, _ := filepath.Rel(root, dir)
		pkgs = append(pkgs, pkg{ImportPath: path.Join(module, filepath.ToSlash(name)), Imports: p.Imports})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

// skip says whether a folder holds nothing that is built. The tools are no
// part of the house.
func skip(name string) bool {
	return strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "tools"
}

package render

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

var rewrite = flag.Bool("rewrite", false, "write what comes out to testdata/*.golden")

// goldenCase is a file of testdata: the variables, and a template.
type goldenCase struct {
	name string
	vars map[string]any
	// objects and process are the template as it is written.
	objects []any
	process *v1alpha1.Process
}

func (c *goldenCase) template() *v1alpha1.Template {
	t := &v1alpha1.Template{Process: c.process}
	for _, o := range c.objects {
		raw, err := json.Marshal(o)
		if err != nil {
			panic(err)
		}
		t.Objects = append(t.Objects, runtime.RawExtension{Raw: raw})
	}
	return t
}

func (c *goldenCase) sources() map[string]any {
	s, _ := c.vars["sources"].(map[string]any)
	return s
}

func goldenCases(t *testing.T) []goldenCase {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var cases []goldenCase
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = yaml.ToJSON(raw); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		c := goldenCase{name: strings.TrimSuffix(filepath.Base(file), ".yaml")}
		var template struct{ Process *v1alpha1.Process }
		if err := json.Unmarshal(raw, &template); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := k8sjson.Unmarshal(raw, &c.vars); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		c.process = template.Process
		c.objects, _ = c.vars["objects"].([]any)
		cases = append(cases, c)
	}
	return cases
}

// TestGolden renders testdata/*.yaml. What comes out decides what bodies are:
// a difference here means that every pool that uses it drifts. If that is meant,
// write down in the release's notes what differs; the pools say by themselves
// that it is the renderer (see Sample).
func TestGolden(t *testing.T) {
	for _, c := range goldenCases(t) {
		t.Run(c.name, func(t *testing.T) {
			var got any
			var err error
			if c.process != nil {
				got, err = renderProcess(c.process, c.vars)
			} else {
				got, err = Manifests(context.Background(), "objects", c.objects, c.vars)
			}
			if err != nil {
				t.Fatal(err)
			}
			golden(t, c.name, got)
		})
	}
}

// TestGolden_Samples holds the digests of samples to what they are: a
// difference here, and none in TestGolden, means that pools drift that would be
// rendered as before.
func TestGolden_Samples(t *testing.T) {
	got := map[string]string{}
	for _, c := range goldenCases(t) {
		digest, err := Sample(context.Background(), c.template(), c.sources(), "")
		if err != nil {
			t.Fatal(err)
		}
		got[c.name] = digest
	}
	golden(t, "samples", got)
}

// renderProcess renders the texts of a process as the process kind does.
func renderProcess(p *v1alpha1.Process, vars map[string]any) (any, error) {
	var texts func(node any) (any, error)
	texts = func(node any) (out any, err error) {
		switch n := node.(type) {
		case string:
			return Text(n, vars)
		case []any:
			for i := range n {
				if n[i], err = texts(n[i]); err != nil {
					return nil, err
				}
			}
		case map[string]any:
			for key := range n {
				if n[key], err = texts(n[key]); err != nil {
					return nil, err
				}
			}
		}
		return node, nil
	}
	return texts(processTexts(p))
}

// golden compares a value with testdata/NAME.golden.
func golden(t *testing.T, name string, value any) {
	t.Helper()
	out, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	out = append(out, '\n')
	file := filepath.Join("testdata", name+".golden")
	if *rewrite {
		if err := os.WriteFile(file, out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(out)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// elsewhere matches what is reached only through values whose type is not known
// before, and an old name of what macros use.
var elsewhere = regexp.MustCompile(`^(less|greater)(_equals)?_(double|u?int64)_(double|u?int64)$|^__not_strictly_false__$`)

// TestGolden_Complete: the golden set has every function, operator and macro
// that an expression may use; those of a new version of CEL too.
func TestGolden_Complete(t *testing.T) {
	env, err := environments[Process]()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	var source strings.Builder
	for _, c := range goldenCases(t) {
		tree, err := texts(c.template())
		if err != nil {
			t.Fatal(err)
		}
		eachString(tree, func(s string) {
			segments, err := scan(s)
			if err != nil {
				t.Fatal(err)
			}
			for _, seg := range segments {
				if !seg.expr {
					continue
				}
				source.WriteString(seg.text + "\n")
				checked, issues := env.Compile(seg.text)
				if issues.Err() != nil {
					t.Fatalf("%s: %v", seg.text, issues.Err())
				}
				for _, r := range checked.NativeRep().ReferenceMap() {
					if len(r.OverloadIDs) == 1 {
						used[r.OverloadIDs[0]] = true
					}
				}
			}
		})
	}
	for _, name := range sortedKeys(env.Functions()) {
		for _, o := range env.Functions()[name].OverloadDecls() {
			if !used[o.ID()] && !elsewhere.MatchString(o.ID()) {
				t.Errorf("no golden expression uses %s of %s", o.ID(), name)
			}
		}
	}
	for _, m := range env.Macros() {
		if !strings.Contains(source.String(), m.Function()+"(") {
			t.Errorf("no golden expression uses the macro %s", m.Function())
		}
	}
}

func eachString(node any, f func(string)) {
	switch n := node.(type) {
	case string:
		f(n)
	case []any:
		for _, e := range n {
			eachString(e, f)
		}
	case map[string]any:
		for _, key := range sortedKeys(n) {
			eachString(n[key], f)
		}
	}
}

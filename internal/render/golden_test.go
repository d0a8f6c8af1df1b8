package render

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var rewrite = flag.Bool("rewrite", false, "write what comes out to testdata/*.golden")

// TestGolden renders testdata/*.yaml. What comes out decides what bodies are:
// a difference here means that every pool that uses it drifts.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if raw, err = yaml.ToJSON(raw); err != nil {
				t.Fatal(err)
			}
			var in map[string]any
			if err := k8sjson.Unmarshal(raw, &in); err != nil {
				t.Fatal(err)
			}
			got, err := Manifests(context.Background(), "objects", in["objects"], in)
			if err != nil {
				t.Fatal(err)
			}
			out, err := json.MarshalIndent(got, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, '\n')
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *rewrite {
				if err := os.WriteFile(golden, out, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(out)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

package simulate

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// longestNarrative is the size in bytes up to which a narrative is kept: longer
// ones are too long to review, and show nothing that shorter ones do not.
const longestNarrative = 64 << 10

// The narratives of all scenario files are those in testdata.
func TestNarratives(t *testing.T) {
	played := map[string]bool{}
	for _, file := range files(t) {
		s, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Needs) > 0 {
			continue
		}
		got := s.Run(1, true).String()
		if len(got) > longestNarrative {
			continue
		}
		played[s.Name+".txt"] = true
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			golden := filepath.Join("testdata/narratives", s.Name+".txt")
			if *rewrite {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the narrative has changed (accept it with -rewrite):\n%s", diff)
			}
		})
	}
	list, err := os.ReadDir("testdata/narratives")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if !played[e.Name()] {
			t.Errorf("%s belongs to no scenario", e.Name())
		}
	}
}

// The same file and seed print the same bytes, even with random times.
func TestScenario_Run_Deterministic(t *testing.T) {
	for _, name := range []string{"claim-beats-rollout", "restart-partial-state", "leases-churn-converges"} {
		s, err := Load(filepath.Join("../scenarios", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.Run(7, true).String(), s.Run(7, true).String()); diff != "" {
			t.Errorf("%s: two runs under one seed differ:\n%s", name, diff)
		}
		if s.Run(7, true).String() == s.Run(8, true).String() {
			t.Errorf("%s: two seeds do not differ", name)
		}
	}
}

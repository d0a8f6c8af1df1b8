package simulate

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the narratives in testdata anew")

// Narratives are read by people: what happened, why, and what comes next.
func TestNarratives(t *testing.T) {
	for _, name := range []string{
		"bad-template-no-surge", "became-busy-during-drain", "idempotent-claim", "percent-rounding",
		"revert-drops-bad-creating", "slot-not-forgotten", "surge-without-room", "unknown-is-not-empty",
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Load(filepath.Join("../scenarios", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			got := s.Run(1, true).String()
			golden := filepath.Join("testdata/narratives", name+".txt")
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
				t.Errorf("the story is told in another way (accept it with -rewrite):\n%s", diff)
			}
		})
	}
}

// The same file and seed print the same bytes, also where everything varies.
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

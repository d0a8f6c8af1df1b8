package simulate

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"
)

var seeds = flag.Int("seeds", 1, "how many seeds to play the scenario files under")

// files are all scenario files of the project.
func files(t testing.TB) []string {
	t.Helper()
	list, err := filepath.Glob("../scenarios/*.yaml")
	if err != nil || len(list) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	return list
}

func TestScenarios(t *testing.T) {
	var o Options
	for i := range *seeds {
		o.Seeds = append(o.Seeds, int64(i+1))
	}
	for _, r := range Play(files(t), o) {
		t.Run(strings.TrimSuffix(filepath.Base(r.File), ".yaml"), func(t *testing.T) {
			switch r.Verdict() {
			case Wrong:
				t.Fatal(r.Err)
			case Waiting:
				t.Skipf("needs %s", strings.Join(r.Scenario.Needs, ", "))
			}
			for _, run := range r.Results {
				for i := range run.Failures {
					f := &run.Failures[i]
					t.Errorf("seed %d, %v: %s\n%s", run.Seed, f.At, f.Words(r.File), f.State)
				}
			}
		})
	}
}

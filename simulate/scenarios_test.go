package simulate

import (
	"path/filepath"
	"strings"
	"testing"
)

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
	for _, r := range Play(files(t), Options{Seeds: []int64{1}}) {
		t.Run(strings.TrimSuffix(filepath.Base(r.File), ".yaml"), func(t *testing.T) {
			switch r.Verdict() {
			case Wrong:
				t.Fatal(r.Err)
			case Waiting:
				t.Skipf("needs %s", strings.Join(r.Scenario.Needs, ", "))
			}
			for _, run := range r.Results {
				for _, f := range run.Failures {
					t.Errorf("seed %d, %v: %s\n%s", run.Seed, f.At, f.short(), f.State)
				}
			}
		})
	}
}

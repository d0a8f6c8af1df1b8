package simulate

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var seeds = flag.Int("seeds", 1, "how many seeds to play the scenario files under")

// files returns all scenario files of the project.
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

// The table in README.md has the files that wait and their needs; -rewrite updates
// it.
func TestScenarios_Readme(t *testing.T) {
	const path, begins, ends = "../README.md", "<!-- scenarios: begin -->\n", "<!-- scenarios: end -->"
	waiting := map[string][]string{}
	all, played := 0, 0
	for _, file := range files(t) {
		s, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		all++
		if len(s.Needs) == 0 {
			played++
			continue
		}
		needs := strings.Join(slices.Sorted(slices.Values(s.Needs)), ", ")
		waiting[needs] = append(waiting[needs], s.Name)
	}
	var table strings.Builder
	table.WriteString("| scenario | needs |\n|---|---|\n")
	for _, needs := range slices.Sorted(maps.Keys(waiting)) {
		fmt.Fprintf(&table, "| %s | %s |\n", strings.Join(waiting[needs], ", "), needs)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	was := string(data)
	is := regexp.MustCompile(`\d+ of \d+ run already`).ReplaceAllString(was, fmt.Sprintf("%d of %d run already", played, all))
	before, rest, ok := strings.Cut(is, begins)
	_, after, more := strings.Cut(rest, ends)
	if !ok || !more {
		t.Fatalf("%s has no list between %q and %q", path, begins, ends)
	}
	is = before + begins + table.String() + ends + after
	if *rewrite {
		if err := os.WriteFile(path, []byte(is), 0o600); err != nil {
			t.Fatal(err)
		}
		was = is
	}
	if diff := cmp.Diff(was, is); diff != "" {
		t.Errorf("the table of files that wait is out of date (update it with -rewrite):\n%s", diff)
	}
}

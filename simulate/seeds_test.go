package simulate

import (
	"flag"
	"testing"
)

var seeds = flag.Int("seeds", 1, "how many seeds TestSeeds plays each scenario under")

func TestSeeds(t *testing.T) {
	var list []int64
	for i := range *seeds {
		list = append(list, int64(i+1))
	}
	for _, r := range Play(files(t), Options{Seeds: list}) {
		bad := 0
		for _, run := range r.Results {
			if !run.Passed() {
				if bad == 0 {
					f := run.Failures[0]
					t.Errorf("%s: seed %d, %v: %s\n%s", r.File, run.Seed, f.At, f.short(), f.State)
				}
				bad++
			}
		}
		if bad > 0 {
			t.Logf("%s: %d of %d", r.File, bad, len(list))
		}
	}
}

package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// In every random world each promise holds at every step, and once no more entries
// follow, the pool comes to rest in time. Each processor plays -rapid.checks worlds;
// with -v the last line has the number.
func TestRandomWorlds(t *testing.T) {
	var worlds, quiet atomic.Int64
	t.Run("of", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(itoa(i), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(rt *rapid.T) {
					worlds.Add(1)
					if randomWorld(rt) {
						quiet.Add(1)
					}
				})
			})
		}
	})
	if !t.Failed() {
		t.Logf("%d random worlds, every promise kept, and all of the %d that became quiet came to rest in time", worlds.Load(), quiet.Load())
	}
}

// randomWorld draws a world and plays it. It reports whether the world became quiet
// in the end.
func randomWorld(rt *rapid.T) bool {
	d := &drawing{t: rt}
	text := d.world()
	s, err := Parse("random-world.yaml", []byte(text))
	if err != nil {
		rt.Fatalf("%v\n%s", err, text)
	}
	if len(s.Needs) > 0 {
		rt.Fatalf("needs %v\n%s", s.Needs, text)
	}
	p := resolve(s.pools[0].spec, "A", time.Minute).policy
	if got := (numbers{p.MaxUnavailable, p.MaxSurge, p.MinAvailable}); got != d.first {
		rt.Fatalf("the policy is %+v, want %+v\n%s", got, d.first, text)
	}
	r := s.Run(rapid.Int64Range(1, 1000).Draw(rt, "seed"), false)
	if !r.Passed() {
		rt.Fatalf("\n%s", reproduction(text, r))
	}
	return d.quiet
}

// reproduction returns the scenario file with the failures of the result as
// comments. They are at the end, so that line numbers stay the same.
func reproduction(text string, r *Result) string {
	var b strings.Builder
	b.WriteString(text)
	fmt.Fprintf(&b, "# Save this as %s.yaml. It fails as follows:\n# $ pawl simulate --seed %d %[1]s.yaml\n", r.Scenario, r.Seed)
	for i := range r.Failures {
		f := &r.Failures[i]
		all := fmt.Sprintf("%v: %s\n%s", f.At, f.short(), f.State)
		b.WriteString("# " + strings.ReplaceAll(all, "\n", "\n#   ") + "\n")
	}
	return b.String()
}

// The printed file of a failing world fails in the same way when it is saved, loaded
// and played.
func TestReproduction(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &drawing{t: rt}
		text := d.world()
		text = strings.TrimSuffix(text, "\n") + "\n" // ends in one newline, so that lines can be added
		if !strings.Contains(text, "\nexpect:\n") {
			text += "expect:\n"
		}
		text += "  never: [ \"t >= 60\" ]\n"
		s, err := Parse("", []byte(text))
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		first := s.Run(rapid.Int64Range(1, 1000).Draw(rt, "seed"), false)
		if first.Passed() && int64(first.End) >= 60e9 {
			rt.Fatalf("no failure in\n%s", text)
		}
		file := filepath.Join(t.TempDir(), "random-world.yaml")
		if err := os.WriteFile(file, []byte(reproduction(text, first)), 0o600); err != nil {
			rt.Fatal(err)
		}
		list := Play([]string{file}, Options{Seeds: []int64{first.Seed}})
		if list[0].Err != nil {
			rt.Fatal(list[0].Err)
		}
		if diff := cmp.Diff(first, list[0].Results[0]); diff != "" {
			rt.Fatalf("the printed file fails in another way:\n%s", diff)
		}
	})
}

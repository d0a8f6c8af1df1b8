package simulate

import (
	"fmt"
	"testing"
	"time"
)

// largePoolText is a scenario of a pool of n members that is edited twice.
func largePoolText(n int) string {
	return fmt.Sprintf(`name: many
why: a large pool
pool: {replicas: %[1]d, update: {type: RollingUpdate, maxUnavailable: 10%%}}
world: {boot: 30s, stop: 10s}
timeline:
  - {at: 10s, revise: B}
  - {at: 60s, revise: C}
run: 2h
expect:
  always: ["inService >= 1"]
  within: {2h: ["updated == %[1]d && free == %[1]d"]}
`, n)
}

func BenchmarkScenario_Large(b *testing.B) {
	for _, n := range []int{1250, 5000, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, err := Parse("", []byte(largePoolText(n)))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if r := s.Run(1, false); !r.Passed() {
					b.Fatal(r.Failures[0].short())
				}
			}
		})
	}
}

// Four times as many members take about four times as long. If the work for each
// event grew with the pool, they would take sixteen times as long; the limit lies
// between.
func TestScenario_Run_TimeGrowsWithMembers(t *testing.T) {
	const tries, limit = 3, 10
	took := func(n int) time.Duration {
		s, err := Parse("", []byte(largePoolText(n)))
		if err != nil {
			t.Fatal(err)
		}
		best := time.Duration(1<<63 - 1)
		for range tries {
			start := time.Now()
			if r := s.Run(1, false); !r.Passed() {
				t.Fatal(r.Failures[0].short())
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	small, large := took(1250), took(5000)
	if large > limit*small {
		t.Errorf("5,000 members take %s, and 1,250 take %s: more than %d times as long", large, small, limit)
	}
}

// A large pool gets at most four passes a second, however many events there are.
func TestPlanner_LargePool(t *testing.T) {
	r := play(t, 2, largePoolText(largePool))
	last := Time(-passInterval)
	for _, l := range r.Narrative {
		if l.Who != "pool" || l.At == last {
			continue
		}
		if d := time.Duration(l.At - last); d < passInterval {
			t.Fatalf("passes %s apart, at %s: %s", d, l.At, l.Text)
		}
		last = l.At
	}
	if !r.Passed() {
		t.Error(r.Failures[0].short())
	}
}

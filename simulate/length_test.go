package simulate

import (
	"fmt"
	"sort"
	"testing"
	"time"
)

// lengthOf returns how long the rollout of n members with budget b takes, from the
// new template until every member is in service on it. It searches for the least
// `within` that holds.
func lengthOf(tb testing.TB, n, b int, boot, stop time.Duration) time.Duration {
	tb.Helper()
	const step = 100 * time.Millisecond
	ideal := time.Duration((n+b-1)/b) * (boot + stop)
	most := int(3 * ideal / step)
	k := sort.Search(most, func(k int) bool {
		s, err := Parse("length.yaml", fmt.Appendf(nil, `
name: length
pool: {replicas: %d, update: {type: RollingUpdate, maxUnavailable: %d}}
world: {boot: %s, stop: %s}
start: {target: B, members: [{count: %d, revision: A}]}
expect: {within: {%s: ["updated == %d && free == %d"]}}
`, n, b, boot, stop, n, time.Duration(k)*step, n, n))
		if err != nil {
			tb.Fatal(err)
		}
		return s.Run(1, false).Passed()
	})
	if k == most {
		tb.Fatalf("%d members take longer than three times %v", n, ideal)
	}
	return time.Duration(k) * step
}

// BenchmarkRolloutLength compares the length of a rollout with the ideal: ⌈n/b⌉
// waves of one replacement each. Design section 6 allows 1.05.
func BenchmarkRolloutLength(b *testing.B) {
	const n, budget, boot, stop = 200, 20, 30 * time.Second, 10 * time.Second
	var took time.Duration
	for b.Loop() {
		took = lengthOf(b, n, budget, boot, stop)
	}
	ideal := n / budget * (boot + stop)
	b.ReportMetric(float64(took)/float64(ideal), "x-ideal")
	b.ReportMetric(0, "ns/op")
}

// TestRolloutLength: no time is lost between a freed slot and its next use.
func TestRolloutLength(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ n, budget int }{{200, 20}, {10, 3}, {5, 1}} {
		ideal := time.Duration((tt.n+tt.budget-1)/tt.budget) * 40 * time.Second
		if took := lengthOf(t, tt.n, tt.budget, 30*time.Second, 10*time.Second); float64(took) > 1.05*float64(ideal) {
			t.Errorf("%d members, %d at a time, take %v, want about %v", tt.n, tt.budget, took, ideal)
		}
	}
}

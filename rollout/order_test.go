package rollout

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestPass_first: the first n members, and the last of them, are those that
// sorting all of them by Policy.Before gives.
func TestPass_first(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := &pass{s: &Snapshot{Policy: Policy{Order: Order(rapid.IntRange(0, 1).Draw(t, "order"))}}}
		costs := rapid.IntRange(0, 2).Draw(t, "highest cost")
		for i := range rapid.IntRange(0, 60).Draw(t, "members") {
			m := Member{
				Index: i, Cost: int32(rapid.IntRange(0, costs).Draw(t, "cost")), Held: rapid.IntRange(0, 3).Draw(t, "held") == 0,
				BornAt: epoch.Add(time.Duration(rapid.IntRange(0, 8).Draw(t, "age")) * 400 * time.Millisecond),
			}
			q.ledger.hasCosts = q.ledger.hasCosts || m.Cost != 0
			q.s.Members = append(q.s.Members, m)
		}
		n := rapid.IntRange(0, 20).Draw(t, "n")
		free := func(m *Member) bool { return !m.Held }
		var want []int
		for i := range q.s.Members {
			if free(&q.s.Members[i]) {
				want = append(want, i)
			}
		}
		slices.SortFunc(want, func(i, j int) int {
			a, b := &q.s.Members[i], &q.s.Members[j]
			return cmp.Compare(count(q.s.Policy.before(b, a)), count(q.s.Policy.before(a, b)))
		})
		want = want[:min(n, len(want))]
		last := -1
		if len(want) > 0 {
			last = want[len(want)-1]
		}
		got := q.first(n, free)
		if !slices.Equal(got, want) {
			t.Fatalf("the first %d are %v:\n%s", n, got, gocmp.Diff(want, got))
		}
		if got := q.last(n, free); got != last {
			t.Fatalf("the last of the first %d is %d instead of %d", n, got, last)
		}
	})
}

// TestNew_order: members are taken in order, also if only irregular members show
// the order.
func TestNew_order(t *testing.T) {
	costly := func(m *Member) { m.Cost = 5 }
	for name, tc := range map[string]planCase{
		"by cost, of a member made for a claim": {
			reason: "the cost of an irregular member counts",
			s:      pool(2, member(0, costly), member(0, func(m *Member) { m.ForClaim = true })),
			want:   []string{"Disrupt 1 Drift to B (Stale)"}, blockers: "UnavailableLimit 1, Rolling 1",
		},
		"by cost, up to the partition": {
			reason: "only the first in order leave the partition",
			s: pool(4, policy(func(p *Policy) { p.Partition, p.MaxUnavailable, p.MaxInFlight = 2, 1, 4 }),
				member(0, costly), member(2, costly)),
			want: []string{"Disrupt 1 Drift to B (Stale)"}, blockers: "Partitioned 2, UnavailableLimit 1, Rolling 1",
		},
		"by index, up to the partition": {
			reason: "only the first by index leave the partition",
			s:      pool(4, policy(func(p *Policy) { p.Partition, p.MaxUnavailable, p.MaxInFlight = 2, 1, 4 })),
			want:   []string{"Disrupt 0 Drift to B (Stale)"}, blockers: "Partitioned 2, UnavailableLimit 1, Rolling 1",
		},
	} {
		t.Run(name, tc.check)
	}
}

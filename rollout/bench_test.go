package rollout

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// fleet is a pool of n members in service, of which the first k are stale.
func fleet(n, k int) *Snapshot {
	s := &Snapshot{
		Policy: Policy{
			Desired: n, MaxUnavailable: 10, MaxInFlight: 10, FailureLimit: 3, ProgressDeadline: 10 * time.Minute,
		},
		Target:  Record{ID: "bbbbbbbbbbbb"},
		Current: Record{ID: "aaaaaaaaaaaa"},
		Members: make([]Member, n),
	}
	for i := range s.Members {
		rev := s.Target.ID
		if i < k {
			rev = s.Current.ID
		}
		s.Members[i] = Member{
			Index: i, ID: fmt.Sprintf("uid-%d", i), Wants: rev, Runs: rev, Phase: Available, Body: true,
			Incarnation: 1, BornAt: epoch, PhaseSince: epoch, ServedSince: epoch,
		}
	}
	return s
}

// shapes are pools whose plans take longer, each with the number of actions
// of its plan.
func shapes(n int) map[string]struct {
	s       *Snapshot
	actions int
} {
	costs := fleet(n, n)
	costs.Policy.Partition = n / 2
	for i := range costs.Members {
		costs.Members[i].Cost = int32((i * 7919) % 1000)
	}
	oldest := fleet(n, n)
	oldest.Policy.Order = OldestFirst
	for i := range oldest.Members {
		oldest.Members[i].BornAt = epoch.Add(-time.Duration((i*7919)%n) * time.Second)
	}
	failed := fleet(n, 0)
	failed.Current = failed.Target // no revision to go back to: every body waits for its backoff
	for i := range failed.Members {
		m := &failed.Members[i]
		m.Wants, m.Runs, m.Phase, m.FailedEarly, m.ServedSince = failed.Target.ID, failed.Target.ID, Failed, true, time.Time{}
		m.Attempts, m.NextAttempt = 1, epoch.Add(time.Hour+5*time.Second)
		if i < MaxFailures {
			failed.Target.Failed++
			failed.Target.Failures = append(failed.Target.Failures, Failure{ID: m.ID, Index: i, Incarnation: 1, Count: 1, At: epoch})
		}
	}
	current := fleet(n, 0)
	current.Current = current.Target
	gone := *current
	gone.Policy.Desired = 0
	empty := *current
	empty.Members, empty.Policy.Desired = nil, n
	down := fleet(n, n)
	for i := range down.Members {
		down.Members[i].Phase, down.Members[i].DownSince = Unready, epoch
	}
	type shape = struct {
		s       *Snapshot
		actions int
	}
	return map[string]shape{
		"10 stale":                      {fleet(n, 10), 10},
		"all stale":                     {fleet(n, n), 10},
		"partition and costs":           {costs, 10},
		"oldest first":                  {oldest, 10},
		"every body failed and counted": {failed, 0},
		"every stale body down":         {down, 10},
		"scale to 0":                    {&gone, n},
		"first fill":                    {&empty, n},
	}
}

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		all := shapes(n)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			b.Run(fmt.Sprintf("%d members, %s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if p := all[name].s.Plan(epoch.Add(time.Hour)); len(p.Actions) != all[name].actions {
						b.Fatalf("%d actions: %v", len(p.Actions), lines(p)[:min(5, len(p.Actions))])
					}
				}
			})
		}
	}
}

package rollout

import (
	"fmt"
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

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		for name, k := range map[string]int{"10 stale": 10, "all stale": n} {
			s := fleet(n, k)
			b.Run(fmt.Sprintf("%d members, %s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if p := New(s, epoch.Add(time.Hour)); len(p.Actions) != 10 {
						b.Fatalf("%d actions", len(p.Actions))
					}
				}
			})
		}
	}
}

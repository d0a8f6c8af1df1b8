package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPlanner_firstRevision: while there is no current revision, a plan depends on
// members that a planner would only count: the first body that recovered names it.
func TestPlanner_firstRevision(t *testing.T) {
	now := epoch.Add(time.Hour)
	s := pool(7, policy(func(p *Policy) { p.Partition = 6 }), func(s *Snapshot) { s.Current = Record{} })
	for i := range s.Members {
		m := &s.Members[i]
		m.BornAt, m.PhaseSince, m.ServedSince = epoch, epoch, now.Add(-10*time.Second)
	}
	onTarget(&s.Members[0])
	s.Members[0].ServedSince = now.Add(-10 * time.Second)
	claimed(&s.Members[5])
	s.Members[5].ServedSince = epoch // the only one that has recovered
	s.Members[6] = Member{Index: 6, ID: "uid-6", BornAt: now}
	plan, _ := NewPlanner(s).Next(now)
	if diff := cmp.Diff(lines(s.Plan(now)), lines(plan)); diff != "" {
		t.Errorf("(-plan +planner)\n%s", diff)
	}
}

package rollout

import (
	"strings"
	"testing"
	"time"
)

// young is a pool whose bodies serve since ten seconds, of its first revision A,
// when the template becomes B: nothing has recovered, so there is no current one.
func young(s *Snapshot) {
	s.Current = Record{}
	s.Target = Record{ID: "B", Since: epoch.Add(-time.Second)}
	for i := range s.Members {
		s.Members[i].BornAt, s.Members[i].ServedSince = epoch.Add(-20*time.Second), epoch.Add(-10*time.Second)
	}
}

func TestNew_youngManual(t *testing.T) {
	p := pool(3, young, policy(func(p *Policy) { p.Manual = true })).Plan(epoch)
	if p.Updated.Reason != "TemplateChanged" || p.Available.Status != True {
		t.Error("3 of 3 serve and update.type is Manual")
	}
}

func TestNew_youngWindow(t *testing.T) {
	p := pool(3, young, func(s *Snapshot) { s.WindowShut = true }).Plan(epoch)
	if p.Updated.Reason != "UpdateDeferred" || p.Available.Status != True {
		t.Error("3 of 3 serve and wait for a window")
	}
}

func TestNew_youngPartition(t *testing.T) {
	p := pool(3, young, policy(func(p *Policy) { p.Partition = 3 })).Plan(epoch)
	if len(p.Actions) > 0 {
		t.Error("partition 3 of 3: no member in service may leave its revision")
	}
}

func TestNew_youngHalted(t *testing.T) {
	s := pool(2, func(s *Snapshot) {
		s.Current = Record{}
		s.Target = Record{ID: "B", Halted: true, Failed: 3, Failures: []Failure{{Index: 0, ID: "0", Incarnation: 1, Count: 3, At: epoch}}}
	})
	for i := range s.Members {
		m := &s.Members[i]
		m.Runs, m.Wants, m.Phase, m.Body, m.Gone, m.ServedSince, m.Attempts, m.NextAttempt = "B", "B", Failed, false, true, time.Time{}, 3, epoch.Add(time.Minute)
	}
	p := s.Plan(epoch)
	if strings.Contains(p.Stalled.Message, "pawl undo") {
		t.Error("there is no revision to go back to: pawl undo refuses")
	}
}

package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func relapsed(m *Member) {
	m.Phase, m.FailedEarly, m.PhaseSince = Failed, true, epoch.Add(2*time.Hour-time.Second)
	m.Recovered, m.RecoveredAt, m.DownSince = m.Runs, epoch.Add(time.Minute), m.PhaseSince
}

// failures records one failure in each of the slots, and the number of failed bodies.
func failures(bodies int, slots ...int) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Target.Failed = bodies
		for _, i := range slots {
			s.Target.Failures = append(s.Target.Failures, Failure{
				ID: s.Members[i].ID, Index: i, Incarnation: 2, Count: bodies / len(slots), At: epoch.Add(2*time.Hour - time.Second), Forgiven: s.Members[i].InService(),
			})
		}
	}
}

// worked records n recovered bodies of the target.
func worked(n int) func(*Snapshot) {
	return func(s *Snapshot) { s.Target.Recovered, s.Target.Counted = n, epoch.Add(time.Hour) }
}

func limit(n int) func(*Snapshot) { return policy(func(p *Policy) { p.FailureLimit = n }) }

// TestNew_stands: when the target becomes the current revision.
func TestNew_stands(t *testing.T) {
	held := func(m *Member) { m.Held = true }
	before := func(m *Member) { m.Recovered, m.RecoveredAt = "B", epoch.Add(time.Hour) }
	stands := []string{"Stand B (WholePool)"}
	for name, tc := range map[string]planCase{
		"one after the other": {
			reason: "a body that recovered counts although another one boots in its place",
			s:      pool(2, member(0, served(time.Hour)), member(1, replaced), member(1, before)), want: stands,
		},
		"a body that recovered failed later": {
			reason: "it no longer counts, and its slot is not required to recover",
			s:      pool(3, limit(3), member(0, served(time.Hour)), member(1, served(time.Hour)), member(2, onTarget), member(2, relapsed)),
			want:   []string{"RecordFailure B (EarlyFailure)", "Disrupt 2 Failed to B (Failed)"},
		},
		"less than half": {
			reason: "half of the size has to have recovered, although the others are held",
			s:      pool(4, member(0, held), member(1, held), member(2, held), member(3, served(time.Hour))), blockers: "Held 3",
		},
		"half": {
			reason: "half is enough if the others are held",
			s:      pool(4, member(0, held), member(1, held), member(2, served(time.Hour)), member(3, served(time.Hour))), want: stands, blockers: "Held 2",
		},
		"a canary": {
			reason: "a target on a canary does not become current",
			s:      pool(2, policy(func(p *Policy) { p.Partition = 1 }), member(0, served(time.Hour)), member(1, served(time.Hour))),
		},
		"the first revision has just come into service": {
			reason: "a body has to recover first",
			s:      pool(2, func(s *Snapshot) { s.Current = Record{} }, member(0, served(time.Second)), member(1, served(time.Second))),
		},
		"the current revision": {
			reason: "a body that had recovered does not block a revision that stood",
			s:      pool(3, current, member(0, relapsed)), want: []string{"Disrupt 0 Failed to A (Failed)"},
		},
	} {
		t.Run(name, tc.check)
	}
	s := pool(3, worked(2), member(2, onTarget), member(2, relapsed))
	if r := s.Plan(epoch.Add(2 * time.Hour)).Actions[0].Record; r == nil || r.Recovered != 1 {
		t.Errorf("one of two counted bodies failed later: %+v", r)
	}
}

// TestNew_halts: slots count towards the failure limit, and bodies while none
// has recovered.
func TestNew_halts(t *testing.T) {
	halts := []string{"RecordFailure B (EarlyFailure)", "Halt B (FailureLimit)", "Disrupt 1 Failed to A (Failed)"}
	for name, tc := range map[string]planCase{
		"one slot fails again and again": {
			reason: "once a body has recovered, the slot counts once",
			s:      pool(3, limit(2), worked(1), member(1, failedOnTarget), failures(2, 1)), blockers: "FailedReplacement 2",
		},
		"one slot fails again and again, and nothing else is known": {
			reason: "while no body has recovered, each failed body counts",
			s:      pool(3, limit(2), member(1, failedOnTarget), failures(2, 1)),
			want:   []string{"Halt B (FailureLimit)", "Disrupt 1 Failed to A (Failed)"}, blockers: "Halted 2",
		},
		"one slot fails again and again, and the recovered body failed later": {
			reason: "a recovery counts although the body failed later",
			s:      pool(3, limit(2), member(1, onTarget), member(1, relapsed), failures(2, 1), func(s *Snapshot) { s.Members[1].Incarnation = 3 }),
			want:   []string{"RecordFailure B (EarlyFailure)", "Disrupt 1 Failed to B (Failed)"}, blockers: "FailedReplacement 2",
		},
		"one slot failed and is back": {
			reason: "the slot counts although its failure is forgiven",
			s:      pool(3, limit(2), worked(1), member(0, served(time.Hour)), failures(1, 0), member(1, failedOnTarget)),
			want:   halts, blockers: "Halted 1",
		},
		"a pool of few slots": {
			reason: "the limit is no larger than the number of slots",
			s:      pool(2, limit(3), worked(1), member(0, served(time.Hour)), failures(1, 0), member(1, failedOnTarget)), want: halts,
		},
		"the only revision fails": {
			reason: "new slots wait for the same backoff as failed ones",
			s:      pool(2, current, policy(func(p *Policy) { p.Desired = 3 }), member(1, func(m *Member) { m.Held = true }), failures(1, 1)),
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestRecord_Renewed: a revision that becomes the target again, or is retried,
// starts clean, and counts nothing twice.
func TestRecord_Renewed(t *testing.T) {
	later := epoch.Add(time.Hour)
	r := Record{ID: "B", Failed: 4, Failures: []Failure{{ID: "x", Incarnation: 3, Count: 4, At: epoch}}, Recovered: 2, Counted: epoch, Since: epoch}
	want := Record{ID: "B", Failures: []Failure{{ID: "x", Incarnation: 3, At: epoch, Forgiven: true}}, Since: later}
	if diff := cmp.Diff(want, r.Renewed(later)); diff != "" {
		t.Error(diff)
	}
	r.Halted = true
	if got := r.Renewed(later); got.Failed != 4 || !got.Halted {
		t.Errorf("a halted record stays halted: %+v", got)
	}
}

// TestSnapshot_Plan_countedOnce: a body is counted once, also if minReadySeconds has
// been changed since.
func TestSnapshot_Plan_countedOnce(t *testing.T) {
	now := epoch.Add(2 * time.Hour)
	for name, tc := range map[string]struct {
		ready  time.Duration
		change func(*Member)
	}{
		"serves, and recovery takes longer now":     {10 * time.Minute, func(m *Member) { m.ServedSince = now.Add(-11 * time.Minute) }},
		"has left, and recovery takes longer now":   {10 * time.Minute, func(m *Member) { left(m, now.Add(-11*time.Minute), 10*time.Minute) }},
		"has left, and recovery took longer before": {0, func(m *Member) { left(m, now.Add(-18*time.Minute), 10*time.Minute) }},
		"is the same": {0, func(m *Member) { m.ServedSince = now.Add(-11 * time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := pool(12, policy(func(p *Policy) { p.MinReady = tc.ready }))
			for i := range 3 {
				onTarget(&s.Members[i])
				tc.change(&s.Members[i])
			}
			counted := now.Add(-8 * time.Minute)
			before := time.Minute
			if tc.ready == 0 {
				before = 10 * time.Minute
			}
			s.Target.Recovered, s.Target.Counted, s.Target.Cutoff = 3, counted, counted.Add(-before)
			if name == "is the same" {
				s.Target.Cutoff = counted.Add(-time.Minute)
			}
			if q := s.decide(now); q.ledger.recovered != 0 {
				t.Errorf("%d bodies are counted again", q.ledger.recovered)
			}
		})
	}
}

// left makes the member one whose body of the target is gone, served since the
// time and had recovered.
func left(m *Member, since time.Time, took time.Duration) {
	m.Recovered, m.RecoveredAt = "B", since.Add(took)
	m.Phase, m.Body, m.Gone, m.ServedSince, m.DownSince, m.BornAt = Failed, false, true, time.Time{}, since.Add(took), since.Add(-time.Minute)
}

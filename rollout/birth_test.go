package rollout

import (
	"testing"
	"time"
)

// failedBefore records that a body of the target failed so long ago in a slot
// that is gone.
func failedBefore(ago time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Target.Failed, s.Target.Failures = 1, []Failure{{ID: "gone", Index: 9, Incarnation: 1, Count: 1, At: epoch.Add(2*time.Hour - ago)}}
	}
}

// wide lets a rollout take many members at once.
func wide(n int) func(*Snapshot) {
	return policy(func(p *Policy) { p.MaxUnavailable, p.MaxInFlight = n, n })
}

func served(ago time.Duration) func(*Member) {
	return func(m *Member) {
		onTarget(m)
		m.ServedSince = epoch.Add(2*time.Hour - ago)
	}
}

// failedIn records that the body of the target in the slot failed so long ago.
func failedIn(i int, ago time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		m := &s.Members[i]
		s.Target.Failed++
		s.Target.Failures = append(s.Target.Failures, Failure{ID: m.ID, Index: i, Incarnation: m.Incarnation, Count: 1, At: epoch.Add(2*time.Hour - ago)})
	}
}

// hangs is a member that was told to go for its failure, and has not gone.
func hangs(m *Member) {
	m.Phase, m.PhaseSince = Terminating, epoch
	m.Disruption = Disruption{Cause: BodyFailed, Rolling: true, Incarnation: m.Incarnation, Since: epoch}
}

// TestNew_unproven: rule 5. What is not known of the target yet holds up what
// is in service, and nothing else.
func TestNew_unproven(t *testing.T) {
	unsettled := func(ago time.Duration) func(*Member) {
		return func(m *Member) {
			onTarget(m)
			m.Phase, m.UnsettledSince = Unready, epoch.Add(2*time.Hour-ago)
		}
	}
	boots := func(m *Member) { m.BootTook = 10 * time.Second }
	for name, tc := range map[string]planCase{
		"nobody is left who failed, and surge": {
			reason: "births (b): a surge slot tries the target",
			s:      pool(3, failedBefore(time.Second), policy(func(p *Policy) { p.MaxSurge = 1 })),
			want:   []string{"CreateSlot 3 B (Surge)"}, blockers: "FailedReplacement 3",
		},
		"nobody is left who failed, and no surge": {
			reason: "births (b): one in service tries the target",
			s:      pool(3, failedBefore(time.Second), wide(3)),
			want:   []string{"Disrupt 0 Drift to B (Stale)"}, blockers: "FailedReplacement 3",
		},
		"another one is on its way": {
			reason:   "births (b): it is the one on probation",
			s:        pool(3, failedBefore(time.Second), wide(3), policy(func(p *Policy) { p.MaxSurge = 1 }), member(1, replaced)),
			blockers: "FailedReplacement 2",
		},
		"one failed, and others had recovered": {
			reason:   "births (b): bodies on their way are left alone once one has recovered",
			s:        pool(4, failedBefore(time.Second), wide(3), member(0, replaced), member(1, replaced), member(2, served(time.Hour))),
			blockers: "FailedReplacement 1",
		},
		"one is unsettled": {
			reason: "a body of the target went down, and none has served for long enough since",
			s:      pool(4, wide(2), member(0, unsettled(time.Second)), member(1, served(time.Hour))), blockers: "Unproven 2",
		},
		"one was unsettled long ago": {
			reason: "another one has shown since that the target can serve",
			s:      pool(4, wide(2), member(0, unsettled(time.Hour)), member(1, served(time.Hour))),
			want:   []string{"Disrupt 2 Drift to B (Stale)"}, blockers: "UnavailableLimit 1, Rolling 1",
		},
		"none has come up in time": {
			reason: "births (c): nothing in service is taken for a target that boots for far longer than the current one",
			s:      pool(4, wide(3), member(0, replaced), member(1, boots), member(2, boots), member(3, boots)), blockers: "Unproven 3",
		},
		"none has come up in time, and one is missing": {
			reason: "births (c): what is missing is born on the current revision",
			s:      pool(3, wide(3), policy(func(p *Policy) { p.Desired = 4 }), member(0, replaced), member(1, boots), member(2, boots)),
			want:   []string{"CreateSlot 3 A (Fill)"}, blockers: "PoolResizing 2",
		},
		"one serves and has not recovered": {
			reason:   "births (b): exactly one slot is on probation, and it is",
			s:        pool(3, failedBefore(time.Second), wide(2), policy(func(p *Policy) { p.MaxSurge = 1 }), member(0, served(30*time.Second))),
			blockers: "FailedReplacement 2",
		},
		"nobody is left who failed, and the target cannot be built": {
			reason:   "births (d): nothing is taken for what cannot be built",
			s:        pool(3, failedBefore(time.Second), wide(3), func(s *Snapshot) { s.Target.Missing = true }),
			blockers: "RevisionNotReproducible 3",
		},
		"the one that failed is quarantined": {
			reason: "births (b): it is kept for inspection, and another one tries",
			s: pool(3, wide(3), policy(func(p *Policy) { p.Desired = 2 }), member(0, failedOnTarget), member(0, func(m *Member) { m.Phase = Quarantined }),
				failedIn(0, time.Hour)),
			want: []string{"Disrupt 1 Drift to B (Stale)"}, blockers: "FailedReplacement 2",
		},
		"the one that failed does not go": {
			reason: "births (b): it is stuck, and the next one that failed tries",
			s: pool(4, wide(2), member(0, failedOnTarget), member(0, hangs), member(1, failedOnTarget),
				member(1, func(m *Member) { m.PhaseSince, m.NextAttempt = epoch, epoch }), failedIn(0, time.Hour), failedIn(1, time.Hour)),
			want: []string{"Grant 0 A (Retarget)", "Disrupt 1 Failed to B (Failed)"}, blockers: "FailedReplacement 2",
		},
		"a former body has recovered, and the next one is slow": {
			reason: "births (c): a body of the target has come into service",
			s: pool(4, wide(3), member(0, replaced), member(1, boots), member(0, func(m *Member) {
				m.Disruption, m.Recovered, m.RecoveredAt = Disruption{}, "B", epoch.Add(time.Minute)
				m.BornAt = m.RecoveredAt.Add(time.Minute)
			})),
			want: []string{"Disrupt 1 Drift to B (Stale)", "Disrupt 2 Drift to B (Stale)"}, blockers: "Rolling 2, UnavailableLimit 1",
		},
		"none has come up in time, and one drains": {
			reason: "rule 9: what would be born in its place is what it runs",
			s:      pool(4, wide(3), member(0, replaced), member(1, drains(Drift)), member(2, boots)),
			want:   []string{"Undo 1 A (MatchesAgain)"}, blockers: "Unproven 2, Rolling 1",
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestNew_recyclePartitioned: births (a). The partition keeps as many members off
// the target as it says, whatever somebody asks to recycle.
func TestNew_recyclePartitioned(t *testing.T) {
	asked := func(m *Member) { m.Asked = true }
	for name, tc := range map[string]planCase{
		"one more than the partition": {
			reason: "the target is born in its place",
			s:      pool(3, policy(func(p *Policy) { p.Partition = 2 }), member(0, asked)),
			want:   []string{"Disrupt 0 Requested to B (Asked)"}, blockers: "Partitioned 3",
		},
		"as many as the partition": {
			reason: "it stays off the target",
			s:      pool(3, policy(func(p *Policy) { p.Partition = 3 }), member(0, asked)),
			want:   []string{"Disrupt 0 Requested to A (Asked)"}, blockers: "Partitioned 3",
		},
		"as many as the partition, and surge": {
			reason: "the surge slot that stands in for it stays off the target",
			s:      pool(3, policy(func(p *Policy) { p.Partition, p.MaxUnavailable, p.MaxSurge = 3, 0, 1 }), member(0, asked)),
			want:   []string{"CreateSlot 3 A (Asked)"}, blockers: "Partitioned 3",
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestNew_clock: a stored time later than now counts as now.
func TestNew_clock(t *testing.T) {
	later := epoch.Add(2 * time.Hour)
	p := pool(2, member(0, onTarget), member(1, onTarget), member(1, func(m *Member) { m.ServedSince = later.Add(8760 * time.Hour) })).Plan(later)
	if p.Wake.IsZero() || p.Wake.After(later.Add(time.Minute)) {
		t.Errorf("a body that came into service at a time that a clock dated ahead recovers in a minute: wake at %s", p.Wake)
	}
}

package rollout

import (
	"testing"
	"time"
)

// failedBefore records a failure of the target so long ago, in a slot
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

// failedIn records a failure of the target in the slot so long ago.
func failedIn(i int, ago time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		m := &s.Members[i]
		s.Target.Failed++
		s.Target.Failures = append(s.Target.Failures, Failure{ID: m.ID, Index: i, Incarnation: m.Incarnation, Count: 1, At: epoch.Add(2*time.Hour - ago)})
	}
}

// hangs makes the member one that failed and keeps terminating.
func hangs(m *Member) {
	m.Phase, m.PhaseSince = Terminating, epoch
	m.Disruption = Disruption{Cause: BodyFailed, Rolling: true, Incarnation: m.Incarnation, Since: epoch}
}

// TestNew_unproven: rule 5. An unproven target keeps members in service, and
// delays nothing else.
func TestNew_unproven(t *testing.T) {
	unsettled := func(ago time.Duration) func(*Member) {
		return func(m *Member) {
			onTarget(m)
			m.Phase, m.UnsettledSince = Unready, epoch.Add(2*time.Hour-ago)
		}
	}
	boots := func(m *Member) { m.BootTook = 10 * time.Second }
	for name, tc := range map[string]planCase{
		"all failed slots are gone, with surge": {
			reason: "births (b): a surge slot tries the target",
			s:      pool(3, failedBefore(time.Second), policy(func(p *Policy) { p.MaxSurge = 1 })),
			want:   []string{"CreateSlot 3 B (Surge)"}, blockers: "FailedReplacement 3",
		},
		"all failed slots are gone, without surge": {
			reason: "births (b): a member in service tries the target",
			s:      pool(3, failedBefore(time.Second), wide(3)),
			want:   []string{"Disrupt 0 Drift to B (Stale)"}, blockers: "FailedReplacement 3",
		},
		"a replacement is on its way": {
			reason:   "births (b): the replacement is on probation",
			s:        pool(3, failedBefore(time.Second), wide(3), policy(func(p *Policy) { p.MaxSurge = 1 }), member(1, replaced)),
			blockers: "FailedReplacement 2",
		},
		"one failed, and others had recovered": {
			reason:   "births (b): bodies on their way are left alone once one has recovered",
			s:        pool(4, failedBefore(time.Second), wide(3), member(0, replaced), member(1, replaced), member(2, served(time.Hour))),
			blockers: "FailedReplacement 1",
		},
		"one is unsettled": {
			reason: "a body of the target went down, and none has recovered since",
			s:      pool(4, wide(2), member(0, unsettled(time.Second)), member(1, served(time.Hour))), blockers: "Unproven 2",
		},
		"one was unsettled long ago": {
			reason: "another body of the target has recovered since",
			s:      pool(4, wide(2), member(0, unsettled(time.Hour)), member(1, served(time.Hour))),
			want:   []string{"Disrupt 2 Drift to B (Stale)"}, blockers: "UnavailableLimit 1, Rolling 1",
		},
		"none has come up in time": {
			reason: "births (c): no member in service is taken while the target boots for far longer than the current revision",
			s:      pool(4, wide(3), member(0, replaced), member(1, boots), member(2, boots), member(3, boots)), blockers: "Unproven 3",
		},
		"none has come up in time, and one is missing": {
			reason: "births (c): the missing body is born on the current revision",
			s:      pool(3, wide(3), policy(func(p *Policy) { p.Desired = 4 }), member(0, replaced), member(1, boots), member(2, boots)),
			want:   []string{"CreateSlot 3 A (Fill)"}, blockers: "PoolResizing 2",
		},
		"one serves and has not recovered": {
			reason:   "births (b): that slot is the only one on probation",
			s:        pool(3, failedBefore(time.Second), wide(2), policy(func(p *Policy) { p.MaxSurge = 1 }), member(0, served(30*time.Second))),
			blockers: "FailedReplacement 2",
		},
		"all failed slots are gone, and the target cannot be built": {
			reason:   "births (d): no member is taken for a revision that cannot be built",
			s:        pool(3, failedBefore(time.Second), wide(3), func(s *Snapshot) { s.Target.Missing = true }),
			blockers: "RevisionNotReproducible 3",
		},
		"the failed slot is quarantined": {
			reason: "births (b): it is kept for inspection, and another slot tries",
			s: pool(3, wide(3), policy(func(p *Policy) { p.Desired = 2 }), member(0, failedOnTarget), member(0, func(m *Member) { m.Phase = Quarantined }),
				failedIn(0, time.Hour)),
			want: []string{"Disrupt 1 Drift to B (Stale)"}, blockers: "FailedReplacement 2",
		},
		"the failed slot keeps terminating": {
			reason: "births (b): the next failed slot tries",
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
			reason: "rule 9: a birth in its place would have the revision that it runs",
			s:      pool(4, wide(3), member(0, replaced), member(1, drains(Drift)), member(2, boots)),
			want:   []string{"Undo 1 A (MatchesAgain)"}, blockers: "Unproven 2, Rolling 1",
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestNew_recyclePartitioned: births (a). The partition keeps as many members off
// the target as it says, whichever members are recycled.
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
			reason: "its surge slot stays off the target",
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
		t.Errorf("a body whose ServedSince is in the future recovers in a minute: wake at %s", p.Wake)
	}
}

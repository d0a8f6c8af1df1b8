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
	} {
		t.Run(name, tc.check)
	}
}

// TestNew_clock: a stored time later than now counts as now.
func TestNew_clock(t *testing.T) {
	later := epoch.Add(2 * time.Hour)
	p := New(pool(2, member(0, onTarget), member(1, onTarget), member(1, func(m *Member) { m.ServedSince = later.Add(8760 * time.Hour) })), later)
	if p.Wake.IsZero() || p.Wake.After(later.Add(time.Minute)) {
		t.Errorf("a body that came into service at a time that a clock dated ahead recovers in a minute: wake at %s", p.Wake)
	}
}

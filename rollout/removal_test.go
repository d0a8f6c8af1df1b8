package rollout

import (
	"testing"
	"time"
)

// TestNew_removes: which slots are removed, and which are not.
func TestNew_removes(t *testing.T) {
	surging := policy(func(p *Policy) { p.Desired, p.MaxSurge = 3, 1 })
	one := func(s *Snapshot) { s.Surge = 1 }
	for name, tc := range map[string]planCase{
		"one is made for a claim": {
			reason: "rule 10: it is no excess while its body boots, although it is down",
			s: pool(4, current, warm(1), member(1, func(m *Member) {
				m.ForClaim, m.Phase, m.ServedSince = true, Provisioning, time.Time{}
			})),
			want: []string{"Disrupt 3 ScaleDown, remove (Excess)", "Disrupt 2 ScaleDown, remove (Excess)"},
		},
		"one was made for a claim": {
			reason: "rule 10: it is excess once it has been free for as long as it took to boot",
			s:      pool(2, current, warm(1), member(1, func(m *Member) { m.ForClaim, m.BootTook = true, time.Minute })),
			want:   []string{"Disrupt 1 ScaleDown, remove (Excess)"},
		},
		"a slot with a recovery is removed": {
			reason: "the recovery is counted first",
			s: pool(4, policy(func(p *Policy) { p.Desired = 2 }), member(0, func(m *Member) { m.Held = true }), member(1, func(m *Member) { m.Held = true }),
				member(3, served(time.Hour))),
			want: []string{"Recover B (Counted)", "Disrupt 2 ScaleDown, remove (Excess)", "Disrupt 3 ScaleDown, remove (Excess)"}, blockers: "PoolResizing 3",
		},
		"one is on probation": {
			reason: "rule 5: it stays although it is down, since no other slot would try the target",
			s:      pool(3, policy(func(p *Policy) { p.Desired = 1 }), limit(3), member(2, failedOnTarget)),
			want:   []string{"RecordFailure B (EarlyFailure)", "Disrupt 1 ScaleDown, remove (Excess)"}, blockers: "FailedReplacement 2",
		},
		"quarantined, stuck": {
			reason: "neither may be removed",
			s: pool(4, current, policy(func(p *Policy) { p.Desired = 2 }), member(2, func(m *Member) { m.Stuck = true }),
				member(3, func(m *Member) { m.Phase, m.ServedSince = Quarantined, time.Time{} })),
			want: []string{"Disrupt 1 ScaleDown, remove (Excess)"},
		},
		"excess that is down and held": {
			reason: "rule 10: it blocks nothing, and no member in service goes in its place",
			s:      pool(3, current, policy(func(p *Policy) { p.Desired = 2 }), member(2, func(m *Member) { m.Held, m.Phase = true, Unready })),
		},
		"surge that is down and held": {
			reason: "rule 7: it replaces no member as surge",
			s: pool(4, surging, one, member(0, onTarget), member(1, onTarget), member(3, onTarget),
				member(3, func(m *Member) { m.Held, m.Phase = true, Unready })),
			want: []string{"Disrupt 2 Drift to B (Stale)"}, blockers: "Rolling 1",
		},
		"more work than surge": {
			reason: "rule 7: only the last ones are removed rather than replaced",
			s:      pool(4, surging, one, member(3, onTarget)),
			want:   []string{"Disrupt 0 Drift to B (Stale)"}, blockers: "InFlightLimit 2, Rolling 1",
		},
	} {
		t.Run(name, tc.check)
	}
	last := pool(4, surging, one, member(0, onTarget), member(1, onTarget), member(3, onTarget))
	if p := last.Plan(epoch.Add(2 * time.Hour)); p.Surge != 0 {
		t.Errorf("the last stale member is removed, and %d surge slots are left: %v", p.Surge, lines(p))
	}
}

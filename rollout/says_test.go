package rollout

import (
	"strings"
	"testing"
	"time"
)

// TestNew_stalledBy: a pool that waits for work, a hold or sources is not stalled.
func TestNew_stalledBy(t *testing.T) {
	later := epoch.Add(2 * time.Hour)
	failed := func(m *Member) { m.Phase, m.DownSince = Failed, epoch }
	for name, tc := range map[string]struct {
		s    *Snapshot
		want Status
	}{
		"down for long":             {pool(2, current, member(0, failed), member(0, func(m *Member) { m.Attempts, m.NextAttempt = 8, later.Add(time.Minute) })), True},
		"failed and held":           {pool(2, current, member(0, failed), member(0, func(m *Member) { m.Held = true })), False},
		"draining, and it is busy":  {pool(2, member(0, drains(Drift)), member(0, func(m *Member) { m.Occupancy = Busy }), func(s *Snapshot) { s.Unreadable = SourcesUnresolved }), False},
		"lost just now, born early": {pool(2, current, member(0, failed), member(0, func(m *Member) { m.Attempts, m.NextAttempt, m.DownSince = 1, later.Add(9*time.Second), later })), False},
		"settling after a deadline": {pool(2, current, policy(func(p *Policy) { p.MinReady = time.Hour }), member(0, func(m *Member) {
			m.Phase, m.DownSince, m.ServedSince, m.BornAt = Preparing, epoch.Add(time.Hour), time.Time{}, epoch.Add(time.Hour)
		})), False},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.s.Plan(later).Stalled; got.Status != tc.want {
				t.Errorf("stalled is %+v", got)
			}
		})
	}
}

// TestNew_names: a message names the member that blocks the pool, and what
// would unblock it.
func TestNew_names(t *testing.T) {
	later := epoch.Add(2 * time.Hour)
	never := func(s *Snapshot) { s.Target, s.Current = Record{ID: "A"}, Record{} }
	for name, tc := range map[string]struct {
		reason string
		s      *Snapshot
		says   func(*Plan) string
		want   string
	}{
		"the limit is used up": {
			"a member that stays down is named before one that boots",
			pool(4, member(0, replaced), member(1, onTarget), member(1, unready)), func(p *Plan) string { return p.Next }, "member 1 is down, and 1 more out of service",
		},
		"steady use": {
			"a floor would let one member roll",
			pool(4, warm(3), member(0, claimed), member(1, replaced)), func(p *Plan) string { return p.Next }, "update.minAvailable would let one member roll",
		},
		"a failed slot is held": {
			"the target is not tried, since the failed slot is kept",
			pool(3, limit(3), member(0, failedOnTarget), member(0, func(m *Member) { m.Held = true })), func(p *Plan) string { return p.Next }, "the target is not tried, since member 0 failed on it and is held",
		},
		"the first template fails": {
			"the message repeats that of the body",
			pool(1, never, limit(3), member(0, failedOnTarget), member(0, func(m *Member) { m.Runs, m.Wants, m.Message = "A", "A", "no such file" })),
			func(p *Plan) string { return string(p.Available.Status) + " " + p.Available.Message }, "False no body of revision A has come into service yet; the last was that of member 0 (no such file)",
		},
		"enough are free": {
			"a pool at rest under refillBelow is available",
			pool(2, current, policy(func(p *Policy) { p.Desired, p.RefillBelow = 5, 2 })), func(p *Plan) string { return string(p.Available.Status) + " " + p.Available.Reason }, "True EnoughFree",
		},
		"a partition that was raised": {
			"the partition takes no member back",
			pool(3, policy(func(p *Policy) { p.Partition = 2 }), member(0, onTarget), member(1, onTarget)), func(p *Plan) string { return p.Updated.Message }, "are not taken back",
		},
		"a recycle while the pool is resized": {
			"it waits for the size",
			pool(3, current, policy(func(p *Policy) { p.Desired = 5 }), member(0, func(m *Member) { m.Asked = true })),
			func(p *Plan) string { return p.Explain(&Member{Body: true, Runs: "A"}) }, PoolResizing.Sentence(),
		},
		"a failure under a partition that keeps all": {
			"it names the partition, and no surge body that is never made",
			pool(2, limit(5), policy(func(p *Policy) { p.MaxSurge, p.Partition = 1, 2 }), func(s *Snapshot) {
				s.Target.Failed, s.Target.Failures = 1, []Failure{{ID: "uid-0", Index: 0, Incarnation: 1, Count: 1, At: epoch}}
			}),
			func(p *Plan) string { return p.Next }, "no slot tries the target, since update.partition keeps every other one off it",
		},
		"a stale member that has come back and is not in service yet": {
			"it is down, and is removed before any that is up",
			pool(3, policy(func(p *Policy) { p.MinReady = time.Minute }), member(1, func(m *Member) { m.Phase, m.PhaseSince = Preparing, later })),
			func(p *Plan) string { return strings.Join(lines(p), ", ") }, "Disrupt 1 Drift to B (StaleDown)",
		},
		"a member on its way back into service": {
			"it is not next",
			pool(1, policy(func(p *Policy) { p.Paused = true }), member(0, func(m *Member) { m.Phase = Draining })),
			func(p *Plan) string { return string(p.Verdict(0)) }, "Rolling",
		},
		"a failed member that is held after it was to go": {
			"the decision is withdrawn, since the slot waits for the hold",
			pool(1, member(0, func(m *Member) {
				m.Phase, m.Held, m.ServedSince = Failed, true, time.Time{}
				m.Disruption = Disruption{Cause: BodyFailed, Incarnation: 1, Since: later}
			})), func(p *Plan) string { return strings.Join(lines(p), ", ") }, "Undo 0 A (TurnedHeld)",
		},
		"a replacement failed, and is held": {
			"nothing is on its way",
			pool(1, current, member(0, func(m *Member) {
				m.Phase, m.Held, m.ServedSince, m.Incarnation = Failed, true, time.Time{}, 2
				m.Disruption = Disruption{Cause: BodyFailed, Incarnation: 1, Since: epoch}
			})), func(p *Plan) string { return string(p.Reconciling.Status) }, "False",
		},
		"a deleted pool with a holder": {
			"it names the member that stays",
			pool(2, current, func(s *Snapshot) { s.Deleting = true }, member(1, claimed)), func(p *Plan) string { return p.Updated.Message }, "1 member stays: member 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.says(tc.s.Plan(later)); !strings.Contains(got, tc.want) {
				t.Errorf("%s: %q instead of %q", tc.reason, got, tc.want)
			}
		})
	}
}

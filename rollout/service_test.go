package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestNew_serves: which members are made, taken and kept for claims and for
// recycle requests.
func TestNew_serves(t *testing.T) {
	asked := func(m *Member) { m.Asked = true }
	narrow := policy(func(p *Policy) { p.MaxUnavailable, p.MaxSurge = 0, 1 })
	two := policy(func(p *Policy) { p.Desired = 2 })
	for name, tc := range map[string]planCase{
		"a recycle without budget": {
			reason: "rule 7: a surge slot is made for it",
			s:      pool(2, current, narrow, member(0, asked)), want: []string{"CreateSlot 2 A (Surge)"},
		},
		"a recycle with a surge slot": {
			reason: "rule 7: the member is removed rather than replaced",
			s:      pool(3, current, narrow, two, func(s *Snapshot) { s.Surge = 1 }, member(0, asked)),
			want:   []string{"Disrupt 0 Requested, remove (Asked)"},
		},
		"a recycle with budget": {
			reason: "rule 7: no surge is made for a member that is replaced already",
			s:      pool(2, current, policy(func(p *Policy) { p.MaxSurge = 1 }), member(0, asked)),
			want:   []string{"Disrupt 0 Requested to A (Asked)"},
		},
		"back, and to be replaced because it failed": {
			reason: "rule 10: it stays, since it serves",
			s: pool(2, current, member(0, func(m *Member) {
				m.Disruption = Disruption{Cause: BodyFailed, Incarnation: 1, Since: epoch}
			})),
			want: []string{"Undo 0 A (ServesAgain)"},
		},
		"held while it drains for the size": {
			reason: "rule 10: it stays, and no other member in service is removed while the size needs all",
			s:      pool(3, current, two, member(2, drains(ScaleDown)), member(2, func(m *Member) { m.Held = true })),
			want:   []string{"Undo 2 A (TurnedHeld)"},
		},
		"enough are free": {
			reason: "rule 11: missing members are not made yet",
			s:      pool(2, current, policy(func(p *Policy) { p.Desired, p.RefillBelow = 4, 2 })),
		},
		"enough are free, but a claim waits": {
			reason: "rule 11: the member that the claim is about to take is not free",
			s:      pool(2, current, policy(func(p *Policy) { p.Desired, p.RefillBelow = 4, 2 }), func(s *Snapshot) { s.Waiting = 1 }),
			want:   []string{"CreateSlot 2 A (Fill)", "CreateSlot 3 A (Fill)"},
		},
		"enough are free, but the pool is to grow": {
			reason: "rule 11: a raise of replicas starts a refill",
			s:      pool(2, current, policy(func(p *Policy) { p.Desired, p.RefillBelow = 4, 2 }), func(s *Snapshot) { s.Size = 3 }),
			want:   []string{"CreateSlot 2 A (Fill)", "CreateSlot 3 A (Fill)"},
		},
		"steady use": {
			reason: "rule 4: with a floor one member may roll whatever room returns",
			s: pool(4, warm(3), policy(func(p *Policy) { p.HasFloor, p.MinAvailable = true, 1 }), member(0, claimed), member(1, func(m *Member) {
				onTarget(m)
				m.Phase, m.ServedSince = Provisioning, time.Time{}
			})),
			want: []string{"Disrupt 2 Drift to B (Stale)"}, blockers: "Claimed 1, UnavailableLimit 1, Rolling 1",
		},
		"a surge body and a member that turned busy": {
			reason: "rule 7: it is kept for the next pause while it boots",
			s: pool(3, two, policy(func(p *Policy) { p.MaxSurge = 1 }), func(s *Snapshot) { s.Surge = 1 }, member(0, onTarget),
				member(1, func(m *Member) { m.Occupancy = Busy }), member(2, func(m *Member) {
					onTarget(m)
					m.Phase, m.ServedSince = Provisioning, time.Time{}
				})),
			want: []string{"Stand B (WholePool)"}, blockers: "Busy 1",
		},
	} {
		t.Run(name, tc.check)
	}
	waiting := pool(1, current, warm(1), func(s *Snapshot) { s.Waiting = 1 })
	if p := waiting.Plan(epoch.Add(2 * time.Hour)); len(p.Actions) != 1 || !p.Actions[0].ForClaim {
		t.Errorf("a slot is made for a claim, and says so: %+v", p.Actions)
	}
}

// TestPick: a claim gets a member on the target before any other, of the others
// the one that a rollout takes last, and none on which work runs.
func TestPick(t *testing.T) {
	s := pool(5, member(0, claimed), member(2, onTarget), member(4, func(m *Member) { m.Occupancy = Busy }))
	for target, want := range map[Revision]int{"B": 2, "C": 3} {
		if got := Pick(s.Members, target); got != want {
			t.Errorf("with target %s a claim gets member %d instead of %d", target, got, want)
		}
	}
	m := s.Members[2]
	m.Taken()
	if !m.Claimed || m.Free() {
		t.Error("a member that a claim holds is free")
	}
}

// TestRelease_disruption: under Reuse a stale member goes to no claim that
// waits, while only the budget keeps a rollout from taking it.
func TestRelease_disruption(t *testing.T) {
	now := epoch.Add(time.Hour)
	ends := Disruption{Cause: ClaimEnded, Incarnation: 7, Since: now}
	stale := Release{Reuse: true, Blocker: Claimed, Stale: 3, Partition: 1, Waiting: 1}
	for name, tc := range map[string]struct {
		change func(*Release)
		want   Disruption
	}{
		"no reuse":         {func(r *Release) { *r = Release{} }, ends},
		"not stale":        {func(r *Release) { r.Blocker = "" }, Disruption{}},
		"a claim waits":    {func(*Release) {}, ends},
		"in place":         {func(r *Release) { r.InPlace = true }, Disruption{Cause: ClaimEnded, Update: true, Incarnation: 7, Since: now}},
		"no claim waits":   {func(r *Release) { r.Waiting = 0 }, Disruption{}},
		"paused":           {func(r *Release) { r.Blocker = PausedRollout }, Disruption{}},
		"held":             {func(r *Release) { r.Held = true }, Disruption{}},
		"skipped":          {func(r *Release) { r.Skipped = true }, Disruption{}},
		"no window":        {func(r *Release) { r.WindowShut = true }, Disruption{}},
		"of the partition": {func(r *Release) { r.Stale = 1 }, Disruption{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := stale
			tc.change(&r)
			if diff := cmp.Diff(tc.want, r.disruption(7, now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

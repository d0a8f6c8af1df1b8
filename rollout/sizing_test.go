package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func claimed(m *Member) { m.Claimed, m.Phase = true, InClaim }

func current(s *Snapshot) { s.Target, s.Current = Record{ID: "A"}, Record{ID: "A"} }

// warm makes the pool warm, with so many free members.
func warm(free int) func(*Snapshot) {
	return policy(func(p *Policy) { p.Warm, p.Desired = true, free })
}

// TestNew_sizing: how many members there are to be.
func TestNew_sizing(t *testing.T) {
	for name, tc := range map[string]planCase{
		"warm": {
			reason: "claimed members come on top, and are no deficit",
			s:      pool(4, current, warm(2), member(0, claimed), member(1, claimed)),
		},
		"warm, one claimed": {
			reason: "a member is made for the one that a claim took",
			s:      pool(3, current, warm(3), member(1, claimed)),
			want:   []string{"CreateSlot 3 A (Fill)"},
		},
		"warm, rolled": {
			reason: "rule 4: claimed members use no budget, missing ones do",
			s:      pool(4, warm(2), member(0, claimed), member(1, claimed)),
			want:   []string{"Disrupt 2 Drift to B (Stale)"}, blockers: "Claimed 2, UnavailableLimit 1, Rolling 1",
		},
		"warm, deficit": {
			reason: "rule 6: a refill deficit is no resize; by rule 4 it uses the budget",
			s:      pool(3, warm(2), policy(func(p *Policy) { p.MaxUnavailable, p.MaxInFlight = 2, 2 }), member(0, claimed), member(1, claimed)),
			want:   []string{"CreateSlot 3 B (Fill)", "Disrupt 2 Drift to B (Stale)"}, blockers: "Claimed 2, Rolling 1",
		},
		"warm, claims wait": {
			reason: "rule 11: one more is made for each",
			s:      pool(2, current, warm(2), func(s *Snapshot) { s.Waiting = 2 }),
			want:   []string{"CreateSlot 2 A (Fill)", "CreateSlot 3 A (Fill)"},
		},
		"total, claims wait": {
			reason: "if claimed members count, waiting claims add none",
			s:      pool(2, current, func(s *Snapshot) { s.Waiting = 2 }),
		},
		"warm, a claim ends in a full pool": {
			reason: "rule 11: its member is removed",
			s: pool(3, current, warm(2), member(0, func(m *Member) {
				m.Wants, m.Phase = "", Draining
				m.Disruption = Disruption{Cause: ClaimEnded, Incarnation: 1, Since: epoch}
			})),
			want: []string{"Disrupt 0 ClaimEnded, remove (Excess)"},
		},
		"warm, needed again after its claim ended": {
			reason: "a used body never serves again: another slot is made",
			s: pool(2, current, warm(2), member(0, func(m *Member) {
				m.Wants, m.Phase = "", Draining
				m.Disruption = Disruption{Cause: ClaimEnded, Remove: true, Incarnation: 1, Since: epoch}
			})),
			want: []string{"CreateSlot 2 A (Fill)"},
		},
		"warm, a claim ends in a pool that is not full": {
			reason: "its member gets a new body",
			s: pool(3, current, warm(3), member(0, func(m *Member) {
				m.Wants, m.Phase = "", Draining
				m.Disruption = Disruption{Cause: ClaimEnded, Incarnation: 1, Since: epoch}
			})),
			want: []string{"Grant 0 A (Retarget)"},
		},
		"warm, a holder's body is gone": {
			reason: "the claim is dropped, and the slot counts",
			s: pool(3, current, warm(3), member(0, func(m *Member) {
				m.Claimed, m.Phase, m.Gone, m.Body = true, Failed, true, false
			})),
			want: []string{"Disrupt 0 Failed to A (BodyGone)"},
		},
		"warm, none wanted free, a claim waits": {
			reason: "rule 7: surge is no excess in the next pass",
			s: pool(2, warm(0), policy(func(p *Policy) { p.MaxSurge, p.MaxUnavailable = 1, 0 }), func(s *Snapshot) { s.Waiting, s.Surge = 1, 1 },
				member(1, func(m *Member) { replaced(m); m.Disruption = Disruption{} })),
			want: []string{"Disrupt 0 Drift, remove (Stale)"}, blockers: "Rolling 1",
		},
		"enough free": {
			reason: "refillBelow: missing members wait until fewer are free",
			s:      pool(3, current, warm(5), policy(func(p *Policy) { p.RefillBelow = 3 })),
		},
		"enough free for claims that wait": {
			reason: "refillBelow: a claim about to be bound needs no further member",
			s:      pool(4, current, warm(5), policy(func(p *Policy) { p.RefillBelow = 3 }), func(s *Snapshot) { s.Waiting = 1 }),
		},
		"fewer than the size asks for, and enough free": {
			reason: "refillBelow: the pool is Ready",
			s:      pool(3, current, warm(5), policy(func(p *Policy) { p.RefillBelow = 3 })),
		},
		"too few free": {
			reason: "refillBelow: all missing members are made",
			s:      pool(2, current, warm(5), policy(func(p *Policy) { p.RefillBelow = 3 })),
			want:   []string{"CreateSlot 2 A (Fill)", "CreateSlot 3 A (Fill)", "CreateSlot 4 A (Fill)"},
		},
		"enough free, and drift": {
			reason: "drift that waits to be rolled also starts the refill",
			s:      pool(3, warm(4), policy(func(p *Policy) { p.RefillBelow = 2 })),
			want:   []string{"CreateSlot 3 B (Fill)"}, blockers: "UnavailableLimit 3",
		},
		"enough free, and drift under Manual": {
			reason: "no drift waits to be rolled",
			s:      pool(3, warm(4), policy(func(p *Policy) { p.RefillBelow, p.Manual = 2, true })), blockers: "ManualPolicy 3",
		},
		"the ceiling": {
			reason: "maxMembers counts every slot, those on their way out included",
			s: pool(4, current, warm(4), policy(func(p *Policy) { p.MaxMembers, p.HasCeiling = 5, true }), member(0, claimed),
				member(1, func(m *Member) {
					m.Phase, m.Disruption = Terminating, Disruption{Cause: ScaleDown, Remove: true, Incarnation: 1, Since: epoch}
				})),
			want: []string{"CreateSlot 4 A (Fill)"},
		},
		"the ceiling and surge": {
			reason: "a ceiling without room for surge is reported",
			s: pool(3, policy(func(p *Policy) { p.MaxSurge, p.MaxUnavailable, p.MaxMembers, p.HasCeiling = 1, 1, 3, true }),
				member(2, func(m *Member) { m.Phase = Unready; onTarget(m) })),
			blockers: "NoSurgeCapacity 2",
		},
		"above the ceiling": {
			reason: "excess above the ceiling is removed",
			s:      pool(3, current, policy(func(p *Policy) { p.MaxMembers, p.HasCeiling = 2, true })),
			want:   []string{"Disrupt 2 ScaleDown, remove (Excess)"},
		},
		"claimed above the ceiling": {
			reason: "claimed members stay",
			s:      pool(3, current, warm(1), policy(func(p *Policy) { p.MaxMembers, p.HasCeiling = 2, true }), member(0, claimed), member(1, claimed)),
			want:   []string{"Disrupt 2 ScaleDown, remove (Excess)"},
		},
		"held above the ceiling": {
			reason: "it stays, and gets no other body",
			s: pool(1, current, policy(func(p *Policy) { p.MaxMembers, p.HasCeiling = 0, true }), member(0, func(m *Member) {
				m.Held, m.Phase = true, Terminating
				m.Disruption = Disruption{Cause: BodyFailed, Incarnation: 1, Since: epoch}
			})),
			want: []string{"Grant 0  (NotBuildable)"},
		},
		"surge above the ceiling": {
			reason: "the ceiling includes surge slots",
			s:      pool(3, policy(func(p *Policy) { p.Desired, p.MaxSurge, p.MaxMembers, p.HasCeiling = 2, 1, 2, true })),
			want:   []string{"Disrupt 2 ScaleDown, remove (Excess)"}, blockers: "PoolResizing 3",
		},
		"too many, and a holder's body is gone": {
			reason: "rule 10: it is down, and is removed first, with its claim",
			s: pool(2, current, warm(1), member(1, func(m *Member) {
				m.Claimed, m.Phase, m.Gone, m.Body = true, Failed, true, false
			})),
			want: []string{"Disrupt 1 ScaleDown, remove (Excess)"},
		},
		"too many, and a busy body is gone": {
			reason: "rule 1: a body that is gone is not busy",
			s: pool(2, current, func(s *Snapshot) { s.Deleting = true }, member(0, claimed), member(1, func(m *Member) {
				m.Occupancy, m.Phase, m.Gone, m.Body = Busy, Failed, true, false
			})),
			want: []string{"Disrupt 1 ScaleDown, remove (PoolDeleted)"},
		},
		"too many, and a released one is busy": {
			reason: "its body ends anyhow, and is not replaced",
			s: pool(2, current, warm(1), member(1, func(m *Member) {
				m.Wants, m.Phase, m.Occupancy = "", Draining, OccupancyUnsure
				m.Disruption = Disruption{Cause: ClaimEnded, Incarnation: 1, Since: epoch}
			})),
			want: []string{"Disrupt 1 ClaimEnded, remove (Excess)"},
		},
		"the slot on probation is above the ceiling": {
			reason: "the ceiling applies to it too",
			s: pool(3, policy(func(p *Policy) { p.Desired, p.MaxSurge, p.MaxMembers, p.HasCeiling = 2, 1, 2, true }), func(s *Snapshot) {
				s.Surge, s.Target.Failed = 1, 1
				s.Target.Failures = []Failure{{ID: "uid-2", Index: 2, Incarnation: 2, Count: 1, At: epoch.Add(2 * time.Hour)}}
			}, member(2, func(m *Member) {
				replaced(m)
				m.Disruption, m.Phase = Disruption{}, Failed
				m.FailedEarly = true
			})),
			want: []string{"Disrupt 2 ScaleDown, remove (Excess)"}, blockers: "FailedReplacement 2",
		},
		"needed again, adopted": {
			reason: "an adopted member stays adopted",
			s: pool(1, current, member(0, func(m *Member) {
				drains(ScaleDown)(m)
				m.Wants, m.Runs = "A", ""
			})),
			want: []string{"Undo 0 A (NeededAgain)"},
		},
		"below the ceiling's size": {
			reason: "members missing because of the ceiling are no resize",
			s: pool(3, policy(func(p *Policy) {
				p.Desired, p.MaxUnavailable, p.MaxMembers, p.HasCeiling = 4, 2, 3, true
			})),
			want: []string{"Disrupt 0 Drift to B (Stale)"}, blockers: "UnavailableLimit 2, Rolling 1",
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestNew_requests: recycle and skip of single members.
func TestNew_requests(t *testing.T) {
	asked := func(m *Member) { m.Asked = true }
	skipped := func(m *Member) { m.Skipped = true }
	for name, tc := range map[string]planCase{
		"asked": {
			reason: "a member on the target is replaced, under Manual too",
			s:      pool(3, current, policy(func(p *Policy) { p.Manual = true }), member(1, asked)),
			want:   []string{"Disrupt 1 Requested to A (Asked)"},
		},
		"asked of a stale one": {
			reason: "it comes back on the target, so a Manual pool can be rolled by hand",
			s:      pool(3, policy(func(p *Policy) { p.Manual = true }), member(1, asked)),
			want:   []string{"Disrupt 1 Requested to B (Asked)"}, blockers: "ManualPolicy 3",
		},
		"asked of a claimed one": {
			reason: "rule 1: it waits",
			s:      pool(3, current, member(1, func(m *Member) { asked(m); claimed(m) })),
		},
		"asked of a held one": {
			reason: "rule 1: it waits",
			s:      pool(3, current, member(1, func(m *Member) { m.Asked, m.Held = true, true })),
		},
		"asked while one is down": {
			reason: "rule 4: a recycle passes the same gates",
			s:      pool(3, current, member(0, func(m *Member) { m.Phase = Unready }), member(1, asked)),
		},
		"asked of one that is down": {
			reason: "rule 3: it uses no budget",
			s:      pool(3, current, member(0, func(m *Member) { m.Phase = Unready }), member(1, func(m *Member) { m.Asked, m.Phase = true, Unready })),
			want:   []string{"Disrupt 1 Requested to A (Asked)"},
		},
		"asked, and the rollout": {
			reason: "a recycle uses the same budget, and comes first",
			s:      pool(3, member(2, asked)),
			want:   []string{"Disrupt 2 Requested to B (Asked)"}, blockers: "UnavailableLimit 2, Rolling 1",
		},
		"the request is withdrawn": {
			reason: "the draining body stays",
			s:      pool(3, current, member(1, func(m *Member) { drains(Requested)(m); m.Wants = "A" })),
			want:   []string{"Undo 1 A (NotAsked)"},
		},
		"skipped while it boots": {
			reason: "its body never served, and the slot goes back to the current revision",
			s:      pool(3, member(0, func(m *Member) { replaced(m); skipped(m) })),
			want:   []string{"Disrupt 0 Requested to A (Skipped)"}, blockers: "UnavailableLimit 2",
		},
		"skipped while it boots, and paused": {
			reason: "a skip is no drift",
			s: pool(3, policy(func(p *Policy) { p.Paused = true }), member(0, func(m *Member) {
				replaced(m)
				skipped(m)
			})),
			want: []string{"Disrupt 0 Requested to A (Skipped)"}, blockers: "Paused 2",
		},
		"skipped after it failed": {
			reason: "its failure blocks no other member, and is not retried",
			s:      pool(3, policy(func(p *Policy) { p.MaxUnavailable = 2; p.MaxInFlight = 2 }), member(0, func(m *Member) { failedOnTarget(m); skipped(m) })),
			want: []string{
				"RecordFailure B (EarlyFailure)", "Recover B (Recovered)", "Disrupt 0 Failed to A (Failed)",
				"Disrupt 1 Drift to B (Stale)",
			},
			blockers: "UnavailableLimit 1, Rolling 1",
		},
		"skipped, and back": {
			reason: "the rollout continues with the others",
			s:      pool(3, member(0, skipped)),
			want:   []string{"Disrupt 1 Drift to B (Stale)"}, blockers: "Held 1, UnavailableLimit 1, Rolling 1",
		},
		"stuck": {
			reason: "rule 8: a member whose writes are rejected does not hide the next candidate",
			s:      pool(3, member(0, func(m *Member) { m.Stuck = true })),
			want:   []string{"Disrupt 1 Drift to B (Stale)"}, blockers: "Unreachable 1, UnavailableLimit 1, Rolling 1",
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestNew_inPlace: the body is kept if it can be.
func TestNew_inPlace(t *testing.T) {
	inPlace := policy(func(p *Policy) { p.InPlace, p.MaxSurge = true, 2 })
	for name, tc := range map[string]struct {
		reason string
		s      *Snapshot
		update bool
	}{
		"stale":        {"drift is applied to the body", pool(2, inPlace), true},
		"failed":       {"so is the way back", pool(2, inPlace, policy(func(p *Policy) { p.FailureLimit = 1 }), member(0, failedOnTarget)), true},
		"asked":        {"who asks for another body gets one", pool(2, inPlace, current, member(0, func(m *Member) { m.Asked = true })), false},
		"body gone":    {"what is gone cannot be updated", pool(2, inPlace, current, member(0, func(m *Member) { m.Phase, m.Gone, m.Body = Failed, true, false })), false},
		"holder's end": {"its data does not outlive the claim", pool(2, inPlace, current, member(0, func(m *Member) { m.Phase, m.Gone, m.Claimed = Failed, true, true })), false},
		"replaced":     {"with method Replace it is not kept", pool(2), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.s.Plan(epoch.Add(2 * time.Hour))
			for _, a := range p.Actions {
				if a.Kind == CreateSlot {
					t.Errorf("slot %d is made, although there is no surge", a.Index)
				}
				if a.Kind == Disrupt && a.Disruption.Update != tc.update {
					t.Errorf("%s: %s", tc.reason, line(&a))
				}
			}
			if len(p.Actions) == 0 || p.Actions[len(p.Actions)-1].Kind != Disrupt {
				t.Errorf("%s: %v", tc.reason, lines(p))
			}
		})
	}
}

// TestNew_windows: a window that can never open is reported; a shut one delays.
func TestNew_windows(t *testing.T) {
	shut := func(s *Snapshot) { s.WindowShut = true }
	p := pool(2, shut).Plan(epoch.Add(time.Hour))
	if p.Updated.Reason != "UpdateDeferred" || blockers(p) != "OutsideWindow 2" || p.Stalled.Status != False {
		t.Errorf("outside the windows the rollout waits: %+v, %s", p.Updated, blockers(p))
	}
	wrong := func(s *Snapshot) { s.WindowError = "spec.update.windows[0].schedule: no such day" }
	p = pool(2, shut, wrong).Plan(epoch.Add(time.Hour))
	if p.Updated.Reason != "UpdateDeferred" || p.Stalled.Reason != "InvalidWindow" {
		t.Errorf("another window opens: %+v, %+v", p.Updated, p.Stalled)
	}
	p = pool(2, shut, wrong, func(s *Snapshot) { s.WindowNever = true }).Plan(epoch.Add(time.Hour))
	if p.Updated.Reason != "UpdateBlocked" || p.Stalled.Reason != "InvalidWindow" || !strings.Contains(p.Updated.Message, "no such day") {
		t.Errorf("a window that never opens needs a person: %+v, %+v", p.Updated, p.Stalled)
	}
	surging := pool(4, shut, policy(func(p *Policy) { p.Desired, p.MaxSurge = 3, 2 }), func(s *Snapshot) { s.Surge = 1 },
		member(3, func(m *Member) { replaced(m); m.Disruption = Disruption{} }))
	if p := surging.Plan(epoch.Add(time.Minute)); len(p.Actions) > 0 || p.Surge != 1 {
		t.Errorf("a surge body made inside a window is kept outside, and none is added: %v, surge %d", lines(p), p.Surge)
	}
	p = pool(3, shut, member(0, func(m *Member) { m.Phase = Unready })).Plan(epoch.Add(time.Hour))
	if len(p.Actions) > 0 {
		t.Errorf("nothing starts outside a window: %v", lines(p))
	}
}

// TestNew_canary: a partition keeps members on the previous revision, and on no
// other.
func TestNew_canary(t *testing.T) {
	canary := policy(func(p *Policy) { p.Partition = 2 })
	p := pool(3, current, canary, member(0, onTarget)).Plan(epoch.Add(2 * time.Hour))
	if diff := cmp.Diff([]string{"Disrupt 0 Drift to A (Stale)"}, lines(p)); diff != "" || p.Updated.Status == True {
		t.Errorf("a withdrawn canary is rolled back: %+v\n%s", p.Updated, diff)
	}
	p = pool(3, canary).Plan(epoch.Add(2 * time.Hour))
	if p.Updated.Reason != "RollingUpdate" {
		t.Errorf("a canary that is still replaced has reached the partition: %+v", p.Updated)
	}
	if p = pool(3, canary, member(0, onTarget)).Plan(epoch.Add(2 * time.Hour)); p.Updated.Reason != "PartitionReached" {
		t.Errorf("a canary in service has not reached the partition: %+v", p.Updated)
	}
}

// TestNew_probation: the slot on probation is one that can try the target, and
// times in the future delay nothing.
func TestNew_probation(t *testing.T) {
	failed := func(at time.Time) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Target.Failed, s.Target.Failures = 1, []Failure{{ID: "uid-0", Index: 0, Incarnation: 2, Count: 1, At: at}}
		}
	}
	later := epoch.Add(2 * time.Hour)
	held := pool(3, failed(epoch), member(0, func(m *Member) { failedOnTarget(m); m.Held = true }))
	if q := held.decide(later); q.probation == 0 {
		t.Error("a held slot tries the target")
	}
	year := later.Add(time.Hour * 24 * 365)
	ahead := pool(3, failed(year), member(0, func(m *Member) { failedOnTarget(m); m.NextAttempt = year }))
	p := ahead.Plan(later)
	if p.Wake.IsZero() || p.Wake.After(later.Add(10*time.Second)) {
		t.Errorf("an attempt dated in the future waits for longer than a backoff: wake at %s", p.Wake)
	}
	if r := p.Actions[0].Record; r == nil || !r.Failures[0].At.Equal(later) {
		t.Errorf("a failure dated in the future is not dated now: %v", lines(p))
	}
	asked := pool(3, failed(epoch), policy(func(p *Policy) { p.MaxSurge = 1 }), member(1, func(m *Member) { m.Asked = true }))
	asked.Target.Failures[0].ID = "gone"
	if p := asked.Plan(later); slices.ContainsFunc(lines(p), func(s string) bool { return strings.HasPrefix(s, "Disrupt 1 Requested to B") }) {
		t.Errorf("a member in service is taken for a failed revision on request: %v", lines(p))
	}
}

// TestNew_saysWhatIsMissing: an unreachable size or revision is reported.
func TestNew_saysWhatIsMissing(t *testing.T) {
	p := pool(2, current, policy(func(p *Policy) { p.Desired, p.MaxMembers, p.HasCeiling = 3, 2, true })).Plan(epoch.Add(time.Hour))
	if p.Ready.Reason != "MaxMembersReached" || p.Ready.Status != False || p.Reconciling.Status != False {
		t.Errorf("a ceiling below the size: %+v, %+v", p.Ready, p.Reconciling)
	}
	missing := func(s *Snapshot) { s.Target.Missing, s.Current.Missing = true, true }
	for name, s := range map[string]*Snapshot{
		"failed": pool(2, current, missing, member(0, func(m *Member) { m.Phase, m.Gone, m.Body = Failed, true, false })),
		"new":    pool(2, current, missing, policy(func(p *Policy) { p.Desired = 3 })),
		"unborn": pool(2, current, missing, member(0, func(m *Member) { m.Phase, m.Body, m.ServedSince = Pending, false, time.Time{} })),
	} {
		if p := s.Plan(epoch.Add(time.Hour)); p.Stalled.Reason != "RevisionNotReproducible" || !strings.Contains(p.Stalled.Message, "revision A") {
			t.Errorf("%s: %+v", name, p.Stalled)
		}
	}
	p = pool(2, member(0, func(m *Member) { m.Stuck = true }), member(1, onTarget)).Plan(epoch.Add(time.Hour))
	if !strings.Contains(p.Updated.Message, "rejected") {
		t.Errorf("stuck: %+v", p.Updated)
	}
}

// TestNew_saysWhatFailed: the message says what failed and what to do.
func TestNew_saysWhatFailed(t *testing.T) {
	s := pool(3, policy(func(p *Policy) { p.FailureLimit = 1 }), member(1, func(m *Member) {
		failedOnTarget(m)
		m.Message = `exit status 1: "no such database"`
	}))
	s.Pool = "db"
	want := `1 body of revision B failed, in 1 slot, which reaches update.failureLimit; the last was that of member 1 (exit status 1: "no such database"); ` +
		`other members in service were left alone, and failed members are healed on A: ` +
		`correct the template (pawl diff db shows what it changed), or take it back (pawl undo db), or try it once more (pawl retry db)`
	if got := s.Plan(epoch.Add(2 * time.Hour)).Stalled; got.Message != want || got.Reason != "UpdateHalted" {
		t.Errorf("halted: %+v", got)
	}
	s = pool(3, current)
	s.RolledBack = Record{ID: "B", Failed: 3, Failures: []Failure{{Index: 2, Count: 2, At: epoch, Message: "exit status 9"}, {Index: 1, Count: 1, At: epoch.Add(-time.Hour)}}}
	p := s.Plan(epoch.Add(2 * time.Hour))
	if p.Updated.Reason != "RolledBack" || p.Updated.Status != False || !strings.Contains(p.Updated.Message, "3 bodies of revision B failed, in 2 slots, which reaches update.failureLimit; the last was that of member 2 (exit status 9); the pool went back to A") {
		t.Errorf("rolled back: %+v", p.Updated)
	}
}

// TestFloorUnreachable names the two fields of every policy that can never take
// a member, and of no other.
func TestFloorUnreachable(t *testing.T) {
	for name, tc := range map[string]struct {
		p    Policy
		want string
	}{
		"nothing in the way":     {Policy{Desired: 3, MaxUnavailable: 1}, ""},
		"no members":             {Policy{}, ""},
		"neither":                {Policy{Desired: 3}, "update.maxUnavailable and update.maxSurge"},
		"in place":               {Policy{Desired: 3, InPlace: true, MaxSurge: 1}, "update.maxUnavailable and update.method"},
		"no room for surge":      {Policy{Desired: 3, MaxSurge: 1, MaxMembers: 3, HasCeiling: true}, "maxMembers and update.maxSurge"},
		"room for surge":         {Policy{Desired: 3, MaxSurge: 2, MaxMembers: 4, HasCeiling: true}, ""},
		"too few":                {Policy{Desired: 3, MaxUnavailable: 1, MaxMembers: 2, HasCeiling: true}, "maxMembers and replicas"},
		"few enough":             {Policy{Desired: 3, MaxUnavailable: 2, MaxMembers: 2, HasCeiling: true}, ""},
		"floor":                  {Policy{Desired: 3, MaxUnavailable: 1, MinAvailable: 3, HasFloor: true}, "update.minAvailable and update.maxSurge"},
		"floor, surge":           {Policy{Desired: 3, MaxUnavailable: 1, MaxSurge: 1, MinAvailable: 3, HasFloor: true}, ""},
		"high floor, surge":      {Policy{Desired: 3, MaxUnavailable: 1, MaxSurge: 2, MinAvailable: 4, HasFloor: true}, "update.minAvailable and replicas"},
		"floor above the size":   {Policy{Desired: 3, MaxUnavailable: 1, MinAvailable: 4, HasFloor: true}, "update.minAvailable and replicas"},
		"floor at the ceiling":   {Policy{Desired: 3, MaxUnavailable: 2, MinAvailable: 2, HasFloor: true, MaxMembers: 2, HasCeiling: true}, "update.minAvailable and maxMembers"},
		"floor below the number": {Policy{Desired: 3, MaxUnavailable: 1, MinAvailable: 2, HasFloor: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.p.MaxInFlight = 1
			q := &pass{s: &Snapshot{Policy: tc.p}}
			if got := q.floorUnreachable(); got != tc.want {
				t.Errorf("%q instead of %q", got, tc.want)
			}
		})
	}
}

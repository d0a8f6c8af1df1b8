package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// line is an action as a line.
func line(a *Action) string {
	s := fmt.Sprintf("%s %d", a.Kind, a.Index)
	switch {
	case a.Record != nil:
		s = fmt.Sprintf("%s %s", a.Kind, a.Revision)
	case a.Kind == Disrupt && a.Disruption.Remove:
		s += fmt.Sprintf(" %s, remove", a.Disruption.Cause)
	case a.Kind == Disrupt:
		s += fmt.Sprintf(" %s to %s", a.Disruption.Cause, a.Revision)
	default:
		s += " " + string(a.Revision)
	}
	return s + " (" + string(a.Why) + ")"
}

func lines(p *Plan) []string {
	var list []string
	for i := range p.Actions {
		list = append(list, line(&p.Actions[i]))
	}
	return list
}

func blockers(p *Plan) string {
	var list []string
	for _, b := range p.Blockers {
		list = append(list, fmt.Sprintf("%s %d", b.Reason, b.Count))
	}
	return strings.Join(list, ", ")
}

// pool is a pool of n members on revision A that have served, and the
// target is B.
func pool(n int, changes ...func(*Snapshot)) *Snapshot {
	s := fleet(n, n)
	s.Target, s.Current = Record{ID: "B"}, Record{ID: "A"}
	s.Policy.MaxUnavailable, s.Policy.MaxInFlight = 1, 1
	for i := range s.Members {
		s.Members[i].Wants, s.Members[i].Runs = "A", "A"
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func member(i int, change func(*Member)) func(*Snapshot) {
	return func(s *Snapshot) { change(&s.Members[i]) }
}

func policy(change func(*Policy)) func(*Snapshot) {
	return func(s *Snapshot) { change(&s.Policy) }
}

func onTarget(m *Member) { m.Wants, m.Runs = "B", "B" }

// replaced makes the member one that a rollout took and whose new body boots.
func replaced(m *Member) {
	m.Wants, m.Runs, m.Phase, m.Incarnation, m.ServedSince = "B", "B", Provisioning, 2, time.Time{}
	m.Disruption = Disruption{Cause: Drift, Rolling: true, Incarnation: 1, Since: epoch}
}

// failedOnTarget makes the member one whose new body failed.
func failedOnTarget(m *Member) {
	replaced(m)
	m.Phase, m.FailedEarly, m.PhaseSince = Failed, true, epoch.Add(2*time.Hour-time.Second)
	m.Attempts, m.NextAttempt = 1, m.PhaseSince.Add(10*time.Second)
}

func drains(c Cause) func(*Member) {
	return func(m *Member) {
		m.Wants, m.Phase = "B", Draining
		m.Disruption = Disruption{Cause: c, Remove: c == ScaleDown, Rolling: c == Drift, Incarnation: 1, Since: epoch}
	}
}

// planCase is a snapshot, and its plan two hours after epoch.
type planCase struct {
	reason   string
	s        *Snapshot
	want     []string
	blockers string
}

func (tc planCase) check(t *testing.T) {
	p := tc.s.Plan(epoch.Add(2 * time.Hour))
	if diff := cmp.Diff(tc.want, lines(p)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
	}
	if got := blockers(p); got != tc.blockers {
		t.Errorf("%s: blockers %q, want %q", tc.reason, got, tc.blockers)
	}
	if err := CheckInvariants(tc.s, p); err != nil {
		t.Error(err)
	}
}

// TestNew shows each rule in a few cases.
func TestNew(t *testing.T) {
	for name, tc := range map[string]planCase{
		"one of three": {
			reason: "rule 4: maxUnavailable 1, lowest index first",
			s:      pool(3), want: []string{"Disrupt 0 Drift to B (Stale)"}, blockers: "UnavailableLimit 2, Rolling 1",
		},
		"manual": {
			reason: "drift is reported, and no member is taken",
			s:      pool(3, policy(func(p *Policy) { p.Manual = true })), blockers: "ManualPolicy 3",
		},
		"a replacement on its way counts": {
			reason: "rule 4: what is missing is down",
			s:      pool(3, member(0, replaced)), blockers: "UnavailableLimit 2",
		},
		"a member that failed long ago counts": {
			reason: "rule 4: any member that is down uses the budget, whether a candidate or not",
			s:      pool(3, member(2, func(m *Member) { onTarget(m); m.Phase = Unready })), blockers: "UnavailableLimit 2",
		},
		"claimed, busy, unknown, held": {
			reason: "rules 1 and 8: they do not hide the next candidate",
			s: pool(6, policy(func(p *Policy) { p.MaxUnavailable, p.MaxInFlight = 5, 5 }),
				member(0, func(m *Member) { m.Claimed, m.Phase = true, InClaim }), member(1, func(m *Member) { m.Occupancy = Busy }),
				member(2, func(m *Member) { m.Occupancy = OccupancyUnsure }), member(3, func(m *Member) { m.Held = true })),
			want:     []string{"Disrupt 4 Drift to B (Stale)", "Disrupt 5 Drift to B (Stale)"},
			blockers: "Rolling 2, Claimed 1, Busy 1, OccupancyUnknown 1, Held 1",
		},
		"unreadable": {
			reason: "rule 2: a pool that cannot be read does not change",
			s:      pool(3, func(s *Snapshot) { s.Unreadable = SourcesUnresolved }), blockers: "SourcesUnresolved 3",
		},
		"writes unseen": {
			reason: "rule 6: nothing is decided twice",
			s:      pool(3, func(s *Snapshot) { s.WritesUnseen = true }), blockers: "WritesUnseen 3",
		},
		"never served, and stale": {
			reason: "rule 3: only that body is dropped, at once",
			s: pool(3, member(1, func(m *Member) {
				m.Phase, m.ServedSince = Provisioning, time.Time{}
			})),
			want: []string{"Disrupt 1 Drift to B (NeverServed)"}, blockers: "UnavailableLimit 2, Rolling 1",
		},
		"down and stale go first, and few at a time": {
			reason: "rule 3: they cost nothing, but may come back by themselves",
			s: pool(5, policy(func(p *Policy) { p.MaxInFlight = 2 }), member(1, func(m *Member) { m.Phase = Unready }),
				member(2, func(m *Member) { m.Phase = Unready }), member(3, func(m *Member) { m.Phase = Unready })),
			want:     []string{"Disrupt 1 Drift to B (StaleDown)", "Disrupt 2 Drift to B (StaleDown)"},
			blockers: "UnavailableLimit 2, Rolling 2, InFlightLimit 1",
		},
		"failed and stale, and few at a time": {
			reason: "rule 3: few are replaced at a time, also after bootTimeout",
			s: pool(4, policy(func(p *Policy) { p.MaxInFlight = 2 }), member(0, func(m *Member) { m.Phase = Failed }),
				member(1, func(m *Member) { m.Phase = Failed }), member(2, func(m *Member) { m.Phase = Failed })),
			want:     []string{"Disrupt 0 Failed to B (Failed)", "Disrupt 1 Failed to B (Failed)"},
			blockers: "Rolling 2, UnavailableLimit 1, InFlightLimit 1",
		},
		"one repair keeps terminating": {
			reason: "rule 3: after progressDeadline it leaves the count",
			s: pool(3, member(0, func(m *Member) {
				m.Phase, m.Disruption = Terminating, Disruption{Cause: Drift, Incarnation: 1, Since: epoch}
				m.Wants = "B"
			}), member(1, func(m *Member) { m.Phase = Unready })),
			want: []string{"Disrupt 1 Drift to B (StaleDown)"}, blockers: "Rolling 2, UnavailableLimit 1",
		},
		"the floor": {
			reason: "rule 4: the floor counts free members",
			s: pool(4, policy(func(p *Policy) { p.MaxUnavailable, p.MaxInFlight, p.HasFloor, p.MinAvailable = 4, 4, true, 2 }),
				member(0, func(m *Member) { m.Claimed, m.Phase = true, InClaim })),
			want: []string{"Disrupt 1 Drift to B (Stale)"}, blockers: "FloorReached 2, Claimed 1, Rolling 1",
		},
		"a floor that cannot be kept": {
			reason: "the plan names a policy under which no rollout can end",
			s:      pool(3, policy(func(p *Policy) { p.HasFloor, p.MinAvailable = true, 3 })), blockers: "FloorUnreachable 3",
		},
		"in flight": {
			reason: "rule 4: maxInFlight limits the rolling members, whatever the budget",
			s:      pool(5, policy(func(p *Policy) { p.MaxUnavailable, p.MaxInFlight = 5, 2 }), member(0, replaced)),
			want:   []string{"Disrupt 1 Drift to B (Stale)"}, blockers: "InFlightLimit 3, Rolling 1",
		},
		"the target has failed": {
			reason: "rule 5: the failure is recorded, no member in service is taken, and the slot waits for its backoff",
			s:      pool(3, policy(func(p *Policy) { p.MaxUnavailable, p.MaxInFlight = 3, 3 }), member(1, failedOnTarget)),
			want:   []string{"RecordFailure B (EarlyFailure)"}, blockers: "FailedReplacement 2",
		},
		"two bodies of the target, one has failed": {
			reason: "births: exactly one slot is on probation; the other's body never served, and is dropped",
			s:      pool(4, policy(func(p *Policy) { p.MaxUnavailable, p.MaxInFlight = 3, 3 }), member(0, replaced), member(1, failedOnTarget)),
			want:   []string{"RecordFailure B (EarlyFailure)", "Disrupt 0 Drift to A (NeverServed)"}, blockers: "FailedReplacement 2",
		},
		"the failure limit": {
			reason: "rule 5: halted, and the failed slot is healed on the current revision at once",
			s:      pool(3, policy(func(p *Policy) { p.FailureLimit = 1 }), member(1, failedOnTarget)),
			want:   []string{"RecordFailure B (EarlyFailure)", "Halt B (FailureLimit)", "Disrupt 1 Failed to A (Failed)"}, blockers: "Halted 2",
		},
		"recovered": {
			reason: "rule 5: the failure is forgiven once a body has recovered, and the rollout continues",
			s: pool(3, func(s *Snapshot) {
				s.Target.Failed, s.Target.Failures = 1, []Failure{{ID: "uid-0", Index: 0, Incarnation: 2, Count: 1, At: epoch}}
			}, member(0, func(m *Member) { onTarget(m); m.Incarnation, m.ServedSince = 3, epoch.Add(time.Minute) })),
			want: []string{"Recover B (Recovered)", "Disrupt 1 Drift to B (Stale)"}, blockers: "UnavailableLimit 1, Rolling 1",
		},
		"failed, and back by itself": {
			reason: "rule 5: recovery in the failed slot counts, whichever incarnation",
			s: pool(3, func(s *Snapshot) {
				s.Target.Failed, s.Target.Failures = 1, []Failure{{ID: "uid-0", Index: 0, Incarnation: 2, Count: 1, At: epoch}}
			}, member(0, func(m *Member) { onTarget(m); m.Incarnation, m.ServedSince = 2, epoch.Add(time.Minute) })),
			want: []string{"Recover B (Recovered)", "Disrupt 1 Drift to B (Stale)"}, blockers: "UnavailableLimit 1, Rolling 1",
		},
		"forgiven, and still failed": {
			reason: "each incarnation is counted once, also after its failure was forgiven",
			s: pool(3, func(s *Snapshot) {
				s.Target.Failed, s.Target.Failures = 2, []Failure{
					{ID: "uid-0", Index: 0, Incarnation: 2, Count: 1, At: epoch, Forgiven: true},
				}
			}, member(0, func(m *Member) { failedOnTarget(m); m.Held = true })),
			blockers: "UnavailableLimit 2",
		},
		"one recovers, another is still failed": {
			reason: "the failure of the held member is forgiven too, and stays in the record",
			s: pool(3, func(s *Snapshot) {
				s.Target.Failed, s.Target.Failures = 2, []Failure{
					{ID: "uid-0", Index: 0, Incarnation: 2, Count: 1, At: epoch}, {ID: "uid-1", Index: 1, Incarnation: 2, Count: 1, At: epoch},
				}
			}, member(0, func(m *Member) { failedOnTarget(m); m.Held = true }), member(1, func(m *Member) { onTarget(m); m.Incarnation, m.ServedSince = 3, epoch.Add(time.Minute) })),
			want: []string{"Recover B (Recovered)"}, blockers: "UnavailableLimit 1",
		},
		"a failing pool is scaled to nothing": {
			reason: "rule 10: the slot on probation is removed like any other",
			s:      pool(2, policy(func(p *Policy) { p.Desired = 0 }), member(1, failedOnTarget)),
			want:   []string{"RecordFailure B (EarlyFailure)", "Disrupt 1 ScaleDown, remove (Excess)", "Disrupt 0 ScaleDown, remove (Excess)"}, blockers: "FailedReplacement 1",
		},
		"a disruption of an incarnation to come": {
			reason: "the disruption does not concern the present body",
			s: pool(2, member(0, func(m *Member) {
				onTarget(m)
				m.Disruption = Disruption{Cause: Requested, Incarnation: 1000}
			}), member(1, onTarget)),
			want: []string{"Stand B (WholePool)"},
		},
		"resizing": {
			reason: "rule 6: missing slots are made first, on the target, and no member is taken",
			s:      pool(3, policy(func(p *Policy) { p.Desired = 5 })),
			want:   []string{"CreateSlot 3 B (Fill)", "CreateSlot 4 B (Fill)"}, blockers: "PoolResizing 3",
		},
		"scale down": {
			reason: "rule 10: down, then stale, then highest index; claimed and busy ones stay",
			s: pool(6, policy(func(p *Policy) { p.Desired = 3 }), member(0, func(m *Member) { m.Phase = Unready }),
				member(1, onTarget), member(5, func(m *Member) { m.Occupancy = Busy })),
			want: []string{
				"Disrupt 0 ScaleDown, remove (Excess)", "Disrupt 4 ScaleDown, remove (Excess)", "Disrupt 3 ScaleDown, remove (Excess)",
			},
			blockers: "PoolResizing 5",
		},
		"scale up again": {
			reason: "rule 10: draining members are taken back before slots are made",
			s:      pool(3, member(1, onTarget), member(0, onTarget), member(2, drains(ScaleDown))),
			want:   []string{"Undo 2 A (NeededAgain)"}, blockers: "Rolling 1",
		},
		"a slot is being deleted": {
			reason: "it is made anew in its place once it is gone; until then it is down",
			s:      pool(3, member(1, func(m *Member) { m.Deleting = true })), blockers: "PoolResizing 2, Rolling 1",
		},
		"surge": {
			reason: "rule 7: no more surge slots than members to roll",
			s: pool(3, policy(func(p *Policy) { p.MaxUnavailable, p.MaxSurge, p.MaxInFlight = 0, 5, 5 }),
				member(0, func(m *Member) { m.Claimed, m.Phase = true, InClaim })),
			want: []string{"CreateSlot 3 B (Surge)", "CreateSlot 4 B (Surge)"}, blockers: "UnavailableLimit 2, Claimed 1",
		},
		"surge replaces the last": {
			reason: "rule 7: the last stale members are removed rather than replaced",
			s: pool(3, policy(func(p *Policy) { p.Desired, p.MaxUnavailable, p.MaxSurge = 2, 0, 1 }), func(s *Snapshot) { s.Surge = 1 },
				member(0, onTarget), member(2, onTarget)),
			want: []string{"Disrupt 1 Drift, remove (Stale)"}, blockers: "Rolling 1",
		},
		"no capacity for surge": {
			reason: "rule 7: a capacity error is reported, and is no failure",
			s: pool(3, policy(func(p *Policy) { p.Desired, p.MaxUnavailable, p.MaxSurge = 2, 0, 1 }),
				member(2, func(m *Member) {
					*m = Member{Index: 2, ID: "s", Wants: "B", Incarnation: 1, NoRoom: true, Attempts: 1, BornAt: epoch}
				})),
			blockers: "NoSurgeCapacity 2",
		},
		"newest wins": {
			reason: "rule 9: a slot without a body gets the new target",
			s: pool(3, func(s *Snapshot) { s.Target.ID = "C" }, member(0, func(m *Member) {
				replaced(m)
				m.Phase, m.Body, m.Runs = Pending, false, "A"
			})),
			want: []string{"Grant 0 C (Retarget)"}, blockers: "UnavailableLimit 2",
		},
		"it matches again": {
			reason: "rule 9: a draining member goes back into service, with its own revision",
			s:      pool(2, func(s *Snapshot) { s.Target.ID = "A" }, member(0, drains(Drift))),
			want:   []string{"Undo 0 A (MatchesAgain)"},
		},
		"it turned busy": {
			reason: "rule 9",
			s:      pool(2, member(0, drains(Drift)), member(0, func(m *Member) { m.Occupancy = Busy })),
			want:   []string{"Undo 0 A (TurnedBusy)"}, blockers: "UnavailableLimit 1, Rolling 1",
		},
		"it terminates": {
			reason: "rule 9: a terminating member cannot be taken back",
			s:      pool(2, func(s *Snapshot) { s.Target.ID = "A" }, member(0, drains(Drift)), member(0, func(m *Member) { m.Phase = Terminating })),
			want:   []string{"Grant 0 A (Retarget)"},
		},
		"paused": {
			reason: "no new disruption for drift, and draining members are taken back",
			s:      pool(3, policy(func(p *Policy) { p.Paused = true }), member(0, drains(Drift))),
			want:   []string{"Undo 0 A (Paused)"}, blockers: "Paused 2, Rolling 1",
		},
		"the partition": {
			reason: "births (a): two stay off the target, whichever members are blocked",
			s: pool(3, policy(func(p *Policy) { p.Partition, p.MaxUnavailable, p.MaxInFlight = 2, 3, 3 }),
				member(0, func(m *Member) { m.Held = true })),
			want: []string{"Disrupt 1 Drift to B (Stale)"}, blockers: "Held 1, Partitioned 1, Rolling 1",
		},
		"the partition, from nothing": {
			reason: "births (a): they are born on the current revision",
			s:      pool(0, policy(func(p *Policy) { p.Partition, p.Desired = 2, 3 })),
			want:   []string{"CreateSlot 0 A (Fill)", "CreateSlot 1 A (Fill)", "CreateSlot 2 B (Fill)"},
		},
		"the current revision cannot be built": {
			reason: "births (c): the slot waits",
			s:      pool(2, policy(func(p *Policy) { p.FailureLimit = 1 }), func(s *Snapshot) { s.Current.Missing = true }, member(0, failedOnTarget)),
			want:   []string{"RecordFailure B (EarlyFailure)", "Halt B (FailureLimit)"}, blockers: "Halted 1",
		},
		"a claim whose body is gone": {
			reason: "one write drops the claim and heals the slot",
			s: pool(2, member(0, func(m *Member) {
				m.Claimed, m.Phase, m.Gone, m.Body = true, Failed, true, false
			})),
			want: []string{"Disrupt 0 Failed to B (BodyGone)"}, blockers: "UnavailableLimit 1",
		},
		"unknown, adopted": {
			reason: "it is not rolled for the present target",
			s:      pool(2, member(0, func(m *Member) { m.Runs, m.Wants = "", "" }), member(1, onTarget)),
			want:   []string{"Stand B (WholePool)", "Grant 0 B (Adopt)"},
		},
		"unknown, adopted for an earlier target": {
			reason: "it is stale once the target changes",
			s:      pool(2, member(0, func(m *Member) { m.Runs = "" }), member(1, onTarget)),
			want:   []string{"Disrupt 0 Drift to B (Stale)"}, blockers: "Rolling 1",
		},
		"the whole pool stands": {
			reason: "the target becomes the current revision once all have recovered",
			s:      pool(2, member(0, onTarget), member(1, onTarget)), want: []string{"Stand B (WholePool)"},
		},
		"the whole pool has just arrived": {
			reason: "bodies that have just come into service have not recovered",
			s:      pool(2, member(0, onTarget), member(1, func(m *Member) { onTarget(m); m.ServedSince = epoch.Add(2*time.Hour - time.Second) })),
		},
		"outside the windows": {
			reason: "no disruption starts",
			s:      pool(2, func(s *Snapshot) { s.WindowShut = true }), blockers: "OutsideWindow 2",
		},
		"a budget without room": {
			reason: "it is reported before the pool's own limits",
			s:      pool(2, func(s *Snapshot) { s.Budgeted = true }), blockers: "BudgetFull 2",
		},
		"by cost": {
			reason: "rule 8: a lower cost comes first",
			s:      pool(3, member(0, func(m *Member) { m.Cost = 5 }), member(1, func(m *Member) { m.Cost = 5 })),
			want:   []string{"Disrupt 2 Drift to B (Stale)"}, blockers: "UnavailableLimit 2, Rolling 1",
		},
		"oldest first": {
			reason: "the oldest body goes first",
			s:      pool(3, policy(func(p *Policy) { p.Order = OldestFirst }), member(1, func(m *Member) { m.BornAt = epoch.Add(-time.Hour) })),
			want:   []string{"Disrupt 1 Drift to B (Stale)"}, blockers: "UnavailableLimit 2, Rolling 1",
		},
		"the pool is deleted": {
			reason: "free members are removed, claimed ones stay",
			s:      pool(2, func(s *Snapshot) { s.Deleting = true }, member(0, func(m *Member) { m.Claimed, m.Phase = true, InClaim })),
			want:   []string{"Disrupt 1 ScaleDown, remove (PoolDeleted)"}, blockers: "ManualPolicy 2",
		},
	} {
		t.Run(name, tc.check)
	}
}

// TestNew_says: excess members that stay are named.
func TestNew_says(t *testing.T) {
	claimed := member(0, func(m *Member) { m.Claimed, m.Phase = true, InClaim })
	deleted := pool(2, func(s *Snapshot) { s.Deleting = true }, claimed).Plan(epoch)
	if u := deleted.Updated; u.Reason != "PoolDeleted" || !strings.Contains(u.Message, "member 0") || !strings.Contains(u.Message, "claim") {
		t.Errorf("a deleted pool says %+v", u)
	}
	if r := deleted.Reconciling; r.Status != True {
		t.Errorf("a deleted pool is %+v", r)
	}
	small := pool(2, policy(func(p *Policy) { p.Desired = 1 }), claimed, member(0, onTarget), member(1, onTarget), member(1, func(m *Member) { m.Occupancy = Busy })).Plan(epoch.Add(time.Hour))
	if !strings.Contains(small.Next, "member 0 stays") {
		t.Errorf("too many members: next is %q", small.Next)
	}
}

// TestPlan_oddInput: a member that the plan does not know is not called updated, an
// action that comes too late changes nothing, and a policy of zeros means the usual
// in every place.
func TestPlan_oddInput(t *testing.T) {
	now := epoch.Add(time.Hour)
	s := pool(2)
	p := s.Plan(now)
	if got := p.Explain(&Member{Index: 7, Body: true, Runs: "A"}); !strings.Contains(got, "does not know it yet") {
		t.Errorf("a member that was made later: %s", got)
	}
	invalid := pool(2, policy(func(p *Policy) { p.MaxUnavailable = -1 }))
	if got := invalid.Plan(now).Explain(&invalid.Members[0]); !strings.Contains(got, "maxUnavailable is -1") {
		t.Errorf("a snapshot that is not valid: %s", got)
	}
	late := Action{Kind: CreateSlot, Index: 0, Revision: "B"}
	s.Members[0].Claimed = true
	if s.Apply(&late, "late", now); !s.Members[0].Claimed || s.Members[0].ID == "late" {
		t.Errorf("a slot that is there is made anew: %+v", s.Members[0])
	}
	NewPlanner(s).Apply(&Action{Kind: Disrupt})
	zero := pool(3, policy(func(p *Policy) { *p = Policy{Desired: 3, MaxUnavailable: 1} }))
	if err := CheckInvariants(zero, zero.Plan(now)); err != nil {
		t.Errorf("a policy of zeros: %v", err)
	}
}

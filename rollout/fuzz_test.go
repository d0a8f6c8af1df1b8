package rollout

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// rawTime draws any time that may be stored.
func rawTime(t *rapid.T) time.Time {
	return rapid.OneOf(
		rapid.Just(time.Time{}),
		rapid.Just(time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)),
		rapid.Just(time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)),
		rapid.Custom(at),
		rapid.Custom(func(t *rapid.T) time.Time { return time.Unix(rapid.Int64().Draw(t, "seconds"), 0) }),
	).Draw(t, "time")
}

// rawNumber draws a number, mostly a valid one.
func rawNumber(t *rapid.T) int {
	return rapid.OneOf(rapid.IntRange(0, 6), rapid.IntRange(0, 6), rapid.IntRange(0, 6), rapid.IntRange(0, 6),
		rapid.SampledFrom([]int{-1, math.MinInt, math.MaxInt, math.MaxInt32, MaxSlots + 1})).Draw(t, "number")
}

func rawRecord(t *rapid.T) Record {
	r := Record{
		ID: rapid.SampledFrom([]Revision{"A", "B", "C", ""}).Draw(t, "revision"), Failed: rawNumber(t), Recovered: rawNumber(t), Counted: rawTime(t), Since: rawTime(t),
		Halted: rapid.Bool().Draw(t, "halted"), RolledBack: rapid.Bool().Draw(t, "rolledBack"), Missing: rapid.Bool().Draw(t, "missing"),
	}
	for range rapid.IntRange(0, 4).Draw(t, "failures") {
		r.Failures = append(r.Failures, Failure{
			ID: rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "id"), Index: rawNumber(t), Incarnation: int64(rawNumber(t)), Count: rawNumber(t),
			At: rawTime(t), Forgiven: rapid.Bool().Draw(t, "forgiven"),
		})
	}
	return r
}

func rawMember(t *rapid.T) Member {
	yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
	revision := rapid.SampledFrom([]Revision{"A", "B", "C", ""})
	return Member{
		Index: rawNumber(t), ID: rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "id"), Wants: revision.Draw(t, "wants"), Runs: revision.Draw(t, "runs"),
		Incarnation: int64(rawNumber(t)), Phase: Phase(rapid.IntRange(0, 12).Draw(t, "phase")), Body: yes("body"), Gone: yes("gone"),
		Claimed: yes("claimed"), Cordoned: yes("cordoned"), Held: yes("held"), Asked: yes("asked"), Skipped: yes("skipped"), Stuck: yes("stuck"),
		Occupancy: Occupancy(rapid.IntRange(0, 4).Draw(t, "occupancy")), Deleting: yes("deleting"), Cost: int32(rawNumber(t)),
		ServedSince: rawTime(t), BornAt: rawTime(t), PhaseSince: rawTime(t), DownSince: rawTime(t), UnsettledSince: rawTime(t),
		Recovered: revision.Draw(t, "recovered"), RecoveredAt: rawTime(t), FailedEarly: yes("early"), NoRoom: yes("noRoom"), ForClaim: yes("forClaim"),
		Attempts: int32(rawNumber(t)), NextAttempt: rawTime(t), BootTook: time.Duration(rawNumber(t)), StopTook: time.Duration(rawNumber(t)),
		Disruption: Disruption{
			Cause: Cause(rapid.IntRange(0, 7).Draw(t, "cause")), Remove: yes("remove"), Update: yes("update"), Rolling: yes("rolling"),
			Incarnation: int64(rawNumber(t)), Since: rawTime(t),
		},
	}
}

// FuzzNew: any snapshot gives a plan that keeps
// the rules, or an error in the condition Updated; never a panic.
func FuzzNew(f *testing.F) { f.Fuzz(rapid.MakeFuzz(planRaw)) }

// TestNew_raw draws such snapshots at random.
func TestNew_raw(t *testing.T) { rapid.Check(t, planRaw) }

func planRaw(t *rapid.T) {
	yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
	s := &Snapshot{
		Policy: Policy{
			Desired: rawNumber(t), Warm: yes("warm"), RefillBelow: rawNumber(t), MaxMembers: rawNumber(t), HasCeiling: yes("ceiling"), InPlace: yes("inPlace"),
			Manual: yes("manual"), Paused: yes("paused"), Zero: yes("zero"), MaxUnavailable: rawNumber(t), MaxSurge: rawNumber(t), MinAvailable: rawNumber(t),
			HasFloor: yes("floor"), MaxInFlight: rawNumber(t), Partition: rawNumber(t), Order: Order(rapid.IntRange(0, 3).Draw(t, "order")),
			MinReady: time.Duration(rawNumber(t)), ProgressDeadline: time.Duration(rawNumber(t)), FailureLimit: rawNumber(t), Rollback: yes("rollback"), ReplaceUnknown: yes("replaceUnknown"),
		},
		Target: rawRecord(t), Current: rawRecord(t), Surge: rawNumber(t), Size: rawNumber(t), WritesUnseen: rapid.IntRange(0, 9).Draw(t, "unseen") == 0,
		Deleting: yes("deleting"), Waiting: rawNumber(t), WindowShut: yes("shut"), WindowNever: yes("never"), Budgeted: yes("budgeted"), BudgetRoom: rawNumber(t),
	}
	if yes("rolled back") {
		s.RolledBack = rawRecord(t)
	}
	for range rapid.IntRange(0, 6).Draw(t, "members") {
		s.Members = append(s.Members, rawMember(t))
	}
	if yes("in order") {
		for i := range s.Members {
			s.Members[i].Index = i
		}
	}
	now := rapid.SampledFrom([]time.Time{epoch.Add(time.Hour), time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}).Draw(t, "now")
	p := s.Plan(now)
	if p.Updated.Reason == string(InvalidSnapshot) {
		if len(p.Actions) > 0 || p.Updated.Message == "" || p.Updated.Status != Unknown {
			t.Fatalf("the snapshot is invalid, but the plan is: %v, %+v", lines(p), p.Updated)
		}
		return
	}
	for i := range s.Members {
		p.Explain(&s.Members[i])
		Step(s.Members[i], Sight{State: BodyState(rapid.IntRange(0, 5).Draw(t, "state")), Drained: yes("drained")}, Lifecycle{}, now)
	}
	if err := CheckInvariants(s, p); err != nil {
		t.Fatalf("%v\nsnapshot: %s\nactions: %s", err, dump(s), dump(p.Actions))
	}
}

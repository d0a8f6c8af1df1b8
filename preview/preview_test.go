package preview

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/rollout"
)

// noon is the start of all forecasts.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// randomOutlook draws a small pool in which every state and setting can occur.
func randomOutlook(t *rapid.T) *Outlook {
	n := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
	yes := func(name string, of int) bool { return rapid.IntRange(1, of).Draw(t, name) == of }
	size := n("members", 30)
	s := &rollout.Snapshot{
		Target: rollout.Record{ID: "B"}, Current: rollout.Record{ID: "A"},
		Policy: rollout.Policy{
			Desired: max(0, size+rapid.IntRange(-3, 3).Draw(t, "more")), Warm: yes("warm", 4), InPlace: yes("in place", 5),
			MaxUnavailable: n("maxUnavailable", 5), MaxSurge: n("maxSurge", 4), MaxInFlight: 1 + n("maxInFlight", 5),
			FailureLimit: 1 + n("failureLimit", 3), Rollback: yes("rollback", 3), ReplaceUnknown: yes("replace unknown", 2),
			MinReady: time.Duration(n("minReady", 2)) * 40 * time.Second, ProgressDeadline: time.Duration(1+n("deadline", 10)) * time.Minute,
			Order: rollout.Order(n("order", 1)), Manual: yes("manual", 20), Paused: yes("paused", 20),
		},
		Deleting: yes("deleting", 40),
	}
	p := &s.Policy
	if yes("floor", 2) {
		p.HasFloor, p.MinAvailable = true, n("minAvailable", size)
	}
	if yes("partition", 3) {
		p.Partition = n("part", size+1)
	}
	if yes("ceiling", 4) {
		p.HasCeiling, p.MaxMembers = true, max(0, size-3+n("maxMembers", 10))
	}
	if yes("refill", 4) {
		p.RefillBelow = min(p.Desired, n("refillBelow", size))
	}
	if yes("waiting", 6) {
		s.Waiting = n("claims that wait", 4)
	}
	if yes("stood", 5) {
		s.Current = s.Target
	}
	o := &Outlook{
		Snapshot: s, Now: noon, Reuse: yes("reuse", 2),
		Boot: time.Duration(n("boot", 60)) * time.Second, Stop: time.Duration(n("stop", 20)) * time.Second,
		Life:     rollout.Lifecycle{BootTimeout: 5 * time.Minute, MinReady: p.MinReady, RecoverAfter: p.RecoverAfter()},
		HoldEnds: map[int]time.Time{}, ClaimEnds: map[int]time.Time{},
	}
	if yes("windows", 4) {
		length := time.Duration(1+n("window", 10)) * time.Minute
		o.Window = func(at time.Time) (bool, time.Time) {
			hour := at.Truncate(time.Hour)
			if at.Before(hour.Add(length)) {
				return true, hour.Add(length)
			}
			return false, hour.Add(time.Hour)
		}
	}
	index := 0
	for range size {
		if yes("gap", 10) {
			index++
		}
		s.Members = append(s.Members, randomMember(t, o, index))
		index++
	}
	return o
}

// randomMember draws a member: two in three are in service on the old revision,
// the others are in any state.
func randomMember(t *rapid.T, o *Outlook, index int) rollout.Member {
	n := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
	yes := func(name string, of int) bool { return rapid.IntRange(1, of).Draw(t, name) == of }
	ago := func(name string) time.Time { return noon.Add(-time.Duration(n(name, 300)) * time.Second) }
	m := rollout.Member{
		Index: index, ID: fmt.Sprint("m", index), Wants: "A", Runs: "A", Phase: rollout.Available, Body: true, Incarnation: 1,
		BornAt: noon.Add(-time.Hour), PhaseSince: noon.Add(-time.Hour), ServedSince: noon.Add(-time.Hour),
	}
	if !yes("any state", 3) {
		return m
	}
	m.Runs = rapid.SampledFrom([]rollout.Revision{"A", "B", "B", "C", ""}).Draw(t, "runs")
	m.Wants = m.Runs
	m.Cost = int32(n("cost", 2))
	m.BornAt = ago("born")
	m.Held, m.Cordoned, m.Asked, m.Skipped = yes("held", 6), yes("cordoned", 8), yes("asked", 8), yes("skipped", 10)
	m.Stuck, m.Deleting = yes("stuck", 20), yes("deleting", 20)
	m.Occupancy = rollout.Occupancy(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2}).Draw(t, "occupancy"))
	if m.Held && yes("hold ends", 2) {
		o.HoldEnds[index] = noon.Add(time.Duration(n("hold", 900)) * time.Second)
	}
	m.PhaseSince, m.ServedSince = ago("phase"), ago("served")
	switch rapid.SampledFrom([]string{"up", "up", "claimed", "unready", "failed", "gone", "boots", "prepares", "pending", "no room", "drains", "terminates"}).Draw(t, "state") {
	case "claimed":
		m.Phase, m.Claimed = rollout.InClaim, true
		if yes("claim ends", 2) {
			o.ClaimEnds[index] = noon.Add(time.Duration(n("claim", 900)) * time.Second)
		}
	case "unready":
		m.Phase = rollout.Unready
	case "failed":
		m.Phase, m.FailedEarly = rollout.Failed, yes("early", 2)
	case "gone":
		m.Phase, m.Gone, m.Body = rollout.Failed, true, yes("exited", 2)
	case "boots":
		m.Phase, m.ServedSince = rollout.Provisioning, time.Time{}
	case "prepares":
		m.Phase, m.ServedSince = rollout.Preparing, time.Time{}
	case "pending":
		m.Phase, m.Body, m.ServedSince = rollout.Pending, false, time.Time{}
	case "no room":
		m.Phase, m.Body, m.ServedSince, m.NoRoom = rollout.Pending, false, time.Time{}, true
		m.Attempts, m.NextAttempt = 1, noon.Add(10*time.Second)
	case "drains", "terminates":
		m.Phase = rollout.Draining
		if yes("terminates", 2) {
			m.Phase = rollout.Terminating
		}
		m.Wants = rapid.SampledFrom([]rollout.Revision{"A", "B", "B"}).Draw(t, "wants")
		m.Disruption = rollout.Disruption{
			Cause: rollout.Cause(1 + n("cause", 4)), Rolling: yes("rolling", 2), Remove: yes("removed", 4), Incarnation: 1, Since: m.PhaseSince,
		}
	}
	return m
}

// A forecast whose plans consider only the members that can change is the same as
// one whose plans consider the whole pool.
func TestPreview_partialPlans(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // a difference is rare
			o := randomOutlook(t)
			got := Preview(o)
			o.wholePlans = true
			want := Preview(o)
			if want.Endless {
				t.Fatalf("the engine repeats the same moves: %+v", want.Moves[max(0, len(want.Moves)-4):])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("partial plans give another forecast (-whole +partial):\n%s", diff)
			}
		}
	})
}

// stalePool returns a pool of n members, all stale and free.
func stalePool(n int, set func(*rollout.Policy)) *Outlook {
	s := &rollout.Snapshot{
		Target: rollout.Record{ID: "B"}, Current: rollout.Record{ID: "A"},
		Policy:  rollout.Policy{Desired: n, MaxUnavailable: 1, MaxInFlight: 1, FailureLimit: 3, ProgressDeadline: 10 * time.Minute},
		Members: make([]rollout.Member, n),
	}
	set(&s.Policy)
	hourAgo := noon.Add(-time.Hour)
	for i := range s.Members {
		s.Members[i] = rollout.Member{
			Index: i, ID: fmt.Sprint("m", i), Wants: "A", Runs: "A", Phase: rollout.Available, Body: true, Incarnation: 1,
			BornAt: hourAgo, PhaseSince: hourAgo, ServedSince: hourAgo,
		}
	}
	return &Outlook{
		Snapshot: s, Now: noon, Boot: 30 * time.Second, Stop: 10 * time.Second,
		Life: rollout.Lifecycle{BootTimeout: 10 * time.Minute, MinReady: s.Policy.MinReady, RecoverAfter: s.Policy.RecoverAfter()},
	}
}

func BenchmarkPreview100k(b *testing.B) {
	const n = 100_000
	for _, bb := range []struct {
		name  string
		boots int
		set   func(*rollout.Policy)
	}{
		{"one at a time", 0, func(*rollout.Policy) {}},
		{"one surge body", 0, func(p *rollout.Policy) { p.MaxUnavailable, p.MaxSurge = 0, 1 }},
		{"oldest first, down to a floor", 0, func(p *rollout.Policy) { p.Order, p.HasFloor, p.MinAvailable = rollout.OldestFirst, true, n-1 }},
		{"a tenth at a time", n / 10, func(p *rollout.Policy) { p.MaxUnavailable, p.MaxInFlight = n/10, n/10 }},
		{"as much surge, one at a time", 0, func(p *rollout.Policy) { p.MaxUnavailable, p.MaxSurge = 0, n }},
		{"half stay", 0, func(p *rollout.Policy) { p.Partition, p.MaxUnavailable, p.MaxInFlight = n/2, 100, 100 }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			o := stalePool(n, bb.set)
			for i := range bb.boots {
				m := &o.Snapshot.Members[i]
				m.Phase, m.Runs, m.Wants, m.ServedSince = rollout.Provisioning, "B", "B", time.Time{}
				m.BornAt = noon.Add(-time.Duration(i) * time.Millisecond)
			}
			b.ReportAllocs()
			for b.Loop() {
				if f := Preview(o); !f.Finishes {
					b.Fatal(f.Reason)
				}
			}
		})
	}
}

// It compares partial plans with whole ones, which take n times as long for n
// members.
func BenchmarkPreview_whole(b *testing.B) {
	for _, n := range []int{1000, 2000} {
		for _, whole := range []bool{true, false} {
			b.Run(fmt.Sprintf("%d members, whole %t", n, whole), func(b *testing.B) {
				o := stalePool(n, func(*rollout.Policy) {})
				o.wholePlans = whole
				for b.Loop() {
					Preview(o)
				}
			})
		}
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	minutes := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	seconds := func(n int) *Time { at := Time(time.Duration(n) * time.Second); return &at }
	with := func(i int, change func(*rollout.Member)) func(*Outlook) {
		return func(o *Outlook) { change(&o.Snapshot.Members[i]) }
	}
	pending := func(m *rollout.Member) {
		m.Phase, m.Body, m.NoRoom, m.Wants, m.Runs, m.ServedSince = rollout.Pending, false, true, "B", "", time.Time{}
		m.Attempts, m.NextAttempt = 2, noon.Add(15*time.Second)
	}
	claimed := func(m *rollout.Member) { m.Phase, m.Claimed = rollout.InClaim, true }
	going := func(m *rollout.Member) {
		m.Phase = rollout.Terminating
		m.Disruption = rollout.Disruption{Cause: rollout.ScaleDown, Remove: true, Incarnation: 1, Since: noon}
	}
	onB := func(m *rollout.Member) { m.Wants, m.Runs = "B", "B" }
	for name, tt := range map[string]struct {
		reason  string
		members int
		policy  rollout.Policy
		change  []func(*Outlook)
		want    Forecast // without the fields that the comparison ignores
	}{
		"no room": {
			"a surge body without room blocks the rollout until a person makes room", 3,
			rollout.Policy{Desired: 2, MaxSurge: 1}, []func(*Outlook){with(2, pending)},
			Forecast{SurgePeak: 1, Stays: []Stay{{Index: 0, Reason: rollout.NoSurgeCapacity, Needs: rollout.NeedsRoom}, {Index: 1, Reason: rollout.NoSurgeCapacity, Needs: rollout.NeedsRoom}}},
		},
		"room in a while": {
			"a deleted body makes room, and a slot without room retries at its next attempt", 4,
			rollout.Policy{Desired: 3, MaxUnavailable: 1}, []func(*Outlook){with(0, onB), with(1, onB), with(2, pending), with(3, going)},
			Forecast{Finishes: true, Births: 1, Deletes: 0, Moves: []Move{{Index: 2, Deed: Born, At: *seconds(15), Done: seconds(45)}}},
		},
		"room for one": {
			"a slot whose retry finds no room waits for the next deleted body", 4,
			rollout.Policy{Desired: 3, MaxUnavailable: 1}, []func(*Outlook){with(0, onB), with(1, pending), with(2, pending), with(3, going)},
			Forecast{Finishes: true, Births: 1, Deletes: 0, Moves: []Move{{Index: 1, Deed: Born, At: *seconds(15), Done: seconds(45)}}},
		},
		"a claim ends under a partition": {
			"with a partition the pool does not stand on the target, so a later birth inside it gets the old revision", 3,
			rollout.Policy{Desired: 3, MaxUnavailable: 1, Partition: 1},
			[]func(*Outlook){with(0, onB), with(1, onB), with(2, onB), with(2, claimed), func(o *Outlook) { o.ClaimEnds[2] = minutes(2) }},
			Forecast{Finishes: true, Births: 1, Deletes: 1, Moves: []Move{{Index: 2, Deed: Replaced, At: *seconds(120), Done: seconds(160)}}, Stays: []Stay{{Index: 2, Revision: "A", Reason: rollout.Partitioned}}},
		},
		"a claim ends, and its body stays": {
			"a reused stale body is rolled in its turn", 2,
			rollout.Policy{Desired: 2, MaxUnavailable: 1},
			[]func(*Outlook){with(0, onB), with(1, claimed), func(o *Outlook) { o.Reuse, o.ClaimEnds[1] = true, minutes(2) }},
			Forecast{Finishes: true, Births: 1, Deletes: 1, Moves: []Move{{Index: 1, Deed: Replaced, At: *seconds(120), Done: seconds(160)}}},
		},
		"claims wait": {
			"a waiting claim gets the first free member, which the rollout then leaves alone", 2,
			rollout.Policy{Desired: 2, MaxUnavailable: 1},
			[]func(*Outlook){func(o *Outlook) { o.Snapshot.Waiting = 1 }},
			Forecast{
				Births: 1, Deletes: 1, Moves: []Move{{Index: 0, Deed: Replaced, Done: seconds(40)}},
				Stays: []Stay{{Index: 1, Reason: rollout.Claimed, Needs: rollout.NeedsHolder}},
			},
		},
		"held for a while": {
			"a held member is replaced when its hold ends", 2,
			rollout.Policy{Desired: 2, MaxUnavailable: 2},
			[]func(*Outlook){with(1, func(m *rollout.Member) { m.Held = true }), func(o *Outlook) { o.HoldEnds[1] = minutes(3) }},
			Forecast{Finishes: true, Births: 2, Deletes: 2, Moves: []Move{
				{Index: 0, Deed: Replaced, Done: seconds(40)}, {Index: 1, Deed: Replaced, At: *seconds(180), Done: seconds(220)},
			}},
		},
		"in place": {
			"no body is created or deleted", 2,
			rollout.Policy{Desired: 2, MaxUnavailable: 1, InPlace: true}, nil,
			Forecast{Finishes: true, Updates: 2, Moves: []Move{
				{Index: 0, Deed: UpdatedInPlace, Done: seconds(30)}, {Index: 1, Deed: UpdatedInPlace, At: *seconds(30), Done: seconds(60)},
			}},
		},
		"surge": {
			"the last stale member is removed, not replaced", 1,
			rollout.Policy{Desired: 1, MaxSurge: 1}, nil,
			Forecast{Finishes: true, Births: 1, Deletes: 1, SurgePeak: 1, Moves: []Move{
				{Index: 1, Deed: Made, Done: seconds(30), Surge: true}, {Index: 0, Deed: Removed, At: *seconds(30), Done: seconds(40)},
			}},
		},
		"rolled back": {
			"the failure limit rolls the target back, and the failed member is healed on the current revision", 3,
			rollout.Policy{Desired: 3, MaxUnavailable: 1, Rollback: true, FailureLimit: 1},
			[]func(*Outlook){with(0, onB), with(0, func(m *rollout.Member) { m.Phase, m.FailedEarly, m.Gone = rollout.Failed, true, true })},
			Forecast{Births: 1, Deletes: 1, Moves: []Move{{Index: 0, Deed: Replaced, Done: seconds(40)}}},
		},
		"fields collide": {
			"Collide names both fields", 2,
			rollout.Policy{Desired: 2, MaxUnavailable: 1, HasFloor: true, MinAvailable: 2}, nil,
			Forecast{Collide: []string{"spec.update.minAvailable", "spec.update.maxSurge"}, Stays: []Stay{
				{Index: 0, Reason: rollout.FloorUnreachable, Needs: rollout.NeedsPerson}, {Index: 1, Reason: rollout.FloorUnreachable, Needs: rollout.NeedsPerson},
			}},
		},
		"window": {
			"the rollout waits for the window", 1,
			rollout.Policy{Desired: 1, MaxUnavailable: 1},
			[]func(*Outlook){func(o *Outlook) {
				o.Window = func(at time.Time) (bool, time.Time) { return !at.Before(minutes(600)), minutes(600) }
			}},
			Forecast{Finishes: true, Births: 1, Deletes: 1, Moves: []Move{{Index: 0, Deed: Replaced, At: *seconds(36000), Done: seconds(36040)}}},
		},
		"rolling": {
			"a member that was taken and is not back in service still uses the in-flight limit", 2,
			rollout.Policy{Desired: 2, MaxUnavailable: 2, MaxInFlight: 1},
			[]func(*Outlook){with(0, onB), with(0, func(m *rollout.Member) {
				m.Phase, m.ServedSince, m.Wants, m.BornAt, m.Incarnation = rollout.Provisioning, time.Time{}, "C", noon, 2
				m.Disruption = rollout.Disruption{Cause: rollout.Drift, Rolling: true, Incarnation: 2, Since: noon}
			})},
			Forecast{Finishes: true, Births: 1, Deletes: 1, Moves: []Move{{Index: 1, Deed: Replaced, At: *seconds(30), Done: seconds(70)}}},
		},
		"never open": {
			"a window that never opens needs a person", 1,
			rollout.Policy{Desired: 1, MaxUnavailable: 1},
			[]func(*Outlook){func(o *Outlook) { o.Window = func(time.Time) (bool, time.Time) { return false, time.Time{} } }},
			Forecast{Stays: []Stay{{Index: 0, Reason: rollout.OutsideWindow, Needs: rollout.NeedsPerson}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := stalePool(tt.members, func(*rollout.Policy) {})
			o.HoldEnds, o.ClaimEnds = map[int]time.Time{}, map[int]time.Time{}
			tt.policy.ProgressDeadline = time.Hour
			if tt.policy.MaxInFlight == 0 {
				tt.policy.MaxInFlight = 2
			}
			tt.policy.FailureLimit = max(tt.policy.FailureLimit, 1)
			o.Snapshot.Policy = tt.policy
			for _, change := range tt.change {
				change(o)
			}
			got := *Preview(o)
			ignored := cmpopts.IgnoreFields(Forecast{}, "Reason", "Next", "Took", "Free", "InService", "Before", "After")
			rest := cmp.Options{
				ignored, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Move{}, "From", "To", "Why"), cmpopts.IgnoreFields(Stay{}, "Text", "Revision"),
			}
			if diff := cmp.Diff(tt.want, got, rest); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

package rollout

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStep shows the life of a slot, one step a case.
func TestStep(t *testing.T) {
	now := epoch.Add(time.Hour)
	life := Lifecycle{BootTimeout: 10 * time.Minute, RecoverAfter: time.Minute}
	free := Member{
		ID: "m", Wants: "A", Runs: "A", Phase: Available, Body: true, Incarnation: 1,
		BornAt: epoch, PhaseSince: epoch, ServedSince: epoch,
	}
	booting := Member{ID: "m", Wants: "A", Runs: "A", Phase: Provisioning, Body: true, Incarnation: 1, BornAt: now.Add(-time.Minute), PhaseSince: now.Add(-time.Minute)}
	with := func(m Member, change func(*Member)) Member { change(&m); return m }
	// left is a member whose body left service after an hour.
	left := func(m Member) Member {
		m.DownSince, m.Recovered, m.RecoveredAt = now, m.Runs, epoch.Add(time.Minute)
		return m
	}
	goes := func(c Cause, remove bool) func(*Member) {
		return func(m *Member) { m.Disruption = Disruption{Cause: c, Remove: remove, Incarnation: m.Incarnation} }
	}
	for name, tc := range map[string]struct {
		reason    string
		member    Member
		seen      Sight
		lifecycle Lifecycle
		do        Effect
		want      Member
		wake      time.Time
	}{
		"a new slot without a grant waits": {
			reason: "only the engine grants births",
			member: Member{ID: "m"}, want: Member{ID: "m"},
		},
		"a new slot with a grant is born": {
			reason: "the grant allows the birth",
			member: Member{ID: "m", Wants: "A"}, do: CreateBody, want: Member{ID: "m", Wants: "A"},
		},
		"a birth that was refused for lack of room waits": {
			reason: "the birth is retried with backoff",
			member: Member{ID: "m", Wants: "A", NoRoom: true, NextAttempt: now.Add(time.Second)}, wake: now.Add(time.Second),
			want: Member{ID: "m", Wants: "A", NoRoom: true, NextAttempt: now.Add(time.Second)},
		},
		"another revision is born at once": {
			reason: "the backoff is for the revision that failed",
			member: Member{ID: "m", Wants: "B", Runs: "A", NextAttempt: now.Add(time.Second)}, do: CreateBody,
			want: Member{ID: "m", Wants: "B", Runs: "A", NextAttempt: now.Add(time.Second)},
		},
		"times from a clock that was ahead count as now": {
			reason: "the slot would do nothing until that time",
			member: with(free, func(m *Member) { m.ServedSince, m.PhaseSince = now.Add(time.Hour), now.Add(time.Hour) }), seen: Sight{State: Ready},
			want: with(free, func(m *Member) { m.ServedSince, m.PhaseSince = now, now }),
		},
		"a backoff is never longer than the longest": {
			reason: "NextAttempt is from a clock that was ahead",
			member: Member{ID: "m", Wants: "A", Runs: "A", Attempts: 1, NextAttempt: now.Add(time.Hour)}, wake: now.Add(10 * time.Second),
			want: Member{ID: "m", Wants: "A", Runs: "A", Attempts: 1, NextAttempt: now.Add(10 * time.Second)},
		},
		"a ready body serves": {
			reason: "without minReadySeconds there is nothing to wait for",
			member: booting, seen: Sight{State: Ready},
			want: with(booting, func(m *Member) { m.Phase, m.PhaseSince, m.ServedSince, m.BootTook = Available, now, now, time.Minute }),
		},
		"a ready body is prepared first": {
			reason: "minReadySeconds have to pass", lifecycle: Lifecycle{BootTimeout: time.Minute, MinReady: 5 * time.Second},
			member: booting, seen: Sight{State: Ready}, wake: now.Add(5 * time.Second),
			want: with(booting, func(m *Member) { m.Phase, m.PhaseSince = Preparing, now }),
		},
		"a body that boots is waited for": {
			reason: "a body that is merely booting has not failed",
			member: booting, seen: Sight{State: Booting}, wake: now.Add(9 * time.Minute), want: booting,
		},
		"a body that boots for too long has failed": {
			reason: "bootTimeout counts from the birth",
			member: with(booting, func(m *Member) { m.BornAt = now.Add(-10 * time.Minute) }), seen: Sight{State: Booting},
			want: with(booting, func(m *Member) {
				m.BornAt = now.Add(-10 * time.Minute)
				m.Phase, m.PhaseSince, m.FailedEarly = Failed, now, true
				m.Attempts, m.NextAttempt = 1, now.Add(10*time.Second)
			}),
		},
		"a failed body that never served does not come back": {
			reason: "each incarnation fails once, and its failure is counted",
			member: with(booting, func(m *Member) { m.Phase, m.FailedEarly = Failed, true }), seen: Sight{State: Ready},
			want: with(booting, func(m *Member) { m.Phase, m.FailedEarly = Failed, true }),
		},
		"a failed body that has served comes back": {
			reason: "a ready body that has served is in service",
			member: with(free, func(m *Member) { m.Phase = Failed }), seen: Sight{State: Ready},
			want: with(free, func(m *Member) { m.PhaseSince, m.ServedSince = now, now }),
		},
		"a body that is down is unready": {
			reason: "it may come back by itself",
			member: free, seen: Sight{State: Booting}, wake: now.Add(10 * time.Minute),
			want: with(left(free), func(m *Member) { m.Phase, m.PhaseSince = Unready, now }),
		},
		"a body that goes down before it recovered is unsettled": {
			reason: "it is not known whether its revision can serve; the body fails after bootTimeout",
			member: with(free, func(m *Member) { m.ServedSince = now.Add(-30 * time.Second) }), seen: Sight{State: Booting}, wake: now.Add(10 * time.Minute),
			want: with(free, func(m *Member) {
				m.ServedSince, m.Phase, m.PhaseSince = now.Add(-30*time.Second), Unready, now
				m.DownSince, m.UnsettledSince = now, now
			}),
		},
		"an unsettled body fails, however often it was in service": {
			reason: "it has been unsettled for bootTimeout, and is down",
			member: with(free, func(m *Member) {
				m.BornAt, m.ServedSince, m.UnsettledSince = now.Add(-11*time.Minute), now.Add(-10*time.Second), now.Add(-10*time.Minute)
			}), seen: Sight{State: Booting},
			want: with(free, func(m *Member) {
				m.BornAt, m.ServedSince, m.UnsettledSince = now.Add(-11*time.Minute), now.Add(-10*time.Second), now.Add(-10*time.Minute)
				m.DownSince, m.Phase, m.PhaseSince, m.FailedEarly = now, Failed, now, true
				m.Attempts, m.NextAttempt = 1, now.Add(10*time.Second)
			}),
		},
		"a body that is up and never in service fails": {
			reason: "it was last in service bootTimeout and minReadySeconds ago", lifecycle: Lifecycle{BootTimeout: time.Minute, MinReady: time.Minute, RecoverAfter: time.Minute},
			member: with(left(free), func(m *Member) {
				m.Phase, m.PhaseSince, m.DownSince = Preparing, now.Add(-10*time.Second), now.Add(-2*time.Minute)
			}),
			seen: Sight{State: Booting},
			want: with(left(free), func(m *Member) { m.Phase, m.PhaseSince, m.DownSince = Failed, now, now.Add(-2*time.Minute) }),
		},
		"a recovered body that stays down has failed, late": {
			reason: "it does not count against its revision",
			member: with(left(free), func(m *Member) {
				m.Phase, m.PhaseSince, m.DownSince = Unready, now.Add(-10*time.Minute), now.Add(-10*time.Minute)
			}), seen: Sight{State: Booting},
			want: with(left(free), func(m *Member) { m.Phase, m.PhaseSince, m.DownSince = Failed, now, now.Add(-10*time.Minute) }),
		},
		"a crash before ten times recovery counts": {
			reason: "it exited after nine minutes of service; since it had recovered, the next birth does not wait",
			member: with(free, func(m *Member) { m.BornAt, m.ServedSince = now.Add(-9*time.Minute), now.Add(-9*time.Minute) }), seen: Sight{State: Exited},
			want: with(free, func(m *Member) {
				m.BornAt, m.ServedSince = now.Add(-9*time.Minute), now.Add(-9*time.Minute)
				m.DownSince, m.Recovered, m.RecoveredAt = now, "A", now.Add(-8*time.Minute)
				m.Phase, m.PhaseSince, m.FailedEarly, m.Gone = Failed, now, true, true
			}),
		},
		"a crash after ten times recovery does not": {
			reason: "a body that has served for an hour does not count against its revision",
			member: free, seen: Sight{State: Exited},
			want: with(left(free), func(m *Member) { m.Phase, m.PhaseSince, m.Gone = Failed, now, true }),
		},
		"a healthy body whose claim ends has recovered": {
			reason: "it served for the whole claim",
			member: with(with(free, goes(ClaimEnded, false)), func(m *Member) { m.ServedSince, m.Phase = now.Add(-time.Second), InClaim }), seen: Sight{State: Ready, Drained: true},
			want: with(with(free, goes(ClaimEnded, false)), func(m *Member) {
				m.ServedSince, m.Phase, m.PhaseSince = now.Add(-time.Second), Terminating, now
				m.DownSince, m.Recovered, m.RecoveredAt = now, "A", now
			}),
		},
		"a failed body that serves again waits for the engine": {
			reason: "the engine withdraws the disruption before the end begins",
			member: with(with(left(free), goes(BodyFailed, false)), func(m *Member) { m.Phase = Failed }), seen: Sight{State: Ready, Drained: true},
			want: with(with(left(free), goes(BodyFailed, false)), func(m *Member) {
				m.PhaseSince, m.ServedSince, m.DownSince = now, now, time.Time{}
			}),
		},
		"a member that is to be removed and was held meanwhile waits": {
			reason: "the engine withdraws the disruption",
			member: with(with(free, goes(ScaleDown, true)), func(m *Member) { m.Held = true }), seen: Sight{State: Ready, Drained: true},
			want: with(with(free, goes(ScaleDown, true)), func(m *Member) { m.Held = true }),
		},
		"a body that vanished before it served does not count": {
			reason: "it was deleted; that does not count against its revision, but the next birth waits",
			member: booting, seen: Sight{State: Absent},
			want: with(booting, func(m *Member) {
				m.Phase, m.PhaseSince, m.Gone, m.Body = Failed, now, true, false
				m.Attempts, m.NextAttempt = 1, now.Add(10*time.Second)
			}),
		},
		"a claimed member that is ready is in its claim": {
			reason: "the phase shows the claim",
			member: with(free, func(m *Member) { m.Claimed = true }), seen: Sight{State: Ready},
			want: with(free, func(m *Member) { m.Claimed, m.Phase, m.PhaseSince = true, InClaim, now }),
		},
		"a member that is to go drains": {
			reason: "the drain comes before the end",
			member: with(free, goes(Drift, false)), seen: Sight{State: Ready}, do: DrainBody,
			want: with(with(free, goes(Drift, false)), func(m *Member) { m.Phase, m.PhaseSince = Draining, now }),
		},
		"a drained member terminates": {
			reason: "Terminating is recorded before the deletion",
			member: with(free, goes(Drift, false)), seen: Sight{State: Ready, Drained: true},
			want: with(with(left(free), goes(Drift, false)), func(m *Member) { m.Phase, m.PhaseSince = Terminating, now }),
		},
		"a drained member that turned busy waits": {
			reason: "rule 1: it must not end before the engine withdraws the disruption",
			member: with(with(free, goes(Drift, false)), func(m *Member) { m.Occupancy = Busy }), seen: Sight{State: Ready, Drained: true},
			want: with(with(free, goes(Drift, false)), func(m *Member) { m.Occupancy = Busy }),
		},
		"the body of a terminating member is deleted": {
			reason: "the deletion is retried until the body is gone",
			member: with(with(left(free), goes(Drift, false)), func(m *Member) { m.Phase = Terminating }), seen: Sight{State: Stopping}, do: DeleteBody,
			want: with(with(left(free), goes(Drift, false)), func(m *Member) { m.Phase = Terminating }),
		},
		"a drained member without a disruption is taken back": {
			reason: "rule 9",
			member: with(free, func(m *Member) { m.Phase = Draining }), seen: Sight{State: Ready}, do: UndrainBody,
			want: with(free, func(m *Member) { m.PhaseSince = now }),
		},
		"a held slot with a spent disruption is deleted": {
			reason: "a spent disruption has no effect",
			member: with(free, func(m *Member) {
				m.Held, m.Deleting, m.Incarnation = true, true, 2
				m.Disruption = Disruption{Cause: Drift, Rolling: true, Incarnation: 1}
			}), seen: Sight{State: Ready, Drained: true},
			want: with(left(free), func(m *Member) {
				m.Held, m.Deleting, m.Incarnation = true, true, 2
				m.Disruption = Disruption{Cause: Drift, Rolling: true, Incarnation: 1}
				m.Phase, m.PhaseSince = Terminating, now
			}),
		},
		"a slot whose body is gone gets the next one": {
			reason: "the disruption carries the grant",
			member: with(with(left(free), goes(Drift, false)), func(m *Member) { m.Phase, m.Wants = Terminating, "B" }), seen: Sight{State: Absent}, do: CreateBody,
			want: with(with(left(free), goes(Drift, false)), func(m *Member) { m.Phase, m.Wants = Terminating, "B" }),
		},
		"a slot whose body is gone and that has no grant waits": {
			reason: "Terminating ends only in a new incarnation",
			member: with(with(left(free), goes(ClaimEnded, false)), func(m *Member) { m.Phase, m.Wants = Terminating, "" }), seen: Sight{State: Absent},
			want: with(with(left(free), goes(ClaimEnded, false)), func(m *Member) {
				m.StopTook = now.Sub(epoch)
				m.Wants, m.Phase, m.PhaseSince, m.Incarnation, m.Body, m.ServedSince = "", Pending, now, 2, false, time.Time{}
			}),
		},
		"a removed slot is deleted": {
			reason: "its body is gone",
			member: with(free, goes(ScaleDown, true)), seen: Sight{State: Absent}, do: DropSlot, want: with(free, goes(ScaleDown, true)),
		},
		"a deleted slot ends its body": {
			reason: "the finalizer holds the slot until then",
			member: with(free, func(m *Member) { m.Deleting = true }), seen: Sight{State: Ready, Drained: true},
			want: with(left(free), func(m *Member) { m.Deleting, m.Phase, m.PhaseSince = true, Terminating, now }),
		},
		"a deleted slot that is claimed stays": {
			reason: "rule 1",
			member: with(free, func(m *Member) { m.Deleting, m.Claimed, m.Phase = true, true, InClaim }), seen: Sight{State: Ready},
			want: with(free, func(m *Member) { m.Deleting, m.Claimed, m.Phase = true, true, InClaim }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := life
			if tc.lifecycle.BootTimeout > 0 {
				l = tc.lifecycle
			}
			got := Step(tc.member, tc.seen, l, now)
			if diff := cmp.Diff(Transition{Member: tc.want, Do: tc.do, Wake: tc.wake}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMember_births: the records of births.
func TestMember_births(t *testing.T) {
	now := epoch
	gone := Member{Wants: "B", Runs: "A", Phase: Terminating, Body: true, Incarnation: 3, ServedSince: epoch}
	born := gone.Born(now)
	if born.Incarnation != 4 || born.Phase != Provisioning || born.Runs != "B" || !born.Body || born.served() {
		t.Errorf("born: %+v", born)
	}
	refused := gone.Refused(now)
	if refused.Incarnation != 4 || refused.Phase != Failed || refused.Runs != "B" || refused.Body || !refused.FailedEarly {
		t.Errorf("refused: %+v", refused)
	}
	late := gone.WithoutRoom(now)
	if late.Incarnation != 4 || late.Phase != Pending || !late.NoRoom || !late.NextAttempt.Equal(now.Add(10*time.Second)) {
		t.Errorf("without room: %+v", late)
	}
	if again := late.WithoutRoom(now); again.Incarnation != 4 || !again.NextAttempt.Equal(now.Add(20*time.Second)) {
		t.Errorf("without room again: %+v", again)
	}
	if at := late.Born(now); at.Incarnation != 4 || at.NoRoom || !at.NextAttempt.IsZero() {
		t.Errorf("born at last: %+v", at)
	}
}

func TestBackoffAfter(t *testing.T) {
	for n, want := range map[int]time.Duration{
		0: 0, 1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 6: 320 * time.Second, 7: 10 * time.Minute, 1000: 10 * time.Minute,
	} {
		if got := BackoffAfter(n); got != want {
			t.Errorf("BackoffAfter(%d) = %s, want %s", n, got, want)
		}
	}
}

// TestBudget: rule 12, and the rounding of percentages.
func TestBudget(t *testing.T) {
	number := func(n int) Share { return Share{N: n, Written: true} }
	percent := func(n int) Share { return Share{N: n, Percent: true, Written: true} }
	absent := func(n int) Share { return Share{N: n} }
	for name, tc := range map[string]struct {
		reason         string
		u, s           Share
		n              int
		maxU, maxSurge int
		zero           bool
	}{
		"defaults":                     {"one may be out of service", absent(1), absent(0), 5, 1, 0, false},
		"20% of three":                 {"both come out 0, neither is written as 0", percent(20), absent(0), 3, 1, 0, false},
		"25% of ten":                   {"rounds down", percent(25), absent(0), 10, 2, 0, false},
		"a surge of 50% of one":        {"rounds up", percent(10), percent(50), 1, 0, 1, false},
		"both written 0":               {"that is a pause", number(0), number(0), 5, 0, 0, true},
		"0% and 0":                     {"0% is written as 0", percent(0), number(0), 5, 0, 0, true},
		"maxUnavailable 0, no surge":   {"it was written as 0, and stays so", number(0), absent(0), 5, 0, 0, false},
		"no members":                   {"percentages of nothing", percent(50), absent(0), 0, 1, 0, false},
		"all may be out of service":    {"100% is all", percent(100), absent(0), 7, 7, 0, false},
		"a surge of 1% of a thousand ": {"ten", number(0), percent(1), 1000, 0, 10, false},
		"all of very many":             {"nothing overflows", percent(100), percent(math.MaxInt), 1 << 60, 1 << 60, math.MaxInt, false},
	} {
		t.Run(name, func(t *testing.T) {
			u, s, zero := Budget(tc.u, tc.s, tc.n)
			if u != tc.maxU || s != tc.maxSurge || zero != tc.zero {
				t.Errorf("%s: got %d, %d, %t; want %d, %d, %t", tc.reason, u, s, zero, tc.maxU, tc.maxSurge, tc.zero)
			}
		})
	}
}

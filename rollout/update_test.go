package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestStep_back: rule 1. A busy body that is back is not ended by a decision
// from when it was down.
func TestStep_back(t *testing.T) {
	m := Member{
		ID: "m", Wants: "B", Runs: "A", Phase: Failed, Body: true, Incarnation: 1, BornAt: epoch, PhaseSince: epoch, ServedSince: epoch,
		Occupancy: Busy, Disruption: Disruption{Cause: BodyFailed, Incarnation: 1, Since: epoch},
	}
	now := epoch.Add(time.Hour)
	back := Step(m, Sight{State: Ready, Drained: true}, Lifecycle{}, now).Member
	if back.Phase != Available || !back.Disrupted() {
		t.Errorf("back in service, phase is %s", back.Phase)
	}
	if got := Step(back, Sight{State: Ready, Drained: true}, Lifecycle{}, now); got.Member != back || got.Do != Nothing {
		t.Errorf("waiting for the engine, it changes: %s, %v", got.Member.Phase, got.Do)
	}
	slow := Lifecycle{MinReady: time.Minute}
	if got := Step(m, Sight{State: Ready, Drained: true}, slow, now); got.Member.Phase != Preparing || got.Do != Nothing {
		t.Errorf("a busy body waits also before it is in service: %s, %v", got.Member.Phase, got.Do)
	}
	m.Occupancy = Idle
	if got := Step(m, Sight{State: Ready, Drained: true}, slow, now); got.Member.Phase != Terminating {
		t.Errorf("an idle body that is not in service yet has to end: %s", got.Member.Phase)
	}
	m.Occupancy = Busy
	if got := Step(m, Sight{State: Exited}, Lifecycle{}, epoch.Add(time.Hour)); got.Member.Phase != Terminating {
		t.Errorf("a body that has exited has to end: %s", got.Member.Phase)
	}
}

// TestStep_inPlace: the update of a body in place.
func TestStep_inPlace(t *testing.T) {
	now := epoch.Add(time.Hour)
	life := Lifecycle{BootTimeout: 10 * time.Minute, RecoverAfter: time.Minute}
	free := Member{
		ID: "m", Wants: "B", Runs: "A", Phase: Available, Body: true, Incarnation: 1, BornAt: epoch, PhaseSince: epoch, ServedSince: epoch,
		Disruption: Disruption{Cause: Drift, Update: true, Rolling: true, Incarnation: 1, Since: epoch},
	}
	with := func(m Member, change func(*Member)) Member { change(&m); return m }
	updating := with(free, func(m *Member) {
		m.Phase, m.PhaseSince = Updating, now
		m.DownSince, m.Recovered, m.RecoveredAt = now, "A", epoch.Add(time.Minute)
	})
	done := updating.Updated(now)
	for name, tc := range map[string]struct {
		reason string
		member Member
		seen   Sight
		do     Effect
		want   Member
		wake   time.Time
	}{
		"in service": {
			"the drain comes first", free, Sight{State: Ready}, DrainBody,
			with(free, func(m *Member) { m.Phase, m.PhaseSince = Draining, now }), time.Time{},
		},
		"drained":        {"Updating is recorded before the update", free, Sight{State: Ready, Drained: true}, Nothing, updating, time.Time{}},
		"down":           {"there is nothing to drain", free, Sight{State: Booting}, Nothing, updating, time.Time{}},
		"ended":          {"an exited body is started with the new revision", free, Sight{State: Exited}, Nothing, updating, time.Time{}},
		"turned busy":    {"rule 1", with(free, func(m *Member) { m.Occupancy = Busy }), Sight{State: Ready, Drained: true}, Nothing, with(free, func(m *Member) { m.Occupancy = Busy }), time.Time{}},
		"updating":       {"the update is retried until it is recorded", updating, Sight{State: Ready}, UpdateBody, updating, time.Time{}},
		"no grant":       {"no update without a grant", with(updating, func(m *Member) { m.Wants = "" }), Sight{State: Ready}, Nothing, with(updating, func(m *Member) { m.Wants = "" }), time.Time{}},
		"gone meanwhile": {"a missing body is created", updating, Sight{State: Absent}, CreateBody, updating, time.Time{}},
		"told to go": {
			"a body that is being deleted ends first", updating, Sight{State: Stopping}, Nothing,
			with(updating, func(m *Member) { m.Phase = Terminating }), time.Time{},
		},
		"deleted slot": {
			"a deleted slot is not updated", with(updating, func(m *Member) { m.Deleting = true }), Sight{State: Ready}, Nothing,
			with(updating, func(m *Member) { m.Deleting, m.Phase = true, Terminating }), time.Time{},
		},
		"coming up": {"bootTimeout counts from the update", done, Sight{State: Booting}, Nothing, done, now.Add(10 * time.Minute)},
		"back in service": {"the disruption is spent", done, Sight{State: Ready}, Nothing, with(done, func(m *Member) {
			m.Phase, m.ServedSince, m.DownSince = Available, now, time.Time{}
		}), time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Step(tc.member, tc.seen, life, now)
			if diff := cmp.Diff(Transition{Member: tc.want, Do: tc.do, Wake: tc.wake}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if done.Incarnation != 2 || done.Runs != "B" || !done.Body || done.served() || done.InService() || !done.Rolling() {
		t.Errorf("an update is the next incarnation, and not in service yet: %+v", done)
	}
	refused := updating.Refused(now)
	if refused.Phase != Failed || !refused.Body || refused.Gone || !refused.FailedEarly || refused.Incarnation != 2 {
		t.Errorf("after a refused update the slot is Failed and keeps its body: %+v", refused)
	}
	if again := Step(refused, Sight{State: Ready}, life, now).Member; again.Phase != Failed {
		t.Errorf("a refused update must not come into service: %+v", again)
	}
}

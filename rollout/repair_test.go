package rollout

import (
	"testing"
	"time"
)

// repaired is a member that was down when it was replaced for the reason, a
// minute ago, and whose new body boots.
func repaired(c Cause) func(*Member) {
	return func(m *Member) {
		replaced(m)
		m.Disruption = Disruption{Cause: c, Incarnation: 1, Since: epoch.Add(119 * time.Minute)}
		m.BornAt, m.PhaseSince = m.Disruption.Since, m.Disruption.Since
	}
}

// gone is a member whose body has vanished.
func gone(m *Member) { m.Phase, m.Gone, m.Body = Failed, true, false }

func unready(m *Member) { m.Phase = Unready }

// TestNew_repairs: rule 3. Few members that may come back by themselves are
// replaced at a time, and one that cannot come back takes no place.
func TestNew_repairs(t *testing.T) {
	takes := []string{"Disrupt 1 Drift to B (StaleDown)"}
	for name, tc := range map[string]planCase{
		"one is being repaired": {
			reason: "it takes the only place until it is back",
			s:      pool(3, member(0, repaired(Drift)), member(1, unready)), blockers: "UnavailableLimit 1, InFlightLimit 1",
		},
		"one that failed is being repaired": {
			reason: "a failed one takes the place too",
			s:      pool(3, member(0, repaired(BodyFailed)), member(1, unready)), blockers: "UnavailableLimit 1, InFlightLimit 1",
		},
		"the first birth failed": {
			reason: "the second birth takes no place",
			s:      pool(3, member(0, repaired(Drift)), member(0, func(m *Member) { m.Attempts = 1 }), member(1, unready)),
			want:   takes, blockers: "UnavailableLimit 1, Rolling 1",
		},
		"a body that never served is dropped": {
			reason: "it needs no place, and takes none",
			s: pool(3, member(0, func(m *Member) {
				m.Wants, m.Phase, m.ServedSince = "B", Terminating, time.Time{}
				m.Disruption = Disruption{Cause: Drift, Incarnation: 1, Since: epoch.Add(119 * time.Minute)}
			}), member(1, unready)),
			want: takes, blockers: "Rolling 2, UnavailableLimit 1",
		},
		"all are gone": {
			reason: "none of them may come back: they are replaced at once",
			s:      pool(3, member(0, gone), member(1, gone)),
			want:   []string{"Disrupt 0 Failed to B (BodyGone)", "Disrupt 1 Failed to B (BodyGone)"}, blockers: "UnavailableLimit 1",
		},
		"the partition": {
			reason: "a member that is down stays, if the same revision would be born",
			s:      pool(2, policy(func(p *Policy) { p.Partition = 2 }), member(0, unready)), blockers: "Partitioned 2",
		},
		"up to the partition": {
			reason: "the first repair decides what is born in place of the second",
			s:      pool(3, policy(func(p *Policy) { p.Partition, p.MaxInFlight = 2, 2 }), member(0, unready), member(1, unready)),
			want:   []string{"Disrupt 0 Drift to B (StaleDown)"}, blockers: "Partitioned 3",
		},
		"held, busy, claimed, skipped": {
			reason: "rule 1: a member in use is not replaced for drift, down or not",
			s: pool(5, policy(func(p *Policy) { p.MaxInFlight = 5 }), member(0, unready), member(0, func(m *Member) { m.Held = true }),
				member(1, unready), member(1, func(m *Member) { m.Occupancy = Busy }), member(2, claimed), member(2, unready),
				member(3, unready), member(3, func(m *Member) { m.Skipped, m.Wants, m.Runs = true, "C", "C" })),
			blockers: "Held 2, Claimed 1, Busy 1, UnavailableLimit 1",
		},
		"cordoned": {
			reason: "a cordoned member is down",
			s:      pool(3, member(0, func(m *Member) { m.Cordoned = true })),
			want:   []string{"Disrupt 0 Drift to B (StaleDown)"}, blockers: "UnavailableLimit 2, Rolling 1",
		},
	} {
		t.Run(name, tc.check)
	}
}

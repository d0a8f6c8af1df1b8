package rollout

import (
	"fmt"
	"slices"
	"time"
)

// MaxSlots is the largest number of members that the engine plans for.
const MaxSlots = 1_000_000

// Validate returns what is wrong with the snapshot but for the order of its
// members, naming the field; nil if a plan can be made. [New] of a snapshot that
// is not valid does nothing, and says why in the condition Updated.
func (s *Snapshot) Validate() error {
	p := &s.Policy
	for _, n := range []struct {
		field string
		is    int
	}{
		{"policy.Desired", p.Desired}, {"policy.RefillBelow", p.RefillBelow}, {"policy.MaxMembers", p.MaxMembers},
		{"policy.MaxUnavailable", p.MaxUnavailable}, {"policy.MaxSurge", p.MaxSurge}, {"policy.MinAvailable", p.MinAvailable},
		{"policy.MaxInFlight", p.MaxInFlight}, {"policy.Partition", p.Partition}, {"policy.FailureLimit", p.FailureLimit},
		{"surge", s.Surge}, {"size", s.Size}, {"waiting", s.Waiting}, {"budgetRoom", s.BudgetRoom},
		{"members", len(s.Members)},
	} {
		if n.is < 0 || n.is > MaxSlots {
			return fmt.Errorf("%s is %d; it has to be from 0 to %d", n.field, n.is, MaxSlots)
		}
	}
	switch {
	case s.Target.ID == "" && s.Unreadable == "" && !s.Deleting:
		return fmt.Errorf("target.ID is empty; name the revision that members are brought to")
	case p.MinReady < 0 || p.ProgressDeadline < 0:
		return fmt.Errorf("policy.MinReady is %s and policy.ProgressDeadline %s; neither may be negative", p.MinReady, p.ProgressDeadline)
	}
	return nil
}

// ahead reports whether a clock that was ahead wrote some of the member, by a
// second at least; now is in seconds. The next attempt is looked at where it
// matters, but for one that is out of reach.
func (m *Member) ahead(now int64) bool {
	return m.PhaseSince.Unix() > now || m.ServedSince.Unix() > now || m.DownSince.Unix() > now || m.Disruption.Since.Unix() > now ||
		m.BornAt.Unix() > now || m.UnsettledSince.Unix() > now || m.RecoveredAt.Unix() > now ||
		m.NextAttempt.Unix() > now+int64(longestBackoff/time.Second)+1
}

// asOf is the snapshot with each stored time that is later than now as now.
func (s *Snapshot) asOf(now time.Time) *Snapshot {
	out := *s
	out.Members = slices.Clone(s.Members)
	for i := range out.Members {
		m := &out.Members[i]
		*m = m.asOf(now)
		m.Disruption.Since = notAfter(m.Disruption.Since, now)
	}
	return &out
}

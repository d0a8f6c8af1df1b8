package rollout

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// MaxSlots is the largest number of members in a plan.
const MaxSlots = 1_000_000

// Validate returns an error that names the invalid field; nil if a plan can be made. The
// order of the members is checked by [Snapshot.Plan].
func (s *Snapshot) Validate() error {
	if err := s.Policy.Validate(); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	if err := inBounds([]boundedNumber{
		{"surge", s.Surge}, {"size", s.Size}, {"waiting", s.Waiting}, {"budgetRoom", s.BudgetRoom}, {"members", len(s.Members)},
	}); err != nil {
		return err
	}
	if s.Target.ID == "" && s.Unreadable == "" && !s.Deleting {
		return errors.New("target.ID is empty; name the revision that members are brought to")
	}
	return nil
}

// Validate returns an error that names the invalid field: a number outside 0 to [MaxSlots],
// a negative time, an unknown order.
func (p *Policy) Validate() error {
	if err := inBounds([]boundedNumber{
		{"desired", p.Desired}, {"refillBelow", p.RefillBelow}, {"maxMembers", p.MaxMembers}, {"maxUnavailable", p.MaxUnavailable},
		{"maxSurge", p.MaxSurge}, {"minAvailable", p.MinAvailable}, {"maxInFlight", p.MaxInFlight}, {"partition", p.Partition},
		{"failureLimit", p.FailureLimit},
	}); err != nil {
		return err
	}
	switch {
	case p.MinReady < 0 || p.ProgressDeadline < 0:
		return fmt.Errorf("minReady is %s and progressDeadline %s; neither may be negative", p.MinReady, p.ProgressDeadline)
	case p.Order > OldestFirst:
		return fmt.Errorf("order is %d; use LowestIndex or OldestFirst", p.Order)
	}
	return nil
}

// boundedNumber is a number of members and its field.
type boundedNumber struct {
	field string
	value int
}

func inBounds(list []boundedNumber) error {
	for _, n := range list {
		if n.value < 0 || n.value > MaxSlots {
			return fmt.Errorf("%s is %d; use 0 to %d", n.field, n.value, MaxSlots)
		}
	}
	return nil
}

// ahead reports whether a clock that was ahead by a second or more wrote a time of the
// member; now is in Unix seconds. NextAttempt may be later than now, but not by more than
// the longest backoff.
func (m *Member) ahead(now int64) bool {
	return m.PhaseSince.Unix() > now || m.ServedSince.Unix() > now || m.DownSince.Unix() > now || m.Disruption.Since.Unix() > now ||
		m.BornAt.Unix() > now || m.UnsettledSince.Unix() > now || m.RecoveredAt.Unix() > now ||
		m.NextAttempt.Unix() > now+int64(longestBackoff/time.Second)+1
}

// asOf returns the snapshot with every stored time that is later than now set to now.
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

package member

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// occupancies are how the engine takes what a body tells.
var occupancies = map[body.Occupancy]rollout.Occupancy{
	body.Idle: rollout.Idle, body.Busy: rollout.Busy, body.UnknownOccupancy: rollout.OccupancyUnsure,
}

// slotNow is the slot as it is stored, and whether work runs on it as was just
// seen.
func (s *step) slotNow() rollout.Member {
	m := snapshot.Member(s.member, s.now)
	if o, told := s.occupancy(); told {
		m.Occupancy = o
	}
	return m
}

// occupancy is whether work runs on the body, if it tells. Of one that used to
// tell and cannot be looked at nobody knows; where there is none, none does.
func (s *step) occupancy() (o rollout.Occupancy, told bool) {
	if o, told = occupancies[s.seen.Occupancy]; told {
		return o, true
	}
	tells := meta.FindStatusCondition(s.member.Status.Conditions, v1alpha1.ConditionOccupied) != nil
	if s.seen.State == "" {
		return rollout.OccupancyUnsure, tells
	}
	return rollout.Idle, tells
}

// setOccupied writes that down.
func (s *step) setOccupied() {
	if o, told := s.occupancy(); told {
		s.setCondition(snapshot.Occupied(o))
	}
}

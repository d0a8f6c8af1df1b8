package snapshot

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// occupied has the content of a member's condition Occupied for each occupancy.
var occupied = [...]metav1.Condition{
	rollout.Idle:            {Status: metav1.ConditionFalse, Reason: "Idle", Message: "no work runs on it"},
	rollout.Busy:            {Status: metav1.ConditionTrue, Reason: "Busy", Message: "work runs on it"},
	rollout.OccupancyUnsure: {Status: metav1.ConditionUnknown, Reason: "OccupancyUnknown", Message: "it is unknown whether work runs on it"},
}

// Occupancy reads from the condition whether work runs on the member. A member
// without the condition is idle.
func Occupancy(m *v1alpha1.Member) rollout.Occupancy {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionOccupied)
	switch {
	case c == nil || c.Status == metav1.ConditionFalse:
		return rollout.Idle
	case c.Status == metav1.ConditionTrue:
		return rollout.Busy
	}
	return rollout.OccupancyUnsure
}

// Occupied returns the condition that stores an occupancy.
func Occupied(o rollout.Occupancy) metav1.Condition {
	c := occupied[o]
	c.Type = v1alpha1.ConditionOccupied
	return c
}

package snapshot

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

func TestOccupancy(t *testing.T) {
	t.Parallel()
	var m v1alpha1.Member
	if got := Occupancy(&m); got != rollout.Idle {
		t.Errorf("without the condition: got %d, want idle", got)
	}
	for _, want := range []rollout.Occupancy{rollout.Busy, rollout.OccupancyUnsure, rollout.Idle} {
		meta.SetStatusCondition(&m.Status.Conditions, Occupied(want))
		if got := Occupancy(&m); got != want {
			t.Errorf("wrote occupancy %d, read %d", want, got)
		}
	}
	if len(m.Status.Conditions) != 1 {
		t.Errorf("got %d conditions, want 1", len(m.Status.Conditions))
	}
}

package snapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// A status that was stored and read is stored again unchanged. Otherwise the
// digits of a time that the API drops would cause a write in every pass.
func TestSetStatus_Settles(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{0, 1, 499 * time.Microsecond, time.Millisecond, 1234567891 * time.Nanosecond} {
		at := time.Unix(1900000000, 123456789)
		m := rollout.Member{Phase: rollout.Available, Body: true, BootTook: took, StopTook: took, BornAt: at, PhaseSince: at, ServedSince: at}
		once := v1alpha1.Member{}
		SetStatus(&once.Status, &m)
		read := Member(&once, at)
		twice := once.DeepCopy()
		SetStatus(&twice.Status, &read)
		if diff := cmp.Diff(once.Status, twice.Status); diff != "" {
			t.Errorf("%s: (-once +twice)\n%s", took, diff)
		}
	}
}

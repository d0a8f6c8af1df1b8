package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is observed comes out in the order of resource versions, and not before
// that order is certain.
func TestInbox_Take(t *testing.T) {
	t.Parallel()
	var b inbox
	versions := func(barrier int) (list []uint64) {
		for _, o := range b.take(barrier) {
			list = append(list, o.version)
		}
		return list
	}
	b.put(observation{version: 12, barrier: 2}) // a write of 11 may still be on its way
	b.put(observation{version: 10, barrier: 1})
	b.put(observation{version: 10, barrier: 1, end: true}) // after the write, as it came
	if diff := cmp.Diff([]uint64{10, 10}, versions(1)); diff != "" {
		t.Errorf("up to barrier 1 (-want +got):\n%s", diff)
	}
	if b.busy().IsZero() {
		t.Error("what is left is not waited for")
	}
	b.put(observation{version: 11, barrier: 3})
	if got := versions(2); got != nil {
		t.Errorf("%d comes out before what was written before it", got)
	}
	if diff := cmp.Diff([]uint64{11, 12}, versions(3)); diff != "" {
		t.Errorf("up to barrier 3 (-want +got):\n%s", diff)
	}
	if !b.busy().IsZero() {
		t.Error("nothing is waited for")
	}
}

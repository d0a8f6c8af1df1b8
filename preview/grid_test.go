package preview

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// starts are ways in which a pool of old members may stand when a rollout
// begins: how many more or fewer there are than there should be, and which of
// them are down or updated.
var starts = map[string]struct {
	more int
	is   func(i, n int, m *rollout.Member)
}{
	"all there":    {0, func(int, int, *rollout.Member) {}},
	"one missing":  {-1, func(int, int, *rollout.Member) {}},
	"two too many": {2, func(int, int, *rollout.Member) {}},
	"all down":     {0, func(_, _ int, m *rollout.Member) { m.Phase = rollout.Unready }},
	"half is done": {0, func(i, _ int, m *rollout.Member) { m.Runs = map[bool]rollout.Revision{true: "B", false: "A"}[i%2 == 0] }},
	"the last down": {0, func(i, n int, m *rollout.Member) {
		m.Phase = map[bool]rollout.Phase{true: rollout.Unready, false: rollout.Available}[i == n-1]
	}},
}

// policies calls with every policy of small numbers.
func policies(do func(rollout.Policy)) {
	for d := range 4 {
		for u := range d + 2 {
			for s := range 3 {
				for floor := -1; floor <= d+2; floor++ {
					for ceiling := -1; ceiling <= d+2; ceiling++ {
						for flags := range 8 {
							p := rollout.Policy{
								Desired: d, MaxUnavailable: u, MaxSurge: s, MinAvailable: max(floor, 0), HasFloor: floor >= 0,
								MaxMembers: max(ceiling, 0), HasCeiling: ceiling >= 0, MaxInFlight: 1,
								Warm: flags&1 > 0, InPlace: flags&2 > 0, Partition: flags >> 2,
								FailureLimit: 3, ProgressDeadline: 10 * time.Minute,
							}
							if !p.InPlace || s == 0 { // as the API says
								do(p)
							}
						}
					}
				}
			}
		}
	}
}

// A rollout of which nothing is claimed, held or busy ends, unless the engine
// says at once which two fields of its policy collide. Collision knows all such
// policies.
func TestPreview_everyPolicyEndsOrSaysWhy(t *testing.T) {
	t.Parallel()
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			policies(func(p rollout.Policy) {
				n++
				o := crowd(max(0, p.Desired+start.more), func(*rollout.Policy) {})
				o.Snapshot.Policy = p
				for i := range o.Snapshot.Members {
					m := &o.Snapshot.Members[i]
					start.is(i, len(o.Snapshot.Members), m)
					m.Wants = m.Runs
				}
				f := Preview(o)
				why := ""
				switch field, _ := p.Collision(); {
				case f.Endless:
					why = "it never ends"
				case len(f.Collide) > 0 && f.Reason == "UpdateBlocked":
				case field != "" && f.After.Stale > p.Partition:
					why = "it is stuck, and does not say that " + field + " collides"
				case !f.Finishes:
					why = "it ends as " + f.Reason
				}
				if why != "" {
					t.Errorf("%s: %s\n%s", fmt.Sprintf("%+v", p), why, f.Next)
				}
			})
			t.Logf("%d policies", n)
		})
	}
}

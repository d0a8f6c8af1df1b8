package preview

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// starts are states of a stale pool before a rollout: extra is the number of
// members beyond the desired number, set changes member i of n.
var starts = map[string]struct {
	extra int
	set   func(i, n int, m *rollout.Member)
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

// policies calls do with every policy of small numbers.
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
							if !p.InPlace || s == 0 { // the API refuses others
								do(p)
							}
						}
					}
				}
			}
		}
	}
}

// If no member is claimed, held or busy, a rollout ends, unless two fields of its
// policy collide. Collision names them for every such policy.
func TestPreview_everyPolicyEndsOrSaysWhy(t *testing.T) {
	t.Parallel()
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			policies(func(p rollout.Policy) {
				n++
				o := stalePool(max(0, p.Desired+start.extra), func(*rollout.Policy) {})
				o.Snapshot.Policy = p
				for i := range o.Snapshot.Members {
					m := &o.Snapshot.Members[i]
					start.set(i, len(o.Snapshot.Members), m)
					m.Wants = m.Runs
				}
				f := Preview(o)
				problem := ""
				switch field, _ := p.Collision(); {
				case f.Endless:
					problem = "the rollout never ends"
				case len(f.Collide) > 0 && f.Reason == "UpdateBlocked":
				case field != "" && f.After.Stale > p.Partition:
					problem = "the rollout is stuck and does not report that " + field + " collides"
				case !f.Finishes:
					problem = "the rollout ends with reason " + f.Reason
				}
				if problem != "" {
					t.Errorf("%s: %s\n%s", fmt.Sprintf("%+v", p), problem, f.Next)
				}
			})
			t.Logf("%d policies", n)
		})
	}
}

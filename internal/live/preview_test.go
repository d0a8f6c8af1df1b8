//go:build integration

package live

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/internal/pawldtest"
	"github.com/pawl-dev/pawl/preview"
	"github.com/pawl-dev/pawl/simulate"
)

// Stories in which nothing happens from outside, one of each kind of policy.
var still = []string{
	`
name: one-at-a-time
pool: {replicas: 4, update: {type: RollingUpdate}}
start: {target: B, current: A, members: [{count: 4, revision: A}]}
`, `
name: surge-and-costs
pool: {replicas: 4, update: {type: RollingUpdate, maxUnavailable: 1, maxSurge: 2, minReadySeconds: 5}}
start:
  target: B
  current: A
  members: [{revision: A, cost: 2}, {revision: A}, {revision: A, state: Claimed, claim: c}, {revision: A, cost: -1}, {revision: B}]
`, `
name: partition-floor-and-holds
pool: {replicas: 6, update: {type: RollingUpdate, maxUnavailable: 3, minAvailable: 4, partition: 2}}
start:
  target: B
  current: A
  members: [{revision: A, hold: "until 3m"}, {revision: A, hold: forever}, {revision: A, occupancy: Busy}, {count: 3, revision: A}]
`, `
name: in-place-and-down
pool: {replicas: 5, update: {type: RollingUpdate, method: InPlace, maxUnavailable: 2}}
start:
  target: B
  current: A
  members: [{revision: A, state: Unready}, {revision: A, state: Failed}, {count: 3, revision: A}]
`, `
name: warm-under-a-ceiling
pool: {replicas: 3, sizing: Warm, maxMembers: 5, update: {type: RollingUpdate, maxUnavailable: 1, maxSurge: 1}}
start:
  target: B
  current: A
  members: [{revision: A, state: Claimed, claim: c}, {count: 3, revision: A}]
`, `
name: too-many-and-on-their-way
pool: {replicas: 3, update: {type: RollingUpdate, maxUnavailable: 2}}
start:
  target: B
  current: A
  members: [{revision: A, state: Draining}, {revision: A, state: Terminating}, {revision: A, state: Provisioning}, {count: 3, revision: A}]
`,
}

// What is foretold of how a story starts comes true on a real API server: the
// same members in the same order, as many bodies, as few free members.
func TestPreview_comesTrue(t *testing.T) {
	t.Parallel()
	var stories []*simulate.Scenario
	for _, text := range still {
		s, err := simulate.Parse("", []byte(text+"run: 15m\n"))
		if err != nil {
			t.Fatal(err)
		}
		stories = append(stories, s)
	}
	for _, name := range []string{"already-down-costs-nothing", "budget-is-in-flight-not-per-pass", "floor-is-on-free-members", "in-place-update"} {
		s, err := simulate.Load("../../scenarios/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		stories = append(stories, s)
	}
	for _, s := range stories {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			told := preview.Preview(s.Outlook())
			want := Counts{Creates: told.Births, Deletes: told.Deletes, LowestFree: told.Free.Lowest}
			for _, m := range told.Moves {
				if m.Deed != preview.Made && m.Deed != preview.Born && !slices.Contains(want.Order, m.Index) {
					want.Order = append(want.Order, m.Index)
				}
			}
			r, err := Run(t.Context(), pawldtest.Shared(t).Config, s, Options{Clean: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, r.Pools["pool"]); diff != "" {
				t.Errorf("it came otherwise (-foretold +happened):\n%s", diff)
			}
			for _, f := range r.Failures {
				if strings.HasPrefix(f.Kind, "promise") {
					t.Errorf("%v: %s", f.At, f.Text)
				}
			}
		})
	}
}

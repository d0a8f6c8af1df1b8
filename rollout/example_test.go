package rollout_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// A fleet of three is filled on revision v1, and rolled to v2, one member at a time.
// Bodies boot in a minute and end at once; the fleet maps each to when it is ready.
func Example() {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	pool := &rollout.Snapshot{
		Policy: rollout.Policy{Desired: 3, MaxUnavailable: 1}.Usual(),
		Target: rollout.Record{ID: "v1", Since: now},
	}
	ready := map[string]time.Time{}
	life := rollout.Lifecycle{BootTimeout: 10 * time.Minute, RecoverAfter: pool.Policy.RecoverAfter()}
	settle := func() {
		for i := 0; i < len(pool.Members); i++ {
			m := &pool.Members[i]
			body := fmt.Sprintf("%s/%d", m.ID, m.Incarnation)
			seen := rollout.Sight{}
			if at, ok := ready[body]; ok {
				seen = rollout.Sight{State: rollout.Booting, Drained: true}
				if !now.Before(at) {
					seen.State = rollout.Ready
				}
			}
			step := rollout.Step(*m, seen, life, now)
			if step.Do == rollout.Nothing && step.Member == *m {
				continue
			}
			*m = step.Member
			switch step.Do {
			case rollout.CreateBody:
				*m = m.Born(now)
				ready[fmt.Sprintf("%s/%d", m.ID, m.Incarnation)] = now.Add(time.Minute)
			case rollout.DeleteBody:
				delete(ready, body)
			case rollout.DropSlot:
				pool.Members = slices.Delete(pool.Members, i, i+1)
			}
			i-- // step it again, until nothing changes
		}
	}
	for range 20 {
		settle()
		plan := pool.Plan(now)
		for i := range plan.Actions {
			a := &plan.Actions[i]
			fmt.Printf("%s  %s\n", now.Format(time.TimeOnly), a)
			pool.Apply(a, fmt.Sprint("slot-", a.Index), now)
		}
		pool.Surge, pool.Size = plan.Surge, plan.Size
		if pool.Current.ID == "v1" && pool.Target.ID == "v1" {
			pool.Target = rollout.Record{ID: "v2", Since: now}
			fmt.Println(now.Format(time.TimeOnly), " the template changes")
		}
		if len(plan.Actions) == 0 {
			now = now.Add(time.Minute)
		}
	}
	fmt.Println(pool.Plan(now).Updated.Message)
	// Output:
	// 00:00:00  member 0 is made, for a body of revision v1: the size asks for one more
	// 00:00:00  member 1 is made, for a body of revision v1: the size asks for one more
	// 00:00:00  member 2 is made, for a body of revision v1: the size asks for one more
	// 00:02:00  revision v1 becomes the current one: it is the first of which a body recovered
	// 00:02:00  the template changes
	// 00:02:00  member 0 is replaced by a body of revision v2: it is on another revision than the target, and can be spared
	// 00:03:00  member 1 is replaced by a body of revision v2: it is on another revision than the target, and can be spared
	// 00:04:00  member 2 is replaced by a body of revision v2: it is on another revision than the target, and can be spared
	// 00:06:00  revision v2 becomes the current one: the pool stands on it
	// every body is on revision v2
}

// A plan gives the reason why each member is not updated.
func ExampleSnapshot_Plan() {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	long := now.Add(-time.Hour)
	pool := &rollout.Snapshot{
		Policy:  rollout.Policy{Desired: 3, MaxUnavailable: 1}.Usual(),
		Target:  rollout.Record{ID: "v2"},
		Current: rollout.Record{ID: "v1"},
	}
	for i := range 3 {
		pool.Members = append(pool.Members, rollout.Member{
			Index: i, ID: fmt.Sprint("slot-", i), Wants: "v1", Runs: "v1", Incarnation: 1,
			Phase: rollout.Available, Body: true, BornAt: long, PhaseSince: long, ServedSince: long,
		})
	}
	pool.Members[0].Claimed, pool.Members[0].Phase = true, rollout.InClaim
	fmt.Print(pool.Plan(now))
	// Output:
	// member 1 is replaced by a body of revision v2: it is on another revision than the target, and can be spared
	// Claimed: 1 member, the first is 0
	// UnavailableLimit: 1 member, the first is 2
	// Rolling: 1 member, the first is 1
	// Updated=False RollingUpdate: members are brought to revision v2
	// Ready=True InService: every member that the size asks for is in service
	// Reconciling=True Progressing: bodies are on their way in or out
	// Stalled=False NotStalled: members come into service in time
	// Available=True EnoughInService: no more than maxUnavailable members are out of service
	// next: 0 of 3 updated; of the others, member 0: it is claimed, and waits until the claim is released
}

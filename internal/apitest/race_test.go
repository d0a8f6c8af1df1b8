//go:build integration

package apitest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// contender is somebody who wants a member and has seen it free. It writes
// what it saw with its wish added, or patches whatever there is by now.
type contender struct {
	field string
	value map[string]any
	patch bool
}

// claimant wants the member for a claim, disruptor wants it to be replaced.
func claimant(n int, patch bool) contender {
	return contender{"claim", map[string]any{"name": fmt.Sprintf("c-%d", n), "uid": fmt.Sprint(n)}, patch}
}

func disruptor(incarnation int64) contender {
	return contender{"disruption", map[string]any{"reason": "Drift", "action": "Replace", "incarnation": incarnation}, false}
}

func (c contender) write(client dynamic.ResourceInterface, seen *unstructured.Unstructured) error {
	if c.patch {
		data, err := (&unstructured.Unstructured{Object: map[string]any{
			"kind": "Member", "apiVersion": "pawl.dev/v1alpha1", "spec": map[string]any{c.field: c.value},
		}}).MarshalJSON()
		if err != nil {
			return err
		}
		_, err = client.Patch(context.Background(), seen.GetName(), types.MergePatchType, data, metav1.PatchOptions{})
		return err
	}
	o := seen.DeepCopy()
	if err := unstructured.SetNestedMap(o.Object, c.value, "spec", c.field); err != nil {
		return err
	}
	_, err := client.Update(context.Background(), o, metav1.UpdateOptions{})
	return err
}

// contend lets all write at once, or one after the other, and returns those
// that succeeded.
func contend(client dynamic.ResourceInterface, seen *unstructured.Unstructured, all []contender, atOnce bool) []contender {
	won := make([]bool, len(all))
	var group sync.WaitGroup
	for i, c := range all {
		try := func() { won[i] = c.write(client, seen) == nil }
		if atOnce {
			group.Go(try)
		} else {
			try()
		}
	}
	group.Wait()
	var winners []contender
	for i, c := range all {
		if won[i] {
			winners = append(winners, c)
		}
	}
	return winners
}

// arena is one member over which many contend, again and again.
type arena struct {
	api
	client dynamic.ResourceInterface
	ns     string
	name   string
}

func newArena(t *testing.T) arena {
	t.Helper()
	a := admin(t)
	ns := a.namespace()
	return arena{a, a.client.Resource(members).Namespace(ns), ns, a.member(ns, available)}
}

func (a arena) get() *unstructured.Unstructured {
	a.t.Helper()
	o, err := a.client.Get(context.Background(), a.name, metav1.GetOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return o
}

// free ends the claim or the disruption, and returns the member as it is then.
func (a arena) free(incarnation int64) *unstructured.Unstructured {
	a.t.Helper()
	a.apply(members, a.ns, a.name, []write{
		spec(`{"claim":null,"disruption":null}`),
		status(fmt.Sprintf(`{"phase":"Available","incarnation":%d}`, incarnation)),
	})
	return a.get()
}

// judge fails the test unless exactly one has won, and the member is its.
func (a arena) judge(winners []contender, what string) string {
	a.t.Helper()
	if len(winners) != 1 {
		a.t.Fatalf("%s: %d have won", what, len(winners))
	}
	o := a.get()
	for _, field := range []string{"claim", "disruption"} {
		_, has, _ := unstructured.NestedMap(o.Object, "spec", field)
		if has != (field == winners[0].field) {
			a.t.Fatalf("%s: the %s has won, and spec.%s is %t", what, winners[0].field, field, has)
		}
	}
	return winners[0].field
}

// One claim and one disruption, 200 times: both have seen the member free, and
// whichever comes first has it.
func TestMember_ClaimVersusDisrupt(t *testing.T) {
	a := newArena(t)
	won := map[string]int{}
	for round := range int64(200) {
		seen := a.free(round + 2)
		two := []contender{claimant(int(round), round%2 == 0), disruptor(round + 2)}
		if round%4 >= 2 {
			two[0], two[1] = two[1], two[0]
		}
		// Every fifth round in order, so that each comes first at times.
		atOnce := round%5 != 0
		field := a.judge(contend(a.client, seen, two, atOnce), fmt.Sprintf("round %d", round))
		if !atOnce && field != two[0].field {
			t.Fatalf("round %d: the %s came second and has won", round, field)
		}
		won[field]++
	}
	t.Logf("won: %v", won)
	if won["claim"] == 0 || won["disruption"] == 0 {
		t.Errorf("one side has never won: %v", won)
	}
}

// 200 at once, half of them claims: exactly one wins, not one of each.
func TestMember_Crowd(t *testing.T) {
	a := newArena(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range int64(5) {
		seen := a.free(round + 2)
		var all []contender
		for n := range 100 {
			all = append(all, claimant(n, n%2 == 0), disruptor(round+2))
		}
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		a.judge(contend(a.client, seen, all, true), fmt.Sprintf("round %d", round))
	}
}

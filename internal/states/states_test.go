package states

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pawl-dev/pawl/simulate"
)

var starts = []Start{InService, Drift, Fresh}

// TestPolicies: every pair of values of two settings occurs, under few policies.
func TestPolicies(t *testing.T) {
	t.Parallel()
	list := Policies()
	if len(list) > 40 {
		t.Errorf("%d policies, and at most 40 are to do", len(list))
	}
	seen := map[[4]int]bool{}
	for _, c := range list {
		for a := range c {
			for b := range a {
				seen[[4]int{a, c[a], b, c[b]}] = true
			}
		}
	}
	for a := range settings {
		for b := range a {
			for va := range settings[a].values {
				for vb := range settings[b].values {
					if !seen[[4]int{a, va, b, vb}] {
						t.Errorf("no policy has the %d. value of %s with the %d. of %s", va, settings[a].name, vb, settings[b].name)
					}
				}
			}
		}
	}
}

// TestExploration_Run: nothing is found in the smallest bounds, all of it is explored,
// and a second exploration comes to the same.
func TestExploration_Run(t *testing.T) {
	t.Parallel()
	for i, c := range Policies() {
		b := Bounds{Slots: 1, Users: 1, Faults: i % 2, Start: starts[i%len(starts)]}
		one := (&Exploration{Policy: c, Bounds: b, Findings: 1}).Run()
		for k := range one.Findings {
			t.Errorf("%s in bounds %s: %s", c, b, &one.Findings[k])
		}
		two := (&Exploration{Policy: c, Bounds: b, Findings: 1}).Run()
		if !one.Complete || one.States < 20 || one.States != two.States || one.Edges != two.Edges {
			t.Errorf("%s in bounds %s: first %d states and %d edges, complete %t, then %d and %d", c, b, one.States, one.Edges, one.Complete, two.States, two.Edges)
		}
	}
}

// TestExploration_never: a world in which something repeats for ever is found, and one
// in which only time goes by is at rest.
func TestExploration_never(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		turns  []kind
		want   bool
	}{
		"claims": {"a claim steps again and again", []kind{timeEdge, claimEdge}, true},
		"time":   {"nothing is written", []kind{timeEdge, timeEdge}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &Exploration{Policy: Policies()[0]}
			for i, k := range tt.turns {
				x.visits = append(x.visits, visit{from: noState, fair: uint32((i + 1) % len(tt.turns)), turn: k})
			}
			x.cycles()
			if got := len(x.result.Findings) > 0; got != tt.want {
				t.Errorf("%s: found %t, want %t", tt.reason, got, tt.want)
			}
		})
	}
}

// TestFinding_Scenario: what is printed is a scenario, whatever the path.
func TestFinding_Scenario(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	for i, c := range Policies() {
		for n := range 40 {
			f := Finding{Policy: c, Bounds: Bounds{Slots: 1 + n%3, Users: 3, Faults: 2, Start: starts[n%len(starts)]}, Message: "member 0: \"it\" is, #1\nand more"}
			r := c.rules(f.Bounds.Slots)
			w := r.start(f.Bounds)
			w.tidy()
			for range 30 {
				var v view
				v.look(r, &w)
				list := v.edges(nil)
				if len(list) == 0 {
					break
				}
				e := list[rng.IntN(len(list))]
				var next world
				if !v.follow(e, &next) || next.outside {
					continue
				}
				f.path = append(f.path, e)
				next.tidy()
				w = next
			}
			name := fmt.Sprintf("found-%d", n)
			text := f.Scenario(name)
			if _, err := simulate.Parse(name+".yaml", []byte(text)); err != nil {
				t.Fatalf("policy %d, %s: %v\n%s", i, c, err, text)
			}
		}
	}
}

func TestParseBounds(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"3/1/1": true, "fresh:2/0/1": true, "drift:3/1/0": true, "": false, "3/1": false, "4/1/1": false, "3/-1/1": false, "3/1/1/1": false, "old:1/1/1": false,
	} {
		b, err := ParseBounds(text)
		if (err == nil) != ok {
			t.Errorf("%q: %v, %v", text, b, err)
		}
	}
}

package states

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestTidy: what is left out of a state decides nothing. A state and its tidied form
// have the same successors, and these again, for a few edges.
func TestTidy(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range Policies() {
		r := c.rules(2)
		for n := range walks(t) {
			raw := r.start(Bounds{2, 3, 2, starts[n%len(starts)]})
			tidied := raw
			tidied.tidy()
			var path []edge
			for range 40 {
				var v, tv view
				v.look(r, &raw)
				tv.look(r, &tidied)
				one, two := v.edges(nil), tv.edges(nil)
				if len(one) != len(two) {
					t.Fatalf("%s: after %v there are the edges\n%v\nand tidied\n%v\nfrom %+v\nand %+v", c, path, one, two, raw, tidied)
				}
				if len(one) == 0 {
					break
				}
				e := one[rng.IntN(len(one))]
				if (e.user() || e.fault()) && rng.IntN(3) > 0 {
					e = one[0]
				}
				path = append(path, e)
				var a, b world
				if v.follow(e, &a) != tv.follow(e, &b) {
					t.Fatalf("%s: after %v one goes on, and the other does not", c, path)
				}
				if a.outside {
					break
				}
				raw, tidied = a, b
				tidied.tidy()
				a.tidy()
				if x, y := timeless(a), timeless(tidied); !bytes.Equal(x, y) {
					t.Fatalf("%s: after %v the states differ:\n%+v\nand tidied\n%+v", c, path, a, tidied)
				}
			}
		}
	}
}

// timeless is the state without its times, but for whether there are any: what was long
// ago in both may be so in more than one way.
func timeless(w world) []byte {
	clearTime := func(list ...*time.Time) {
		for _, t := range list {
			if !t.IsZero() {
				*t = epoch
			}
		}
	}
	for i := range w.slots[:w.n] {
		m := &w.slots[i].Member
		clearTime(&m.BornAt, &m.PhaseSince, &m.ServedSince, &m.DownSince, &m.UnsettledSince, &m.RecoveredAt, &m.NextAttempt, &m.Disruption.Since)
	}
	for i := range w.records {
		r := &w.records[i]
		clearTime(&r.Since, &r.Counted)
		r.Failures = slices.Clone(r.Failures)
		for f := range r.Failures {
			clearTime(&r.Failures[f].At)
		}
	}
	b, _ := w.encode(nil)
	return b
}

// walks is how many random walks there are under each policy.
func walks(t *testing.T) int {
	t.Helper()
	if testing.Short() {
		return 30
	}
	return 300
}

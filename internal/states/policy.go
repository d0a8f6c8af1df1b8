package states

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// The durations are short, and multiples of unit, so that few ages differ.
const (
	unit             = 10 * time.Second
	bootTime         = unit
	bootTimeout      = 6 * unit
	minReady         = 2 * unit
	progressDeadline = 12 * unit
	recoverAfter     = time.Minute
)

// setting is one field of a policy and the values that it takes.
type setting struct {
	name   string
	values []int
	set    func(p *rollout.Policy, n int)
}

// none stands for a limit that is not set.
const none = -1

var settings = []setting{
	{"maxUnavailable", []int{1, 0, 2}, func(p *rollout.Policy, n int) { p.MaxUnavailable = n }},
	{"maxSurge", []int{0, 1}, func(p *rollout.Policy, n int) { p.MaxSurge = n }},
	{"minAvailable", []int{none, 1, 2}, func(p *rollout.Policy, n int) { p.HasFloor, p.MinAvailable = n != none, max(n, 0) }},
	{"partition", []int{0, 1}, func(p *rollout.Policy, n int) { p.Partition = n }},
	{"failureLimit", []int{1, 2}, func(p *rollout.Policy, n int) { p.FailureLimit = n }},
	{"rollback", []int{0, 1}, func(p *rollout.Policy, n int) { p.Rollback = n == 1 }},
	{"warm", []int{0, 1}, func(p *rollout.Policy, n int) { p.Warm = n == 1 }},
	{"inPlace", []int{0, 1}, func(p *rollout.Policy, n int) { p.InPlace = n == 1 }},
	{"minReady", []int{0, 1}, func(p *rollout.Policy, n int) { p.MinReady = time.Duration(n) * minReady }},
	{"refillBelow", []int{0, 1}, func(p *rollout.Policy, n int) { p.RefillBelow = n }},
	{"maxMembers", []int{none, 4, 3}, func(p *rollout.Policy, n int) { p.HasCeiling, p.MaxMembers = n != none, max(n, 0) }},
	{"maxInFlight", []int{1, 2}, func(p *rollout.Policy, n int) { p.MaxInFlight = n }},
	{"oldestFirst", []int{0, 1}, func(p *rollout.Policy, n int) { p.Order = rollout.Order(n) }},
	{"reuse", []int{0, 1}, func(*rollout.Policy, int) {}},
}

// choice is the position of the value that each setting has.
type choice []int

// Policies returns policies in which every pair of values of two settings occurs. Each
// next one is put together greedily; the first has the first value of each setting.
func Policies() []choice {
	type pair struct{ a, va, b, vb int }
	open := map[pair]bool{}
	for a := range settings {
		for b := a + 1; b < len(settings); b++ {
			for va := range settings[a].values {
				for vb := range settings[b].values {
					open[pair{a, va, b, vb}] = true
				}
			}
		}
	}
	gain := func(c choice, at, v int) (n int) {
		for o, vo := range c {
			switch {
			case vo < 0:
			case o < at && open[pair{o, vo, at, v}], o > at && open[pair{at, v, o, vo}]:
				n++
			}
		}
		return n
	}
	cover := func(c choice) {
		for a := range c {
			for b := a + 1; b < len(c); b++ {
				delete(open, pair{a, c[a], b, c[b]})
			}
		}
	}
	list := []choice{make(choice, len(settings))}
	cover(list[0])
	for len(open) > 0 {
		c := make(choice, len(settings))
		for i := range c {
			c[i] = none
		}
		first := pair{a: len(settings)}
		for p := range open {
			if p.a < first.a || p.a == first.a && (p.b < first.b || p.b == first.b && (p.va < first.va || p.va == first.va && p.vb < first.vb)) {
				first = p
			}
		}
		c[first.a], c[first.b] = first.va, first.vb
		for at := range c {
			if c[at] >= 0 {
				continue
			}
			best, most := 0, -1
			for v := range settings[at].values {
				if n := gain(c, at, v); n > most {
					best, most = v, n
				}
			}
			c[at] = best
		}
		cover(c)
		list = append(list, c)
	}
	return list
}

// value is the value of the setting with the name.
func (c choice) value(name string) int {
	for i, v := range c {
		if settings[i].name == name {
			return settings[i].values[v]
		}
	}
	return 0
}

// policy is the policy for a pool of so many members.
func (c choice) policy(desired int) rollout.Policy {
	p := rollout.Policy{Desired: desired, ProgressDeadline: progressDeadline}
	for i, v := range c {
		settings[i].set(&p, settings[i].values[v])
	}
	p.Zero = p.MaxUnavailable == 0 && p.MaxSurge == 0
	return p
}

// String names what differs from the first policy.
func (c choice) String() string {
	var words []string
	for i, v := range c {
		if v > 0 {
			words = append(words, fmt.Sprintf("%s=%d", settings[i].name, settings[i].values[v]))
		}
	}
	if len(words) == 0 {
		return "default"
	}
	return strings.Join(words, ",")
}

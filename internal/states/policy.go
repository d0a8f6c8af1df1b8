package states

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
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

// Choice is the position of the value that each setting has in a policy.
type Choice []int

// pair is a pair of values of the settings a and b, a before b.
type pair struct{ a, va, b, vb int }

func (p pair) compare(o pair) int {
	return cmp.Or(cmp.Compare(p.a, o.a), cmp.Compare(p.b, o.b), cmp.Compare(p.va, o.va), cmp.Compare(p.vb, o.vb))
}

// pairs is a set of pairs.
type pairs map[pair]bool

// allPairs is every pair of values of two settings.
func allPairs() pairs {
	open := pairs{}
	for b := range settings {
		for a := range b {
			for va := range settings[a].values {
				for vb := range settings[b].values {
					open[pair{a, va, b, vb}] = true
				}
			}
		}
	}
	return open
}

// gain is how many pairs the value of the setting makes with what is chosen already.
func (open pairs) gain(c Choice, at, v int) (n int) {
	for o, vo := range c {
		if o < at && open[pair{o, vo, at, v}] || o > at && open[pair{at, v, o, vo}] {
			n++
		}
	}
	return n
}

// best is the value of the setting that makes the most pairs, the first of several.
func (open pairs) best(c Choice, at int) int {
	best, most := 0, none
	for v := range settings[at].values {
		if n := open.gain(c, at, v); n > most {
			best, most = v, n
		}
	}
	return best
}

// cover takes out the pairs that the policy has.
func (open pairs) cover(c Choice) {
	for b := range c {
		for a := range b {
			delete(open, pair{a, c[a], b, c[b]})
		}
	}
}

// Policies returns policies in which every pair of values of two settings occurs. The
// first has the first value of each setting, and each next one is put together greedily
// around the first pair that none has yet.
func Policies() []Choice {
	open := allPairs()
	list := []Choice{make(Choice, len(settings))}
	open.cover(list[0])
	for len(open) > 0 {
		c := make(Choice, len(settings))
		for i := range c {
			c[i] = none
		}
		first := slices.MinFunc(slices.Collect(maps.Keys(open)), pair.compare)
		c[first.a], c[first.b] = first.va, first.vb
		for at := range c {
			if c[at] == none {
				c[at] = open.best(c, at)
			}
		}
		open.cover(c)
		list = append(list, c)
	}
	return list
}

// value is the value of the setting with the name.
func (c Choice) value(name string) int {
	for i, v := range c {
		if settings[i].name == name {
			return settings[i].values[v]
		}
	}
	return 0
}

// policy is the policy for a pool of so many members.
func (c Choice) policy(desired int) rollout.Policy {
	p := rollout.Policy{Desired: desired, ProgressDeadline: progressDeadline}
	for i, v := range c {
		settings[i].set(&p, settings[i].values[v])
	}
	p.Zero = p.MaxUnavailable == 0 && p.MaxSurge == 0
	return p
}

// String names what differs from the first policy.
func (c Choice) String() string {
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

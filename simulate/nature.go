package simulate

import (
	"maps"
	"math"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-dev/pawl/rollout"
)

// outcome is how a body behaves after its birth.
type outcome string

const (
	becomesReady outcome = "Ready"
	neverReady   outcome = "NeverReady"
	crashes      outcome = "Crash"
	createError  outcome = "CreateError"
	flaps        outcome = "Flap"
)

// nature is the behaviour of the world, which Pawl does not control.
type nature struct {
	boot, stop, drain, bootTimeout, lag time.Duration
	// capacity is how many bodies fit, terminating ones included.
	capacity int
	// revisions are the differences of single revisions.
	revisions map[rollout.Revision]breed
}

// breed is how bodies of one revision differ from others; nil for no difference.
type breed struct {
	boot, stop *time.Duration
	outcome    outcome
	// after is how long a crashing body serves; up and down are how long a flapping
	// body is ready and unready in turn.
	after, up, down time.Duration
}

// unlimited is a capacity that nothing reaches.
const unlimited = math.MaxInt

// defaultNature has the values of absent fields.
var defaultNature = nature{
	boot: 30 * time.Second, stop: 10 * time.Second, bootTimeout: 10 * time.Minute,
	capacity: unlimited,
}

// rendered is appended to a template's name in the name of a revision, once for
// each earlier combination of renderer and content of sources.
const rendered = "'"

// breed returns the breed of the revision, or else that of its template.
func (n *nature) breed(r rollout.Revision) breed {
	if b, ok := n.revisions[r]; ok {
		return b
	}
	return n.revisions[rollout.Revision(strings.TrimRight(string(r), rendered))]
}

func (n *nature) bootOf(r rollout.Revision) time.Duration {
	if b := n.breed(r); b.boot != nil {
		return *b.boot
	}
	return n.boot
}

func (n *nature) stopOf(r rollout.Revision) time.Duration {
	if b := n.breed(r); b.stop != nil {
		return *b.stop
	}
	return n.stop
}

// change is a merge patch on the world, field by field.
type change struct {
	boot, stop, drain, bootTimeout, lag *time.Duration
	capacity                            *int
	revisions                           map[rollout.Revision]breedChange
}

// breedChange is a merge patch on one revision's breed.
type breedChange struct {
	reset      bool
	boot, stop *time.Duration
	outcome    *outcome

	after, up, down *time.Duration
}

// apply changes the world. It copies the shared map of revisions.
func (c *change) apply(n *nature) {
	set(&n.boot, c.boot)
	set(&n.stop, c.stop)
	set(&n.drain, c.drain)
	set(&n.bootTimeout, c.bootTimeout)
	set(&n.lag, c.lag)
	set(&n.capacity, c.capacity)
	if len(c.revisions) == 0 {
		return
	}
	n.revisions = maps.Clone(n.revisions)
	if n.revisions == nil {
		n.revisions = map[rollout.Revision]breed{}
	}
	for r, bc := range c.revisions {
		b := n.revisions[r]
		if bc.reset {
			b = breed{}
		}
		if bc.boot != nil {
			b.boot = bc.boot
		}
		if bc.stop != nil {
			b.stop = bc.stop
		}
		set(&b.outcome, bc.outcome)
		set(&b.after, bc.after)
		set(&b.up, bc.up)
		set(&b.down, bc.down)
		n.revisions[r] = b
	}
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// world reads the world at the start.
func (p *parser) world(n *yaml.Node, s *Scenario) {
	c := p.change(n, &s.date)
	c.apply(&s.world)
}

// date reads the time at t=0.
func (p *parser) date(n *yaml.Node) time.Time {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, n.Value); err == nil && n.Kind == yaml.ScalarNode && t.Year() > 1 && t.Year() < 9000 {
			return t.UTC()
		}
	}
	p.fail(n, "world.date must be a time such as 2026-03-28T23:00:00Z, not %q", n.Value)
	return epoch
}

// change reads a merge patch on the world. Null resets a field to its default. A
// date is only allowed at the start; later the pointer is nil.
func (p *parser) change(n *yaml.Node, date *time.Time) *change {
	c := &change{}
	span := func(to **time.Duration, name string, absent time.Duration) func(*yaml.Node) {
		return func(v *yaml.Node) { *to = p.patchSpan(v, "world."+name, absent) }
	}
	p.fields(n, "world", map[string]func(*yaml.Node){
		"boot":        span(&c.boot, "boot", defaultNature.boot),
		"stop":        span(&c.stop, "stop", defaultNature.stop),
		"drain":       span(&c.drain, "drain", defaultNature.drain),
		"bootTimeout": span(&c.bootTimeout, "bootTimeout", defaultNature.bootTimeout),
		"lag":         span(&c.lag, "lag", defaultNature.lag),
		"capacity": func(v *yaml.Node) {
			limit := unlimited
			if v.Tag != "!!null" {
				limit = p.number(v, "world.capacity", 0, math.MaxInt32)
			}
			c.capacity = &limit
		},
		"revisions": func(v *yaml.Node) {
			c.revisions = map[rollout.Revision]breedChange{}
			for _, f := range p.mapping(v, "world.revisions") {
				c.revisions[rollout.Revision(f.name)] = p.breed(f.value, "world.revisions."+f.name)
			}
		},
		"date": func(v *yaml.Node) {
			if date == nil {
				p.fail(v, "world.date is for the start; write clock: {jump: …} to set the controllers' clock")
				return
			}
			*date = p.date(v)
		},
		"handover": func(v *yaml.Node) { p.worldHandover(v, "world.handover", true) },
	})
	if c.bootTimeout != nil && *c.bootTimeout == 0 {
		p.fail(n, "world.bootTimeout must be more than 0s")
	}
	return c
}

func (p *parser) patchSpan(n *yaml.Node, what string, absent time.Duration) *time.Duration {
	if n.Tag == "!!null" {
		return &absent
	}
	d := p.duration(n, what)
	return &d
}

func (p *parser) breed(n *yaml.Node, what string) breedChange {
	if n.Tag == "!!null" {
		return breedChange{reset: true}
	}
	var b breedChange
	var o outcome
	p.fields(n, what, map[string]func(*yaml.Node){
		"boot": func(v *yaml.Node) { d := p.duration(v, what+".boot"); b.boot = &d },
		"stop": func(v *yaml.Node) { d := p.duration(v, what+".stop"); b.stop = &d },
		"outcome": func(v *yaml.Node) {
			o = outcome(p.oneOf(v, what+".outcome", string(becomesReady), string(neverReady), string(crashes), string(createError), string(flaps)))
			b.outcome = &o
		},
		"after": func(v *yaml.Node) { d := p.duration(v, what+".after"); b.after = &d },
		"up":    func(v *yaml.Node) { d := p.positive(v, what+".up"); b.up = &d },
		"down":  func(v *yaml.Node) { d := p.positive(v, what+".down"); b.down = &d },
	})
	if o == flaps && (b.up == nil || b.down == nil) {
		p.fail(n, "%s: outcome Flap needs up and down, such as {outcome: Flap, up: 15s, down: 15s}", what)
	}
	return b
}

// positive reads a duration of more than 0.
func (p *parser) positive(n *yaml.Node, what string) time.Duration {
	d := p.duration(n, what)
	if d == 0 {
		p.fail(n, "%s must be more than 0s", what)
	}
	return d
}

// worldHandover reads the behaviour of handovers, for all shards or for one. Only
// groups and pools with roles have them, and they are not played yet.
func (p *parser) worldHandover(n *yaml.Node, what string, shards bool) {
	if n.Tag == "!!null" {
		return
	}
	for _, f := range p.mapping(n, what) {
		switch {
		case f.name == "takes":
			p.duration(f.value, what+".takes")
		case f.name == "outcome":
			p.oneOf(f.value, what+".outcome", "Works", "Fails", "TimesOut", "Lies")
		case shards && f.value.Kind == yaml.MappingNode:
			p.worldHandover(f.value, what+"."+f.name, false)
		default:
			p.fail(f.key, "%s: unknown field %q", what, f.name)
		}
	}
}

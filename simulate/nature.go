package simulate

import (
	"maps"
	"math"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-dev/pawl/rollout"
)

// outcome is what becomes of a body.
type outcome string

const (
	becomesReady outcome = "Ready"
	neverReady   outcome = "NeverReady"
	crashes      outcome = "Crash"
	createError  outcome = "CreateError"
)

// nature is how the world behaves: what Pawl has no say in.
type nature struct {
	boot, stop, drain, bootTimeout, lag time.Duration
	// capacity is how many bodies fit, those that terminate included.
	capacity int
	// revisions are how bodies of a revision differ from the rest.
	revisions map[rollout.Revision]breed
}

// breed is how bodies of one revision differ; nil for not at all.
type breed struct {
	boot, stop *time.Duration
	outcome    outcome
	after      time.Duration
}

// unlimited is a capacity that nothing reaches.
const unlimited = math.MaxInt

// natural is a world of which nothing is said.
var natural = nature{
	boot: 30 * time.Second, stop: 10 * time.Second, bootTimeout: 10 * time.Minute,
	capacity: unlimited,
}

// rendered is what a revision is called besides its name, once for each time
// that the renderer has changed.
const rendered = "'"

// revision is the one that a template becomes as it is rendered now.
func (w *world) revision(template rollout.Revision) rollout.Revision {
	return template + rollout.Revision(strings.Repeat(rendered, w.renderers))
}

// breed is how bodies of the revision differ, however they were rendered.
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
	after      *time.Duration
}

// apply changes the world; maps that others may share are copied.
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
		n.revisions[r] = b
	}
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// world reads the world as it is at the start.
func (p *parser) world(n *yaml.Node, w *nature) {
	c := p.change(n)
	c.apply(w)
}

// change reads a merge patch on the world. Null takes a field back to what it
// is when nothing is said.
func (p *parser) change(n *yaml.Node) *change {
	c := &change{}
	span := func(to **time.Duration, name string, absent time.Duration) func(*yaml.Node) {
		return func(v *yaml.Node) { *to = p.patchSpan(v, "world."+name, absent) }
	}
	p.fields(n, "world", map[string]func(*yaml.Node){
		"boot":        span(&c.boot, "boot", natural.boot),
		"stop":        span(&c.stop, "stop", natural.stop),
		"drain":       span(&c.drain, "drain", natural.drain),
		"bootTimeout": span(&c.bootTimeout, "bootTimeout", natural.bootTimeout),
		"lag":         span(&c.lag, "lag", natural.lag),
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
		"handover": func(*yaml.Node) { p.need("world.handover") },
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
	p.fields(n, what, map[string]func(*yaml.Node){
		"boot": func(v *yaml.Node) { d := p.duration(v, what+".boot"); b.boot = &d },
		"stop": func(v *yaml.Node) { d := p.duration(v, what+".stop"); b.stop = &d },
		"outcome": func(v *yaml.Node) {
			o := outcome(p.oneOf(v, what+".outcome", string(becomesReady), string(neverReady), string(crashes), string(createError)))
			b.outcome = &o
		},
		"after": func(v *yaml.Node) { d := p.duration(v, what+".after"); b.after = &d },
	})
	return b
}

package simulate

import (
	"math"
	"time"

	"go.yaml.in/yaml/v3"
)

// expectations are what a scenario says must hold.
type expectations struct {
	always, never, finally []*expression
	at, within             []timed
	creates, deletes       *span
	order                  []int
	ordered                bool
	// orderLine is the line of the order in the file.
	orderLine int
}

// timed is an expression with its time.
type timed struct {
	at time.Duration
	e  *expression
}

// span is a number or a range of numbers.
type span struct {
	line, min, max int
}

func (p *parser) expect(n *yaml.Node, s *Scenario) {
	x := &s.expect
	p.fields(n, "expect", map[string]func(*yaml.Node){
		"always":  func(v *yaml.Node) { x.always = p.expressions(v, "always", s) },
		"never":   func(v *yaml.Node) { x.never = p.expressions(v, "never", s) },
		"finally": func(v *yaml.Node) { x.finally = p.expressions(v, "finally", s) },
		"at":      func(v *yaml.Node) { x.at = p.timed(v, "at", s) },
		"within":  func(v *yaml.Node) { x.within = p.timed(v, "within", s) },
		"creates": func(v *yaml.Node) { x.creates = p.span(v, "creates") },
		"deletes": func(v *yaml.Node) { x.deletes = p.span(v, "deletes") },
		"grants":  func(v *yaml.Node) { p.span(v, "grants"); p.need("expect.grants") },
		"handovers": func(v *yaml.Node) {
			p.span(v, "handovers")
			p.need("expect.handovers")
		},
		"order": func(v *yaml.Node) {
			x.ordered, x.orderLine = true, v.Line
			for _, c := range p.list(v, "order") {
				x.order = append(x.order, p.number(c, "order", 0, maxMembers-1))
			}
			if len(s.pools) > 1 {
				p.fail(v, "order is for a single pool")
			}
		},
	})
}

func (p *parser) expressions(n *yaml.Node, what string, s *Scenario) (list []*expression) {
	for _, c := range p.list(n, what) {
		if e := p.expression(c, s); e != nil {
			list = append(list, e)
		}
	}
	return list
}

// timed reads expressions by time.
func (p *parser) timed(n *yaml.Node, what string, s *Scenario) (list []timed) {
	for _, f := range p.mapping(n, what) {
		at, err := time.ParseDuration(f.name)
		if err != nil || at < 0 || at > longest {
			p.fail(f.key, "%s: %q is not a time such as 1m30s", what, f.name)
			continue
		}
		for _, e := range p.expressions(f.value, what, s) {
			list = append(list, timed{at, e})
		}
	}
	return list
}

// span reads a number, or a range {min: 1, max: 2}.
func (p *parser) span(n *yaml.Node, what string) *span {
	if n.Kind == yaml.ScalarNode {
		i := p.number(n, what, 0, math.MaxInt32)
		return &span{n.Line, i, i}
	}
	x := &span{n.Line, 0, math.MaxInt32}
	p.fields(n, what, map[string]func(*yaml.Node){
		"min": func(v *yaml.Node) { x.min = p.number(v, what+".min", 0, math.MaxInt32) },
		"max": func(v *yaml.Node) { x.max = p.number(v, what+".max", 0, math.MaxInt32) },
	})
	if x.min > x.max {
		p.fail(n, "%s: min is more than max", what)
	}
	return x
}

package simulate

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-dev/pawl/rollout"
)

// entry is an edit at a time, or at each time an expression becomes true.
type entry struct {
	line   int
	at     time.Duration
	when   *expression
	repeat int
	pool   string
	edit   edit
}

// verbs are the fields of which an entry has exactly one. An entry about a member
// has attributes instead, one or more.
var verbs = []string{
	"revise", "claim", "claims", "churn", "release", "renew", "set", "do", "source", "clock", "create", "delete",
	"crash", "lose", "upgrade", "world", "leader", "restore",
}

// attributes are the changes of a member that an entry may have.
var attributes = []string{"health", "occupancy", "role", "hold", "cost", "revision", "do", "stop", "refuse", "delete"}

func (p *parser) timeline(n *yaml.Node, s *Scenario) {
	for _, c := range p.list(n, "timeline") {
		if e, ok := p.entry(c, s); ok {
			s.timeline = append(s.timeline, e)
		}
	}
	slices.SortStableFunc(s.timeline, func(a, b entry) int { return int(a.at - b.at) })
}

// line is an entry in YAML: its fields by name.
type line struct {
	n      *yaml.Node
	fields map[string]*yaml.Node
	used   map[string]bool
}

// take returns the field and marks it as used.
func (l *line) take(name string) *yaml.Node {
	l.used[name] = true
	return l.fields[name]
}

func (l *line) has(name string) bool { return l.fields[name] != nil }

func (p *parser) entry(n *yaml.Node, s *Scenario) (entry, bool) {
	before := len(p.errs)
	l := &line{n: n, fields: map[string]*yaml.Node{}, used: map[string]bool{}}
	keys := p.mapping(n, "timeline entry")
	for _, f := range keys {
		l.fields[f.name] = f.value
	}
	e := entry{line: n.Line, repeat: 1}
	p.moment(l, s, &e)
	if l.elsewhere(s) {
		e.edit = p.elsewhere(l, s)
	} else {
		p.subject(l, s, &e)
		e.edit = p.edit(l)
	}
	for _, f := range keys {
		if !l.used[f.name] {
			p.fail(f.key, "timeline entry: field %q does not belong here", f.name)
		}
	}
	return e, len(p.errs) == before && e.edit != nil
}

// moment reads the time or the expression of the entry.
func (p *parser) moment(l *line, s *Scenario, e *entry) {
	at, when := l.take("at"), l.take("when")
	switch {
	case (at == nil) == (when == nil):
		p.fail(l.n, "timeline entry: exactly one of at and when is needed")
	case at != nil:
		e.at = p.duration(at, "at")
	default:
		e.when = p.expression(when, s)
		if r := l.take("repeat"); r != nil {
			e.repeat = p.number(r, "repeat", 1, maxRepeat)
		}
	}
}

// subject reads the pool of the entry.
func (p *parser) subject(l *line, s *Scenario, e *entry) {
	n := l.take("pool")
	switch {
	case n != nil:
		e.pool = p.word(n, "pool")
		if s.pool(e.pool) == nil && len(s.pools) > 0 {
			p.fail(n, "there is no pool %q", e.pool)
		}
	case len(s.pools) == 1:
		e.pool = s.pools[0].name
	case s.several && needsPool(l) && len(s.pools) > 0:
		p.fail(l.n, "timeline entry: there are several pools; add pool")
	}
}

// everywhere are the verbs that are not about one pool.
var everywhere = []string{"crash", "lose", "upgrade", "world", "release", "renew", "source", "clock", "leader", "restore"}

func needsPool(l *line) bool { return !slices.ContainsFunc(everywhere, l.has) }

// edit reads the verb or the attributes of an entry.
func (p *parser) edit(l *line) edit {
	if l.has("member") && !l.has("claim") {
		return p.memberEdit(l)
	}
	var found []string
	for _, v := range verbs {
		if l.has(v) {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		p.fail(l.n, "timeline entry: exactly one of %s and member is needed", strings.Join(verbs, ", "))
		return nil
	}
	n := l.take(found[0])
	switch found[0] {
	case "do":
		return p.doEdit(l, n)
	case "source":
		return p.sourceEdit(l, n)
	case "clock":
		return p.clockEdit(n)
	case "create":
		p.oneOf(n, "create", "pool")
		return createPoolEdit{}
	case "leader", "restore":
		return p.plannedEdit(found[0], n)
	case "revise":
		return reviseEdit{rollout.Revision(p.word(n, "revise"))}
	case "claim":
		return p.claimEdit(l, n)
	case "claims":
		return p.claimsEdit(l, n)
	case "churn":
		return p.churnEdit(n)
	case "release":
		return releaseEdit{p.word(n, "release")}
	case "renew":
		return renewEdit{p.word(n, "renew")}
	case "set":
		patch := p.spec(n)
		if n.Kind != yaml.MappingNode {
			return nil
		}
		return setEdit{patch, n}
	case "delete":
		p.oneOf(n, "delete without a member", "pool")
		return deletePoolEdit{}
	case "crash":
		return crashEdit{p.forHow(n, "crash")}
	case "lose":
		return p.loseEdit(l, n)
	case "upgrade":
		return p.upgradeEdit(n)
	default:
		return worldEdit{p.change(n, nil), n}
	}
}

// forHow reads {for: 20s}.
func (p *parser) forHow(n *yaml.Node, what string) (d time.Duration) {
	p.fields(n, what, map[string]func(*yaml.Node){
		"for": func(v *yaml.Node) { d = p.duration(v, what+".for") },
	})
	return d
}

func (p *parser) claimEdit(l *line, n *yaml.Node) edit {
	c := claimEdit{name: p.word(n, "claim"), member: -1}
	if m := l.take("member"); m != nil {
		c.member = p.number(m, "member", 0, maxMembers-1)
	}
	if t := l.take("ttl"); t != nil {
		c.ttl = p.duration(t, "ttl")
	}
	c.wait = p.wait(l)
	return c
}

// wait reads how long a claim waits for a member; nil for ever.
func (p *parser) wait(l *line) *time.Duration {
	n := l.take("wait")
	if n == nil {
		return nil
	}
	d := p.duration(n, "wait")
	return &d
}

func (p *parser) claimsEdit(l *line, n *yaml.Node) edit {
	c := claimsEdit{count: p.number(n, "claims", 1, maxRepeat), prefix: "c"}
	if v := l.take("every"); v != nil {
		c.every = p.duration(v, "every")
	}
	if v := l.take("prefix"); v != nil {
		c.prefix = p.word(v, "prefix")
	}
	if v := l.take("ttl"); v != nil {
		c.ttl = p.duration(v, "ttl")
	}
	c.wait = p.wait(l)
	return c
}

func (p *parser) churnEdit(n *yaml.Node) edit {
	c := churnEdit{until: longest}
	p.fields(n, "churn", map[string]func(*yaml.Node){
		"claims": func(v *yaml.Node) { c.claims = p.number(v, "churn.claims", 1, maxMembers) },
		"hold":   func(v *yaml.Node) { c.hold = p.duration(v, "churn.hold") },
		"until":  func(v *yaml.Node) { c.until = p.duration(v, "churn.until") },
	})
	if c.claims == 0 || c.hold == 0 {
		p.fail(n, "churn needs claims and hold, both more than 0")
	}
	return c
}

func (p *parser) loseEdit(l *line, n *yaml.Node) edit {
	e := loseEdit{what: p.oneOf(n, "lose", lossNames...), long: longest}
	if v := l.take("for"); v != nil {
		e.long = p.duration(v, "for")
	}
	return e
}

func (p *parser) upgradeEdit(n *yaml.Node) edit {
	var e upgradeEdit
	p.fields(n, "upgrade", map[string]func(*yaml.Node){
		"hashVersion": func(v *yaml.Node) { e.hashVersion = p.number(v, "upgrade.hashVersion", 1, 1000) },
		"renderer": func(v *yaml.Node) {
			p.oneOf(v, "upgrade.renderer", "changed")
			e.renderer = true
		},
	})
	if e == (upgradeEdit{}) {
		p.fail(n, "upgrade needs hashVersion or renderer")
	}
	return e
}

func (p *parser) memberEdit(l *line) edit {
	e := memberEdit{index: p.number(l.take("member"), "member", 0, maxMembers-1)}
	changes := 0
	for _, name := range attributes {
		n := l.take(name)
		if n == nil {
			continue
		}
		changes++
		switch name {
		case "health":
			e.health = p.oneOf(n, "health", "Down", "Up", "Flap")
			if e.health == "Flap" {
				e.flap = p.flap(l)
			}
		case "do":
			e.do = p.memberDo(n)
		case "stop":
			e.stop = p.stop(n)
		case "occupancy":
			o := p.occupancy(n)
			e.occupancy = &o
		case "role":
			r := p.text(n, "role")
			e.role = &r
		case "hold":
			held, until := p.hold(n)
			if !held {
				until = 0
			}
			e.hold = &until
		case "cost":
			c := p.number(n, "cost", -1<<31, 1<<31-1)
			e.cost = &c
		case "revision":
			r := rollout.Revision(p.text(n, "revision"))
			e.revision = &r
		case "refuse":
			d := p.forHow(n, "refuse")
			e.refuse = &d
		case "delete":
			e.remove = p.oneOf(n, "delete", "body", "slot")
		}
	}
	if changes == 0 {
		p.fail(l.n, "timeline entry: nothing changes for member %d; add one of %s", e.index, strings.Join(attributes, ", "))
	}
	return e
}

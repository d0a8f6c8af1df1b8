package simulate

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-dev/pawl/rollout"
)

// The commands of `do`, for a member and for a pool.
var (
	memberDos = []string{doRecycle, doSkip, doCordon, doUncordon}
	poolDos   = []string{doRetry, doUndo}
)

const (
	doRecycle  = "recycle"
	doSkip     = "skip"
	doCordon   = "cordon"
	doUncordon = "uncordon"
	doRetry    = "retry"
	doUndo     = "undo"
)

// memberDo reads the command for a member.
func (p *parser) memberDo(n *yaml.Node) string {
	if s := p.text(n, "do"); slices.Contains(poolDos, s) {
		p.fail(n, "do: %s is for a whole pool: leave member out", s)
		return s
	}
	return p.oneOf(n, "do with a member", memberDos...)
}

// doEdit reads the command for a whole pool.
func (p *parser) doEdit(l *line, n *yaml.Node) edit {
	s := p.text(n, "do")
	switch {
	case slices.Contains(memberDos, s):
		p.fail(n, "do: %s is for one member: add member, such as {member: 0, do: %s}", s, s)
		return nil
	case s == doRetry:
		return retryEdit{}
	case p.oneOf(n, "do", poolDos...) != s:
		return nil
	}
	to := l.take("to")
	if to == nil {
		p.fail(l.n, "do: undo needs the revision to go back to, such as {do: undo, to: A}")
		return nil
	}
	return undoEdit{rollout.Revision(p.word(to, "to"))}
}

// sourceEdit reads a change of a source's content.
func (p *parser) sourceEdit(l *line, n *yaml.Node) edit {
	e := sourceEdit{name: p.word(n, "source")}
	c := l.take("content")
	if c == nil {
		p.fail(l.n, "source needs content, such as {source: %s, content: \"2\"}", e.name)
		return nil
	}
	e.content = p.text(c, "content")
	return e
}

// clockEdit reads a jump of the controllers' clock.
func (p *parser) clockEdit(n *yaml.Node) edit {
	var e clockEdit
	p.fields(n, "clock", map[string]func(*yaml.Node){
		"jump": func(v *yaml.Node) {
			d, err := time.ParseDuration(v.Value)
			if v.Kind != yaml.ScalarNode || err != nil || d < -longest || d > longest {
				p.fail(v, "clock.jump must be a duration such as -1h or 30m, not %q", v.Value)
				return
			}
			e.jump = d
		},
	})
	if e.jump == 0 {
		p.fail(n, "clock needs jump, other than 0s, such as {jump: -1h}")
	}
	return e
}

// flap reads the times of a flap.
func (p *parser) flap(l *line) *flap {
	f := &flap{until: longest}
	up, down := l.take("up"), l.take("down")
	if up == nil || down == nil {
		p.fail(l.n, "health: Flap needs up and down, such as {health: Flap, up: 20s, down: 20s, until: 1h}")
		return f
	}
	f.up, f.down = p.positive(up, "up"), p.positive(down, "down")
	if n := l.take("until"); n != nil {
		f.until = p.duration(n, "until")
	}
	return f
}

// stop reads a stop time; negative for ever.
func (p *parser) stop(n *yaml.Node) *time.Duration {
	d := time.Duration(-1)
	if n.Kind == yaml.ScalarNode && n.Value == "never" {
		return &d
	}
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d < 0 || d > longest {
		p.fail(n, "stop must be never or a duration such as 10s, not %q", n.Value)
	}
	return &d
}

// unplayedEdit is an entry that the simulator does not play yet. A scenario that has
// one waits.
type unplayedEdit struct{}

func (unplayedEdit) apply(*world, *pool) {}

// plannedEdit reads a verb that is not played yet.
func (p *parser) plannedEdit(verb string, n *yaml.Node) edit {
	p.need(verb)
	switch verb {
	case "leader":
		p.fields(n, verb, map[string]func(*yaml.Node){
			"overlap": func(v *yaml.Node) { p.duration(v, "leader.overlap") },
		})
	case "restore":
		p.fields(n, verb, map[string]func(*yaml.Node){
			"without": func(v *yaml.Node) { p.oneOf(v, "restore.without", "status") },
		})
	}
	return unplayedEdit{}
}

// elsewhere reports whether the entry is about a group, a budget or a namespace.
func (l *line) elsewhere(s *Scenario) bool {
	switch {
	case l.has("group") || l.has("budget") || l.has("namespace"):
		return true
	case l.has("pool"):
		return false
	case l.has("roll") || l.has("synced"):
		return true
	}
	return len(s.pools) == 0 && len(s.groups) == 1 && needsPool(l)
}

// elsewhere reads an entry about a group, a budget or a namespace.
func (p *parser) elsewhere(l *line, s *Scenario) edit {
	group, budget, namespace := l.take("group"), l.take("budget"), l.take("namespace")
	switch {
	case budget != nil && (group != nil || namespace != nil) || group != nil && namespace != nil:
		p.fail(l.n, "timeline entry: group, budget and namespace exclude one another")
		return nil
	case budget != nil:
		if name := p.word(budget, "budget"); !slices.Contains(s.budgets, name) {
			p.fail(budget, "there is no budget %q", name)
		}
		return p.budgetEdit(l)
	case namespace != nil:
		p.need("namespaces")
		p.word(namespace, "namespace")
		n := l.take("delete")
		if n == nil {
			p.fail(l.n, "timeline entry: a namespace can only be deleted: {namespace: …, delete: namespace}")
			return nil
		}
		p.oneOf(n, "delete with a namespace", "namespace")
		return unplayedEdit{}
	case group != nil:
		if name := p.word(group, "group"); !slices.Contains(s.groups, name) {
			p.fail(group, "there is no group %q", name)
		}
	case len(s.groups) != 1:
		p.fail(l.n, "timeline entry: there is not exactly one group; add group")
	}
	return p.groupEdit(l)
}

// oneVerb takes the entry's only verb of the list; the node is nil if there is not
// exactly one.
func (p *parser) oneVerb(l *line, about string, verbs ...string) (verb string, n *yaml.Node) {
	for _, v := range verbs {
		if !l.has(v) {
			continue
		}
		if n != nil {
			n = nil
			break
		}
		verb, n = v, l.take(v)
	}
	if n == nil {
		p.fail(l.n, "timeline entry: a %s needs exactly one of %s", about, strings.Join(verbs, ", "))
	}
	return verb, n
}

func (p *parser) budgetEdit(l *line) edit {
	verb, n := p.oneVerb(l, "budget", "set", "delete", "create")
	switch {
	case n == nil:
		return nil
	case verb == "set":
		p.budget(n, "set")
	case verb == "delete":
		p.oneOf(n, "delete with a budget", "budget", "ledger")
	default:
		p.oneOf(n, "create with a budget", "budget")
	}
	return unplayedEdit{}
}

func (p *parser) groupEdit(l *line) edit {
	if l.has("member") {
		return p.groupMember(l)
	}
	verb, n := p.oneVerb(l, "group", "revise", "set", "do", "delete", "create", "member")
	switch {
	case n == nil:
		return nil
	case verb == "revise":
		p.word(n, "revise")
	case verb == "set":
		p.group(n, "set")
	case verb == "do":
		p.doEdit(l, n)
	default:
		p.oneOf(n, verb+" with a group", "group")
	}
	return unplayedEdit{}
}

// groupMember reads an entry about one member of a group.
func (p *parser) groupMember(l *line) edit {
	own := 0
	if n := l.take("roll"); n != nil {
		p.oneOf(n, "roll", "owner")
		own++
	}
	if n := l.take("synced"); n != nil {
		p.truth(n, "synced")
		own++
	}
	if own > 0 && !slices.ContainsFunc(attributes, l.has) {
		p.number(l.take("member"), "member", 0, maxMembers-1)
		return unplayedEdit{}
	}
	p.memberEdit(l)
	return unplayedEdit{}
}

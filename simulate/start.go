package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-dev/pawl/rollout"
)

// The states in which a member may start.
const (
	stateFree         = "Free"
	stateClaimed      = "Claimed"
	stateProvisioning = "Provisioning"
	stateUnready      = "Unready"
	stateFailed       = "Failed"
	stateDraining     = "Draining"
	stateTerminating  = "Terminating"
	stateQuarantined  = "Quarantined"
)

// start reads the start of all pools.
func (p *parser) start(n *yaml.Node, s *Scenario) {
	slices.SortFunc(s.pools, func(a, b poolSetup) int { return cmp.Compare(a.name, b.name) })
	for i := range s.pools {
		s.pools[i].target = "A"
	}
	var members *yaml.Node
	current := map[string]bool{}
	if n != nil {
		p.fields(n, "start", map[string]func(*yaml.Node){
			"target": func(v *yaml.Node) {
				p.perPool(v, s, "start.target", func(q *poolSetup, r rollout.Revision) { q.target = r })
			},
			"current": func(v *yaml.Node) {
				p.perPool(v, s, "start.current", func(q *poolSetup, r rollout.Revision) {
					q.current, current[q.name] = r, true
				})
			},
			"members": func(v *yaml.Node) { members = v },
		})
	}
	p.startMembers(members, s)
	bodies := 0
	for i := range s.pools {
		q := &s.pools[i]
		bodies += len(q.members)
		if !current[q.name] {
			q.current = mostOf(q.members, q.target)
		}
	}
	if bodies > s.world.capacity {
		p.fail(members, "start: %d bodies do not fit a capacity of %d", bodies, s.world.capacity)
	}
	p.claimedOnce(members, s)
}

// perPool reads a revision for all pools, or one for each pool and group by name.
func (p *parser) perPool(n *yaml.Node, s *Scenario, what string, put func(*poolSetup, rollout.Revision)) {
	if n.Kind != yaml.MappingNode {
		r := rollout.Revision(p.word(n, what))
		for i := range s.pools {
			put(&s.pools[i], r)
		}
		return
	}
	for _, f := range p.mapping(n, what) {
		r := rollout.Revision(p.word(f.value, what+"."+f.name))
		if q := s.pool(f.name); q != nil {
			put(q, r)
		} else if !slices.Contains(s.groups, f.name) {
			p.fail(f.key, "%s: there is no pool or group %q", what, f.name)
		}
	}
}

func (p *parser) startMembers(n *yaml.Node, s *Scenario) {
	given := map[string]bool{}
	switch {
	case n == nil:
	case n.Kind == yaml.SequenceNode && !s.several:
		list := p.members(n)
		if len(s.pools) == 1 {
			s.pools[0].members = list
			given[s.pools[0].name] = true
		}
	case n.Kind == yaml.MappingNode && (s.several || len(s.groups) > 0):
		for _, f := range p.mapping(n, "start.members") {
			q := s.pool(f.name)
			switch {
			case q != nil:
				q.members, given[q.name] = p.members(f.value), true
			case slices.Contains(s.groups, f.name):
				p.members(f.value)
			default:
				p.fail(f.key, "start.members: there is no pool or group %q", f.name)
			}
		}
	case s.several:
		p.fail(n, "start.members must be a mapping from pools to lists")
	default:
		p.fail(n, "start.members must be a list")
	}
	for i := range s.pools {
		if q := &s.pools[i]; !given[q.name] {
			q.fill()
		}
	}
}

// fill adds the default members: as many as replicas, free and of revision A.
func (q *poolSetup) fill() {
	n := 1
	if r, ok := q.spec["replicas"].(int); ok {
		n = min(max(r, 0), maxMembers)
	}
	for i := range n {
		q.members = append(q.members, memberSetup{index: i, revision: "A", state: stateFree})
	}
}

// members reads a list of members; an item with count is several members.
func (p *parser) members(n *yaml.Node) []memberSetup {
	var list []memberSetup
	taken := map[int]bool{}
	next := 0
	for _, c := range p.list(n, "start.members") {
		m, count := p.member(c, next)
		for range count {
			if m.index >= maxMembers {
				p.fail(c, "start.members: index %d is out of range", m.index)
				return list
			}
			if taken[m.index] {
				p.fail(c, "start.members: index %d is given twice", m.index)
			}
			taken[m.index] = true
			list = append(list, m)
			m.index++
		}
		next = m.index
	}
	slices.SortFunc(list, func(a, b memberSetup) int { return cmp.Compare(a.index, b.index) })
	return list
}

func (p *parser) member(n *yaml.Node, next int) (memberSetup, int) {
	m := memberSetup{index: next, revision: "A", state: stateFree}
	count := 1
	p.fields(n, "member", map[string]func(*yaml.Node){
		"count":    func(v *yaml.Node) { count = p.number(v, "count", 1, maxMembers) },
		"index":    func(v *yaml.Node) { m.index = p.number(v, "index", 0, maxMembers-1) },
		"revision": func(v *yaml.Node) { m.revision = rollout.Revision(p.text(v, "revision")) },
		"state": func(v *yaml.Node) {
			m.state = p.oneOf(v, "state", stateFree, stateClaimed, stateProvisioning, stateUnready,
				stateFailed, stateDraining, stateTerminating, stateQuarantined)
		},
		"claim":     func(v *yaml.Node) { m.claim = p.word(v, "claim") },
		"occupancy": func(v *yaml.Node) { m.occupancy = p.occupancy(v) },
		"role":      func(v *yaml.Node) { m.role = p.text(v, "role") },
		"shard":     func(v *yaml.Node) { m.shard = p.text(v, "shard") },
		"synced":    func(v *yaml.Node) { p.truth(v, "synced") },
		"hold":      func(v *yaml.Node) { m.held, m.holdUntil = p.hold(v) },
		"cost":      func(v *yaml.Node) { m.cost = p.number(v, "cost", -1<<31, 1<<31-1) },
	})
	if m.state == stateQuarantined {
		p.need("state: Quarantined")
	}
	switch {
	case m.claim != "" && m.state != stateClaimed:
		p.fail(n, "member: a claim needs state: Claimed")
	case m.claim != "" && count > 1:
		p.fail(n, "member: claim %q cannot hold %d members", m.claim, count)
	case m.occupancy != rollout.Idle && (m.state == stateProvisioning || m.state == stateTerminating):
		p.fail(n, "member: a %s body has no work", m.state)
	}
	return m, count
}

func (p *parser) occupancy(n *yaml.Node) rollout.Occupancy {
	switch p.oneOf(n, "occupancy", "Idle", "Busy", "Unknown") {
	case "Busy":
		return rollout.Busy
	case "Unknown":
		return rollout.OccupancyUnsure
	}
	return rollout.Idle
}

// hold reads a hold: "until 1h", or a reason, which holds for ever; empty for none.
func (p *parser) hold(n *yaml.Node) (held bool, until time.Duration) {
	s := p.text(n, "hold")
	after, ok := strings.CutPrefix(s, "until ")
	if !ok {
		return s != "", longest
	}
	d, err := time.ParseDuration(after)
	if err != nil || d < 0 || d > longest {
		p.fail(n, "hold: %q is not a time such as \"until 1h\"", s)
	}
	return true, d
}

// claimedOnce checks that no claim holds two members, and gives names to claims
// without one.
func (p *parser) claimedOnce(at *yaml.Node, s *Scenario) {
	seen := map[string]bool{}
	for i := range s.pools {
		for j := range s.pools[i].members {
			m := &s.pools[i].members[j]
			if m.claim == "" {
				continue
			}
			if seen[m.claim] {
				p.fail(at, "start.members: claim %q holds two members", m.claim)
			}
			seen[m.claim] = true
		}
	}
	for i := range s.pools {
		q := &s.pools[i]
		for j := range q.members {
			m := &q.members[j]
			if m.state != stateClaimed || m.claim != "" {
				continue
			}
			m.claim = fmt.Sprintf("%s-%d-holder", q.name, m.index)
			if seen[m.claim] {
				p.fail(at, "start.members: claim %q holds two members", m.claim)
			}
			seen[m.claim] = true
		}
	}
}

// mostOf returns the most frequent revision of the members that have served. It is
// the target on a tie or if all are unknown, and empty if no member has served.
func mostOf(members []memberSetup, target rollout.Revision) (best rollout.Revision) {
	n := map[rollout.Revision]int{}
	most, ties, served := 0, 0, false
	for i := range members {
		m := &members[i]
		served = served || m.served()
		if m.revision != "" && m.served() {
			n[m.revision]++
			most = max(most, n[m.revision])
		}
	}
	for r, have := range n {
		if have == most {
			best = r
			ties++
		}
	}
	if ties > 1 || ties == 0 && served {
		return target
	}
	return best
}

// served reports whether the member's body was in service before the start.
func (m *memberSetup) served() bool { return m.state != stateProvisioning }

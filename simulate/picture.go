package simulate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/rollout"
)

// picture is the state that expressions read: that of the simulated world, or a
// Scene of a real cluster.
type picture interface {
	// seconds since the start.
	seconds() int64
	// poolNames are sorted.
	poolNames() []string
	// pool returns the pool's current state; nil if there is none.
	pool(name string) *poolPicture
	// claim returns a claim; one that does not exist has empty strings.
	claim(name string) claimPicture
	claimNames() []string
}

// tally names one of the numbers of a pool.
type tally int

const (
	tallyReplicas tally = iota
	tallyMembers
	tallyFree
	tallyInService
	tallyClaimed
	tallyProvisioning
	tallyStale
	tallyUpdated
	tallyUnknown
	tallyRolling
	tallyRepairing
	tallySurge
	tallyFailed
	tallyQuarantined
	tallyBodies
	tallyCreates
	tallyDeletes
	tallyWaiting
	tallyRefused
	tallyWrites
	numTallies
)

var tallyNames = [numTallies]string{
	"replicas", "members", "free", "inService", "claimed", "provisioning", "stale", "updated", "unknown",
	"rolling", "repairing", "surge", "failed", "quarantined", "bodies", "creates", "deletes",
	"waiting", "refused", "writes",
}

// tallyNamed finds a number by name.
func tallyNamed(name string) (tally, bool) {
	i := slices.Index(tallyNames[:], name)
	return tally(i), i >= 0
}

// tallyMember adds a stored member to the numbers; serves: it is in service and its
// body is ready.
func tallyMember(n *[numTallies]int, m *rollout.Member, serves bool) {
	if m.Claimed {
		n[tallyClaimed]++
	}
	if serves {
		n[tallyInService]++
		if !m.Claimed {
			n[tallyFree]++
		}
	}
	if m.Rolling() {
		n[tallyRolling]++
	}
	if m.Repairing() {
		n[tallyRepairing]++
	}
	switch m.Phase {
	case rollout.Pending, rollout.Provisioning, rollout.Preparing:
		n[tallyProvisioning]++
	case rollout.Failed:
		n[tallyFailed]++
	case rollout.Quarantined:
		n[tallyQuarantined]++
	}
}

// tallyBody adds a body, by the revision it runs, to the numbers.
func tallyBody(n *[numTallies]int, runs, target string) {
	switch runs {
	case "":
		n[tallyUnknown]++
	case target:
		n[tallyUpdated]++
	default:
		n[tallyStale]++
	}
}

// poolPicture is one pool.
type poolPicture struct {
	tallies         [numTallies]int
	target, current string
	// members, sorted by index, and memberAt are built on demand.
	members    func() []memberPicture
	memberAt   func(index int) (memberPicture, bool)
	conditions conditions
	blockers   []rollout.Tally
	// next is the status's sentence about what the pool waits for, status the whole
	// status.
	next   string
	status func() map[string]any
}

// memberPicture is one member.
type memberPicture struct {
	index                                                   int
	phase, revision, wants, claim, occupancy, role, blocker string
	incarnation                                             int64
}

// member returns the member at the index; one that does not exist has empty strings.
func (p *poolPicture) member(index int) memberPicture {
	if m, ok := p.memberAt(index); ok {
		return m
	}
	return memberPicture{index: index}
}

func (p *poolPicture) blocker(reason string) int {
	for _, b := range p.blockers {
		if string(b.Reason) == reason {
			return b.Count
		}
	}
	return 0
}

// claimPicture is one claim; member is -1 while it has none.
type claimPicture struct {
	phase, revision string
	member          int
}

// conditions are those of a pool, in the order of conditionNames.
type conditions [6]rollout.Condition

var conditionNames = []string{"Ready", "Reconciling", "Stalled", "Updated", "Available", "SourcesResolved"}

// groupConditions are conditions that only groups have.
var groupConditions = []string{"Held"}

func (c *conditions) named(name string) rollout.Condition {
	if i := slices.Index(conditionNames, name); i >= 0 {
		return c[i]
	}
	return rollout.Condition{}
}

// blockerNames are the reasons that can keep a member from being updated,
// including those of roles, which the engine does not have yet.
var blockerNames = func() []string {
	list := []string{"WaitsForRole", "HandoverPending", "RoleUnknown"}
	for _, r := range rollout.Reasons() {
		list = append(list, string(r))
	}
	return list
}()

// describe prints a picture in a few lines: the numbers of each pool, and its
// members, with equal neighbours grouped.
func describe(p picture) string {
	var b strings.Builder
	for _, name := range p.poolNames() {
		v := p.pool(name)
		fmt.Fprintf(&b, "%s: target %s, current %s", name, v.target, v.current)
		for i, n := range v.tallies {
			if n != 0 {
				fmt.Fprintf(&b, ", %s %d", tallyNames[i], n)
			}
		}
		b.WriteByte('\n')
		for i, c := range v.conditions {
			if c.Status != "" && (conditionNames[i] == "Updated" || conditionNames[i] == "Stalled") {
				fmt.Fprintf(&b, "  %s %s %s: %s\n", conditionNames[i], c.Status, c.Reason, c.Message)
			}
		}
		for _, t := range v.blockers {
			fmt.Fprintf(&b, "  blocked: %s %d, such as %d\n", t.Reason, t.Count, t.Example)
		}
		v.describeMembers(&b)
	}
	return strings.TrimRight(b.String(), "\n")
}

// maxDump is the number of groups of members that are printed.
const maxDump = 40

func (p *poolPicture) describeMembers(b *strings.Builder) {
	list := p.members()
	groups := 0
	for i := 0; i < len(list); groups++ {
		j := i + 1
		for j < len(list) && list[j].like(&list[i]) {
			j++
		}
		if groups == maxDump {
			fmt.Fprintf(b, "  and %d more\n", len(list)-i)
			return
		}
		fmt.Fprintf(b, "  %s\n", list[i].text(list[j-1].index))
		i = j
	}
}

// like reports whether two members can be grouped: they differ only in index and
// incarnation, and are not claimed.
func (m memberPicture) like(o *memberPicture) bool {
	m.index = o.index
	m.incarnation = o.incarnation
	return m == *o && m.claim == ""
}

// text prints a group of members, up to the index last, in one line.
func (m *memberPicture) text(last int) string {
	index := itoa(m.index)
	if last != m.index {
		index += "-" + itoa(last)
	}
	list := []string{index, m.phase}
	switch {
	case m.revision == "":
		list = append(list, "wants "+m.wants)
	case m.revision != m.wants:
		list = append(list, m.revision+" wants "+m.wants)
	default:
		list = append(list, m.revision)
	}
	for _, more := range [][2]string{{"claim", m.claim}, {"role", m.role}, {"blocker", m.blocker}} {
		if more[1] != "" {
			list = append(list, more[0]+"="+more[1])
		}
	}
	if m.occupancy != "Idle" {
		list = append(list, m.occupancy)
	}
	return strings.Join(list, " ")
}

package simulate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/rollout"
)

// picture is what expressions speak of. The simulated world paints it; so may
// anything else that can be observed.
type picture interface {
	// seconds since the start.
	seconds() int64
	// poolNames in order.
	poolNames() []string
	// pool is up to date when it is asked for; nil if there is none.
	pool(name string) *poolPicture
	// claim has empty strings if there is none.
	claim(name string) claimPicture
	claimNames() []string
}

// tally names one of the numbers that a pool has.
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

// tallyMember adds a member, as it is stored, to the numbers; serves: it is in
// service in truth.
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

// tallyBody adds what a body runs to the numbers.
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
	// members in order of their index, and one of them, are made when they are
	// asked for.
	members    func() []memberPicture
	one        func(index int) (memberPicture, bool)
	conditions conditions
	blockers   []rollout.Tally
	// next is the sentence that says what comes next, status all that the
	// pool's status says.
	next   string
	status func() map[string]any
}

// memberPicture is one member.
type memberPicture struct {
	index                                                   int
	phase, revision, wants, claim, occupancy, role, blocker string
	incarnation                                             int64
}

// member finds one by index; one that does not exist has empty strings.
func (p *poolPicture) member(index int) memberPicture {
	if m, ok := p.one(index); ok {
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

// groupConditions are those that only groups have.
var groupConditions = []string{"Held"}

func (c *conditions) named(name string) rollout.Condition {
	if i := slices.Index(conditionNames, name); i >= 0 {
		return c[i]
	}
	return rollout.Condition{}
}

// blockerNames are the reasons that can keep a member from being updated, those of
// roles, which the engine does not know yet, included.
var blockerNames = func() []string {
	list := []string{"WaitsForRole", "HandoverPending", "RoleUnknown"}
	for _, r := range rollout.Reasons() {
		list = append(list, string(r))
	}
	return list
}()

// describe is a picture in a few lines: the numbers of each pool, and its
// members, those that are alike together.
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

// maxDump is how many groups of members are worth reading.
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
		fmt.Fprintf(b, "  %s\n", list[i].words(list[j-1].index))
		i = j
	}
}

// like tells whether two members differ in nothing but their place.
func (m memberPicture) like(o *memberPicture) bool {
	m.index = o.index
	m.incarnation = o.incarnation
	return m == *o && m.claim == ""
}

// words is the member, or several that are alike, in one line.
func (m *memberPicture) words(last int) string {
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

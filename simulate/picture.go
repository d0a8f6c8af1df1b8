package simulate

import (
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
	numTallies
)

var tallyNames = [numTallies]string{
	"replicas", "members", "free", "inService", "claimed", "provisioning", "stale", "updated", "unknown",
	"rolling", "repairing", "surge", "failed", "quarantined", "bodies", "creates", "deletes",
}

// tallyNamed finds a number by name.
func tallyNamed(name string) (tally, bool) {
	i := slices.Index(tallyNames[:], name)
	return tally(i), i >= 0
}

// poolPicture is one pool.
type poolPicture struct {
	tallies         [numTallies]int
	target, current string
	// members in order of their index, made when they are asked for.
	members    func() []memberPicture
	conditions conditions
	blockers   []rollout.Tally
}

// memberPicture is one member.
type memberPicture struct {
	index                                                   int
	phase, revision, wants, claim, occupancy, role, blocker string
	incarnation                                             int64
}

// member finds one by index; one that does not exist has empty strings.
func (p *poolPicture) member(index int) memberPicture {
	list := p.members()
	i, ok := slices.BinarySearchFunc(list, index, func(m memberPicture, i int) int { return m.index - i })
	if !ok {
		return memberPicture{index: index}
	}
	return list[i]
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

// blockerNames are the reasons that can keep a member from being updated.
var blockerNames = strings.Fields(`ManualPolicy Paused Claimed Busy OccupancyUnknown Held Partitioned
	OutsideWindow InFlightLimit UnavailableLimit FloorReached FloorUnreachable NoSurgeCapacity BudgetFull
	WaitsForRole HandoverPending RoleUnknown PoolResizing Unreachable SourcesUnresolved
	RevisionNotReproducible Halted FailedReplacement Backoff WritesUnseen Rolling Next`)

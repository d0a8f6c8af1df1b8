package simulate

import (
	"maps"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// Scene is a world as it was observed at one time.
type Scene struct {
	Pools  map[string]*PoolScene
	Claims map[string]ClaimScene
}

// PoolScene is one pool of a scene.
type PoolScene struct {
	// Desired is what the spec says, Target the version of its template and
	// Current that of the current revision.
	Desired         int
	Target, Current string
	// Members by index.
	Members []MemberScene
	// Blocker is what explain says keeps the member with the index.
	Blocker func(index int) string
	// Bodies are the versions that the bodies run, those that stop included;
	// empty for one that nobody can tell.
	Bodies           []string
	Creates, Deletes int
	// Surge is how many members there are above the size on purpose, Waiting how
	// many claims wait, Refused how many births were refused, Writes how often
	// controllers have written members.
	Surge, Waiting, Refused, Writes int
	// Next is the status's sentence, Status all that it says.
	Next   string
	Status func() map[string]any
	// Conditions by type, and Blockers, are what is written in the status.
	Conditions map[string]rollout.Condition
	Blockers   []rollout.Tally
}

// MemberScene is one member of a scene.
type MemberScene struct {
	// Member is as it is stored. Its revisions are versions of the template.
	rollout.Member

	// Serves: it is in service in truth. Body is the version that its body
	// runs.
	Serves      bool
	Body        string
	Claim, Role string
	// Work is whether work runs on it, as a controller would find it now.
	Work rollout.Occupancy
}

// ClaimScene is one claim of a scene. Member is -1 while it has none.
type ClaimScene struct {
	Phase, Revision string
	Member          int
}

// Serving tells whether a member is in service as far as what is stored goes.
func Serving(m *rollout.Member) bool {
	s := slot{Member: *m}
	if m.Claimed {
		s.claimUID = 1
	}
	return s.inService()
}

// Disrupted tells whether a disruption of this very incarnation is stored.
func Disrupted(m *rollout.Member) bool { return (&slot{Member: *m}).disrupted() }

// Leaves reports whether the slot is to go, as far as what is stored goes.
func Leaves(m *rollout.Member) bool { return (&slot{Member: *m}).leaves() }

func (s *Scene) poolNames() []string { return slices.Sorted(maps.Keys(s.Pools)) }

func (s *Scene) pool(name string) *poolPicture {
	p := s.Pools[name]
	if p == nil {
		return nil
	}
	v := &poolPicture{
		target: p.Target, current: p.Current, members: p.picture, one: p.one, blockers: p.Blockers, next: p.Next, status: p.Status,
	}
	v.tallies = [numTallies]int{
		tallyReplicas: p.Desired, tallyMembers: len(p.Members), tallyBodies: len(p.Bodies),
		tallyCreates: p.Creates, tallyDeletes: p.Deletes, tallySurge: p.Surge, tallyWaiting: p.Waiting,
		tallyRefused: p.Refused, tallyWrites: p.Writes,
	}
	if v.status == nil {
		v.status = func() map[string]any { return StatusMap(&v1alpha1.PoolStatus{}) }
	}
	for i := range p.Members {
		tallyMember(&v.tallies, &p.Members[i].Member, p.Members[i].Serves)
	}
	for _, runs := range p.Bodies {
		tallyBody(&v.tallies, runs, p.Target)
	}
	for i, name := range conditionNames {
		v.conditions[i] = p.Conditions[name]
	}
	return v
}

func (p *PoolScene) picture() []memberPicture {
	list := make([]memberPicture, len(p.Members))
	for i := range p.Members {
		list[i] = p.paint(&p.Members[i])
	}
	return list
}

func (p *PoolScene) paint(m *MemberScene) memberPicture {
	v := memberPicture{
		index: m.Index, phase: m.Phase.String(), revision: m.Body, wants: string(m.Wants), claim: m.Claim,
		occupancy: occupancyNames[m.Work], role: m.Role, incarnation: m.Incarnation,
	}
	if p.Blocker != nil {
		v.blocker = p.Blocker(m.Index)
	}
	return v
}

func (p *PoolScene) one(index int) (memberPicture, bool) {
	i, ok := slices.BinarySearchFunc(p.Members, index, func(m MemberScene, i int) int { return m.Index - i })
	if !ok {
		return memberPicture{}, false
	}
	return p.paint(&p.Members[i]), true
}

func (s *Scene) claim(name string) claimPicture {
	c, ok := s.Claims[name]
	if !ok {
		return claimPicture{member: -1}
	}
	return claimPicture{phase: c.Phase, revision: c.Revision, member: c.Member}
}

func (s *Scene) claimNames() []string { return slices.Sorted(maps.Keys(s.Claims)) }

// Judge holds what a scenario expects against one scene after the other. Its
// methods are for one goroutine.
type Judge struct {
	c     *court
	scene *Scene
	now   time.Duration
	due   []Edit
}

// NewJudge gives a judge who allows everything to be so much sooner or later
// than the file says.
func (s *Scenario) NewJudge(slack time.Duration) *Judge {
	j := &Judge{scene: &Scene{}}
	j.c = newCourt(s, j)
	j.c.slack = slack
	j.c.now = func() time.Duration { return j.now }
	j.c.dump = func() string { return describe(j) }
	j.c.said = func(*Failure) {}
	j.c.happen = func(e *entry) { j.due = append(j.due, e.export()) }
	return j
}

func (j *Judge) seconds() int64                 { return int64(j.now / time.Second) }
func (j *Judge) poolNames() []string            { return j.scene.poolNames() }
func (j *Judge) pool(name string) *poolPicture  { return j.scene.pool(name) }
func (j *Judge) claim(name string) claimPicture { return j.scene.claim(name) }
func (j *Judge) claimNames() []string           { return j.scene.claimNames() }

// Moments are the times at which the judge has to look though nothing happens.
func (j *Judge) Moments() []time.Duration { return j.c.moments() }

// Look has the judge see the scene of a time, which must not be before the last
// one. It returns what happens because of it.
func (j *Judge) Look(at time.Duration, s *Scene) []Edit {
	j.pass(at)
	j.scene = s
	j.c.observe()
	due := j.due
	j.due = nil
	return due
}

func (j *Judge) pass(at time.Duration) {
	if at > j.now {
		j.c.pass(at)
		j.now = at
	}
}

// Edited tells the judge that something of the timeline happens at a time.
func (j *Judge) Edited(at time.Duration) {
	j.pass(at)
	j.c.begin()
}

// Break notes that something does not hold that is promised anyhow.
func (j *Judge) Break(promise string) { j.c.fail("promise", "", 0, promise) }

// Abort notes that the run cannot go on.
func (j *Judge) Abort(err error) { j.c.broken(err) }

// Aborted tells whether it makes no sense to go on.
func (j *Judge) Aborted() bool { return j.c.stop }

// Finish looks at what has to hold at the end of the run, and returns all that
// did not hold.
func (j *Judge) Finish(at time.Duration, creates, deletes int, order []int) []Failure {
	j.pass(at)
	if !j.c.stop {
		j.c.finish(tallied{creates, deletes, order})
	}
	return j.c.failures
}

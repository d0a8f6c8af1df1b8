package simulate

import (
	"maps"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// Scene is the observed state of a world at one time.
type Scene struct {
	Pools  map[string]*PoolScene
	Claims map[string]ClaimScene
}

// PoolScene is one pool of a scene.
type PoolScene struct {
	// Desired is the number of replicas, Target the version of the template and
	// Current that of the current revision.
	Desired         int
	Target, Current string
	// Members are sorted by index.
	Members []MemberScene
	// Blocker returns the reason that explain gives for the member at the index.
	Blocker func(index int) string
	// Bodies are the versions that the bodies run, stopping ones included; empty for
	// an unknown version.
	Bodies           []string
	Creates, Deletes int
	// Surge counts the surge slots, Waiting the waiting claims, Refused the refused
	// births, Writes the writes of members by controllers.
	Surge, Waiting, Refused, Writes int
	// Next is the sentence of the status, Status the whole status.
	Next   string
	Status func() map[string]any
	// Conditions, by type, and Blockers are those of the status.
	Conditions map[string]rollout.Condition
	Blockers   []rollout.Tally
}

// MemberScene is one member of a scene.
type MemberScene struct {
	// Member is the stored member. Its revisions are versions of the template.
	rollout.Member

	// Serves: it is in service, and its body is ready. Body is the version that its
	// body runs.
	Serves      bool
	Body        string
	Claim, Role string
	// Work is its occupancy as a controller would read it now.
	Work rollout.Occupancy
}

// ClaimScene is one claim of a scene. Member is -1 while it has none.
type ClaimScene struct {
	Phase, Revision string
	Member          int
}

// Serving reports whether a member is in service by its stored state.
func Serving(m *rollout.Member) bool {
	s := slot{Member: *m}
	if m.Claimed {
		s.claimUID = 1
	}
	return s.inService()
}

// Disrupted reports whether a disruption of the current incarnation is stored.
func Disrupted(m *rollout.Member) bool { return (&slot{Member: *m}).disrupted() }

// Leaves reports whether the slot is to be removed by its stored state.
func Leaves(m *rollout.Member) bool { return (&slot{Member: *m}).leaves() }

func (s *Scene) poolNames() []string { return slices.Sorted(maps.Keys(s.Pools)) }

func (s *Scene) pool(name string) *poolPicture {
	p := s.Pools[name]
	if p == nil {
		return nil
	}
	v := &poolPicture{
		target: p.Target, current: p.Current, members: p.picture, memberAt: p.one, blockers: p.Blockers, next: p.Next, status: p.Status,
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

// Judge checks the expectations of a scenario against a series of scenes. It is not
// safe for concurrent use.
type Judge struct {
	c     *checker
	scene *Scene
	now   time.Duration
	due   []Edit
}

// NewJudge returns a judge that allows everything to happen up to slack earlier or
// later than the file says.
func (s *Scenario) NewJudge(slack time.Duration) *Judge {
	j := &Judge{scene: &Scene{}}
	j.c = newChecker(s, j)
	j.c.slack = slack
	j.c.now = func() time.Duration { return j.now }
	j.c.dump = func() string { return describe(j) }
	j.c.onFailure = func(*Failure) {}
	j.c.fire = func(e *entry) { j.due = append(j.due, e.export()) }
	return j
}

func (j *Judge) seconds() int64                 { return int64(j.now / time.Second) }
func (j *Judge) poolNames() []string            { return j.scene.poolNames() }
func (j *Judge) pool(name string) *poolPicture  { return j.scene.pool(name) }
func (j *Judge) claim(name string) claimPicture { return j.scene.claim(name) }
func (j *Judge) claimNames() []string           { return j.scene.claimNames() }

// Moments returns the times at which Look must be called even if nothing happens.
func (j *Judge) Moments() []time.Duration { return j.c.moments() }

// Look checks the scene of a time, which must not be before the last one. It returns
// the edits whose expressions have become true.
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

// Edited notes that an entry of the timeline is applied at the time.
func (j *Judge) Edited(at time.Duration) {
	j.pass(at)
	j.c.begin()
}

// Break records a broken promise.
func (j *Judge) Break(promise string) { j.c.fail("promise", "", 0, promise) }

// Abort records an error that ends the run.
func (j *Judge) Abort(err error) { j.c.abort(err) }

// Aborted reports whether the run has to end.
func (j *Judge) Aborted() bool { return j.c.stop }

// Finish checks the end of the run, and returns all failures.
func (j *Judge) Finish(at time.Duration, creates, deletes int, order []int) []Failure {
	j.pass(at)
	if !j.c.stop {
		j.c.finish(totals{creates, deletes, order})
	}
	return j.c.failures
}

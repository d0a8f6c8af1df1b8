package live

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/body/sim"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/simulate"
	"github.com/pawl-dev/pawl/snapshot"
)

// book is everything that was observed of a story: the objects as they are
// stored, the bodies as they are, and what has been counted.
type book struct {
	pools  map[string]*poolBook
	claims map[string]*v1alpha1.Claim
	// over are claims that are not there any more, as they were in the end.
	over map[string]simulate.ClaimScene
	// ours are the resource versions of writes to members that no controller made.
	ours map[string]bool
	// now is what the controllers' clock shows; nil where nobody asks.
	now func() time.Time
	// unsure: nobody can tell whether work runs on a member.
	unsure bool
	// renderer counts how often the renderer has changed.
	renderer int

	scene *simulate.Scene
}

// poolBook is what was observed of one pool.
type poolBook struct {
	name      string
	pool      *v1alpha1.Pool
	members   map[int]*v1alpha1.Member
	revisions map[string]*appsv1.ControllerRevision // by id
	// names are the versions of the template by revision, those that are not
	// there any more included.
	names  map[string]string
	bodies map[int]sim.Body
	counts Counts
	// writes is how often controllers wrote members, refused how many births were
	// refused.
	writes, refused int
	// spec is the pool's as it was last, wanted: it is to be created again once it
	// is gone.
	spec   *v1alpha1.PoolSpec
	wanted bool
	// past are the last states of the ledger.
	past []ledger
}

// Counts are what a pool has come to.
type Counts struct {
	// Creates are births, Deletes bodies that were told to go.
	Creates int `json:"creates"`
	Deletes int `json:"deletes"`
	// Order are the indexes of members in the order in which they were first
	// disrupted, for whatever reason but the end of a claim.
	Order []int `json:"order,omitempty"`
	// LowestFree is the smallest number of free members at any time.
	LowestFree int `json:"lowestFree"`
}

func newBook(pools []string) *book {
	b := &book{
		ours: map[string]bool{}, pools: map[string]*poolBook{}, claims: map[string]*v1alpha1.Claim{}, over: map[string]simulate.ClaimScene{},
		scene: &simulate.Scene{Pools: map[string]*simulate.PoolScene{}, Claims: map[string]simulate.ClaimScene{}},
	}
	for _, name := range pools {
		b.pools[name] = &poolBook{
			name: name, members: map[int]*v1alpha1.Member{}, revisions: map[string]*appsv1.ControllerRevision{},
			names: map[string]string{}, bodies: map[int]sim.Body{},
		}
	}
	return b
}

// slotOf takes the name of a member apart.
func slotOf(member string) (pool string, index int, ok bool) {
	at := strings.LastIndexByte(member, '-')
	if at < 0 {
		return "", 0, false
	}
	index, err := strconv.Atoi(member[at+1:])
	return member[:at], index, err == nil
}

// revision notes a revision; gone if it is not there any more.
func (p *poolBook) revision(r *appsv1.ControllerRevision, gone bool, renderer int) {
	id := history.RevisionID(r)
	if gone {
		delete(p.revisions, id)
		return
	}
	p.revisions[id] = r
	if _, known := p.names[id]; known {
		return
	}
	if t, err := history.Template(r); err == nil && t.Sim != nil && t.Sim.Version != nil {
		p.names[id] = rendered(*t.Sim.Version, renderer)
	}
}

// rendered is what a version of the template is called after so many changes
// of the renderer.
func rendered(version string, renderer int) string { return version + strings.Repeat("'", renderer) }

// version is the name of a revision in the file; one that nobody knows has
// none.
func (p *poolBook) version(id string) string {
	if name, ok := p.names[id]; ok || id == "" {
		return name
	}
	return "revision " + id
}

// paint brings the scene of one pool up to date.
func (b *book) paint(p *poolBook) {
	if p.pool == nil {
		return
	}
	s := &simulate.PoolScene{
		Desired: desired(p.pool), Creates: p.counts.Creates, Deletes: p.counts.Deletes,
		Current: p.current(), Conditions: map[string]rollout.Condition{}, Surge: int(p.pool.Status.Surge),
		Waiting: b.waiting(p), Refused: p.refused, Writes: p.writes, Status: sync.OnceValue(p.status()), Blocker: b.blockers(p),
	}
	if t := p.pool.Spec.Template.Sim; t != nil && t.Version != nil {
		s.Target = rendered(*t.Version, b.renderer)
	}
	if p.rolledBack(s.Target) {
		s.Target = s.Current
	}
	for _, c := range p.pool.Status.Conditions {
		s.Conditions[c.Type] = rollout.Condition{Status: rollout.Status(c.Status), Reason: c.Reason, Message: c.Message}
	}
	if ro := p.pool.Status.Rollout; ro != nil {
		s.Next = ro.Next
		for _, blocker := range ro.Blockers {
			_, example, _ := slotOf(blocker.Example)
			s.Blockers = append(s.Blockers, rollout.Tally{Reason: rollout.Reason(blocker.Reason), Count: int(blocker.Count), Example: example})
		}
	}
	for _, i := range slices.Sorted(maps.Keys(p.members)) {
		s.Members = append(s.Members, b.member(p, p.members[i]))
	}
	for _, i := range slices.Sorted(maps.Keys(p.bodies)) {
		s.Bodies = append(s.Bodies, p.version(p.bodies[i].Revision))
	}
	b.scene = clone(b.scene)
	b.scene.Pools[p.name] = s
}

// rolledBack reports whether the version was rolled back, so that members are
// brought to the one on which the pool stands.
func (p *poolBook) rolledBack(version string) bool {
	for id, r := range p.revisions {
		if rec, err := history.ReadRecord(r); err == nil && rec.RolledBack && p.version(id) == version {
			return true
		}
	}
	return false
}

// clone makes a scene whose parts can be replaced.
func clone(s *simulate.Scene) *simulate.Scene {
	return &simulate.Scene{Pools: maps.Clone(s.Pools), Claims: maps.Clone(s.Claims)}
}

func desired(p *v1alpha1.Pool) int {
	if p.Spec.Replicas == nil {
		return snapshot.DefaultReplicas
	}
	return int(*p.Spec.Replicas)
}

// current is the version on which the pool last stood.
func (p *poolBook) current() string {
	var list []*appsv1.ControllerRevision
	for _, id := range slices.Sorted(maps.Keys(p.revisions)) {
		list = append(list, p.revisions[id])
	}
	r := history.Current(list)
	if r == nil {
		return ""
	}
	return p.version(history.RevisionID(r))
}

func (b *book) member(p *poolBook, m *v1alpha1.Member) simulate.MemberScene {
	s := simulate.MemberScene{Member: stored(m)}
	s.Serves = p.serves(&s.Member)
	s.Wants, s.Runs = rollout.Revision(p.version(string(s.Wants))), rollout.Revision(p.version(string(s.Runs)))
	if c := m.Spec.Claim; c != nil {
		s.Claim = c.Name
	}
	if is, ok := p.bodies[s.Index]; ok {
		s.Body = p.version(is.Revision)
		s.Work = work(is.Occupancy)
	}
	if b.unsure {
		s.Work = rollout.OccupancyUnsure
	}
	return s
}

// own notes that a version of a member was not written by the controllers.
func (b *book) own(version string) { b.ours[version] = true }

// count notes a write to a member.
func (p *poolBook) count(b *book, old, is *v1alpha1.Member) {
	told := old != nil && old.DeletionTimestamp.IsZero() && !is.DeletionTimestamp.IsZero()
	if !b.ours[is.ResourceVersion] && !told {
		p.writes++
	}
	if old == nil {
		old = &v1alpha1.Member{}
	}
	st := &is.Status
	if st.Incarnation > old.Status.Incarnation && st.Phase == v1alpha1.PhaseFailed && st.BodyUID == "" {
		p.refused++
	}
}

// waiting counts the claims of the pool that wait.
func (b *book) waiting(p *poolBook) int {
	claims := make([]*v1alpha1.Claim, 0, len(b.claims))
	for _, c := range b.claims {
		if c.Spec.Pool == p.name {
			claims = append(claims, c)
		}
	}
	return snapshot.Waiting(claims, slices.Collect(maps.Values(p.members)))
}

// status gives what the pool's status says, revisions by their version.
func (p *poolBook) status() func() map[string]any {
	st := p.pool.Status.DeepCopy()
	st.CurrentRevision, st.TargetRevision = p.version(st.CurrentRevision), p.version(st.TargetRevision)
	if st.Rollout != nil {
		st.Rollout.Revision = p.version(st.Rollout.Revision)
	}
	return func() map[string]any { return simulate.StatusMap(st) }
}

// blockers gives what explain says keeps each member, of what is stored now.
func (b *book) blockers(p *poolBook) func(index int) string {
	if b.now == nil {
		return nil
	}
	s := &history.Stored{Pool: p.pool, Members: slices.Collect(maps.Values(p.members)), Revisions: slices.Collect(maps.Values(p.revisions))}
	for _, c := range b.claims {
		if c.Spec.Pool == p.name {
			s.Claims = append(s.Claims, c)
		}
	}
	c := meta.FindStatusCondition(p.pool.Status.Conditions, v1alpha1.ConditionSourcesResolved)
	if c != nil && c.Status != metav1.ConditionTrue && p.pool.Status.ObservedGeneration >= p.pool.Generation {
		s.Invalid = errors.New(c.Message)
	}
	now := b.now()
	plan := sync.OnceValue(func() map[int]string {
		snap, err := s.Snapshot(now)
		if err != nil {
			return nil
		}
		plan, all := snap.Plan(now), map[int]string{}
		for i := range snap.Members {
			index := snap.Members[i].Index
			all[index] = string(plan.Verdict(index))
		}
		return all
	})
	return func(index int) string { return plan()[index] }
}

// undone is the version of the template that a revision was made of; empty if
// there is no such revision, or the template is that already.
func (b *book) undone(pool, revision string) string {
	p := b.pools[pool]
	version := strings.TrimRight(revision, "'")
	t := p.pool.Spec.Template.Sim
	for _, r := range p.revisions {
		if p.version(history.RevisionID(r)) == revision && (t == nil || t.Version == nil || *t.Version != version) {
			return version
		}
	}
	return ""
}

func work(o body.Occupancy) rollout.Occupancy {
	switch o {
	case body.Busy:
		return rollout.Busy
	case body.UnknownOccupancy:
		return rollout.OccupancyUnsure
	default:
		return rollout.Idle
	}
}

// stored is a member as it is stored. A hold counts for as long as it stands
// there.
func stored(m *v1alpha1.Member) rollout.Member {
	is := snapshot.Member(m, time.Time{})
	if m.Status.Phase == "" {
		is.Phase = rollout.Pending
	}
	return is
}

// serves tells whether the member is in service in truth: what is stored says
// so, and its body is ready.
func (p *poolBook) serves(m *rollout.Member) bool {
	is, ok := p.bodies[m.Index]
	return ok && is.State == body.Ready && is.Incarnation == m.Incarnation && simulate.Serving(m)
}

// claim notes a claim; gone if it is not there any more.
func (b *book) claim(c *v1alpha1.Claim, gone bool) {
	if gone {
		if have := b.claims[c.Name]; have == nil || have.UID != c.UID {
			return
		}
		s := b.claimScene(c)
		if s.Phase == string(v1alpha1.ClaimPending) || s.Phase == string(v1alpha1.ClaimBound) {
			s.Phase = string(v1alpha1.ClaimReleased)
		}
		s.Revision = ""
		b.over[c.Name] = s
		delete(b.claims, c.Name)
		return
	}
	delete(b.over, c.Name)
	b.claims[c.Name] = c
}

// paintClaims brings the claims of the scene up to date: what a claim runs
// changes with its member's body.
func (b *book) paintClaims() {
	b.scene = clone(b.scene)
	b.scene.Claims = maps.Clone(b.over)
	for name, c := range b.claims {
		b.scene.Claims[name] = b.claimScene(c)
	}
}

func (b *book) claimScene(c *v1alpha1.Claim) simulate.ClaimScene {
	s := simulate.ClaimScene{Phase: string(c.Status.Phase), Member: -1}
	if s.Phase == "" {
		s.Phase = string(v1alpha1.ClaimPending)
	}
	pool, index, ok := slotOf(c.Status.Member)
	if !ok {
		return s
	}
	s.Member = index
	if p := b.pools[pool]; p != nil && c.Status.Phase == v1alpha1.ClaimBound {
		if is, ok := p.bodies[index]; ok {
			s.Revision = p.version(is.Revision)
		}
	}
	return s
}

// body notes how a body is, and counts births and ends.
func (p *poolBook) body(index int, is sim.Body) {
	was, had := p.bodies[index]
	if is.State == body.Absent {
		if had && was.UID == is.UID {
			delete(p.bodies, index)
			if was.State != body.Stopping && is.Told {
				p.counts.Deletes++
			}
		}
		return
	}
	if !had || was.UID != is.UID {
		p.counts.Creates++
	} else if is.State == body.Stopping && was.State != body.Stopping {
		p.counts.Deletes++
	}
	p.bodies[index] = is
}

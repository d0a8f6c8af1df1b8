package simulate

import (
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// pool is one pool: its stored objects, its bodies and its controllers.
type pool struct {
	w    *world
	name string

	spec   *specRecord
	state  *stateRecord
	slots  slots
	claims claims
	status status
	// statusCache is the status as a map, built on demand.
	statusCache map[string]any
	// endedClaims are removed claims, by name, for expressions. onBound are calls of
	// a churn once its claim is bound, by UID.
	endedClaims map[string]claimPicture
	onBound     map[int64]func()

	bodies map[int]*body
	// refused is until when births in a slot are refused, by index. refusals counts
	// refused births, writes the writes of members by controllers.
	refused          map[int]time.Duration
	refusals, writes int
	// template is the name of the template, sources the content of sources that
	// differs from the start. variants are the combinations of renderer and sources
	// so far, revisions the origin of each revision.
	template  rollout.Revision
	sources   map[string]string
	variants  []variant
	revisions map[rollout.Revision]made
	// recreateWanted: the pool is to be created again once it is gone.
	recreateWanted bool

	planner planner
	keeper  keeper
	binder  binder
	caches  []*cache

	creates, deletes int
	// order has the indexes in the order of their first disruption, for any cause;
	// inOrder is the same as a set.
	order   []int
	inOrder map[int]bool
	// rolling are the slots, by ID, that a rollout took out of service and that are
	// not back in service nor undisrupted, with the incarnation that was taken.
	rolling map[string]int64
	// holders are the indexes of the slots that carry a claim, by its UID; unserved
	// are the pending claims that no slot carries.
	holders  map[int64]int
	unserved map[int64]bool

	counts counts
	view   poolPicture
	// rollout is what the judge has recorded of the target.
	rollout rolloutWatch
}

// longAgo is the age of bodies that serve at the start.
const longAgo = 24 * time.Hour

func newPool(w *world, s *poolSetup) *pool {
	p := &pool{
		w: w, name: s.name, bodies: map[int]*body{}, refused: map[int]time.Duration{},
		endedClaims: map[string]claimPicture{}, onBound: map[int64]func(){},
		template: s.target, revisions: map[rollout.Revision]made{}, inOrder: map[int]bool{}, rolling: map[string]int64{},
		holders: map[int64]int{}, unserved: map[int64]bool{},
	}
	for _, r := range []rollout.Revision{s.target, s.current} {
		if r != "" {
			p.revision(r)
		}
	}
	p.spec = resolve(s.spec, s.target, w.nature.bootTimeout)
	p.spec.generation = 1
	p.state = &stateRecord{target: s.target, current: s.current}
	for i := range s.members {
		p.addStartMember(&s.members[i])
	}
	p.planner.cache = cache{p: p, by: byPlanner, notify: func(int) { p.planner.wake() }}
	p.keeper.cache = cache{p: p, by: byKeeper, notify: p.keeper.wake}
	p.binder.cache = cache{p: p, by: byBinder, notify: func(int) { p.binder.wake() }}
	p.caches = []*cache{&p.planner.cache, &p.keeper.cache, &p.binder.cache}
	p.view.members, p.view.status = p.picture, p.statusMap
	p.view.memberAt = func(index int) (memberPicture, bool) {
		s := p.slots.get(index)
		if s == nil {
			return memberPicture{}, false
		}
		return p.paint(s), true
	}
	return p
}

// addStartMember adds a member in its state at the start.
func (p *pool) addStartMember(m *memberSetup) {
	s := &slot{role: m.role, shard: m.shard}
	start, before := p.w.epoch, p.w.epoch.Add(-longAgo)
	if m.revision != "" {
		p.revision(m.revision)
	}
	long := -longAgo
	s.watch = watch{away: never, up: long, steady: long, shaken: never, arrived: long, before: long, came: true, settled: true}
	s.Member = rollout.Member{
		Index: m.index, ID: p.slotID(), Wants: m.revision, Runs: m.revision, Body: true, Incarnation: 1,
		Phase: rollout.Available, Occupancy: m.occupancy, Cost: int32(m.cost),
		BornAt: before.Add(-p.w.nature.bootOf(m.revision)), PhaseSince: before, ServedSince: before, BootTook: p.w.nature.bootOf(m.revision),
	}
	if m.held {
		s.holdUntil = m.holdUntil
	}
	b := &body{
		p: p, index: m.index, incarnation: 1, revision: m.revision, occupancy: m.occupancy,
		breed: p.w.nature.breed(m.revision), booted: true,
	}
	p.bodies[m.index] = b
	p.w.bodies++
	switch m.state {
	case stateClaimed:
		c := p.newClaim(m.claim)
		c.Phase, c.Given, c.member = rollout.ClaimBound, true, m.index
		p.claims.put(c.uid, c)
		s.Phase, s.Claimed, s.claim, s.claimUID = rollout.InClaim, true, c.name, c.uid
		s.lastClaim = c.uid
		p.holders[c.uid] = m.index
	case stateProvisioning:
		s.Phase, s.BornAt, s.PhaseSince, s.ServedSince, s.BootTook = rollout.Provisioning, start, start, time.Time{}, 0
		b.booted = false
		b.start()
	case stateUnready:
		s.Phase, s.PhaseSince, b.sick = rollout.Unready, start, true
	case stateFailed:
		s.Phase, s.PhaseSince, b.sick = rollout.Failed, start, true
	case stateDraining, stateTerminating:
		s.Phase, s.PhaseSince, s.Wants = rollout.Draining, start, p.spec.target
		s.Disruption = rollout.Disruption{Cause: rollout.Drift, Rolling: true, Incarnation: 1, Since: start}
		if m.state == stateTerminating {
			s.Phase = rollout.Terminating
			b.beginStop()
		}
		p.rolling[s.ID] = s.Incarnation
	}
	if b.ready() {
		b.serve()
	}
	if !s.inService() && s.Phase != rollout.Draining {
		s.watch.away, s.watch.up, s.watch.steady = 0, never, never
		if s.ServedSince.IsZero() {
			s.watch.arrived, s.watch.came, s.watch.settled = never, false, false
		}
	}
	p.slots.put(m.index, s)
	p.counts.touch(m.index)
}

func (p *pool) slotID() string { return strconv.FormatInt(p.w.uid(), 10) }

// boot starts the pool's controllers.
func (p *pool) boot() {
	p.planner.reset()
	p.keeper.reset()
	p.binder.reset()
	p.planner.cache.boot(p.planner.wake)
	p.keeper.cache.boot(p.keeper.wakeAll)
	p.binder.cache.boot(p.binder.wake)
}

// wakeAll queues everything for the pool's controllers.
func (p *pool) wakeAll() {
	p.planner.wake()
	p.keeper.wakeAll()
	p.binder.wake()
}

// forget drops the data of a slot that is gone.
func (p *pool) forget(index int) { delete(p.refused, index) }

// readMember converts the slot for the engine, as a controller reads it now.
func (p *pool) readMember(s *slot) rollout.Member {
	m := s.Member
	m.Held = s.held(p.w.clock())
	m.Asked = s.recycle != 0 && s.recycle == s.Incarnation
	if p.w.without(loseOccupancy) {
		m.Occupancy = rollout.OccupancyUnsure
	}
	return m
}

// tally returns the current picture of the pool.
func (p *pool) tally() *poolPicture {
	v, c, target := &p.view, p.counted(), string(p.target())
	v.tallies = c.n
	n := &v.tallies
	n[tallyReplicas], n[tallyMembers], n[tallyBodies] = p.spec.policy.Desired, len(p.slots), len(p.bodies)
	n[tallyCreates], n[tallyDeletes], n[tallySurge] = p.creates, p.deletes, p.status.surge
	n[tallyWaiting], n[tallyRefused], n[tallyWrites] = len(p.unserved), p.refusals, p.writes
	n[tallyUnknown], n[tallyUpdated] = c.runs[""], c.runs[target]
	if target == "" {
		n[tallyUpdated] = 0
	}
	n[tallyStale] = len(p.bodies) - n[tallyUnknown] - n[tallyUpdated]
	v.target, v.current = target, string(p.state.current)
	v.conditions, v.blockers, v.next = p.status.conditions, p.status.blockers, p.status.next
	return v
}

// serves reports whether the member is in service by its record, and its body is
// ready.
func (p *pool) serves(s *slot) bool {
	if !s.inService() {
		return false
	}
	b := p.bodyOf(s)
	return b != nil && b.ready()
}

// picture returns the pictures of all members.
func (p *pool) picture() []memberPicture {
	list := make([]memberPicture, len(p.slots))
	for i, s := range p.slots {
		list[i] = p.paint(s)
	}
	return list
}

// paint returns the picture of one member.
func (p *pool) paint(s *slot) memberPicture {
	m := memberPicture{
		index: s.Index, phase: s.Phase.String(), wants: string(s.Wants), claim: s.claim, role: s.role, incarnation: s.Incarnation,
		occupancy: occupancyNames[p.readMember(s).Occupancy], blocker: string(p.verdict(s.Index)),
	}
	if b := p.bodies[s.Index]; b != nil {
		m.revision = string(b.revision)
	}
	return m
}

var occupancyNames = [...]string{"Idle", "Busy", "Unknown"}

func (w *world) seconds() int64 { return int64(w.now / time.Second) }

func (w *world) poolNames() []string {
	list := make([]string, len(w.pools))
	for i, p := range w.pools {
		list[i] = p.name
	}
	return list
}

// find returns the pool by name, or nil.
func (w *world) find(name string) *pool {
	for _, p := range w.pools {
		if p.name == name {
			return p
		}
	}
	return nil
}

func (w *world) pool(name string) *poolPicture {
	if p := w.find(name); p != nil {
		return p.tally()
	}
	return nil
}

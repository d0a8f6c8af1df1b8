package simulate

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// What follows is for those who play a scenario elsewhere than in the
// simulated world: on a real API server, say.

// Stage is what a scenario needs to be played.
type Stage struct {
	// Pools by name.
	Pools []PoolStart
	// Nature is how the world behaves, for this one performance.
	Nature *Nature
	// Timeline is what happens when, in order.
	Timeline []Instant
	// Start is when the story starts, Run how long it goes on.
	Start time.Time
	Run   time.Duration
}

// PoolStart is how a pool starts.
type PoolStart struct {
	Name string
	// Spec is the pool's spec as JSON, without a template.
	Spec map[string]any
	// Target and Current are versions of the template.
	Target, Current string
	// Members by index.
	Members []MemberStart
}

// MemberStart is how a member starts.
type MemberStart struct {
	// Member is as it is stored, without an ID. Its revisions are versions of
	// the template.
	rollout.Member

	// Claim is the name of the claim that holds it; empty for none.
	Claim string
	// Held: somebody holds it, until the time, if that is not zero.
	Held      bool
	HoldUntil time.Time
	// Sick: its body is not ready although it has booted. Stopping: it was told
	// to go.
	Sick, Stopping bool
}

// Instant is all that happens at one time: one edit.
type Instant struct {
	At    time.Duration
	Edits []Edit
}

// Edit is one thing that happens to a pool, or to everything. Exactly one of
// the pointers is set, or one of the texts and flags that stand before them.
type Edit struct {
	// Pool is empty where none is meant.
	Pool string
	// Revise is the version that the template becomes.
	Revise string
	// Set is a merge patch on the pool's spec.
	Set map[string]any
	// DeletePool: somebody deletes the pool. CreatePool: somebody creates it
	// again, as its spec was last, once the former one is gone.
	DeletePool, CreatePool bool
	// Retry: somebody asks for one more round of the target. Undo is the version
	// to whose template somebody goes back.
	Retry bool
	Undo  string
	// Jump is how far the controllers' clock is set forward, or, negative, back.
	Jump time.Duration
	// Release and Renew name a claim.
	Release, Renew string

	Claims  *Claims
	Churn   *Churn
	Crash   *time.Duration
	Lose    *Loss
	Upgrade *Upgrade
	World   *WorldChange
	Member  *MemberChange
}

// Claims are one or more claims, one every so often; every 0 means all at once.
type Claims struct {
	Names []string
	Every time.Duration
	// Member is the only one that will do; -1 for any.
	Member int
	TTL    time.Duration
	Wait   *time.Duration
}

// Churn keeps about so many claims alive, each held about so long.
type Churn struct {
	Claims      int
	Hold, Until time.Duration
}

// Loss is reads that fail for a while. What is occupancy, sources, members,
// render or all.
type Loss struct {
	What string
	For  time.Duration
}

// Upgrade is another version of Pawl.
type Upgrade struct {
	// HashVersion is 0 where the hash algorithm stays.
	HashVersion int
	// Renderer: what is rendered changes.
	Renderer bool
}

// WorldChange is a change of the world, for Nature.Change.
type WorldChange struct{ c *change }

// MemberChange is what happens to one member; nil and empty for nothing.
type MemberChange struct {
	Index int
	// Health is Down, Up or Flap; Flap says how it goes up and down then.
	Health    string
	Flap      *Flap
	Occupancy *rollout.Occupancy
	// Hold is how long after the start of the story the hold ends: 0 for no
	// hold at all, negative for never.
	Hold     *time.Duration
	Cost     *int
	Revision *string
	// Refuse is for how long births are refused.
	Refuse *time.Duration
	// Do is recycle, skip, cordon or uncordon, as the commands of pawl do it.
	Do string
	// Stop is how long its body takes to go from now on: negative for ever.
	Stop *time.Duration
	// Delete is body or slot.
	Delete string
	// Role is a word that only groups know.
	Role *string
}

// Flap is how a body goes up and down in turn until a time of the story, from
// which on it is up.
type Flap struct{ Up, Down, Until time.Duration }

// Unlive is why the scenario cannot be played on a real API server; empty if it
// can.
func (s *Scenario) Unlive() string {
	if !s.Live {
		return "it says live: false"
	}
	for i := range s.timeline {
		switch e := s.timeline[i].edit.(type) {
		case loseEdit:
			if e.what == "all" && s.beats() {
				return "heartbeats wait for an API server that is away, and it is the judge's as well"
			}
		case claimEdit:
			if e.member >= 0 {
				return "a Claim cannot ask for one certain member"
			}
		case sourceEdit:
			return "digests of sources are made with a key of the controllers' own, so that the revisions of the start cannot be written"
		}
	}
	for i := range s.pools {
		if len(s.pools[i].spec) > 0 && s.pools[i].spec["sources"] != nil {
			return "the objects that its sources name are not there"
		}
	}
	return ""
}

// beats reports whether claims of a pool have to be renewed.
func (s *Scenario) beats() bool {
	for i := range s.pools {
		if c, ok := s.pools[i].spec["claims"].(map[string]any); ok && c["heartbeat"] != nil {
			return true
		}
	}
	return false
}

// Stage takes the scenario apart. One with needs must not be staged.
func (s *Scenario) Stage() *Stage {
	w := newWorld(s, 1)
	st := &Stage{Nature: &Nature{n: s.world}, Start: s.date, Run: s.run}
	for i, p := range w.pools {
		set := &s.pools[i]
		q := PoolStart{Name: p.name, Spec: maps.Clone(set.spec), Target: string(set.target), Current: string(set.current)}
		for _, m := range p.slots {
			q.Members = append(q.Members, startOf(p, m))
		}
		st.Pools = append(st.Pools, q)
	}
	for i := range s.timeline {
		e := &s.timeline[i]
		if e.when != nil {
			continue
		}
		if n := len(st.Timeline); n == 0 || st.Timeline[n-1].At != e.at {
			st.Timeline = append(st.Timeline, Instant{At: e.at})
		}
		last := &st.Timeline[len(st.Timeline)-1]
		last.Edits = append(last.Edits, e.export())
	}
	return st
}

func startOf(p *pool, s *slot) MemberStart {
	b := p.bodies[s.Index]
	m := MemberStart{Member: s.Member, Claim: s.claim, Sick: b.sick, Stopping: b.stopping, Held: s.holdUntil > 0}
	m.ID = ""
	if m.Held && s.holdUntil < longest {
		m.HoldUntil = p.w.epoch.Add(s.holdUntil)
	}
	return m
}

// export is the entry's edit for others.
func (e *entry) export() Edit {
	out := Edit{Pool: e.pool}
	switch x := e.edit.(type) {
	case reviseEdit:
		out.Revise = string(x.to)
	case setEdit:
		out.Set = maps.Clone(x.patch)
	case deletePoolEdit:
		out.DeletePool = true
	case createPoolEdit:
		out.CreatePool = true
	case retryEdit:
		out.Retry = true
	case undoEdit:
		out.Undo = string(x.to)
	case clockEdit:
		out.Jump = x.jump
	case claimEdit:
		out.Claims = &Claims{Names: []string{x.name}, Member: x.member, TTL: x.ttl, Wait: x.wait}
	case claimsEdit:
		out.Claims = &Claims{Every: x.every, Member: -1, TTL: x.ttl, Wait: x.wait}
		for i := range x.count {
			out.Claims.Names = append(out.Claims.Names, x.prefix+itoa(i))
		}
	case churnEdit:
		out.Churn = &Churn{Claims: x.claims, Hold: x.hold, Until: x.until}
	case releaseEdit:
		out.Release = x.name
	case renewEdit:
		out.Renew = x.name
	case crashEdit:
		out.Crash = &x.long
	case loseEdit:
		out.Lose = &Loss{What: x.what, For: x.long}
	case upgradeEdit:
		out.Upgrade = &Upgrade{HashVersion: x.hashVersion, Renderer: x.renderer}
	case worldEdit:
		out.World = &WorldChange{x.change}
	case memberEdit:
		out.Member = x.export()
	}
	return out
}

func (e *memberEdit) export() *MemberChange {
	out := &MemberChange{
		Index: e.index, Health: e.health, Occupancy: e.occupancy, Hold: e.hold, Cost: e.cost,
		Refuse: e.refuse, Delete: e.remove, Role: e.role, Do: e.do, Stop: e.stop,
	}
	if e.flap != nil {
		out.Flap = &Flap{e.flap.up, e.flap.down, e.flap.until}
	}
	if e.revision != nil {
		r := string(*e.revision)
		out.Revision = &r
	}
	if e.hold != nil && *e.hold >= longest {
		never := time.Duration(-1)
		out.Hold = &never
	}
	return out
}

// MergePatch applies a merge patch (RFC 7386) and leaves both as they are.
func MergePatch(doc, patch map[string]any) map[string]any { return merge(doc, patch) }

// Nature is how the world behaves. It is safe for concurrent use.
type Nature struct {
	mu sync.Mutex
	n  nature
}

// Breed is how bodies of one version of the template behave.
type Breed struct {
	Boot, Stop, Drain, After time.Duration
	// Outcome is one of those that a Pool's template.sim knows, or FlapOutcome: a
	// body that is up and down in turn.
	Outcome  string
	Up, Down time.Duration
}

// FlapOutcome is the outcome of bodies that go up and down for ever.
const FlapOutcome = string(flaps)

// Of is how bodies of the version behave now.
func (n *Nature) Of(version string) Breed {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := rollout.Revision(version)
	b := n.n.breed(r)
	out := Breed{Boot: n.n.bootOf(r), Stop: n.n.stopOf(r), Drain: n.n.drain, After: b.after, Outcome: string(b.outcome), Up: b.up, Down: b.down}
	if out.Outcome == "" {
		out.Outcome = string(becomesReady)
	}
	return out
}

// Capacity is how many bodies fit, those that stop included; 0 is without
// limit, negative none.
func (n *Nature) Capacity() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch n.n.capacity {
	case unlimited:
		return 0
	case 0:
		return -1
	}
	return n.n.capacity
}

// BootTimeout is the template's.
func (n *Nature) BootTimeout() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.n.bootTimeout
}

// Lag is how late readers see writes, at most.
func (n *Nature) Lag() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.n.lag
}

// Shortest is the shortest time that anything takes which takes time at all: 0
// if nothing does.
func (n *Nature) Shortest() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []time.Duration{n.n.boot, n.n.stop, n.n.drain, n.n.lag, n.n.bootTimeout}
	for _, b := range n.n.revisions {
		for _, d := range []*time.Duration{b.boot, b.stop} {
			if d != nil {
				all = append(all, *d)
			}
		}
		switch b.outcome {
		case crashes:
			all = append(all, b.after)
		case flaps:
			all = append(all, b.up, b.down)
		}
	}
	all = slices.DeleteFunc(all, func(d time.Duration) bool { return d <= 0 })
	if len(all) == 0 {
		return 0
	}
	return slices.Min(all)
}

// Change has the world change.
func (n *Nature) Change(c *WorldChange) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.c.apply(&n.n)
}

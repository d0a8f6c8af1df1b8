package simulate

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// This file exports scenarios to other players than the simulator, such as one on a
// real API server.

// Stage is a scenario, ready to be played once.
type Stage struct {
	// Pools are sorted by name.
	Pools []PoolStart
	// Nature is the behaviour of the world in this run.
	Nature *Nature
	// Timeline has the edits, sorted by time. Entries that wait for an expression are
	// not in it; see Judge.Look.
	Timeline []Instant
	// Start is the time at t=0, Run the length of the run.
	Start time.Time
	Run   time.Duration
}

// PoolStart is the start of a pool.
type PoolStart struct {
	Name string
	// Spec is the pool's spec as JSON, without a template.
	Spec map[string]any
	// Target and Current are versions of the template.
	Target, Current string
	// Members are sorted by index.
	Members []MemberStart
}

// MemberStart is the start of a member.
type MemberStart struct {
	// Member is the stored member, without an ID. Its revisions are versions of the
	// template.
	rollout.Member

	// Claim is the name of the claim that holds it; empty for none.
	Claim string
	// Held: the member has a hold, until the time, or for ever if that is zero.
	Held      bool
	HoldUntil time.Time
	// Sick: its body is not ready although it has booted. Stopping: its body is being
	// deleted.
	Sick, Stopping bool
}

// Instant has the edits of one time, which are made as one.
type Instant struct {
	At    time.Duration
	Edits []Edit
}

// Edit is one change of a pool or of the world. Exactly one of the fields after Pool
// is set.
type Edit struct {
	// Pool is empty for an edit that is not about one pool.
	Pool string
	// Revise is the new version of the template.
	Revise string
	// Set is a merge patch on the pool's spec.
	Set map[string]any
	// DeletePool deletes the pool. CreatePool creates it again with its last spec,
	// once the former one is gone.
	DeletePool, CreatePool bool
	// Retry requests one more round of the target. Undo is the version whose template
	// is restored.
	Retry bool
	Undo  string
	// Jump is how far the controllers' clock is set forward; negative for back.
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

// Claims are one or more claims, made Every so often; 0 means all at once.
type Claims struct {
	Names []string
	Every time.Duration
	// Member is the only member that they accept; -1 for any.
	Member int
	TTL    time.Duration
	Wait   *time.Duration
}

// Churn keeps a number of claims alive, each held for about the given time.
type Churn struct {
	Claims      int
	Hold, Until time.Duration
}

// Loss makes reads fail for a while. What is occupancy, sources, members, render or
// all.
type Loss struct {
	What string
	For  time.Duration
}

// Upgrade starts another version of Pawl.
type Upgrade struct {
	// HashVersion is 0 if the hash algorithm stays the same.
	HashVersion int
	// Renderer: the renderer changes.
	Renderer bool
}

// WorldChange is a change of the world, for Nature.Change.
type WorldChange struct{ c *change }

// MemberChange changes one member; nil and empty fields change nothing.
type MemberChange struct {
	Index int
	// Health is Down, Up or Flap, with its times in Flap.
	Health    string
	Flap      *Flap
	Occupancy *rollout.Occupancy
	// Hold is when the hold ends, from the start of the scenario: 0 for no hold,
	// negative for never.
	Hold     *time.Duration
	Cost     *int
	Revision *string
	// Refuse is how long births are refused.
	Refuse *time.Duration
	// Do is a command of pawl: recycle, skip, cordon or uncordon.
	Do string
	// Stop is the stop time of its body from now on; negative for ever.
	Stop *time.Duration
	// Delete is body or slot.
	Delete string
	// Role is for groups only.
	Role *string
}

// Flap makes a body ready and unready in turn until a time of the scenario, from
// which on it stays ready.
type Flap struct{ Up, Down, Until time.Duration }

// Unlive returns the reason for which the scenario cannot be played on a real API
// server; empty if it can.
func (s *Scenario) Unlive() string {
	if !s.Live {
		return "it says live: false"
	}
	for i := range s.timeline {
		switch e := s.timeline[i].edit.(type) {
		case loseEdit:
			if e.what == "all" && s.hasHeartbeat() {
				return "it stops the API server while claims have heartbeats, and the judge needs the same API server"
			}
		case claimEdit:
			if e.member >= 0 {
				return "a Claim cannot ask for a particular member"
			}
		case sourceEdit:
			return "digests of sources need a key that only the controllers have, so that the first revisions cannot be written"
		}
	}
	for i := range s.pools {
		if len(s.pools[i].spec) > 0 && s.pools[i].spec["sources"] != nil {
			return "the objects of its sources do not exist"
		}
	}
	return ""
}

// hasHeartbeat reports whether claims of a pool have to be renewed.
func (s *Scenario) hasHeartbeat() bool {
	for i := range s.pools {
		if c, ok := s.pools[i].spec["claims"].(map[string]any); ok && c["heartbeat"] != nil {
			return true
		}
	}
	return false
}

// Stage returns the scenario for another player. A scenario with Needs must not be
// staged.
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

// export converts the entry's edit.
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

// MergePatch returns doc with a merge patch (RFC 7386); it changes neither argument.
func MergePatch(doc, patch map[string]any) map[string]any { return merge(doc, patch) }

// Nature is the behaviour of the world. It is safe for concurrent use.
type Nature struct {
	mu sync.Mutex
	n  nature
}

// Breed is the behaviour of bodies of one version of the template.
type Breed struct {
	Boot, Stop, Drain, After time.Duration
	// Outcome is one of those of a Pool's template.sim, or FlapOutcome.
	Outcome  string
	Up, Down time.Duration
}

// FlapOutcome is the outcome of bodies that become ready and unready in turn, for
// ever.
const FlapOutcome = string(flaps)

// Of returns the current behaviour of bodies of the version.
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

// Capacity returns how many bodies fit, stopping ones included; 0 for no limit,
// negative for none at all.
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

// BootTimeout returns the template's bootTimeout.
func (n *Nature) BootTimeout() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.n.bootTimeout
}

// Lag returns the largest delay with which controllers see writes.
func (n *Nature) Lag() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.n.lag
}

// Shortest returns the shortest time of all that are not 0; 0 if all are.
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

// Change applies a change of the world.
func (n *Nature) Change(c *WorldChange) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.c.apply(&n.n)
}

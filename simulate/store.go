package simulate

import (
	"slices"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// actor is the writer of an object.
type actor uint8

const (
	byWorld   actor = iota // users, and the world itself
	byPlanner              // the pool controller
	byKeeper               // the member controller
	byBinder               // the claim controller
)

// slot is one stored version of a member. It is immutable: a write stores another
// one, so that a pointer serves as resource version.
type slot struct {
	rollout.Member
	// claim and claimUID name the claim that holds it, until expiresAt; all empty
	// for no claim, expiresAt zero for no end. lastClaim is the UID of the last
	// claim that held it.
	claim     string
	claimUID  int64
	lastClaim int64
	expiresAt time.Time
	// holdUntil is when its hold ends; 0 for none.
	holdUntil time.Duration
	// recycle is the incarnation whose replacement was requested, skip the target that
	// the slot stays off.
	recycle     int64
	skip        rollout.Revision
	role, shard string
	by          actor
	// watch belongs to the judge; no controller reads it.
	watch watch
}

// held reports whether the hold is in force, by the controllers' clock.
func (s *slot) held(now time.Duration) bool { return s.holdUntil > 0 && now < s.holdUntil }

// inService reports whether the member is in service by its record, as the design
// defines it.
func (s *slot) inService() bool {
	healthy := s.Phase == rollout.Available || s.Phase == rollout.InClaim
	return healthy && (s.claimUID != 0 || !s.Cordoned && !s.Deleting && !s.disrupted())
}

// disrupted reports whether a disruption of the current incarnation is recorded.
func (s *slot) disrupted() bool {
	return s.Disruption.Cause != rollout.NoCause && s.Disruption.Incarnation >= s.Incarnation
}

// isGoing reports whether the body is on its way out and cannot be withdrawn.
func (s *slot) isGoing() bool {
	cause := s.Disruption.Cause
	return s.disrupted() && (s.Phase == rollout.Terminating || cause == rollout.ClaimEnded || cause == rollout.BodyFailed)
}

// leaves reports whether the slot is to be removed.
func (s *slot) leaves() bool { return s.Deleting || s.disrupted() && s.Disruption.Remove }

// slots are members sorted by index.
type slots []*slot

func (l slots) find(index int) (int, bool) {
	lo, hi := 0, len(l)
	for lo < hi {
		mid := (lo + hi) / 2
		if l[mid].Index < index {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(l) && l[lo].Index == index
}

// get returns the slot at the index, or nil.
func (l slots) get(index int) *slot {
	if i, ok := l.find(index); ok {
		return l[i]
	}
	return nil
}

// put stores a version at the index; nil removes the slot.
func (l *slots) put(index int, s *slot) {
	i, ok := l.find(index)
	switch {
	case ok && s != nil:
		(*l)[i] = s
	case ok:
		*l = slices.Delete(*l, i, i+1)
	case s != nil:
		*l = slices.Insert(*l, i, s)
	}
}

// specRecord is one version of a pool's spec.
type specRecord struct {
	raw spec
	// generation counts the versions.
	generation int64
	target     rollout.Revision
	deleting   bool
	// retry is the last request for another round, sources the names of the pool's
	// sources.
	retry   retryRequest
	sources []string
	policy  rollout.Policy
	life    rollout.Lifecycle
	windows snapshot.Windows
	claims  *v1alpha1.Claims
	// heartbeat is how often a claim has to be renewed, 0 for never. notify: holders
	// of stale members are asked to release them.
	heartbeat time.Duration
	notify    bool
	err       error
}

// stateRecord is one version of the pool controller's state.
type stateRecord struct {
	target, current rollout.Revision
	records         []rollout.Record
	// retried is the last request for another round that was granted.
	retried retryRequest
}

// record returns the record of a revision; an empty one if none is stored.
func (r *stateRecord) record(id rollout.Revision) rollout.Record {
	for i := range r.records {
		if r.records[i].ID == id {
			return r.records[i]
		}
	}
	return rollout.Record{ID: id}
}

// targetOf returns the revision to which members are brought: the template's, or
// the current one after a rollback.
func targetOf(spec *specRecord, state *stateRecord) rollout.Revision {
	if state.target == spec.target && state.record(spec.target).RolledBack {
		return state.current
	}
	return spec.target
}

// target returns that revision from the stored records.
func (p *pool) target() rollout.Revision { return targetOf(p.spec, p.state) }

// with returns the next version, with the record in place of that of its revision.
func (r *stateRecord) with(rec rollout.Record) *stateRecord {
	next := *r
	next.records = slices.Clone(r.records)
	for i := range next.records {
		if next.records[i].ID == rec.ID {
			next.records[i] = rec
			return &next
		}
	}
	next.records = append(next.records, rec)
	return &next
}

// status is the pool's status as last written.
type status struct {
	conditions conditions
	blockers   []rollout.Tally
	verdicts   []verdict
	next       string
	// surge is the number of surge slots of the last plan, size the number of members
	// for which it made slots.
	surge, size int
	// counts are those of the last plan, waiting its number of waiting claims.
	counts  rollout.Counts
	waiting int
	// generation is that of the plan's spec; target, current and aim are the
	// template's revision, the current one and the one to which members were brought.
	generation           int64
	target, current, aim rollout.Revision
	// since is when each blocker appeared.
	since map[rollout.Reason]time.Time
}

// verdict is a member's blocker.
type verdict struct {
	index  int
	reason rollout.Reason
}

// verdict returns the member's blocker in the last status; empty for none.
func (p *pool) verdict(index int) rollout.Reason {
	list := p.status.verdicts
	i, ok := slices.BinarySearchFunc(list, index, func(v verdict, i int) int { return v.index - i })
	if !ok {
		return ""
	}
	return list[i].reason
}

// put replaces the stored version old by next, unless another writer was faster; nil
// for old creates the slot, nil for next removes it. It returns false if the writer
// must stop: the write was a conflict, or the controllers crashed.
func (p *pool) put(by actor, old, next *slot, say func() string) bool {
	w := p.w
	if by != byWorld && w.down {
		return false
	}
	index := 0
	if next != nil {
		index, next.by = next.Index, by
	} else {
		index = old.Index
	}
	if p.slots.get(index) != old {
		w.sayLazily(byNames[by], func() string {
			return "has a conflict on " + p.member(index) + ", which has changed meanwhile"
		})
		return false
	}
	if next != nil {
		next.watch = p.nextWatch(old, next)
	}
	p.slots.put(index, next)
	p.counts.touch(index)
	w.judge.checkSlotWrite(p, old, next)
	p.updateHolders(old, next)
	w.writes++
	if by != byWorld {
		p.writes++
	}
	if say != nil {
		w.sayLazily(byNames[by], say)
	}
	p.publish(by, index, func(c *cache) { c.slots.put(index, next) })
	if next == nil {
		p.forget(index)
		p.recreateOnceGone()
	}
	w.changed()
	return by == byWorld || !w.down
}

// updateHolders records which slot carries which claim.
func (p *pool) updateHolders(old, next *slot) {
	var was, is int64
	if old != nil {
		was = old.claimUID
	}
	if next != nil {
		is = next.claimUID
	}
	if was == is {
		return
	}
	if was != 0 && p.holders[was] == old.Index {
		delete(p.holders, was)
		p.updateUnserved(was)
	}
	if is != 0 {
		p.holders[is] = next.Index
		p.updateUnserved(is)
	}
}

// putSpec stores a new version of the spec.
func (p *pool) putSpec(next *specRecord) {
	next.generation = p.spec.generation + 1
	p.spec = next
	p.w.writes++
	p.publish(byWorld, specKey, func(c *cache) { c.spec = next })
	p.w.changed()
}

// putState replaces the pool controller's state, and returns false as put does.
func (p *pool) putState(old, next *stateRecord, say func() string) bool {
	if p.w.down || p.state != old {
		return false
	}
	p.w.judge.checkRecords(p, old, next)
	p.state = next
	p.w.writes++
	if say != nil {
		p.w.sayLazily(byNames[byPlanner], say)
	}
	p.publish(byPlanner, stateKey, func(c *cache) { c.state = next })
	p.w.changed()
	return !p.w.down
}

var byNames = [...]string{"world", "pool", "member", "claim"}

// member returns the name of the slot at the index.
func (p *pool) member(index int) string { return p.name + "-" + strconv.Itoa(index) }

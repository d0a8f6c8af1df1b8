package simulate

import (
	"slices"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// actor is who writes.
type actor uint8

const (
	byWorld   actor = iota // users, and the world itself
	byPlanner              // the pool controller
	byKeeper               // the member controller
	byBinder               // the claim controller
)

// slot is one stored version of a member. It is never changed: a write stores
// another one, so that a pointer is as good as a resource version.
type slot struct {
	rollout.Member
	// claim and claimUID are who holds it, boundAt since when and expiresAt
	// until when; empty and 0 for nobody, and for no end.
	// LastClaim is the last one that held it.
	claim              string
	claimUID           int64
	lastClaim          int64
	boundAt, expiresAt time.Duration
	// holdUntil is when its hold ends; 0 for none.
	holdUntil time.Duration
	// recycle is the incarnation for which somebody wants another body, skip the
	// target to which somebody gave up on bringing it.
	recycle     int64
	skip        rollout.Revision
	role, shard string
	by          actor
	// watch is what the judge remembers of it, for no controller to read.
	watch watch
}

// held tells whether a hold is in force, by the controllers' clock.
func (s *slot) held(now time.Duration) bool { return s.holdUntil > 0 && now < s.holdUntil }

// inService as the design defines it, from what is recorded.
func (s *slot) inService() bool {
	healthy := s.Phase == rollout.Available || s.Phase == rollout.InClaim
	return healthy && (s.claimUID != 0 || !s.Cordoned && !s.Deleting && !s.disrupted())
}

// disrupted tells whether a disruption of this very incarnation is recorded.
func (s *slot) disrupted() bool {
	return s.Disruption.Cause != rollout.NoCause && s.Disruption.Incarnation >= s.Incarnation
}

// goes tells whether its body is on its way out already, and nothing takes that
// back.
func (s *slot) goes() bool {
	cause := s.Disruption.Cause
	return s.disrupted() && (s.Phase == rollout.Terminating || cause == rollout.ClaimEnded || cause == rollout.BodyFailed)
}

// leaves tells whether the slot is to go.
func (s *slot) leaves() bool { return s.Deleting || s.disrupted() && s.Disruption.Remove }

// slots are members by index.
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

// put stores a version at the index; nil removes it.
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

// specRecord is one version of what users say of a pool.
type specRecord struct {
	raw spec
	// generation counts the versions.
	generation int64
	target     rollout.Revision
	deleting   bool
	// retry is the round that was asked for last, sources the names of those
	// that it reads.
	retry   retryRequest
	sources []string
	policy  rollout.Policy
	life    rollout.Lifecycle
	windows snapshot.Windows
	claims  *v1alpha1.Claims
	// heartbeat is how often a claim has to be renewed, 0 for never; notify has
	// those asked to let go whose member is stale.
	heartbeat time.Duration
	notify    bool
	err       error
}

// stateRecord is one version of what the pool controller remembers.
type stateRecord struct {
	target, current rollout.Revision
	records         []rollout.Record
	// retried is the last request for another round that was granted.
	retried retryRequest
}

// record is what is stored with the revision.
func (r *stateRecord) record(id rollout.Revision) rollout.Record {
	for i := range r.records {
		if r.records[i].ID == id {
			return r.records[i]
		}
	}
	return rollout.Record{ID: id}
}

// targetOf is the revision that members are brought to: the template's, or,
// after that one was rolled back, the current one.
func targetOf(spec *specRecord, state *stateRecord) rollout.Revision {
	if state.target == spec.target && state.record(spec.target).RolledBack {
		return state.current
	}
	return spec.target
}

// target is that in truth.
func (p *pool) target() rollout.Revision { return targetOf(p.spec, p.state) }

// with is the next version, with the record.
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

// status is what the pool controller has last written about the pool.
type status struct {
	conditions conditions
	blockers   []rollout.Tally
	verdicts   []verdict
	next       string
	// surge is how many surplus slots the last plan left on purpose, size the
	// number of members for which it made slots.
	surge, size int
	// counts are those of the last plan, waiting the claims that waited then.
	counts  rollout.Counts
	waiting int
	// generation is that of the spec that it went by; target, current and aim
	// what the template said then, the current revision and the one that members
	// were brought to.
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

// verdict is what was last said to keep the member from being updated.
func (p *pool) verdict(index int) rollout.Reason {
	list := p.status.verdicts
	i, ok := slices.BinarySearchFunc(list, index, func(v verdict, i int) int { return v.index - i })
	if !ok {
		return ""
	}
	return list[i].reason
}

// put stores a new version of a slot in place of the old one, unless somebody
// else was faster: nil for old makes the slot, nil for next removes it. False
// ends what the writer is doing: it lost, or it is dead.
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
		w.saying(byNames[by], func() string {
			return "is too late for " + p.member(index) + ", which has changed meanwhile"
		})
		return false
	}
	if next != nil {
		next.watch = p.watched(old, next)
	}
	p.slots.put(index, next)
	p.counts.touch(index)
	w.judge.stored(p, old, next)
	p.carries(old, next)
	w.writes++
	if by != byWorld {
		p.writes++
	}
	if say != nil {
		w.saying(byNames[by], say)
	}
	p.publish(by, index, func(c *cache) { c.slots.put(index, next) })
	if next == nil {
		p.forget(index)
		p.recreateOnceGone()
	}
	w.changed()
	return by == byWorld || !w.down
}

// carries notes which claim a slot carries.
func (p *pool) carries(old, next *slot) {
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
		p.attend(was)
	}
	if is != 0 {
		p.holders[is] = next.Index
		p.attend(is)
	}
}

// putSpec stores what a user says.
func (p *pool) putSpec(next *specRecord) {
	next.generation = p.spec.generation + 1
	p.spec = next
	p.w.writes++
	p.publish(byWorld, specKey, func(c *cache) { c.spec = next })
	p.w.changed()
}

// putState stores what the pool controller wants to remember.
func (p *pool) putState(old, next *stateRecord, say func() string) bool {
	if p.w.down || p.state != old {
		return false
	}
	p.w.judge.remembers(p, old, next)
	p.state = next
	p.w.writes++
	if say != nil {
		p.w.saying(byNames[byPlanner], say)
	}
	p.publish(byPlanner, stateKey, func(c *cache) { c.state = next })
	p.w.changed()
	return !p.w.down
}

var byNames = [...]string{"world", "pool", "member", "claim"}

// member is a slot's name.
func (p *pool) member(index int) string { return p.name + "-" + strconv.Itoa(index) }

package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// claim is one stored version of a claim. Like a slot, it is immutable.
type claim struct {
	rollout.Claim

	name string
	uid  int64
	// wanted is the only member that it accepts; -1 for any.
	wanted int
	// ttl is how long it may hold its member; 0 for the pool's default.
	ttl time.Duration
	// renewed is when its owner last renewed it.
	renewed time.Duration
	// member is the index of the member that it holds or held; -1 for none yet.
	member int
}

// waits reports whether the claim waits for any free member.
func (c *claim) waits() bool {
	return c.Phase == rollout.ClaimPending && !c.Deleted && c.wanted < 0
}

// claims are sorted by UID, which is the order in which they were made.
type claims []*claim

func (l claims) find(uid int64) (int, bool) {
	return slices.BinarySearchFunc(l, uid, func(c *claim, uid int64) int { return cmp.Compare(c.uid, uid) })
}

// get returns the claim with the UID, or nil.
func (l claims) get(uid int64) *claim {
	if i, ok := l.find(uid); ok {
		return l[i]
	}
	return nil
}

// put stores a version of a claim; nil removes it.
func (l *claims) put(uid int64, c *claim) {
	i, ok := l.find(uid)
	switch {
	case ok && c != nil:
		(*l)[i] = c
	case ok:
		*l = slices.Delete(*l, i, i+1)
	case c != nil:
		*l = slices.Insert(*l, i, c)
	}
}

// newClaim returns a new claim, not stored yet.
func (p *pool) newClaim(name string) *claim {
	return &claim{
		Claim: rollout.Claim{Phase: rollout.ClaimPending, Made: p.w.epoch.Add(p.w.now)},
		name:  name, uid: p.w.uid(), wanted: -1, member: -1, renewed: p.w.now,
	}
}

// putClaim replaces the stored version old by next, unless another writer was
// faster; nil for old creates the claim, nil for next removes it. It returns false
// if the writer must stop: the write was a conflict, or the controllers crashed.
func (p *pool) putClaim(by actor, old, next *claim, say func() string) bool {
	w := p.w
	if by != byWorld && w.down {
		return false
	}
	uid := cmp.Or(next, old).uid
	if p.claims.get(uid) != old {
		w.sayLazily(byNames[by], func() string { return "has a conflict on " + old.name + ", which has changed meanwhile" })
		return false
	}
	p.claims.put(uid, next)
	p.updateUnserved(uid)
	if next == nil {
		p.endedClaims[old.name] = claimPicture{phase: string(old.finalPhase()), member: old.member}
		delete(p.onBound, uid)
	}
	w.writes++
	if say != nil {
		w.sayLazily(byNames[by], say)
	}
	p.publish(by, claimKey(uid), func(c *cache) { c.claims.put(uid, next) })
	w.changed()
	return by == byWorld || !w.down
}

// finalPhase is the phase that is reported of a claim after it was removed.
func (c *claim) finalPhase() rollout.ClaimPhase {
	if c.Ended() {
		return c.Phase
	}
	return rollout.ClaimReleased
}

// findClaim finds the claim by name, in any pool.
func (w *world) findClaim(name string) (*pool, *claim) {
	for _, p := range w.pools {
		for _, c := range p.claims {
			if c.name == name {
				return p, c
			}
		}
	}
	return nil, nil
}

func (w *world) claim(name string) claimPicture {
	p, c := w.findClaim(name)
	if c == nil {
		for _, p := range w.pools {
			if v, ok := p.endedClaims[name]; ok {
				return v
			}
		}
		return claimPicture{member: -1}
	}
	v := claimPicture{phase: string(c.Phase), member: c.member}
	if b := p.bodies[c.member]; b != nil && c.Phase == rollout.ClaimBound {
		v.revision = string(b.revision)
	}
	return v
}

func (w *world) claimNames() (list []string) {
	for _, p := range w.pools {
		for _, c := range p.claims {
			list = append(list, c.name)
		}
		for name := range p.endedClaims {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// holder finds the slot that carries the claim, by a consistent read.
func (p *pool) holder(c *claim) *slot {
	if i, ok := p.holders[c.uid]; ok {
		return p.slots.get(i)
	}
	return nil
}

// updateUnserved records whether the claim is pending and no slot carries it.
func (p *pool) updateUnserved(uid int64) {
	c := p.claims.get(uid)
	if _, held := p.holders[uid]; c != nil && !held && c.Phase == rollout.ClaimPending && !c.Deleted {
		p.unserved[uid] = true
	} else {
		delete(p.unserved, uid)
	}
}

// waiting counts the claims that wait and that no slot carries, in the cache.
func (c *cache) waiting() int {
	waiting := map[int64]bool{}
	for _, o := range c.claims {
		if o.waits() {
			waiting[o.uid] = true
		}
	}
	if len(waiting) == 0 {
		return 0
	}
	for _, s := range c.slots {
		delete(waiting, s.claimUID)
	}
	return len(waiting)
}

// waiting counts the same claims in the store.
func (p *pool) waiting() (n int) {
	for uid := range p.unserved {
		if p.claims.get(uid).waits() {
			n++
		}
	}
	return n
}

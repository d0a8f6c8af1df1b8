package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// claim is one stored version of a claim. Like a slot it is never changed.
type claim struct {
	name string
	uid  int64
	// wanted is the only member that will do; -1 for any.
	wanted int
	// ttl is how long it may hold its member, 0 for as long as the pool says;
	// wait how long it may wait for one, nil for ever.
	ttl  time.Duration
	wait *time.Duration
	// made and renewed are when its owner made it, and last said that it is
	// still wanted.
	made, renewed time.Duration
	// deleted: its owner has let go of it.
	deleted bool

	phase v1alpha1.ClaimPhase
	// member is the index of the one it holds or held; -1 for none yet.
	member int
	// expiresAt is when it ends by itself; 0 for never.
	expiresAt time.Duration
	// asked: its holder is asked to let the member go, which is stale.
	asked bool
}

func (c *claim) ended() bool {
	return c.phase != v1alpha1.ClaimPending && c.phase != v1alpha1.ClaimBound
}

// waits tells whether it is still to get a member, whichever that is.
func (c *claim) waits() bool {
	return c.phase == v1alpha1.ClaimPending && !c.deleted && c.wanted < 0
}

// claims are in the order in which they were made.
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

// newClaim is a claim that nobody has stored yet.
func (p *pool) newClaim(name string) *claim {
	return &claim{
		name: name, uid: p.w.uid(), wanted: -1, member: -1, phase: v1alpha1.ClaimPending,
		made: p.w.now, renewed: p.w.now,
	}
}

// putClaim stores a new version of a claim in place of the old one, unless
// somebody else was faster: nil for old makes the claim, nil for next removes
// it. False ends what the writer is doing: it lost, or it is dead.
func (p *pool) putClaim(by actor, old, next *claim, say func() string) bool {
	w := p.w
	if by != byWorld && w.down {
		return false
	}
	uid := cmp.Or(next, old).uid
	if p.claims.get(uid) != old {
		w.saying(byNames[by], func() string { return "is too late for " + old.name + ", which has changed meanwhile" })
		return false
	}
	p.claims.put(uid, next)
	p.attend(uid)
	if next == nil {
		p.over[old.name] = claimPicture{phase: string(old.last()), member: old.member}
		delete(p.then, uid)
	}
	w.writes++
	if say != nil {
		w.saying(byNames[by], say)
	}
	p.publish(by, claimKey(uid), func(c *cache) { c.claims.put(uid, next) })
	w.changed()
	return by == byWorld || !w.down
}

// last is how a claim that is not there any more has ended.
func (c *claim) last() v1alpha1.ClaimPhase {
	if c.ended() {
		return c.phase
	}
	return v1alpha1.ClaimReleased
}

// claimed finds the claim by name, in any pool.
func (w *world) claimed(name string) (*pool, *claim) {
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
	p, c := w.claimed(name)
	if c == nil {
		for _, p := range w.pools {
			if v, ok := p.over[name]; ok {
				return v
			}
		}
		return claimPicture{member: -1}
	}
	v := claimPicture{phase: string(c.phase), member: c.member}
	if b := p.bodies[c.member]; b != nil && c.phase == v1alpha1.ClaimBound {
		v.revision = string(b.revision)
	}
	return v
}

func (w *world) claimNames() (list []string) {
	for _, p := range w.pools {
		for _, c := range p.claims {
			list = append(list, c.name)
		}
		for name := range p.over {
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

// attend notes whether the claim waits and is on no slot.
func (p *pool) attend(uid int64) {
	c := p.claims.get(uid)
	if _, held := p.holders[uid]; c != nil && !held && c.phase == v1alpha1.ClaimPending && !c.deleted {
		p.unserved[uid] = true
	} else {
		delete(p.unserved, uid)
	}
}

// waiting counts the claims that wait and are on no member, as the cache shows
// them.
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

// waiting counts them in truth.
func (p *pool) waiting() (n int) {
	for uid := range p.unserved {
		if p.claims.get(uid).waits() {
			n++
		}
	}
	return n
}

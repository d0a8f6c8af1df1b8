package simulate

import (
	"slices"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// claim is one stored claim.
type claim struct {
	name string
	uid  int64
	// wanted is the only member that will do; -1 for any.
	wanted int
	ttl    time.Duration
	phase  v1alpha1.ClaimPhase
	// member is the index of the one it holds or held; -1 for none yet.
	member    int
	expiresAt time.Duration // 0 for never
	// released: its owner has deleted it.
	released bool
	// looked is the life of the controllers in which a member that carries the
	// claim already was looked for.
	looked int
	// then is what its owner does once it is bound.
	then func()
}

func (c *claim) ended() bool {
	return c.phase != v1alpha1.ClaimPending && c.phase != v1alpha1.ClaimBound
}

func (c *claim) bind(member int) { c.phase, c.member = v1alpha1.ClaimBound, member }

// newClaim stores a claim; whoever had the name before has ended.
func (p *pool) newClaim(name string) *claim {
	c := &claim{name: name, uid: p.w.uid(), wanted: -1, member: -1, phase: v1alpha1.ClaimPending}
	p.claims = slices.DeleteFunc(p.claims, func(o *claim) bool { return o.name == name })
	p.claims = append(p.claims, c)
	return c
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
	}
	return list
}

// holder finds the slot that carries the claim, by a consistent read.
func (p *pool) holder(c *claim) *slot {
	if s := p.slots.get(c.member); s != nil && s.claimUID == c.uid {
		return s
	}
	for _, s := range p.slots {
		if s.claimUID == c.uid {
			return s
		}
	}
	return nil
}

// binder is the claim controller.
type binder struct {
	cache   cache
	queued  bool
	wakeAt  time.Duration
	members []rollout.Member
}

// reset forgets everything.
func (b *binder) reset() { b.queued, b.wakeAt = false, 0 }

func (b *binder) wake() {
	w := b.cache.p.w
	if w.down || !b.cache.ready || b.queued || len(b.cache.p.claims) == 0 {
		return
	}
	b.queued = true
	w.act(w.now, func() {
		b.queued = false
		b.reconcile()
	})
}

// hear has a claim looked at once the controller has seen what its owner did.
func (b *binder) hear() { b.cache.p.w.hint(b.wake) }

// reconcile looks at every claim that has not ended. It does not bind while it
// cannot see what it has written.
func (b *binder) reconcile() {
	p := b.cache.p
	w := p.w
	b.members = b.members[:0]
	for _, c := range slices.Clone(p.claims) {
		if w.down || b.cache.blind() || w.without(loseMembers) {
			return
		}
		switch {
		case c.ended():
		case c.released:
			b.end(c, v1alpha1.ClaimReleased)
		case c.expiresAt > 0 && w.now >= c.expiresAt:
			b.end(c, v1alpha1.ClaimExpired)
		case c.phase == v1alpha1.ClaimPending:
			b.bind(c)
		case b.lost(c):
			b.finish(c, v1alpha1.ClaimFailed, "has lost "+p.member(c.member))
		case c.expiresAt > 0:
			b.remind(c.expiresAt)
		}
	}
}

func (b *binder) remind(at time.Duration) {
	w := b.cache.p.w
	if b.wakeAt > w.now && b.wakeAt <= at {
		return
	}
	b.wakeAt = at
	w.act(at, b.wake)
}

// lost tells whether a bound claim has lost its member.
func (b *binder) lost(c *claim) bool {
	if s := b.cache.slots.get(c.member); s != nil && s.claimUID == c.uid {
		return false
	}
	return b.cache.p.holder(c) == nil
}

// bind gives the claim a member, if there is one: first one that carries it
// already, then a free one.
func (b *binder) bind(c *claim) {
	p := b.cache.p
	w := p.w
	if c.looked != w.life {
		c.looked = w.life
		if s := p.holder(c); s != nil {
			b.bound(c, s.Index)
			return
		}
	}
	old := b.pick(c)
	if old == nil {
		return
	}
	next := *old
	next.Claimed, next.claim, next.claimUID = true, c.name, c.uid
	next.Disruption = rollout.Disruption{} // spent, or it would not be free
	if p.put(byBinder, old, &next, func() string { return p.member(old.Index) + " is given to " + c.name }) {
		b.members = b.members[:0]
		b.bound(c, old.Index)
	}
}

// pick chooses a member for the claim.
func (b *binder) pick(c *claim) *slot {
	p := b.cache.p
	if len(b.members) == 0 {
		for _, s := range b.cache.slots {
			b.members = append(b.members, p.seen(s))
		}
	}
	list := b.members
	if c.wanted >= 0 {
		i, ok := b.cache.slots.find(c.wanted)
		if !ok {
			return nil
		}
		list = b.members[i : i+1]
	}
	i := rollout.Pick(list, b.cache.spec.target)
	if i < 0 {
		return nil
	}
	return b.cache.slots.get(list[i].Index)
}

// bound writes that the claim has its member.
func (b *binder) bound(c *claim, member int) {
	p := b.cache.p
	w := p.w
	c.bind(member)
	if ttl := p.ttl(c); ttl > 0 {
		c.expiresAt = w.now + ttl
		b.remind(c.expiresAt)
	}
	w.writes++
	w.judge.bound(p, c)
	w.saying("claim", func() string { return c.name + " is bound to " + p.member(member) })
	w.changed(p)
	if c.then != nil {
		c.then()
	}
}

// ttl is how long the claim may hold its member; 0 for ever.
func (p *pool) ttl(c *claim) time.Duration {
	ttl := c.ttl
	if s := p.spec.claims; s != nil {
		if ttl == 0 && s.DefaultTTL != nil {
			ttl = s.DefaultTTL.Duration
		}
		if s.MaxTTL != nil && (ttl == 0 || ttl > s.MaxTTL.Duration) {
			ttl = s.MaxTTL.Duration
		}
	}
	return ttl
}

// end takes the member from the claim, and then ends the claim.
func (b *binder) end(c *claim, phase v1alpha1.ClaimPhase) {
	p := b.cache.p
	old := p.holder(c)
	if old == nil {
		b.finish(c, phase, "ends without a member")
		return
	}
	next := *old
	next.Claimed, next.claim, next.claimUID = false, "", 0
	if !p.reuses() {
		next.Disruption = rollout.Disruption{Cause: rollout.ClaimEnded, Incarnation: old.Incarnation, Since: p.w.time()}
		next.Wants = ""
	}
	ok := p.put(byBinder, old, &next, func() string {
		if p.reuses() {
			return c.name + " gives " + p.member(old.Index) + " back as it is"
		}
		return c.name + " gives " + p.member(old.Index) + " back, to be replaced"
	})
	if ok {
		b.finish(c, phase, "is over")
	}
}

// reuses tells whether a released member is free again as it is.
func (p *pool) reuses() bool {
	s := p.spec.claims
	return s != nil && s.OnRelease != nil && *s.OnRelease == v1alpha1.ReleaseReuse
}

// finish writes that the claim has ended.
func (b *binder) finish(c *claim, phase v1alpha1.ClaimPhase, how string) {
	w := b.cache.p.w
	c.phase = phase
	w.writes++
	w.saying("claim", func() string { return c.name + " " + how + ": " + string(phase) })
	w.changed(b.cache.p)
}

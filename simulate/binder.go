package simulate

import (
	"slices"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// binder is the claim controller. What a claim holds stands in the slot; what
// the claim says comes after it when a member is given, and before it when one
// is taken back, so that a crash between the two is mended by the next look.
type binder struct {
	cache  cache
	queued bool
	wakeAt time.Duration
	// members is what there is to choose from, made when it is asked for.
	members []rollout.Member
	// heartbeat is how often claims have to be renewed, beats are when each was
	// last heard of. Cut: the API server could not be reached.
	heartbeat time.Duration
	beats     map[int64]beat
	cut       bool
}

// beat is what was last heard of a claim, and when: by a clock that nobody
// sets, so that a clock that is wrong ends no claim.
type beat struct{ renewed, at time.Duration }

// reset forgets everything.
func (b *binder) reset() { b.queued, b.wakeAt, b.heartbeat, b.beats, b.cut = false, 0, 0, nil, false }

// heard is when the claim was last heard of. One that is seen for the first
// time after a start or an outage, or since another heartbeat is asked for, has
// a whole interval.
func (b *binder) heard(c *claim) time.Duration {
	is, ok := b.beats[c.uid]
	if !ok || is.renewed != c.renewed {
		if b.beats == nil {
			b.beats = map[int64]beat{}
		}
		is = beat{c.renewed, b.cache.p.w.now}
		b.beats[c.uid] = is
	}
	return is.at
}

func (b *binder) wake() {
	w := b.cache.p.w
	if w.down || !b.cache.ready || b.queued || len(b.cache.claims) == 0 {
		return
	}
	b.queued = true
	w.act(w.now, func() {
		b.queued = false
		b.reconcile()
	})
}

func (b *binder) remind(at time.Duration) {
	w := b.cache.p.w
	if at <= w.now || b.wakeAt > w.now && b.wakeAt <= at {
		return
	}
	b.wakeAt = at
	w.act(at, b.wake)
}

// reconcile looks at every claim, those first that were made first.
func (b *binder) reconcile() {
	w := b.cache.p.w
	b.members = b.members[:0]
	if w.without(loseMembers) {
		b.cut = true
		return
	}
	if every := b.cache.spec.heartbeat; every != b.heartbeat || b.cut {
		b.heartbeat, b.beats, b.cut = every, nil, false
	}
	for _, c := range slices.Clone(b.cache.claims) {
		if w.down {
			return
		}
		if b.cache.unseen[claimKey(c.uid)] == 0 {
			b.look(c)
		}
	}
}

// look brings one claim to where it should be.
func (b *binder) look(c *claim) {
	p := b.cache.p
	if c.ended() && !c.deleted {
		if s := p.slots.get(c.member); s != nil && s.claimUID == c.uid {
			b.letGo(c, s) // its end was recorded, and then came a crash
		}
		return
	}
	s := p.holder(c)
	switch {
	case c.deleted:
		b.release(c, s)
	case s != nil:
		b.keep(c, s)
	case c.phase == v1alpha1.ClaimBound:
		b.end(c, lost(c, p.w.clock()), "has lost "+p.member(c.member))
	case p.claims.get(c.uid) != c:
		// it is looked at again once that is seen
	case c.wait != nil && c.made+*c.wait < p.w.started || !b.bind(c):
		b.wait(c)
	}
}

// lost is how a claim ends whose member carries it no more.
func lost(c *claim, now time.Duration) v1alpha1.ClaimPhase {
	if c.expiresAt > 0 && now >= c.expiresAt {
		return v1alpha1.ClaimExpired
	}
	return v1alpha1.ClaimFailed
}

// bind gives the claim a free member, and tells whether there is one.
func (b *binder) bind(c *claim) bool {
	p := b.cache.p
	old := b.pick(c)
	if old == nil || b.cache.spec.deleting {
		return false
	}
	next := *old
	next.Claimed, next.claim, next.claimUID = true, c.name, c.uid
	next.lastClaim = c.uid
	next.boundAt, next.expiresAt = p.w.clock(), p.expiry(c)
	next.Disruption = rollout.Disruption{} // spent, or it would not be free
	if p.put(byBinder, old, &next, func() string { return p.member(old.Index) + " is given to " + c.name }) {
		b.keep(c, &next)
	}
	return true
}

// pick chooses a member for the claim, and takes it out of the choice. What was
// given away and does not look so yet is none.
func (b *binder) pick(c *claim) *slot {
	if len(b.members) == 0 {
		for _, s := range b.cache.slots {
			m := b.cache.p.seen(s)
			m.Claimed = m.Claimed || b.cache.unseen[s.Index] > 0
			b.members = append(b.members, m)
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
	i := rollout.Pick(list, b.cache.target())
	if i < 0 {
		return nil
	}
	list[i].Claimed = true
	return b.cache.slots.get(list[i].Index)
}

// wait ends a claim that has waited for as long as it may.
func (b *binder) wait(c *claim) {
	if c.wait == nil {
		return
	}
	w := b.cache.p.w
	until := c.made + *c.wait - w.skew
	if w.now >= until {
		b.end(c, v1alpha1.ClaimFailed, "has waited for long enough")
		return
	}
	b.remind(until)
}

// keep says what the claim has, and ends it when its time is up.
func (b *binder) keep(c *claim, s *slot) {
	p := b.cache.p
	end, why := b.ends(c, s)
	if end > 0 && p.w.now >= end {
		if b.end(c, v1alpha1.ClaimExpired, why) {
			b.letGo(c, s)
		}
		return
	}
	b.remind(end)
	next := *c
	next.phase, next.member, next.expiresAt = v1alpha1.ClaimBound, s.Index, s.expiresAt
	next.asked = b.cache.spec.notify && s.Runs != b.cache.target() && (c.asked || p.verdict(s.Index) == rollout.Claimed)
	if next == *c {
		return
	}
	if p.putClaim(byBinder, c, &next, func() string { return told(c, &next, p.member(s.Index)) }) {
		p.w.judge.bound(p, &next)
		if then := p.then[c.uid]; then != nil {
			delete(p.then, c.uid)
			then()
		}
	}
}

// told says what is new with a claim that has a member.
func told(was, is *claim, member string) string {
	switch {
	case was.phase != is.phase:
		return is.name + " is bound to " + member
	case is.asked:
		return is.name + " is asked to let " + member + " go: it is stale"
	default:
		return is.name + " may keep " + member + ": it is not stale"
	}
}

// ends is when a claim ends by itself, 0 for never, and why.
func (b *binder) ends(c *claim, s *slot) (at time.Duration, why string) {
	if s.expiresAt > 0 {
		at, why = max(s.expiresAt-b.cache.p.w.skew, 1), "has had its time"
	}
	if b.heartbeat > 0 {
		silent := b.heard(c) + b.heartbeat
		if at == 0 || silent < at {
			at, why = silent, "was not renewed in time"
		}
	}
	return at, why
}

// expiry is when a claim that is bound now ends by itself; 0 for never.
func (p *pool) expiry(c *claim) time.Duration {
	ttl := c.ttl
	if s := p.spec.claims; s != nil {
		if ttl == 0 && s.DefaultTTL != nil {
			ttl = s.DefaultTTL.Duration
		}
		if s.MaxTTL != nil && (ttl == 0 || ttl > s.MaxTTL.Duration) {
			ttl = s.MaxTTL.Duration
		}
	}
	if ttl == 0 {
		return 0
	}
	return p.w.clock() + ttl
}

// end records that the claim has ended.
func (b *binder) end(c *claim, phase v1alpha1.ClaimPhase, how string) bool {
	next := *c
	next.phase, next.asked = phase, false
	return b.cache.p.putClaim(byBinder, c, &next, func() string { return c.name + " " + how + ": " + string(phase) })
}

// release lets the member go, and then the claim, whose owner has deleted it.
func (b *binder) release(c *claim, s *slot) {
	if s != nil && !b.letGo(c, s) {
		return
	}
	p := b.cache.p
	p.putClaim(byBinder, p.claims.get(c.uid), nil, func() string { return c.name + " is gone: " + string(c.last()) })
}

// letGo takes the member from the claim.
func (b *binder) letGo(c *claim, old *slot) bool {
	p := b.cache.p
	next := *old
	next.Claimed, next.claim, next.claimUID = false, "", 0
	next.boundAt, next.expiresAt = 0, 0
	next.Disruption = b.goesBack(old)
	if next.Disruption != (rollout.Disruption{}) {
		next.Wants = ""
	}
	return p.put(byBinder, old, &next, func() string {
		switch d := next.Disruption; {
		case d == rollout.Disruption{}:
			return c.name + " gives " + p.member(old.Index) + " back as it is"
		case d.Update:
			return c.name + " gives " + p.member(old.Index) + " back, to be updated"
		}
		return c.name + " gives " + p.member(old.Index) + " back, to be replaced"
	})
}

// goesBack is the disruption with which a member goes back.
func (b *binder) goesBack(s *slot) rollout.Disruption {
	p := b.cache.p
	spec := b.cache.spec
	now := p.w.time()
	open, _ := spec.windows.At(now)
	r := rollout.Release{
		Reuse: p.reuses(), InPlace: spec.policy.InPlace, Blocker: p.verdict(s.Index), Held: s.held(p.w.clock()),
		Skipped: s.skip != "" && s.skip == b.cache.target(), WindowShut: !open,
		Stale: p.status.counts.Stale, Partition: spec.policy.Partition, Waiting: b.cache.waiting(),
	}
	return r.Disruption(s.Incarnation, now)
}

// reuses tells whether a released member is free again as it is.
func (p *pool) reuses() bool {
	s := p.spec.claims
	return s != nil && s.OnRelease != nil && *s.OnRelease == v1alpha1.ReleaseReuse
}

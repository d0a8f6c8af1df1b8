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
	// ahead is how many claims wait of those that were looked at before.
	ahead int
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
	b.ahead = 0
	for _, c := range slices.Clone(b.cache.claims) {
		if w.down {
			return
		}
		if b.cache.unseen[claimKey(c.uid)] == 0 {
			b.look(c)
		}
		if c = b.cache.p.claims.get(c.uid); c != nil && c.waits() && b.cache.p.holder(c) == nil {
			b.ahead++
		}
	}
}

// look brings one claim to where it should be.
func (b *binder) look(c *claim) {
	p := b.cache.p
	s := p.holder(c)
	if s == nil && c.phase == v1alpha1.ClaimPending && !c.deleted && p.claims.get(c.uid) != c {
		return // it is looked at again once that is seen
	}
	tr := rollout.StepClaim(c.known(p.w, s), b.sight(c, s), b.rules(), p.w.time())
	switch tr.Do {
	case rollout.RemoveClaim:
		b.release(c, s)
	case rollout.BindMember:
		b.bind(c)
	case rollout.ReleaseMember:
		if c.ended() || b.record(c, s, tr) {
			b.letGo(c, s)
		}
	case rollout.RestClaim:
		b.record(c, s, tr)
		b.remind(p.w.sinceIf(tr.Wake))
	}
}

// known is the claim as the engine takes it, on the slot or on none. Its times are
// those of the controllers' clock. When a held claim ends stands in the slot.
func (c *claim) known(w *world, s *slot) rollout.Claim {
	k := rollout.Claim{
		Phase: rollout.ClaimPhase(c.phase), Given: c.member >= 0, Deleted: c.deleted,
		Made: w.epoch.Add(c.made), Limited: c.wait != nil, Asked: c.asked,
	}
	if c.wait != nil {
		k.Wait = *c.wait
	}
	end := c.expiresAt
	if s != nil {
		end = s.expiresAt
	}
	if end > 0 {
		k.ExpiresAt = w.epoch.Add(end)
	}
	return k
}

// sight is what the claim controller sees of what the claim depends on.
func (b *binder) sight(c *claim, s *slot) rollout.ClaimSight {
	p := b.cache.p
	if s != nil {
		stale := s.Runs != b.cache.target()
		seen := rollout.ClaimSight{Held: true, Unsure: stale && p.verdict(s.Index) == ""}
		if stale {
			seen.Blocker = p.verdict(s.Index)
		}
		if b.heartbeat > 0 {
			seen.Silent = p.w.now - b.heard(c)
		}
		return seen
	}
	if c.wanted >= 0 {
		return rollout.ClaimSight{Free: rollout.Choices(b.choice(c))}
	}
	return rollout.ClaimSight{Free: rollout.Choices(b.choice(c)), Ahead: b.ahead}
}

// rules are what the pool says of the life of claims.
func (b *binder) rules() rollout.ClaimRules {
	w := b.cache.p.w
	r := rollout.ClaimRules{
		Gone: b.cache.spec.deleting, Heartbeat: b.heartbeat, Notify: b.cache.spec.notify, Started: w.epoch.Add(w.started),
	}
	if s := b.cache.spec.claims; s != nil {
		r.DefaultTTL, r.MaxTTL = orZero(s.DefaultTTL), orZero(s.MaxTTL)
	}
	return r
}

// bind gives the claim a free member.
func (b *binder) bind(c *claim) {
	p := b.cache.p
	old := b.pick(c)
	if old == nil {
		return
	}
	next := *old
	next.Member = old.Bind()
	next.claim, next.claimUID, next.lastClaim = c.name, c.uid, c.uid
	next.boundAt, next.expiresAt = p.w.clock(), b.expiry(c)
	if p.put(byBinder, old, &next, func() string { return p.member(old.Index) + " is given to " + c.name }) {
		b.look(c)
	}
}

// expiry is when a claim that is bound now ends by itself; 0 for never.
func (b *binder) expiry(c *claim) time.Duration {
	w, rules := b.cache.p.w, b.rules()
	at := rules.Expiry(c.ttl, w.time())
	if at.IsZero() {
		return 0
	}
	return at.Sub(w.epoch)
}

// choice is what there is to choose from for the claim. What was given away and does
// not look so yet is not free.
func (b *binder) choice(c *claim) []rollout.Member {
	if len(b.members) == 0 {
		for _, s := range b.cache.slots {
			m := b.cache.p.seen(s)
			m.Claimed = m.Claimed || b.cache.unseen[s.Index] > 0
			b.members = append(b.members, m)
		}
	}
	if c.wanted < 0 {
		return b.members
	}
	i, ok := b.cache.slots.find(c.wanted)
	if !ok {
		return nil
	}
	return b.members[i : i+1]
}

// pick chooses a member for the claim, and takes it out of the choice.
func (b *binder) pick(c *claim) *slot {
	list := b.choice(c)
	i := rollout.Pick(list, b.cache.target())
	if i < 0 {
		return nil
	}
	list[i].Claimed = true
	return b.cache.slots.get(list[i].Index)
}

// record stores what a step came to, if it differs. False ends what is done.
func (b *binder) record(c *claim, s *slot, tr rollout.ClaimTransition) bool {
	p := b.cache.p
	next := *c
	next.phase, next.asked = v1alpha1.ClaimPhase(tr.Claim.Phase), tr.Claim.Asked
	bound := tr.Claim.Phase == rollout.ClaimBound
	if bound {
		next.member, next.expiresAt = s.Index, s.expiresAt
	}
	if next == *c {
		return true
	}
	if !p.putClaim(byBinder, c, &next, func() string { return p.becomes(c, &next, tr.Why) }) {
		return false
	}
	if bound {
		p.w.judge.bound(p, &next)
		if then := p.then[c.uid]; then != nil {
			delete(p.then, c.uid)
			then()
		}
	}
	return true
}

// becomes says what is new with a claim.
func (p *pool) becomes(was, is *claim, why rollout.ClaimReason) string {
	member := p.member(is.member)
	switch {
	case was.phase == is.phase && is.asked:
		return is.name + " is asked to let " + member + " go: it is stale"
	case was.phase == is.phase:
		return is.name + " may keep " + member + ": it is not stale"
	case is.phase == v1alpha1.ClaimBound:
		return is.name + " is bound to " + member
	}
	how := map[rollout.ClaimReason]string{
		rollout.ClaimTimeUp: "has had its time", rollout.NotRenewed: "was not renewed in time", rollout.ClaimBodyGone: "has lost " + member,
		rollout.WaitOver: "has waited for long enough", rollout.NotServed: "has waited for long enough",
	}[why]
	return is.name + " " + how + ": " + string(is.phase)
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
	next.Member = old.Release(b.goesBack(old), p.w.time())
	next.claim, next.claimUID = "", 0
	next.boundAt, next.expiresAt = 0, 0
	return p.put(byBinder, old, &next, func() string {
		switch d := next.Disruption; {
		case d.Cause != rollout.ClaimEnded:
			return c.name + " gives " + p.member(old.Index) + " back as it is"
		case d.Update:
			return c.name + " gives " + p.member(old.Index) + " back, to be updated"
		}
		return c.name + " gives " + p.member(old.Index) + " back, to be replaced"
	})
}

// goesBack is what decides how a member goes back.
func (b *binder) goesBack(s *slot) *rollout.Release {
	p := b.cache.p
	spec := b.cache.spec
	open, _ := spec.windows.At(p.w.time())
	return &rollout.Release{
		Reuse: p.reuses(), InPlace: spec.policy.InPlace, Blocker: p.verdict(s.Index), Held: s.held(p.w.clock()),
		Skipped: s.skip != "" && s.skip == b.cache.target(), WindowShut: !open,
		Stale: p.status.counts.Stale, Partition: spec.policy.Partition, Waiting: b.cache.waiting(),
	}
}

// reuses tells whether a released member is free again as it is.
func (p *pool) reuses() bool {
	s := p.spec.claims
	return s != nil && s.OnRelease != nil && *s.OnRelease == v1alpha1.ReleaseReuse
}

package simulate

import (
	"slices"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// binder is the claim controller. To bind, it writes the slot first and the claim
// second; to release, the claim first and the slot second. The next pass repairs
// a crash between the two writes.
type binder struct {
	cache  cache
	queued bool
	wakeAt time.Duration
	// members are the candidates of this pass, built on first use.
	members []rollout.Member
	// ahead counts the claims that wait among those handled earlier in this pass.
	ahead int
	// heartbeat is how often claims have to be renewed, renewals the last renewal
	// that was seen of each. outage: the API server could not be reached.
	heartbeat time.Duration
	renewals  map[int64]renewalSeen
	outage    bool
}

// renewalSeen is the last renewal of a claim, and when it was seen by the world's
// clock, which is never set: a wrong clock must not end a claim.
type renewalSeen struct{ renewed, at time.Duration }

func (b *binder) reset() {
	b.queued, b.wakeAt, b.heartbeat, b.renewals, b.outage = false, 0, 0, nil, false
}

// lastHeard returns when the claim's last renewal was seen. After a start, an
// outage or a change of the heartbeat every claim has one whole interval.
func (b *binder) lastHeard(c *claim) time.Duration {
	is, ok := b.renewals[c.uid]
	if !ok || is.renewed != c.renewed {
		if b.renewals == nil {
			b.renewals = map[int64]renewalSeen{}
		}
		is = renewalSeen{c.renewed, b.cache.p.w.now}
		b.renewals[c.uid] = is
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

func (b *binder) wakeLater(at time.Duration) {
	w := b.cache.p.w
	if at <= w.now || b.wakeAt > w.now && b.wakeAt <= at {
		return
	}
	b.wakeAt = at
	w.act(at, b.wake)
}

// reconcile handles every claim, the oldest first.
func (b *binder) reconcile() {
	w := b.cache.p.w
	b.members = b.members[:0]
	if w.without(loseMembers) {
		b.outage = true
		return
	}
	if every := b.cache.spec.heartbeat; every != b.heartbeat || b.outage {
		b.heartbeat, b.renewals, b.outage = every, nil, false
	}
	b.ahead = 0
	for _, c := range slices.Clone(b.cache.claims) {
		if w.down {
			return
		}
		if b.cache.unseen[claimKey(c.uid)] == 0 {
			b.reconcileClaim(c)
		}
		if c = b.cache.p.claims.get(c.uid); c != nil && c.waits() && b.cache.p.holder(c) == nil {
			b.ahead++
		}
	}
}

// reconcileClaim makes one step of a claim.
func (b *binder) reconcileClaim(c *claim) {
	p := b.cache.p
	s := p.holder(c)
	if s == nil && c.Phase == rollout.ClaimPending && !c.Deleted && p.claims.get(c.uid) != c {
		return // the cached version is outdated; wait for the current one
	}
	tr := rollout.StepClaim(c.on(s), b.sight(c, s), b.rules(), p.w.time())
	switch tr.Do {
	case rollout.RemoveClaim:
		b.release(c, s)
	case rollout.BindMember:
		b.bind(c)
	case rollout.ReleaseMember:
		if c.Ended() || b.record(c, s, tr) {
			b.freeMember(c, s)
		}
	case rollout.RestClaim:
		b.record(c, s, tr)
		b.wakeLater(p.w.sinceIf(tr.Wake))
	}
}

// on returns the claim as the slot carries it, or nil: it expires when the slot says.
func (c *claim) on(s *slot) rollout.Claim {
	k := c.Claim
	if s != nil {
		k.ExpiresAt = s.expiresAt
	}
	return k
}

// sight returns what the claim depends on, as the claim controller sees it.
func (b *binder) sight(c *claim, s *slot) rollout.ClaimSight {
	p := b.cache.p
	if s != nil {
		stale := s.Runs != b.cache.target()
		seen := rollout.ClaimSight{Held: true, Unsure: stale && p.verdict(s.Index) == ""}
		if stale {
			seen.Blocker = p.verdict(s.Index)
		}
		if b.heartbeat > 0 {
			seen.Silent = p.w.now - b.lastHeard(c)
		}
		return seen
	}
	if c.wanted >= 0 {
		return rollout.ClaimSight{Free: rollout.Choices(b.candidates(c))}
	}
	return rollout.ClaimSight{Free: rollout.Choices(b.candidates(c)), Ahead: b.ahead}
}

// rules returns the pool's rules for its claims.
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

// bind binds the claim to a free member.
func (b *binder) bind(c *claim) {
	p := b.cache.p
	old := b.pick(c)
	if old == nil {
		return
	}
	next := *old
	next.Member = old.Bind()
	next.claim, next.claimUID, next.lastClaim = c.name, c.uid, c.uid
	rules := b.rules()
	next.expiresAt = rules.Expiry(c.ttl, p.w.time())
	if p.put(byBinder, old, &next, func() string { return p.member(old.Index) + " is claimed by " + c.name }) {
		b.reconcileClaim(c)
	}
}

// candidates returns the members among which the claim may choose. A member that
// this controller has claimed is not free, even if the cache does not show it yet.
func (b *binder) candidates(c *claim) []rollout.Member {
	if len(b.members) == 0 {
		for _, s := range b.cache.slots {
			m := b.cache.p.readMember(s)
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

// pick chooses a member for the claim, and marks it as claimed.
func (b *binder) pick(c *claim) *slot {
	list := b.candidates(c)
	i := rollout.Pick(list, b.cache.target())
	if i < 0 {
		return nil
	}
	list[i].Claimed = true
	return b.cache.slots.get(list[i].Index)
}

// record stores the result of a step if it differs. It reports whether to go on.
func (b *binder) record(c *claim, s *slot, tr rollout.ClaimTransition) bool {
	p := b.cache.p
	next := *c
	next.Claim = tr.Claim
	bound := next.Phase == rollout.ClaimBound
	if bound {
		next.member = s.Index
	}
	if next == *c {
		return true
	}
	if !p.putClaim(byBinder, c, &next, func() string { return p.becomes(c, &next, tr.Why) }) {
		return false
	}
	if bound {
		p.w.judge.checkBound(p, &next)
		if then := p.onBound[c.uid]; then != nil {
			delete(p.onBound, c.uid)
			then()
		}
	}
	return true
}

// becomes describes a change of a claim.
func (p *pool) becomes(was, is *claim, why rollout.ClaimReason) string {
	member := p.member(is.member)
	switch {
	case was.Phase == is.Phase && is.Asked:
		return is.name + " is asked to release " + member + ", which is stale"
	case was.Phase == is.Phase:
		return is.name + " may keep " + member + ", which is not stale any more"
	case is.Phase == rollout.ClaimBound:
		return is.name + " is bound to " + member
	}
	how := map[rollout.ClaimReason]string{
		rollout.ClaimTimeUp: "has reached its ttl", rollout.NotRenewed: "was not renewed in time", rollout.ClaimBodyGone: "has lost " + member,
		rollout.WaitOver: "has got no member within its wait", rollout.NotServed: "has got no member within its wait",
	}[why]
	return is.name + " " + how + ": " + string(is.Phase)
}

// release frees the member of a deleted claim, if there is one, and then removes
// the claim.
func (b *binder) release(c *claim, s *slot) {
	if s != nil && !b.freeMember(c, s) {
		return
	}
	p := b.cache.p
	p.putClaim(byBinder, p.claims.get(c.uid), nil, func() string { return c.name + " is gone: " + string(c.finalPhase()) })
}

// freeMember releases the slot from the claim.
func (b *binder) freeMember(c *claim, old *slot) bool {
	p := b.cache.p
	next := *old
	next.Member = old.Release(b.releaseOf(old), p.w.time())
	next.claim, next.claimUID = "", 0
	next.expiresAt = time.Time{}
	return p.put(byBinder, old, &next, func() string {
		switch d := next.Disruption; {
		case d.Cause != rollout.ClaimEnded:
			return c.name + " releases " + p.member(old.Index) + ", which keeps its body"
		case d.Update:
			return c.name + " releases " + p.member(old.Index) + ", which is to be updated"
		}
		return c.name + " releases " + p.member(old.Index) + ", which is to be replaced"
	})
}

// releaseOf collects what decides how a member is released.
func (b *binder) releaseOf(s *slot) *rollout.Release {
	p := b.cache.p
	spec := b.cache.spec
	open, _ := spec.windows.At(p.w.time())
	return &rollout.Release{
		Reuse: p.reuses(), InPlace: spec.policy.InPlace, Blocker: p.verdict(s.Index), Held: s.held(p.w.clock()),
		Skipped: s.skip != "" && s.skip == b.cache.target(), WindowShut: !open,
		Stale: p.status.counts.Stale, Partition: spec.policy.Partition, Waiting: b.cache.waiting(),
	}
}

// reuses reports whether a released member keeps its body.
func (p *pool) reuses() bool {
	s := p.spec.claims
	return s != nil && s.OnRelease != nil && *s.OnRelease == v1alpha1.ReleaseReuse
}

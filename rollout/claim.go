package rollout

import "time"

// Claim is what the engine knows of one claim.
type Claim struct {
	Phase ClaimPhase
	// Given: a member was once recorded for it. It never gets another.
	Given bool
	// Deleted: its owner has deleted it.
	Deleted bool
	// Made is when it was made. A caller that knows it to the second only rounds
	// up.
	Made time.Time
	// Limited: it waits for a member no longer than Wait, 0 or more.
	Limited bool
	Wait    time.Duration
	// ExpiresAt is when its time is up; zero for never.
	ExpiresAt time.Time
	// Asked: its holder is asked to release the member, which is stale.
	Asked bool
}

// ClaimPhase is where a claim is in its life.
type ClaimPhase string

// The phases of a claim.
const (
	ClaimPending  ClaimPhase = "Pending"
	ClaimBound    ClaimPhase = "Bound"
	ClaimReleased ClaimPhase = "Released"
	ClaimExpired  ClaimPhase = "Expired"
	ClaimFailed   ClaimPhase = "Failed"
)

// Ended reports whether the claim is over. It holds nothing any more, once what it
// held is released.
func (c *Claim) Ended() bool {
	return c.Phase == ClaimReleased || c.Phase == ClaimExpired || c.Phase == ClaimFailed
}

// waitsUntil is until when the claim waits for a member; zero for ever.
func (c *Claim) waitsUntil() time.Time {
	if !c.Limited {
		return time.Time{}
	}
	return c.Made.Add(c.Wait)
}

// ClaimSight is what was seen of what a claim depends on.
type ClaimSight struct {
	// Held: a member carries the claim.
	Held bool
	// Free is how many members the claim could get, and Ahead how many claims
	// wait for one that were made earlier.
	Free, Ahead int
	// Silent is how long ago the holder was last heard of, by a clock that is
	// never set.
	Silent time.Duration
	// Blocker is what keeps the member that it holds from being updated, empty
	// for a member that is not stale; Unsure: that is not known.
	Blocker Reason
	Unsure  bool
}

// ClaimRules are what a pool says about the life of its claims.
type ClaimRules struct {
	// Gone: there is no pool, or it is being deleted.
	Gone bool
	// DefaultTTL is how long a claim without a TTL of its own lasts, and MaxTTL how
	// long any may; 0 for no limit.
	DefaultTTL, MaxTTL time.Duration
	// Heartbeat is how often a claim has to be renewed; 0 for never.
	Heartbeat time.Duration
	// Notify: the holder of a stale member is asked to release it.
	Notify bool
	// Started is when the caller began to serve claims. One whose time to wait was
	// over by then gets nothing: its owner has gone.
	Started time.Time
}

// Expiry is when the time of a claim is up that was bound at the time; zero for
// never. TTL is its own, 0 for none.
func (r *ClaimRules) Expiry(ttl time.Duration, bound time.Time) time.Time {
	if ttl == 0 {
		ttl = r.DefaultTTL
	}
	if r.MaxTTL > 0 && (ttl == 0 || ttl > r.MaxTTL) {
		ttl = r.MaxTTL
	}
	if ttl == 0 {
		return time.Time{}
	}
	return bound.Add(ttl)
}

// ClaimEffect is what has to be done for a claim.
type ClaimEffect uint8

// The effects.
const (
	// RestClaim: nothing but to record the claim.
	RestClaim ClaimEffect = iota
	// BindMember: give it a member that [Pick] chooses ([Member.Bind]), then step
	// again, with Held.
	BindMember
	// ReleaseMember: record the claim, then release the member that carries it
	// ([Member.Release]). In this order a crash between the two leaves an ended
	// claim on a member, which the next step mends; the other way round an expired
	// claim would look like one whose member was lost.
	ReleaseMember
	// RemoveClaim: release the member that carries it, if there is one, then let
	// the claim itself go.
	RemoveClaim
)

// ClaimReason is why a claim is where it is.
type ClaimReason string

// The reasons.
const (
	HoldsMember   ClaimReason = "Bound"
	NoFreeMember  ClaimReason = "NoFreeMember"
	PoolNotFound  ClaimReason = "PoolNotFound"
	WaitOver      ClaimReason = "WaitOver"
	NotServed     ClaimReason = "NotServed" // it waited while nothing served claims
	ClaimTimeUp   ClaimReason = "Expired"
	NotRenewed    ClaimReason = "NotRenewed"
	ClaimBodyGone ClaimReason = "BodyGone"
)

// ClaimTransition is what a step comes to.
type ClaimTransition struct {
	// Claim is as it is to be recorded, if it differs.
	Claim Claim
	Do    ClaimEffect
	Why   ClaimReason
	// Wake is when time alone brings the next step; zero for never.
	Wake time.Time
}

// StepClaim moves a claim one step through its life: it waits, is bound, is kept
// while it is renewed and its time is not up, and ends. Claims that wait are
// served in the order in which they were made.
func StepClaim(c Claim, seen ClaimSight, r ClaimRules, now time.Time) ClaimTransition {
	switch {
	case c.Deleted:
		return ClaimTransition{Claim: c, Do: RemoveClaim}
	case c.Ended() && seen.Held:
		return ClaimTransition{Claim: c, Do: ReleaseMember}
	case c.Ended():
		return ClaimTransition{Claim: c}
	case seen.Held:
		return keepClaim(c, seen, r, now)
	case c.Given || c.Phase == ClaimBound:
		if c.expired(now) {
			return endClaim(c, ClaimExpired, ClaimTimeUp)
		}
		return endClaim(c, ClaimFailed, ClaimBodyGone)
	case c.Limited && c.waitsUntil().Before(r.Started):
		return endClaim(c, ClaimFailed, NotServed)
	case !r.Gone && seen.Free > seen.Ahead:
		return ClaimTransition{Claim: c, Do: BindMember}
	}
	return waitClaim(c, r, now)
}

func (c *Claim) expired(now time.Time) bool { return !c.ExpiresAt.IsZero() && !now.Before(c.ExpiresAt) }

// endClaim ends a claim that no member carries.
func endClaim(c Claim, p ClaimPhase, why ClaimReason) ClaimTransition {
	c.Phase, c.Asked = p, false
	return ClaimTransition{Claim: c, Why: why}
}

// keepClaim goes on with a claim that a member carries.
func keepClaim(c Claim, seen ClaimSight, r ClaimRules, now time.Time) ClaimTransition {
	over := ClaimReason("")
	switch {
	case c.expired(now):
		over = ClaimTimeUp
	case r.Heartbeat > 0 && seen.Silent >= r.Heartbeat:
		over = NotRenewed
	}
	if over != "" {
		t := endClaim(c, ClaimExpired, over)
		t.Do = ReleaseMember
		return t
	}
	c.Phase, c.Given = ClaimBound, true
	c.Asked = notifies(c.Asked, seen, r)
	t := ClaimTransition{Claim: c, Why: HoldsMember, Wake: c.ExpiresAt}
	if r.Heartbeat > 0 {
		t.Wake = earliest(t.Wake, now.Add(r.Heartbeat-seen.Silent))
	}
	return t
}

// notifies reports whether the holder is asked to release its member: since only the
// claim keeps that from being updated, until it is updated or the pool rolls
// nothing any more.
func notifies(was bool, seen ClaimSight, r ClaimRules) bool {
	switch {
	case !r.Notify:
		return false
	case seen.Unsure:
		return was
	case seen.Blocker == Claimed:
		return true
	case seen.Blocker == "", seen.Blocker == ManualPolicy, seen.Blocker == PausedRollout:
		return false
	}
	return was
}

// waitClaim has the claim wait for as long as it may.
func waitClaim(c Claim, r ClaimRules, now time.Time) ClaimTransition {
	until := c.waitsUntil()
	if c.Limited && (c.Wait == 0 || !now.Before(until)) {
		return endClaim(c, ClaimFailed, WaitOver)
	}
	c.Phase = ClaimPending
	t := ClaimTransition{Claim: c, Why: NoFreeMember, Wake: until}
	if r.Gone {
		t.Why = PoolNotFound
	}
	return t
}

// Pick chooses the member that a claim gets, by its position in the list, or
// -1 if none is free: one on the target before any other, and among the
// others the one that a rollout would take last. Members on which work runs
// are left out.
func Pick(members []Member, target Revision) int {
	best := -1
	for i := range members {
		m := &members[i]
		if !m.claimable() {
			continue
		}
		if m.Runs == target {
			return i
		}
		best = i
	}
	return best
}

// Choices is how many of the members a claim could get.
func Choices(members []Member) (n int) {
	for i := range members {
		n += count(members[i].claimable())
	}
	return n
}

// claimable reports whether a claim could get the member.
func (m *Member) claimable() bool { return m.Free() && !m.busy() }

// Taken counts a member that still looks free as claimed, since a claim says
// that it holds it: what was read of the one is older than of the other.
func (m *Member) Taken() {
	if m.Free() {
		m.Claimed = true
	}
}

// Bind is the free member as the claim gets it. A disruption that is left in it is
// spent.
func (m Member) Bind() Member {
	m.Claimed, m.Disruption = true, Disruption{}
	return m
}

// Release is the member as the end of its claim leaves it. What is born next is for
// the engine to say: where the body goes, there is no grant yet.
func (m Member) Release(r *Release, now time.Time) Member {
	m.Claimed = false
	if d := r.disruption(m.Incarnation, now); d.Cause != NoCause {
		m.Disruption, m.Wants = d, ""
	}
	return m
}

// Release is what decides how a member goes back when its claim ends.
type Release struct {
	// Reuse: the pool uses members again. InPlace: it updates them rather than
	// replace them.
	Reuse, InPlace bool
	// Blocker is what was last said to keep the member from being updated; empty
	// for a member that is not stale.
	Blocker Reason
	// Held and Skipped are the member's, WindowShut the pool's.
	Held, Skipped, WindowShut bool
	// Stale is how many members are off the target, Partition how many are to be,
	// Waiting how many claims wait for a member.
	Stale, Partition, Waiting int
}

// disruption is what the write that ends the claim of the incarnation sets; none
// if the next holder gets the body as it is. A pool that uses members again gives
// no stale one to a claim that waits while a rollout could take it but for the
// numbers that it may take at once; where no claim waits, the rollout itself takes
// it as soon as the numbers allow.
func (r *Release) disruption(incarnation int64, now time.Time) Disruption {
	d := Disruption{Cause: ClaimEnded, Incarnation: incarnation, Since: now}
	if !r.Reuse {
		return d
	}
	if r.Blocker != Claimed || r.Held || r.Skipped || r.WindowShut || r.Stale <= r.Partition || r.Waiting == 0 {
		return Disruption{}
	}
	d.Update = r.InPlace
	return d
}

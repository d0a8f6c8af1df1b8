package rollout

import "time"

// Claim is the engine's view of one claim.
type Claim struct {
	Phase ClaimPhase
	// Given: a member was recorded for the claim. It never gets another.
	Given bool
	// Deleted: the claim is being deleted.
	Deleted bool
	// Made is when the claim was created. A caller with a resolution of a second rounds up.
	Made time.Time
	// Limited: the claim waits for a member no longer than Wait, 0 or more.
	Limited bool
	Wait    time.Duration
	// ExpiresAt is when the claim expires; zero for never.
	ExpiresAt time.Time
	// Asked: the holder is asked to release the member, which is stale.
	Asked bool
}

// ClaimPhase is the place of a claim in its life.
type ClaimPhase string

// The phases of a claim.
const (
	ClaimPending  ClaimPhase = "Pending"
	ClaimBound    ClaimPhase = "Bound"
	ClaimReleased ClaimPhase = "Released"
	ClaimExpired  ClaimPhase = "Expired"
	ClaimFailed   ClaimPhase = "Failed"
)

// Ended reports whether the claim is over. A member that still carries it is released next.
func (c *Claim) Ended() bool {
	return c.Phase == ClaimReleased || c.Phase == ClaimExpired || c.Phase == ClaimFailed
}

// waitsUntil returns when the claim stops waiting for a member; zero for never.
func (c *Claim) waitsUntil() time.Time {
	if !c.Limited {
		return time.Time{}
	}
	return c.Made.Add(c.Wait)
}

// ClaimSight is what was observed of the member and the pool of a claim.
type ClaimSight struct {
	// Held: a member carries the claim.
	Held bool
	// Free is the number of members that the claim could get, Ahead the number of waiting
	// claims that are older.
	Free, Ahead int
	// Silent is the time since the holder's last renewal, by a monotonic clock.
	Silent time.Duration
	// Blocker is the reason why the claimed member is not updated, empty for a member that
	// is not stale. Unsure: the reason is not known.
	Blocker Reason
	Unsure  bool
}

// ClaimRules are the pool's rules for claims.
type ClaimRules struct {
	// Gone: the pool does not exist, or is being deleted.
	Gone bool
	// DefaultTTL is the time to live of a claim without its own, MaxTTL the longest of any
	// claim; 0 for no limit.
	DefaultTTL, MaxTTL time.Duration
	// Heartbeat is the longest time between two renewals; 0 for no renewals.
	Heartbeat time.Duration
	// Notify: the holder of a stale member is asked to release it.
	Notify bool
	// Started is when the caller began to serve claims. A claim whose wait was over by then
	// gets no member: its owner has stopped waiting.
	Started time.Time
}

// Expiry returns when a claim bound at the time expires; zero for never. TTL is the claim's
// own, 0 for none.
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

// ClaimEffect is what the caller does for a claim after a step.
type ClaimEffect uint8

// The effects.
const (
	// RestClaim: only record the claim.
	RestClaim ClaimEffect = iota
	// BindMember: bind the member that [Pick] chooses ([Member.Bind]), then step again with
	// Held.
	BindMember
	// ReleaseMember: record the claim, then release the member that carries it
	// ([Member.Release]). After a crash between the two, the next step releases the member
	// of the ended claim. In the other order an expired claim would look like one that lost
	// its member.
	ReleaseMember
	// RemoveClaim: release the member that carries the claim, if any, then let the claim be
	// deleted.
	RemoveClaim
)

// ClaimReason is why a claim is in its phase.
type ClaimReason string

// The reasons.
const (
	HoldsMember   ClaimReason = "Bound"
	NoFreeMember  ClaimReason = "NoFreeMember"
	PoolNotFound  ClaimReason = "PoolNotFound"
	WaitOver      ClaimReason = "WaitOver"
	NotServed     ClaimReason = "NotServed" // it waited while no controller served claims
	ClaimTimeUp   ClaimReason = "Expired"
	NotRenewed    ClaimReason = "NotRenewed"
	ClaimBodyGone ClaimReason = "BodyGone"
)

// ClaimTransition is the result of a step.
type ClaimTransition struct {
	// Claim is to be recorded if it differs.
	Claim Claim
	Do    ClaimEffect
	Why   ClaimReason
	// Wake is when the next step is due without any other change; zero for never.
	Wake time.Time
}

// StepClaim moves a claim one step through its life: it waits, is bound, stays bound while
// it is renewed and has not expired, and ends. Waiting claims are served oldest first.
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

// keepClaim steps a claim that a member carries.
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

// notifies reports whether the holder is asked to release its member. It is from when only
// the claim blocks the update, until the member is updated or the pool rolls nothing more.
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

// waitClaim steps a waiting claim, which fails when its wait is over.
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

// Pick returns the position of the member that a claim gets, or -1 if none is free. A
// member on the target comes first; of the others, the one that a rollout would take last.
// Busy members are not candidates.
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

// Choices returns the number of members that a claim could get.
func Choices(members []Member) (n int) {
	for i := range members {
		n += count(members[i].claimable())
	}
	return n
}

// claimable reports whether a claim could get the member.
func (m *Member) claimable() bool { return m.Free() && !m.busy() }

// Taken marks a member that still looks free as claimed, after a newer read showed that a
// claim holds it.
func (m *Member) Taken() {
	if m.Free() {
		m.Claimed = true
	}
}

// Bind returns the free member as bound to a claim. A disruption left in it is spent.
func (m Member) Bind() Member {
	m.Claimed, m.Disruption = true, Disruption{}
	return m
}

// Release returns the member as the end of its claim leaves it. If the body is replaced,
// the grant is withdrawn and the engine decides what is born next.
func (m Member) Release(r *Release, now time.Time) Member {
	m.Claimed = false
	if d := r.disruption(m.Incarnation, now); d.Cause != NoCause {
		m.Disruption, m.Wants = d, ""
	}
	return m
}

// Release decides how a member is released when its claim ends.
type Release struct {
	// Reuse: the pool reuses members. InPlace: it updates them instead of replacing them.
	Reuse, InPlace bool
	// Blocker is the last reported reason why the member is not updated; empty for a member
	// that is not stale.
	Blocker Reason
	// Held and Skipped are the member's, WindowShut is the pool's.
	Held, Skipped, WindowShut bool
	// Stale is the number of members off the target, Partition the number that is to stay
	// off it, Waiting the number of claims that wait.
	Stale, Partition, Waiting int
}

// disruption returns the disruption that the write ending the claim sets; none if the next
// claim gets the body as it is. A pool that reuses members replaces a stale member on
// release only if a claim waits, and only the budget keeps a rollout from taking it.
// Without a waiting claim the rollout itself takes it as soon as the budget allows.
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

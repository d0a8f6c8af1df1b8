package rollout

import "time"

// BodyState is the observed state of a body.
type BodyState uint8

// The states of a body.
const (
	// Absent: the slot has no body.
	Absent BodyState = iota
	// Booting: the body exists and is not ready.
	Booting
	// Ready: the body is ready.
	Ready
	// Exited: the body has exited and does not come back.
	Exited
	// Stopping: the body is being deleted.
	Stopping
)

// Sight is what was observed of a slot's body.
type Sight struct {
	State BodyState
	// Drained: the drain is done.
	Drained bool
}

// Effect is what the caller does to a body after a step.
type Effect uint8

// The effects.
const (
	// Nothing: no effect.
	Nothing Effect = iota
	// CreateBody: create the body of [Member.NextIncarnation] on Wants, then record
	// [Member.Born], [Member.Refused] or [Member.WithoutRoom].
	CreateBody
	// DrainBody: begin or continue the drain. If it is done at once, step again with
	// Drained without recording anything; otherwise record the member.
	DrainBody
	// UndrainBody: undo the drain, then record the member.
	UndrainBody
	// UpdateBody: update the body to Wants, as [Member.NextIncarnation], then record
	// [Member.Updated] or [Member.Refused]. The phase Updating is recorded already.
	UpdateBody
	// DeleteBody: delete the body. The phase Terminating is recorded already.
	DeleteBody
	// DropSlot: the body is gone; delete the slot.
	DropSlot
)

// Lifecycle holds the times of a body's life from the template and the policy.
type Lifecycle struct {
	// BootTimeout is the longest time from birth until a body is ready, and the longest
	// that a body which has served may be down.
	BootTimeout time.Duration
	// MinReady is how long a body has to be ready before it is in service.
	MinReady time.Duration
	// RecoverAfter is how long a body has to be in service to have recovered.
	RecoverAfter time.Duration
}

// Transition is the result of a step.
type Transition struct {
	// Member is to be recorded if it differs: before Do, with UndrainBody after it.
	Member Member
	Do     Effect
	// Wake is when the next step is due without any other change; zero for never.
	Wake time.Time
}

// Step moves a slot one step through its life. The caller records the member and carries
// out the effect, in the order given by [Transition] and [Effect], and steps again until
// nothing changes.
func Step(m Member, seen Sight, l Lifecycle, now time.Time) Transition {
	m = m.asOf(now)
	switch {
	case m.Disrupted() || m.Deleting && !m.Claimed:
		return stepDisrupted(m, seen, l, now)
	case m.Phase == Pending:
		return stepPending(m, now)
	case seen.State == Absent || seen.State == Exited:
		return stepGone(m, seen, l, now)
	case seen.State == Ready:
		return stepReady(m, l, now)
	default:
		return stepDown(m, l, now)
	}
}

// asOf returns the slot at the time. Times from a clock that was ahead become now, and
// fields that an earlier version did not write are filled in.
func (m Member) asOf(now time.Time) Member {
	for _, t := range []*time.Time{&m.BornAt, &m.PhaseSince, &m.ServedSince, &m.DownSince, &m.UnsettledSince, &m.RecoveredAt} {
		*t = notAfter(*t, now)
	}
	m.NextAttempt = m.nextAttempt(now)
	if m.DownSince.IsZero() && m.served() && !m.healthy() && m.Phase != Draining {
		m.DownSince = m.PhaseSince
	}
	return m
}

// notAfter returns the earlier of t and now; t if now is zero.
func notAfter(t, now time.Time) time.Time {
	if t.After(now) && !now.IsZero() {
		return now
	}
	return t
}

// nextAttempt returns when the next birth is tried, with a bound for times from a clock
// that was ahead.
func (m *Member) nextAttempt(now time.Time) time.Time {
	if !m.NextAttempt.After(now) {
		return m.NextAttempt
	}
	return notAfter(m.NextAttempt, now.Add(BackoffAfter(max(1, int(m.Attempts)))))
}

// backsOff reports whether the next birth waits for its backoff: it is of the revision that
// failed, or there was no capacity.
func (m *Member) backsOff(now time.Time) bool {
	return now.Before(m.NextAttempt) && (m.NoRoom || m.Wants == m.Runs)
}

// stepDisrupted brings the body to its end, and the slot to its next body.
func stepDisrupted(m Member, seen Sight, l Lifecycle, now time.Time) Transition {
	switch {
	case seen.State == Absent && m.leaving():
		return Transition{Member: m, Do: DropSlot}
	case seen.State == Absent && m.Wants != "" && !m.backsOff(now):
		return Transition{Member: m.leaveService(seen, l, now), Do: CreateBody}
	case seen.State == Absent:
		return stepPending(m.leaveService(seen, l, now).pending(now), now)
	case m.Phase == Terminating:
		return Transition{Member: m, Do: DeleteBody}
	case m.Phase == Updating && m.updates() && seen.State != Stopping:
		return stepUpdating(m, now)
	case m.returns(seen):
		if t := stepReady(m, l, now); t.Member.healthy() || m.mustWait(seen) {
			return t
		}
	case m.mustWait(seen):
		return Transition{Member: m}
	case !seen.Drained && m.served() && m.Phase != Failed && m.Phase != Updating && seen.State == Ready:
		return Transition{Member: m.enter(Draining, now), Do: DrainBody}
	}
	if m.updates() && seen.State != Stopping {
		return Transition{Member: m.leaveService(seen, l, now).enter(Updating, now)}
	}
	return Transition{Member: m.leaveService(seen, l, now).enter(Terminating, now)}
}

// returns reports whether a body that was to be replaced as failed is ready before its end
// has begun. In service again, held or busy, it waits for the engine to withdraw the
// disruption.
func (m *Member) returns(seen Sight) bool {
	return m.Disrupted() && m.Disruption.Cause == BodyFailed && !m.leaving() && m.served() && seen.State == Ready &&
		m.Phase != Updating && m.Phase != Draining
}

// updates reports whether the body is to be updated in place.
func (m *Member) updates() bool { return m.Disrupted() && m.Disruption.Update && !m.leaving() }

// stepUpdating applies the grant to the body, once there is a grant.
func stepUpdating(m Member, now time.Time) Transition {
	switch {
	case m.Wants == "":
		return Transition{Member: m}
	case m.backsOff(now):
		return Transition{Member: m, Wake: m.NextAttempt}
	}
	return Transition{Member: m, Do: UpdateBody}
}

// mustWait reports whether the end may not begin, because the member is now protected: the
// engine is about to withdraw the disruption.
func (m *Member) mustWait(seen Sight) bool {
	if m.Deleting || !m.Disrupted() {
		return false
	}
	c := m.Disruption.Cause
	return m.guard(c) != "" && (c != BodyFailed || seen.State == Ready) // the body is back
}

// stepPending waits for a grant and for the end of a backoff.
func stepPending(m Member, now time.Time) Transition {
	switch {
	case m.Wants == "":
		return Transition{Member: m}
	case m.backsOff(now):
		return Transition{Member: m, Wake: m.NextAttempt}
	}
	return Transition{Member: m, Do: CreateBody}
}

// stepGone records that the body has exited or vanished. Only an exit counts against its
// revision. Both delay the next birth, unless the body had recovered.
func stepGone(m Member, seen Sight, l Lifecycle, now time.Time) Transition {
	if m.Phase != Failed {
		m = m.leaveService(seen, l, now)
		m = m.fail(seen.State == Exited && m.early(l, now), now)
	}
	m.Gone = true
	m.Body = seen.State != Absent
	return Transition{Member: m}
}

// early reports whether the body's failure counts against the target: it never recovered,
// or served only for a short time.
func (m *Member) early(l Lifecycle, now time.Time) bool {
	if !m.served() || !m.recovered() {
		return true
	}
	until := now
	if !m.DownSince.IsZero() {
		until = m.DownSince
	}
	return until.Sub(m.BornAt.Add(m.BootTook)) < recoveryFactor*l.RecoverAfter
}

// leaveService records that the body went out of service, and whether it had recovered or
// is unsettled. A body that is healthy when its claim ends has recovered.
func (m Member) leaveService(seen Sight, l Lifecycle, now time.Time) Member {
	if !m.served() || !m.DownSince.IsZero() {
		return m
	}
	m.DownSince = now
	at := m.ServedSince.Add(l.RecoverAfter)
	if m.Disrupted() && m.Disruption.Cause == ClaimEnded && seen.State == Ready {
		at = notAfter(at, now)
	}
	switch {
	case m.recovered():
	case !at.After(now):
		m.Recovered, m.RecoveredAt = m.Runs, at
	case m.UnsettledSince.IsZero() && !m.Disrupted():
		m.UnsettledSince = now
	}
	if m.recovered() {
		m.UnsettledSince, m.Attempts = time.Time{}, 0
	}
	return m
}

// stepReady brings a ready body into service. A failed body that never served stays Failed:
// its failure is counted.
func stepReady(m Member, l Lifecycle, now time.Time) Transition {
	switch {
	case m.Phase == Failed && !m.served():
		return Transition{Member: m}
	case m.Claimed:
		return Transition{Member: m.serve(InClaim, now)}
	case m.Phase == Draining:
		return Transition{Member: m.serve(Available, now), Do: UndrainBody}
	case m.healthy() || l.MinReady <= 0:
		return Transition{Member: m.serve(Available, now)}
	}
	m = m.enter(Preparing, now)
	if wake := m.PhaseSince.Add(l.MinReady); now.Before(wake) {
		return Transition{Member: m, Wake: wake}
	}
	return Transition{Member: m.serve(Available, now)}
}

// stepDown waits for a body that is not ready. It fails after BootTimeout or, once it has
// served, when it was last in service BootTimeout and MinReady ago, or has been unsettled
// for BootTimeout.
func stepDown(m Member, l Lifecycle, now time.Time) Transition {
	if m.Phase == Failed {
		return Transition{Member: m}
	}
	do := Nothing
	if m.Phase == Draining {
		do = UndrainBody
	}
	until := m.BornAt.Add(l.BootTimeout)
	switch {
	case m.served():
		m = m.leaveService(Sight{}, l, now).enter(Unready, now)
		until = m.DownSince.Add(l.BootTimeout + l.MinReady)
		if at := m.UnsettledSince.Add(l.BootTimeout); !m.UnsettledSince.IsZero() && at.Before(until) {
			until = at
		}
	case m.Phase != Updating:
		m = m.enter(Provisioning, now)
	}
	if now.Before(until) {
		return Transition{Member: m, Do: do, Wake: until}
	}
	return Transition{Member: m.fail(m.early(l, now), now), Do: do}
}

// fail records that the body failed. The backoff before the next birth grows with the
// number of bodies in a row that did not recover.
func (m Member) fail(early bool, now time.Time) Member {
	m.FailedEarly = early
	if !m.recovered() {
		m = m.backOff(now)
	}
	return m.enter(Failed, now)
}

// enter records a phase and when it began.
func (m Member) enter(p Phase, now time.Time) Member {
	if m.Phase != p {
		m = m.forgetRelapse()
		m.Phase, m.PhaseSince = p, now
	}
	return m
}

// forgetRelapse forgets the recovery of a body that failed later, before the slot leaves
// that phase.
func (m Member) forgetRelapse() Member {
	if m.relapsed() && m.recovered() {
		m.Recovered, m.RecoveredAt = "", time.Time{}
	}
	return m
}

// serve records that the body is in service.
func (m Member) serve(p Phase, now time.Time) Member {
	if !m.served() {
		m.BootTook = now.Sub(m.BornAt)
	}
	if !m.served() || !m.healthy() && m.Phase != Draining {
		m.ServedSince = now
	}
	m = m.enter(p, now)
	m.FailedEarly, m.Gone, m.NoRoom = false, false, false
	m.DownSince, m.NextAttempt = time.Time{}, time.Time{}
	return m
}

// backOff delays the next birth, longer after each failed attempt in a row.
func (m Member) backOff(now time.Time) Member {
	m.Attempts = min(m.Attempts+1, 1<<20)
	m.NextAttempt = now.Add(BackoffAfter(int(m.Attempts)))
	return m
}

// pending records that the body is gone and the next birth has to wait.
func (m Member) pending(now time.Time) Member {
	if m.Phase == Pending {
		return m
	}
	next := m.NextIncarnation()
	m = m.stopped(now)
	m.Incarnation = next
	return m.without(Pending, now)
}

// stopped records how long the end of the body took, from the decision if the disruption
// dates from then.
func (m Member) stopped(now time.Time) Member {
	if m.Phase != Terminating {
		return m
	}
	since := m.PhaseSince
	if m.served() && m.Disrupted() && !m.Disruption.Since.IsZero() {
		since = m.Disruption.Since
	}
	m.StopTook = max(0, now.Sub(since))
	return m
}

// without records that the slot has no body.
func (m Member) without(p Phase, now time.Time) Member {
	m = m.forgetRelapse()
	m.DownSince = m.outSince()
	m.Body, m.Gone, m.FailedEarly = false, false, false
	m.ServedSince, m.UnsettledSince = time.Time{}, time.Time{}
	return m.enter(p, now)
}

// NextIncarnation returns the number of the next body.
func (m *Member) NextIncarnation() int64 {
	if m.Phase == Pending && m.Incarnation > 0 {
		return m.Incarnation
	}
	return m.Incarnation + 1
}

// Born returns the member after the birth of the next body.
func (m Member) Born(now time.Time) Member {
	next := m.NextIncarnation()
	m = m.stopped(now)
	m.Incarnation = next
	m = m.without(m.Phase, now)
	if m.NoRoom || m.Wants != m.Runs {
		m.Attempts = 0 // another revision starts without failed attempts
	}
	m.Phase, m.PhaseSince, m.BornAt = Provisioning, now, now
	m.Body, m.Runs = true, m.Wants
	m.NoRoom, m.NextAttempt = false, time.Time{}
	return m
}

// Updated returns the member after its body was updated to Wants. It is the next
// incarnation, and has to come into service like any other.
func (m Member) Updated(now time.Time) Member {
	m = m.Born(now)
	m.Phase = Updating
	return m
}

// Refused returns the member after the API rejected the next body, or the update of the
// present one, which then stays. It counts as a failed body of its revision.
func (m Member) Refused(now time.Time) Member {
	stays := m.Phase == Updating && m.updates()
	m = m.Born(now).backOff(now)
	m.Phase, m.Body, m.Gone, m.FailedEarly = Failed, stays, !stays, true
	return m
}

// WithoutRoom returns the member after a birth for which there was no capacity.
func (m Member) WithoutRoom(now time.Time) Member {
	m = m.pending(now)
	if m.Incarnation == 0 {
		m.Incarnation = 1
	}
	m.NoRoom = true
	return m.backOff(now)
}

// The range of BackoffAfter.
const firstBackoff, longestBackoff = 10 * time.Second, 10 * time.Minute

// BackoffAfter returns the time between the n-th failed attempt in a row and the next one:
// ten seconds for the first, doubled for each further one, at most ten minutes; 0 for n <
// 1.
func BackoffAfter(n int) time.Duration {
	if n < 1 {
		return 0
	}
	if n > 7 {
		return longestBackoff
	}
	return min(firstBackoff<<(n-1), longestBackoff)
}

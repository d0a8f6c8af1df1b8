package rollout

import "time"

// BodyState is how a body was found.
type BodyState uint8

// The states of a body.
const (
	// Absent: there is none of this slot.
	Absent BodyState = iota
	// Booting: it is there and not ready.
	Booting
	// Ready: it serves.
	Ready
	// Exited: it has ended by itself and does not come back.
	Exited
	// Stopping: it was told to go and is not gone.
	Stopping
)

// Sight is what was seen of a slot's body.
type Sight struct {
	State BodyState
	// Drained: what comes before the end is done.
	Drained bool
}

// Effect is what has to be done to a body.
type Effect uint8

// The effects.
const (
	// Nothing has to be done.
	Nothing Effect = iota
	// CreateBody: make the body of [Member.NextIncarnation] on Wants, then
	// record [Member.Born], [Member.Refused] or [Member.WithoutRoom].
	CreateBody
	// DrainBody: begin or continue the drain. If that is done at once, step
	// again with Drained, and record nothing; otherwise record the member.
	DrainBody
	// UndrainBody: take the drain back, then record the member.
	UndrainBody
	// UpdateBody: make the body what Wants says, as [Member.NextIncarnation], then
	// record [Member.Updated] or [Member.Refused]. That it updates is recorded
	// already.
	UpdateBody
	// DeleteBody: tell it to go. That it terminates is recorded already.
	DeleteBody
	// DropSlot: the body is gone, and the slot goes too.
	DropSlot
)

// Lifecycle is what the template and the policy say about a body's life.
type Lifecycle struct {
	// BootTimeout is how long a body may take until it is ready, and how long
	// one that has served may be down.
	BootTimeout time.Duration
	// MinReady is how long it has to be ready until it is in service.
	MinReady time.Duration
	// RecoverAfter is how long it has to be in service until it has recovered.
	RecoverAfter time.Duration
}

// Transition is what a step comes to.
type Transition struct {
	// Member is the slot as it is to be recorded, if it differs, before Do is
	// done; after it with UndrainBody.
	Member Member
	Do     Effect
	// Wake is when time alone brings the next step; zero for never.
	Wake time.Time
}

// Step moves a slot one step through its life. The caller records the member
// and does the effect, in the order that [Transition] and [Effect] say, and
// steps again, until nothing changes.
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

// asOf is the slot as it is at the time: what was written by a clock that was
// ahead counts as written now, and what an earlier version did not write is
// filled in.
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

// notAfter is the time, or now if a clock that was ahead wrote it.
func notAfter(t, now time.Time) time.Time {
	if t.After(now) && !now.IsZero() {
		return now
	}
	return t
}

// nextAttempt is when the next birth is tried, no later than a clock that is
// right can have written it.
func (m *Member) nextAttempt(now time.Time) time.Time {
	if !m.NextAttempt.After(now) {
		return m.NextAttempt
	}
	return notAfter(m.NextAttempt, now.Add(BackoffAfter(max(1, int(m.Attempts)))))
}

// backsOff reports whether the next birth waits: what failed was of the same
// revision, or there was no room.
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

// returns reports whether a body that was to be replaced because it failed is
// ready before its end has begun. In service again, held or busy, it waits for
// the engine to withdraw that.
func (m *Member) returns(seen Sight) bool {
	return m.Disrupted() && m.Disruption.Cause == BodyFailed && !m.leaving() && m.served() && seen.State == Ready &&
		m.Phase != Updating && m.Phase != Draining
}

// updates tells whether the body is to become another revision where it is.
func (m *Member) updates() bool { return m.Disrupted() && m.Disruption.Update && !m.leaving() }

// stepUpdating applies the grant to the body, once there is one.
func stepUpdating(m Member, now time.Time) Transition {
	switch {
	case m.Wants == "":
		return Transition{Member: m}
	case m.backsOff(now):
		return Transition{Member: m, Wake: m.NextAttempt}
	}
	return Transition{Member: m, Do: UpdateBody}
}

// mustWait tells whether the end may not begin after all: the engine is about
// to withdraw what it decided when the member was idle.
func (m *Member) mustWait(seen Sight) bool {
	if m.Deleting || !m.Disrupted() {
		return false
	}
	c := m.Disruption.Cause
	return m.guard(c) != "" && (c != BodyFailed || seen.State == Ready) // it is back
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

// stepGone is for a body that has ended by itself, or vanished. Only an end of
// its own counts against its revision; either delays the next birth, unless the
// body had recovered.
func stepGone(m Member, seen Sight, l Lifecycle, now time.Time) Transition {
	if m.Phase != Failed {
		m = m.leaveService(seen, l, now)
		m = m.fail(seen.State == Exited && m.early(l, now), now)
	}
	m.Gone = true
	m.Body = seen.State != Absent
	return Transition{Member: m}
}

// early reports whether the failure of the body counts against a target: it never
// recovered, or had served for a short time only.
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

// leaveService records that the body is not in service any more, and what is to be
// remembered of its service: whether it recovered, or went down before it did.
// One that is in health when its claim ends has recovered.
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

// stepReady brings a ready body into service. One that never served and has
// failed stays so: it was counted.
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

// stepDown waits for a body that is not ready: until it has been on its way for
// bootTimeout or, once it has served, until it was last in service bootTimeout
// and minReady ago, or has been unsettled for bootTimeout.
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

// fail records that the body failed. The next birth waits the longer the more
// bodies in a row did not recover.
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

// forgetRelapse forgets that a body recovered that failed later, before the slot goes
// on.
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

// backOff delays the next birth, the longer the more came to nothing in a row.
func (m Member) backOff(now time.Time) Member {
	m.Attempts = min(m.Attempts+1, 1<<20)
	m.NextAttempt = now.Add(BackoffAfter(int(m.Attempts)))
	return m
}

// pending records that the body is gone and the next one cannot come yet.
func (m Member) pending(now time.Time) Member {
	if m.Phase == Pending {
		return m
	}
	next := m.NextIncarnation()
	m = m.stopped(now)
	m.Incarnation = next
	return m.without(Pending, now)
}

// stopped records how long it took until the body was gone: from the decision,
// if that is what the disruption dates from.
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

// without records that there is no body.
func (m Member) without(p Phase, now time.Time) Member {
	m = m.forgetRelapse()
	m.DownSince = m.outSince()
	m.Body, m.Gone, m.FailedEarly = false, false, false
	m.ServedSince, m.UnsettledSince = time.Time{}, time.Time{}
	return m.enter(p, now)
}

// NextIncarnation is the number of the body that comes next.
func (m *Member) NextIncarnation() int64 {
	if m.Phase == Pending && m.Incarnation > 0 {
		return m.Incarnation
	}
	return m.Incarnation + 1
}

// Born records the birth of the next body.
func (m Member) Born(now time.Time) Member {
	next := m.NextIncarnation()
	m = m.stopped(now)
	m.Incarnation = next
	m = m.without(m.Phase, now)
	if m.NoRoom || m.Wants != m.Runs {
		m.Attempts = 0 // another revision starts clean
	}
	m.Phase, m.PhaseSince, m.BornAt = Provisioning, now, now
	m.Body, m.Runs = true, m.Wants
	m.NoRoom, m.NextAttempt = false, time.Time{}
	return m
}

// Updated records that the body has become what was wanted. It is the next
// incarnation, and has to come into service like any other.
func (m Member) Updated(now time.Time) Member {
	m = m.Born(now)
	m.Phase = Updating
	return m
}

// Refused records that the next body cannot be created as it is, or that the
// body cannot become what was wanted, and stays. It counts as a body of its
// revision that failed.
func (m Member) Refused(now time.Time) Member {
	stays := m.Phase == Updating && m.updates()
	m = m.Born(now).backOff(now)
	m.Phase, m.Body, m.Gone, m.FailedEarly = Failed, stays, !stays, true
	return m
}

// WithoutRoom records that there is no capacity for the next body now.
func (m Member) WithoutRoom(now time.Time) Member {
	m = m.pending(now)
	if m.Incarnation == 0 {
		m.Incarnation = 1
	}
	m.NoRoom = true
	return m.backOff(now)
}

// Bounds of BackoffAfter.
const firstBackoff, longestBackoff = 10 * time.Second, 10 * time.Minute

// BackoffAfter is the time between the n-th failed attempt in a row and the
// next one: ten seconds, doubled each time, ten minutes at most.
func BackoffAfter(n int) time.Duration {
	if n < 1 {
		return 0
	}
	if n > 7 {
		return longestBackoff
	}
	return min(firstBackoff<<(n-1), longestBackoff)
}

package rollout

import (
	"fmt"
	"slices"
	"time"
)

// revisionState is how a member stands to the target.
type revisionState uint8

const (
	bodiless revisionState = iota
	updated
	stale
	unsure // of unknown revision, and adopted as it is
)

// ledger is the sum of a pool. Everything that is decided in a pass is
// entered at once, so that the next decision counts it.
type ledger struct {
	// slots are those that stay, neither leaving nor quarantined, and count
	// towards the desired number; onTop those that stay and come on top of it.
	slots, onTop int
	// up are the members in service of those that count, free those that nobody
	// holds, claimable those of them that a claim could get.
	up, free, claimable int
	// rolling and repairing as Member says.
	rolling, repairing int
	// offTarget are the slots that are not bound for the target.
	offTarget int
	// work are the members in service that could be taken, stale ones but for the
	// partition and the pool's own limits; asked those of them that are taken only
	// since somebody asked to recycle them, askedStale the stale ones for which
	// somebody asked so.
	takeable, asked, askedStale int
	// behind are the members off the target that serve and stay with nothing to
	// keep them, exempt those that are claimed, busy, held, skipped or adopted.
	// pausing are the exempt ones that are claimed or busy: they may be taken in
	// their next pause.
	behind, exempt, staleInUse int
	// unborn are slots owed a body, leaving those on their way out, returning
	// those of them that somebody deletes: they are made anew in their place.
	unborn, leaving, returning int
	// noRoom are births refused for lack of capacity.
	noRoom int
	// recovered are the bodies of the target that recovered since Record.Counted, as
	// the members show; recovery is when the last one did.
	recovered    int
	lastRecovery time.Time
	// servingSince is since when the target's body that is in service for longest is,
	// zero if none is; served: one of its bodies has been.
	servingSince time.Time
	targetServed bool
	// recovering is the first body of the target that is in service and has not
	// recovered; nil if there is none.
	recovering *Member
	// unsettledAt is when the last unsettled body of the target first went down,
	// zero if there is none; shaky how many there are.
	unsettledAt     time.Time
	unsettledBodies int
	// bootingSince is when the oldest body of the target was born that has not served.
	bootingSince time.Time
	// firstRecovered is a revision of which a body has recovered, while there is no
	// current one.
	firstRecovered Revision
	// notReturning are slots that are down and on their way to nothing: no excess that
	// could stand in for a member.
	notReturning int
	// unsure are free members of unknown occupancy.
	unsure int
	// kept are slots that were made for a claim and are still to be given to one.
	keptForClaims int
	// disrupted, asking, mendable and moving are how many members are disrupted now,
	// were asked to be recycled, are stale and down, and are on their way: where
	// there are none, nobody has to look for them.
	disrupted, asking, staleDown, moving int
	// failed are bodies of the target that failed, lost claimed ones that are gone.
	failed, lost int
	// out are the members that stay and are not in service, firstOut the position of
	// the first of them, and firstStuck that of the first that does not come back by
	// itself; one more, 0 for none.
	out, firstOut, firstStuck int
	// underwaySince is when the member that is on its way for longest set out, and oldest
	// its position; one more, 0 for none.
	underwaySince   time.Time
	longestUnderway int
	// hasCosts: somebody has given members a cost.
	hasCosts bool
}

// read enters every member, and notes those that are not simply in service.
func (q *pass) read() {
	p := &q.s.Policy
	// Who has recovered matters only while something depends on it.
	q.needsRecoveries = q.s.Current.ID != q.s.Target.ID || len(q.s.Target.Failures) > 0
	q.cutoff = q.now.Add(-p.RecoverAfter())
	c := &q.plan.Counts
	before, second := -1, q.now.Unix()
	for i := range q.s.Members {
		m := &q.s.Members[i]
		if m.Index <= before {
			q.invalid = fmt.Errorf("members: index %d at place %d follows %d; list them in ascending order, each once", m.Index, i, before)
			return
		}
		if m.Phase > Quarantined || m.Incarnation < 0 {
			q.invalid = fmt.Errorf("member %d: phase %s, incarnation %d; there are none such", m.Index, m.Phase, m.Incarnation)
			return
		}
		before = m.Index
		if m.regular() {
			q.ahead = q.ahead || m.ServedSince.Unix() > second
			q.enterRegular(m)
		} else {
			q.ahead = q.ahead || m.ahead(second)
			q.enterIrregular(i, m)
			if len(q.irregular) == cap(q.irregular) {
				q.irregular = slices.Grow(q.irregular, min(3*len(q.irregular)+8, len(q.s.Members)-i))
			}
			q.irregular = append(q.irregular, i)
		}
		if c.Stale != q.stale.count {
			q.stale.add(i)
		}
	}
	c.Members, c.Free, c.Rolling = len(q.s.Members), q.ledger.free, q.ledger.rolling
	q.enterRest()
}

// recycled is how many members in service somebody asked to recycle that could
// be: none under a policy that can never take one.
func (q *pass) recycled() int {
	if q.floorUnreachable() != "" {
		return 0
	}
	return q.ledger.asked + q.ledger.askedStale
}

// extent is where some of the members stand: all between from and to.
type extent struct{ from, to, count int }

func (e *extent) add(i int) {
	if e.count == 0 {
		e.from = i
	}
	e.to = i + 1
	e.count++
}

// regular reports whether the member is in service, free or claimed, and nothing
// else is to be said of it. Most are; only such may be among the rest.
func (m *Member) regular() bool {
	return m.healthy() && m.Body && m.Runs != "" && !m.Deleting && !m.Cordoned && !m.Asked && !m.Stuck &&
		m.UnsettledSince.IsZero() && !m.ForClaim &&
		(m.Disruption.Cause == NoCause || m.Disruption.Incarnation < m.Incarnation)
}

// enterRegular adds one such member to the ledger and the counts.
func (q *pass) enterRegular(m *Member) {
	c, l := &q.plan.Counts, &q.ledger
	c.InService++
	switch {
	case !m.Claimed:
		l.slots++
		l.up++
		l.free++
		q.enterFree(m)
	case q.s.Policy.Warm:
		c.Claimed++
		l.onTop++
	default:
		c.Claimed++
		l.slots++
		l.up++
	}
	if m.Cost != 0 {
		l.hasCosts = true
	}
	if q.needsRecoveries {
		q.enterRecovery(m)
	}
	if m.Runs == q.s.Target.ID {
		c.Updated++
		l.targetServed = true
		return
	}
	c.Stale++
	l.offTarget++
	if m.guard(Drift) == "" && !m.Skipped { // as takeable says
		l.takeable++
		l.behind++
		return
	}
	l.exempt++
	if !m.Held && !m.Skipped {
		l.staleInUse++
	}
}

// enterIrregular adds any other member, at the position.
func (q *pass) enterIrregular(i int, m *Member) {
	c, l := &q.plan.Counts, &q.ledger
	live, free := m.Disrupted(), m.Free()
	leaving := m.Deleting || live && m.Disruption.Remove
	up := free || m.Claimed && m.healthy()
	stands := q.revisionState(m)
	if m.Cost != 0 {
		l.hasCosts = true
	}
	if m.Claimed {
		c.Claimed++
	}
	if free {
		l.free++
		q.enterFree(m)
	}
	if up {
		q.enterUp(m, stands)
	} else if m.Phase == Failed {
		q.enterFailed(m)
	}
	if q.needsRecoveries {
		q.enterIrregularRecovery(m, up)
	}
	q.enterWork(m, stands, free)
	if m.Asked {
		l.asking++
	}
	if live {
		l.disrupted++
	}
	if m.Disruption.Rolling && m.Rolling() {
		l.rolling++
	}
	if m.Phase == Quarantined {
		c.Quarantined++
		l.moving += count(live)
		return
	}
	if leaving {
		l.leaving++
		l.moving += count(live)
		if m.Deleting && (!live || !m.Disruption.Remove) {
			l.returning++
		}
		return
	}
	kept := m.Phase == Failed && m.guard(BodyFailed) != "" // as it is
	l.moving += count(live || m.Phase == Draining || !m.served() && !m.NoRoom && !kept)
	top := q.onTop(m)
	if top {
		l.onTop++
	} else {
		l.slots++
		if m.ForClaim && q.keeps(m) {
			l.keptForClaims++
		}
	}
	if q.offTarget(m) {
		l.offTarget++
	}
	if !up {
		q.enterDown(i, m, top)
	}
}

// enterWork adds how the member stands to the target, and whether a rollout or
// somebody who asked for another body could take it.
func (q *pass) enterWork(m *Member, stands revisionState, free bool) {
	c, l := &q.plan.Counts, &q.ledger
	taken := false
	switch stands {
	case updated:
		c.Updated++
	case stale:
		c.Stale++
		taken = free && q.takeable(m)
		if !free && q.isStaleDown(m) {
			l.staleDown++
		}
	case unsure:
		c.Unknown++
	}
	asked := free && q.recyclable(m)
	l.askedStale += count(asked && taken)
	asked = asked && !taken
	l.asked += count(asked)
	l.takeable += count(taken || asked)
}

// count is 1 for true.
func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// enterUp adds what only members in service have.
func (q *pass) enterUp(m *Member, stands revisionState) {
	l := &q.ledger
	q.plan.Counts.InService++
	if !q.onTop(m) {
		l.up++
	}
	if m.leaving() || stands != stale && stands != unsure {
		return
	}
	switch {
	case stands == stale && m.guard(Drift) == "" && !m.Skipped:
		l.behind++
	case stands == stale && !m.Held && !m.Skipped:
		l.staleInUse++
		l.exempt++
	default:
		l.exempt++
	}
}

// enterFailed adds what only members have whose body failed.
func (q *pass) enterFailed(m *Member) {
	q.ledger.failed += count(m.FailedEarly && m.Runs == q.s.Target.ID)
	q.ledger.lost += count(m.Claimed && m.Gone)
}

// enterFree adds what depends on whether work runs on a free member.
func (q *pass) enterFree(m *Member) {
	switch m.Occupancy {
	case Idle:
		q.ledger.claimable++
	case OccupancyUnsure:
		q.ledger.unsure++
	}
}

// keeps reports whether the slot was made for a claim that waited and is no
// excess yet: its body boots, or has not been free for as long as that took.
func (q *pass) keeps(m *Member) bool {
	if !m.ForClaim || m.Claimed || m.leaving() || m.Incarnation > 1 || m.Disrupted() || q.s.Deleting {
		return false
	}
	if m.comingUp() {
		return !m.NoRoom
	}
	until := m.ServedSince.Add(m.BootTook)
	if !m.Free() || !q.now.Before(until) {
		return false
	}
	q.wake(until)
	return true
}

// enterDown adds what only members have that stay and are out of service.
func (q *pass) enterDown(i int, m *Member, top bool) {
	c, l := &q.plan.Counts, &q.ledger
	coming := m.comingUp()
	switch {
	case coming:
		c.Provisioning++
	case m.Phase == Failed:
		c.Failed++
	}
	if m.NoRoom {
		l.noRoom++
	}
	if m.Repairing() {
		c.Repairing++
		if until, counts := q.repairs(m); counts {
			l.repairing++
			q.wake(until)
		}
	}
	if m.unborn() {
		l.unborn++
	} else if !top && (!coming || m.Attempts > 0) {
		l.notReturning++
	}
	l.out++
	if l.firstOut == 0 {
		l.firstOut = i + 1
	}
	if l.firstStuck == 0 && staysDown(m) {
		l.firstStuck = i + 1
	}
	if since, on := q.underway(m); on && (l.longestUnderway == 0 || since.Before(l.underwaySince)) {
		l.underwaySince, l.longestUnderway = since, i+1
	}
}

// repairs reports until when the member counts as being repaired: from the
// decision on, until it is back, its first birth has failed or progressDeadline
// is over. Whatever does not come back hides no other.
func (q *pass) repairs(m *Member) (until time.Time, counts bool) {
	until = notAfter(m.Disruption.Since, q.now).Add(q.s.Policy.ProgressDeadline)
	failed := m.NoRoom || m.Attempts > 0 && !m.served() || m.Disrupted() && !m.served()
	return until, !failed && q.now.Before(until)
}

// enterRecovery counts a member that is simply in service among the bodies that
// recovered, or asks to be woken when it will have.
func (q *pass) enterRecovery(m *Member) {
	after := q.s.Policy.RecoverAfter()
	if m.Runs != q.s.Target.ID {
		q.countPrevious(m)
		switch {
		case q.s.Current.ID != "" || q.ledger.firstRecovered != "":
		case m.ServedSince.After(q.cutoff):
			q.nextRecovery = earliest(q.nextRecovery, m.ServedSince.Add(after))
		default:
			q.ledger.firstRecovered = m.Runs
		}
		return
	}
	if q.ledger.servingSince.IsZero() || m.ServedSince.Before(q.ledger.servingSince) {
		q.ledger.servingSince = m.ServedSince
	}
	if m.ServedSince.After(q.cutoff) {
		q.nextRecovery = earliest(q.nextRecovery, m.ServedSince.Add(after))
		if q.ledger.recovering == nil && !m.recovered() {
			q.ledger.recovering = m
		}
		q.countPrevious(m)
		return
	}
	at := m.ServedSince.Add(after)
	if at.After(q.ledger.lastRecovery) {
		q.ledger.lastRecovery = at
	}
	q.countPresent(m)
}

// countPresent counts a body of the target that has recovered and has not left service,
// as far as it is not counted yet.
func (q *pass) countPresent(m *Member) {
	if !q.counted(m) {
		q.ledger.recovered++
		q.storesRecoveries = q.storesRecoveries || m.leaving()
		if m.recovered() {
			return
		}
	}
	q.countPrevious(m) // the body before this one
}

// counted reports whether the present body, which has recovered, was counted already.
func (q *pass) counted(m *Member) bool {
	if m.recovered() { // and was back after a break
		return q.countedAt(m.RecoveredAt)
	}
	return !m.ServedSince.After(q.countedSince())
}

// countedAt reports whether a body that recovered at the time was counted already, by
// what recovery took then or by what it takes now: RecoverAfter may have changed.
func (q *pass) countedAt(at time.Time) bool {
	return !at.After(q.s.Target.Counted) || !at.Add(-q.s.Policy.RecoverAfter()).After(q.countedSince())
}

// countedSince is since when a body was in service at the latest that was counted.
func (q *pass) countedSince() time.Time {
	if t := &q.s.Target; t.Cutoff.IsZero() {
		return t.Counted.Add(-q.s.Policy.RecoverAfter())
	}
	return q.s.Target.Cutoff
}

// unbroken reports whether the body has not left service since it came into it, as
// far as is recorded. One that drains, or is cordoned, is still up.
func (m *Member) unbroken() bool {
	return m.Body && m.served() && m.DownSince.IsZero() && (m.healthy() || m.Phase == Draining)
}

// countPrevious counts a body of the target that was in the slot before and has
// recovered, as far as that is not counted yet.
func (q *pass) countPrevious(m *Member) {
	if q.uncounted(m) && !m.relapsed() {
		q.ledger.recovered++
		q.storesRecoveries = q.storesRecoveries || m.leaving() // its claim has ended, and the slot goes with it
	}
}

// enterIrregularRecovery does the same for any other member, and notes what is unsettled.
func (q *pass) enterIrregularRecovery(m *Member, up bool) {
	switch {
	case up && m.Runs != "":
		q.enterRecovery(m)
	case m.Runs == q.s.Target.ID && m.unbroken() && !m.ServedSince.After(q.cutoff):
		q.countPresent(m)
	case m.Runs == q.s.Target.ID && m.unbroken():
		at := m.ServedSince.Add(q.s.Policy.RecoverAfter())
		q.nextRecovery = earliest(q.nextRecovery, at)
		if m.leaving() {
			q.wake(at)
		}
		q.countPrevious(m)
	default:
		q.countPrevious(m)
	}
	if m.Runs != q.s.Target.ID || !m.Body {
		return
	}
	if m.served() {
		q.ledger.targetServed = true
	} else if m.comingUp() && (q.ledger.bootingSince.IsZero() || m.BornAt.Before(q.ledger.bootingSince)) {
		q.ledger.bootingSince = m.BornAt
	}
	settled := m.UnsettledSince.IsZero() || m.recovered() || up && !m.ServedSince.After(q.cutoff)
	if settled || m.Phase == Failed || m.Disrupted() || q.s.Current.ID == q.s.Target.ID {
		return
	}
	q.ledger.unsettledBodies++
	if m.UnsettledSince.After(q.ledger.unsettledAt) {
		q.ledger.unsettledAt = m.UnsettledSince
	}
}

// revisionState tells how the member stands to the target.
func (q *pass) revisionState(m *Member) revisionState {
	switch {
	case !m.Body || m.Phase == Quarantined: // what is kept for inspection is out of the rollout
		return bodiless
	case m.Runs == q.s.Target.ID:
		return updated
	case m.Runs != "" || q.s.Policy.ReplaceUnknown:
		return stale
	case m.Wants != "" && m.Wants != q.s.Target.ID:
		return stale
	default:
		return unsure
	}
}

// offTarget tells whether the slot is bound for another revision than the target.
func (q *pass) offTarget(m *Member) bool {
	if m.unborn() {
		return m.Wants != "" && m.Wants != q.s.Target.ID
	}
	return m.Runs != q.s.Target.ID
}

// floorRoom is how many more members that a claim could get may be taken down
// to the floor.
func (q *pass) floorRoom() int {
	if !q.s.Policy.HasFloor {
		return max(1, q.ledger.claimable)
	}
	return q.ledger.claimable - q.s.Policy.MinAvailable
}

// excess is how many slots there are above the desired number, but for those
// that are kept for claims.
func (q *pass) excess() int {
	return max(0, q.ledger.slots-max(q.desired(), q.capped(q.s.Policy.Desired+q.ledger.keptForClaims)))
}

// demand is how many members the claims that wait add to a warm pool: those of
// unknown occupancy may turn out to be what they wait for.
func (q *pass) demand() int {
	if !q.s.Policy.Warm || q.s.Deleting {
		return 0
	}
	return max(0, q.s.Waiting-q.ledger.unsure)
}

// desired is how many slots there should be: what the size says, in a warm pool
// one more for each claim that waits, and no more than the ceiling leaves.
func (q *pass) desired() int { return q.capped(q.s.Policy.Desired + q.demand()) }

// capped is the number of slots, or what the ceiling leaves of it; none in a
// pool that goes.
func (q *pass) capped(n int) int {
	p := &q.s.Policy
	switch {
	case q.s.Deleting:
		return 0
	case p.HasCeiling:
		return max(0, min(n, p.MaxMembers-q.ledger.onTop))
	}
	return n
}

// partition is how many members stay off the target: none where the pool stands
// on it.
func (q *pass) partition() int {
	if !q.rolls() {
		return 0
	}
	return q.s.Policy.Partition
}

// belowSize reports whether the ceiling keeps the pool below its size.
func (q *pass) belowSize() bool { return !q.s.Deleting && q.desired() < q.s.Policy.Desired }

// onTop tells whether the member does not count towards the desired number. One
// whose claim goes with its body does.
func (q *pass) onTop(m *Member) bool { return q.s.Policy.Warm && m.Claimed && !m.lost() }

// earliest is the earlier of two times, of which zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

package rollout

import (
	"fmt"
	"slices"
	"time"
)

// revisionState is the relation of a member's body to the target.
type revisionState uint8

const (
	bodiless revisionState = iota
	updated
	stale
	unsure // of unknown revision, and adopted as it is
)

// ledger holds the sums over a pool. Each decision of a pass is entered at once, so that
// the next decision counts it.
type ledger struct {
	// slots counts the slots that stay (neither leaving nor quarantined) and count towards
	// the desired number, onTop those that stay and come on top of it.
	slots, onTop int
	// up counts the members in service that count towards the desired number, free the free
	// members, claimable those of them that a claim could get.
	up, free, claimable int
	// rolling and repairing count the members for which Member says so.
	rolling, repairing int
	// offTarget counts the slots whose body is, or will be, off the target.
	offTarget int
	// takeable counts the members in service that could be taken, apart from the partition
	// and the pool's own limits; asked those taken only because of a recycle request,
	// askedStale the stale ones with a recycle request.
	takeable, asked, askedStale int
	// behind counts the stale members that serve, stay and could be taken; exempt the
	// claimed, busy, held, skipped and adopted ones; staleInUse those of them that are
	// claimed or busy, and may be taken in their next pause.
	behind, exempt, staleInUse int
	// unborn counts the slots that are to get a body, leaving those being removed,
	// returning those of them that are deleted by a user and are made anew.
	unborn, leaving, returning int
	// noRoom counts the births refused for lack of capacity.
	noRoom int
	// recovered counts the bodies of the target that recovered after Record.Counted;
	// lastRecovery is when the last one did.
	recovered    int
	lastRecovery time.Time
	// servingSince is the earliest ServedSince of the target's bodies in service; zero if
	// none is. targetServed: a body of the target has served.
	servingSince time.Time
	targetServed bool
	// recovering is the first body of the target that is in service and has not recovered;
	// nil if there is none.
	recovering *Member
	// unsettledAt is when the last unsettled body of the target first went down; zero if
	// there is none. unsettledBodies is their number.
	unsettledAt     time.Time
	unsettledBodies int
	// bootingSince is the birth of the oldest body of the target that has not served.
	bootingSince time.Time
	// firstRecovered is a revision of which a body has recovered, while there is no current
	// one.
	firstRecovered Revision
	// notReturning counts slots that are down and do not come back by themselves: they
	// replace no member as surge.
	notReturning int
	// unsure counts free members of unknown occupancy.
	unsure int
	// keptForClaims counts slots that were made for a claim and are not claimed yet.
	keptForClaims int
	// disrupted, asking, staleDown and moving count the members that are disrupted now,
	// have a recycle request, are stale and down, and are on their way. Where one is 0, the
	// pass does not look for such members.
	disrupted, asking, staleDown, moving int
	// failed counts failed bodies of the target, lost the claimed bodies that are gone.
	failed, lost int
	// out counts the members that stay and are not in service. firstOut and firstStuck are
	// 1 + the position of the first of them and of the first that does not come back by
	// itself; 0 for none.
	out, firstOut, firstStuck int
	// underwaySince is since when the member that is on its way for longest is, and
	// longestUnderway 1 + its position; 0 for none.
	underwaySince   time.Time
	longestUnderway int
	// hasCosts: a member has a disruption cost.
	hasCosts bool
}

// read enters every member, and lists the irregular ones.
func (q *pass) read() {
	p := &q.s.Policy
	// Recoveries are counted only while something depends on them.
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
			q.invalid = fmt.Errorf("member %d: phase %s and incarnation %d; use a known phase and 0 or more", m.Index, m.Phase, m.Incarnation)
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

// recycled returns how many members in service are to be recycled and could be; 0 under a
// policy that can never take one.
func (q *pass) recycled() int {
	if q.floorUnreachable() != "" {
		return 0
	}
	return q.ledger.asked + q.ledger.askedStale
}

// extent is a range of positions, and how many of them were added.
type extent struct{ from, to, count int }

func (e *extent) add(i int) {
	if e.count == 0 {
		e.from = i
	}
	e.to = i + 1
	e.count++
}

// regular reports whether the member is simply in service, free or claimed. Most members
// are. Only regular members may be in rest.
func (m *Member) regular() bool {
	return m.healthy() && m.Body && m.Runs != "" && !m.Deleting && !m.Cordoned && !m.Asked && !m.Stuck &&
		m.UnsettledSince.IsZero() && !m.ForClaim &&
		(m.Disruption.Cause == NoCause || m.Disruption.Incarnation < m.Incarnation)
}

// enterRegular adds a regular member to the ledger and the counts.
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
	if m.guard(Drift) == "" && !m.Skipped { // as in takeable
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
	kept := m.Phase == Failed && m.guard(BodyFailed) != "" // stays as it is
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

// enterWork adds the member's relation to the target, and whether a rollout or a recycle
// could take it.
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

// count returns 1 for true, 0 for false.
func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// enterUp adds a member in service.
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

// enterFailed adds a member whose body failed.
func (q *pass) enterFailed(m *Member) {
	q.ledger.failed += count(m.FailedEarly && m.Runs == q.s.Target.ID)
	q.ledger.lost += count(m.Claimed && m.Gone)
}

// enterFree adds the occupancy of a free member.
func (q *pass) enterFree(m *Member) {
	switch m.Occupancy {
	case Idle:
		q.ledger.claimable++
	case OccupancyUnsure:
		q.ledger.unsure++
	}
}

// keeps reports whether the slot was made for a claim and is no excess yet: its body boots,
// or has been free for less than its boot time.
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

// enterDown adds a member that stays and is out of service.
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

// repairs reports until when the member counts as being repaired: from the decision until
// it is back, its first birth has failed, or progressDeadline is over. A member that does
// not come back must not block the repair of others.
func (q *pass) repairs(m *Member) (until time.Time, counts bool) {
	until = notAfter(m.Disruption.Since, q.now).Add(q.s.Policy.ProgressDeadline)
	failed := m.NoRoom || m.Attempts > 0 && !m.served() || m.Disrupted() && !m.served()
	return until, !failed && q.now.Before(until)
}

// enterRecovery counts the recoveries that a member in service shows, or wakes the pool for
// the next one.
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

// countPresent counts a body of the target that has recovered and is still in service, if
// it is not counted yet.
func (q *pass) countPresent(m *Member) {
	if !q.counted(m) {
		q.ledger.recovered++
		q.storesRecoveries = q.storesRecoveries || m.leaving()
		if m.recovered() {
			return
		}
	}
	q.countPrevious(m) // the previous body
}

// counted reports whether the recovery of the present body is counted already.
func (q *pass) counted(m *Member) bool {
	if m.recovered() { // also after a break
		return q.countedAt(m.RecoveredAt)
	}
	return !m.ServedSince.After(q.countedSince())
}

// countedAt reports whether a body that recovered at the time is counted already, with the
// RecoverAfter of then or of now: it may have changed.
func (q *pass) countedAt(at time.Time) bool {
	return !at.After(q.s.Target.Counted) || !at.Add(-q.s.Policy.RecoverAfter()).After(q.countedSince())
}

// countedSince returns the latest ServedSince of the bodies that are counted already.
func (q *pass) countedSince() time.Time {
	if t := &q.s.Target; t.Cutoff.IsZero() {
		return t.Counted.Add(-q.s.Policy.RecoverAfter())
	}
	return q.s.Target.Cutoff
}

// unbroken reports whether the body has never left service. One that drains, or is
// cordoned, is still up.
func (m *Member) unbroken() bool {
	return m.Body && m.served() && m.DownSince.IsZero() && (m.healthy() || m.Phase == Draining)
}

// countPrevious counts a recovery of the slot's previous body, if it is of the target and
// not counted yet.
func (q *pass) countPrevious(m *Member) {
	if q.uncounted(m) && !m.relapsed() {
		q.ledger.recovered++
		q.storesRecoveries = q.storesRecoveries || m.leaving() // the claim has ended, and the slot is removed with it
	}
}

// enterIrregularRecovery does the same for an irregular member, and counts unsettled
// bodies.
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

// revisionState returns the relation of the member's body to the target.
func (q *pass) revisionState(m *Member) revisionState {
	switch {
	case !m.Body || m.Phase == Quarantined: // a body kept for inspection takes no part in the rollout
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

// offTarget reports whether the body of the slot is, or will be, of another revision than
// the target.
func (q *pass) offTarget(m *Member) bool {
	if m.unborn() {
		return m.Wants != "" && m.Wants != q.s.Target.ID
	}
	return m.Runs != q.s.Target.ID
}

// floorRoom returns how many more claimable members may be taken before the floor is
// reached; without a floor, always at least 1.
func (q *pass) floorRoom() int {
	if !q.s.Policy.HasFloor {
		return max(1, q.ledger.claimable)
	}
	return q.ledger.claimable - q.s.Policy.MinAvailable
}

// excess returns the number of slots above the desired number, less those kept for claims.
func (q *pass) excess() int {
	return max(0, q.ledger.slots-max(q.desired(), q.capped(q.s.Policy.Desired+q.ledger.keptForClaims)))
}

// demand returns how many members the waiting claims add to a warm pool. Free members of
// unknown occupancy may still serve some of them.
func (q *pass) demand() int {
	if !q.s.Policy.Warm || q.s.Deleting {
		return 0
	}
	return max(0, q.s.Waiting-q.ledger.unsure)
}

// desired returns the number of slots that there should be: the size, in a warm pool plus
// one for each waiting claim, and no more than the ceiling allows.
func (q *pass) desired() int { return q.capped(q.s.Policy.Desired + q.demand()) }

// capped returns n, or what the ceiling allows of it; 0 if the pool is being deleted.
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

// partition returns the number of members that stay off the target; 0 if the pool stands on
// it.
func (q *pass) partition() int {
	if !q.rolls() {
		return 0
	}
	return q.s.Policy.Partition
}

// belowSize reports whether the ceiling keeps the pool below its size.
func (q *pass) belowSize() bool { return !q.s.Deleting && q.desired() < q.s.Policy.Desired }

// onTop reports whether the member comes on top of the desired number. A claimed member
// whose body is lost does not.
func (q *pass) onTop(m *Member) bool { return q.s.Policy.Warm && m.Claimed && !m.lost() }

// earliest returns the earlier of two times; zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

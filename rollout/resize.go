package rollout

import (
	"slices"
	"time"
)

// refill takes back draining slots, then makes new ones.
func (q *pass) refill() {
	for _, i := range q.irregular {
		m := &q.s.Members[i]
		if q.missing() <= 0 {
			break
		}
		if m.drains() && m.Disruption.Cause == ScaleDown && !q.actedOn.has(i) {
			q.undo(i, WhyNeededAgain)
		}
	}
	if q.enough() {
		return
	}
	q.resizing = q.ledger.slots < q.desired() && q.resizes()
	if !q.mayFill() {
		return
	}
	q.plan.Actions = slices.Grow(q.plan.Actions, max(0, q.missing()))
	for q.missing() > 0 {
		if !q.create(WhyFill) {
			return
		}
	}
}

// resizes reports whether a rollout waits for the missing slots. It does not wait for those
// that claims took out of a warm pool or that the ceiling rules out: the ledger counts them
// as down.
func (q *pass) resizes() bool { return !q.s.Policy.Warm && !q.atCeiling() }

// atCeiling reports whether the ceiling allows no further slot.
func (q *pass) atCeiling() bool {
	p := &q.s.Policy
	return p.HasCeiling && len(q.s.Members)+q.rest.members()+q.made >= p.MaxMembers
}

// enough reports whether missing members need not be made now: enough are free, less those
// that waiting claims are about to take, and neither drift nor a larger size waits.
func (q *pass) enough() bool {
	return q.sufficient() && !q.grown() && (q.gate != "" || q.takeableNow() == 0)
}

// sufficient reports whether as many are free as refillBelow asks for.
func (q *pass) sufficient() bool {
	below := q.s.Policy.RefillBelow
	return below > 0 && q.ledger.free-q.s.Waiting >= below
}

// grown reports whether the desired number was raised.
func (q *pass) grown() bool { return q.s.Size > 0 && q.s.Policy.Desired > q.s.Size }

// size returns Plan.Size: the desired number once all missing slots are made.
func (q *pass) size() int {
	if q.grown() && q.missing() > 0 {
		return q.s.Size
	}
	return q.s.Policy.Desired
}

// mayFill reports whether new slots may be made. While bodies of the only revision fail to
// recover, new slots back off together.
func (q *pass) mayFill() bool {
	if q.rolls() && q.current.ID != "" {
		return true
	}
	var last time.Time
	n := 0
	for i := range q.target.Failures {
		f := &q.target.Failures[i]
		if f.Count == 0 || !f.At.After(q.ledger.lastRecovery) {
			continue
		}
		n++
		if f.At.After(last) {
			last = f.At
		}
	}
	at := last.Add(BackoffAfter(n))
	if !q.now.Before(at) {
		return true
	}
	q.wake(at)
	return false
}

// create makes one slot at the lowest free index, and reports whether it did.
func (q *pass) create(why Why) bool {
	m := Member{Index: q.freeIndex()}
	was := q.probation
	if why == WhySurge && q.probation == probationBySurge {
		q.probation = m.Index
	}
	rev := q.birth(&m)
	if rev == "" {
		q.noteUnbuildable(&m)
	}
	if rev == "" || why == WhySurge && rev != q.target.ID || q.atCeiling() {
		q.probation = was
		return false
	}
	a := Action{
		Kind: CreateSlot, Index: m.Index, Revision: rev, Why: why, Surge: why != WhyFill,
		ForClaim: why == WhyFill && q.ledger.slots >= q.s.Policy.Desired,
	}
	q.nextIndex = m.Index + 1
	q.made++
	q.ledger.slots++
	q.ledger.unborn++
	if rev != q.target.ID {
		q.ledger.offTarget++
	}
	q.plan.Actions = append(q.plan.Actions, a)
	return true
}

// freeIndex returns the lowest free index from nextIndex on.
func (q *pass) freeIndex() int {
	i := q.position(q.nextIndex)
	for i < len(q.s.Members) && q.s.Members[i].Index == q.nextIndex {
		i++
		q.nextIndex++
	}
	return q.nextIndex
}

// shrink removes n slots: those that are down first, then stale ones, then the highest
// index. Claimed, busy and held members stay, and so do members in service that the size
// needs: excess that is down and cannot be removed blocks nothing.
func (q *pass) shrink(n int) {
	why := WhyExcess
	if q.s.Deleting {
		why = WhyPoolDeleted
	}
	list := q.least(n, q.removable, q.goesBefore)
	q.plan.Actions = slices.Grow(q.plan.Actions, len(list))
	for _, i := range list {
		if !q.canSpare(&q.s.Members[i]) {
			return // all later ones serve as well
		}
		q.remove(i, ScaleDown, why)
		q.resizing = true
	}
}

// canSpare reports whether the size can do without the member: it is not in service, or
// more members are than the size asks for.
func (q *pass) canSpare(m *Member) bool {
	return !m.InService() || q.onTop(m) || q.ledger.up > q.desired()
}

func (q *pass) removable(m *Member) bool {
	if m.leaving() || m.Phase == Quarantined || m.guard(ScaleDown) != "" || m.Stuck || q.keeps(m) || q.acted(m) {
		return false
	}
	return !q.failing || m.Index != q.probation || q.desired() == 0 || q.aboveCeiling()
}

// aboveCeiling reports whether there are more slots than the ceiling allows.
func (q *pass) aboveCeiling() bool {
	p := &q.s.Policy
	return p.HasCeiling && q.ledger.slots+q.ledger.onTop > p.MaxMembers
}

// surgeAllowed returns how many slots above the desired number may stay: no more than can
// be rolled now, or are kept for members in use. A stopped rollout keeps the surge members
// that have served.
func (q *pass) surgeAllowed() int {
	switch {
	case q.desired() == 0:
		return 0
	case q.halted || q.gate == FloorUnreachable || q.gate == RevisionNotReproducible:
		return min(q.surgeRoom(), q.recycled())
	case q.gate == PausedRollout || q.gate == ManualPolicy || q.failing:
		return max(q.settledSurge(), min(q.surgeRoom(), q.recycled()))
	case q.s.WindowShut: // finish outside the window what began inside, or surge would be made and removed for ever
		return min(q.surgeMost(), q.s.Surge, q.excess(), q.takeableInWindow())
	}
	return max(q.surgeRoom(), q.surgeForInUse())
}

// surgeKeepFactor times its boot time is how long a surge body stays free for members in
// use.
const surgeKeepFactor = 3

// keptUntil returns until when the body stays free for members in use.
func (m *Member) keptUntil() time.Time { return m.ServedSince.Add(surgeKeepFactor * m.BootTook) }

// surgeForInUse returns how many surge slots stay for members that became busy or claimed
// after those were made, so that a body is ready in their next pause: while the body boots,
// and until it has been free for a few times as long.
func (q *pass) surgeForInUse() int {
	n := min(q.surgeMost(), q.s.Surge, q.excess(), q.ledger.staleInUse)
	if n <= 0 {
		return 0
	}
	fresh := 0
	for i := range q.s.Members {
		m := &q.s.Members[i]
		if m.leaving() || m.Claimed || q.offTarget(m) {
			continue
		}
		until := m.keptUntil()
		switch {
		case m.comingUp() && !m.NoRoom && m.Attempts == 0:
			fresh++
		case m.Free() && q.now.Before(until):
			fresh++
			q.wake(until)
		}
	}
	return min(n, fresh)
}

// surgeMost returns the largest number of surge slots that the policy allows.
func (q *pass) surgeMost() int {
	p := &q.s.Policy
	if p.HasCeiling {
		return min(p.surge(), max(0, p.MaxMembers-q.ledger.onTop-q.desired()))
	}
	return p.surge()
}

// settledSurge returns how many surge slots stay while the rollout is stopped: those that
// have served, and the slot on probation.
func (q *pass) settledSurge() int {
	pending := 0
	for _, i := range q.irregular {
		m := &q.s.Members[i]
		if !m.leaving() && !m.served() && !m.Rolling() {
			pending++
		}
	}
	n := max(0, min(q.surgeMost(), q.s.Surge, q.excess())-pending)
	if q.failing && q.probation >= 0 && !q.aboveCeiling() {
		n = max(n, min(1, q.excess()))
	}
	return n
}

// takeableNow returns how many members in service could be taken now, apart from the pool's
// own limits.
func (q *pass) takeableNow() int {
	if q.s.WindowShut {
		return 0
	}
	return q.takeableInWindow()
}

// takeableInWindow returns how many could be taken if a window were open: stale members as
// far as the partition allows, and members to be recycled.
func (q *pass) takeableInWindow() int {
	stale := min(q.ledger.takeable-q.ledger.asked-q.taken, q.ledger.offTarget-q.partition())
	return max(0, stale, q.ledger.askedStale) + max(0, q.ledger.asked)
}

// surgesOnlyForRecycled reports whether surge may only replace a recycled member that the
// partition keeps off the target.
func (q *pass) surgesOnlyForRecycled() bool {
	return q.ledger.askedStale > 0 && q.ledger.offTarget-q.ledger.askedStale < q.partition()
}

// surge makes slots above the desired number, in addition to maxUnavailable: for drift that
// may be rolled, and for members to be recycled.
func (q *pass) surge() {
	if q.resizing || q.s.WindowShut || q.ledger.noRoom > 0 {
		return
	}
	n, why := q.surgeRoom(), WhySurge
	switch {
	case q.gate == FailedReplacement && q.probation == probationBySurge && !q.paused() && !q.s.Policy.Manual:
		n = min(n, q.excess()+1)
	case q.gate != "" || q.isUnproven() || q.surgesOnlyForRecycled():
		n, why = min(n, q.recycled()), WhyAsked
	}
	for range n - q.excess() {
		if !q.create(why) {
			return
		}
	}
}

package rollout

import "time"

// refill takes back slots that only drain, then makes new ones.
func (q *pass) refill() {
	for _, i := range q.odd {
		m := &q.s.Members[i]
		if q.missing() <= 0 {
			break
		}
		if m.drains() && m.Disruption.Cause == ScaleDown && !q.done.has(i) {
			q.undo(i, WhyNeededAgain)
		}
	}
	if q.enough() {
		return
	}
	q.resizing = q.l.slots < q.desired() && q.resizes()
	if !q.mayFill() {
		return
	}
	for q.missing() > 0 {
		if !q.create(WhyFill) {
			return
		}
	}
}

// resizes tells whether missing slots are something that a rollout waits for.
// Those that claims took out of a warm pool are not, nor those that the ceiling
// leaves no room for: the ledger counts them as down.
func (q *pass) resizes() bool { return !q.s.Policy.Warm && !q.full() }

// full tells whether there may be no slot more.
func (q *pass) full() bool {
	p := &q.s.Policy
	return p.HasCeiling && len(q.s.Members)+q.s.Rest.members()+q.made >= p.MaxMembers
}

// enough tells whether what is missing may stay so for now: enough are free,
// those that waiting claims are about to take not counted.
func (q *pass) enough() bool {
	below := q.s.Policy.RefillBelow
	return below > 0 && q.l.free-q.s.Waiting >= below && (q.gate != "" || q.work() == 0)
}

// mayFill tells whether new slots may be made. While bodies of the only
// revision there is fail, they back off together.
func (q *pass) mayFill() bool {
	t := &q.target
	if q.current.ID != t.ID {
		return true
	}
	var last time.Time
	n := 0
	for _, f := range t.Failures {
		if f.Forgiven {
			continue
		}
		n++
		if at := f.when(q.now); at.After(last) {
			last = at
		}
	}
	at := last.Add(BackoffAfter(n))
	if !q.now.Before(at) {
		return true
	}
	q.wake(at)
	return false
}

// create makes one slot at the lowest free index.
func (q *pass) create(why Why) bool {
	m := Member{Index: q.freeIndex()}
	rev := q.birth(&m)
	if rev == "" {
		q.starve(&m)
	}
	if rev == "" || why == WhySurge && rev != q.target.ID || q.full() {
		return false
	}
	q.next = m.Index + 1
	q.made++
	q.l.slots++
	q.l.unborn++
	if rev != q.target.ID {
		q.l.off++
	}
	q.plan.Actions = append(q.plan.Actions, Action{
		Kind: CreateSlot, Index: m.Index, Revision: rev, Surge: why == WhySurge, Why: why,
	})
	return true
}

// freeIndex is the lowest index from next on that no slot has.
func (q *pass) freeIndex() int {
	i := q.position(q.next)
	for i < len(q.s.Members) && q.s.Members[i].Index == q.next {
		i++
		q.next++
	}
	return q.next
}

// shrink names n slots for removal: down, then stale, then by highest index.
// What is claimed, busy or held stays.
func (q *pass) shrink(n int) {
	why := WhyExcess
	if q.s.Deleting {
		why = WhyPoolDeleted
	}
	for _, i := range q.least(n, q.removable, q.goesBefore) {
		q.remove(i, ScaleDown, why)
		q.resizing = true
	}
}

func (q *pass) removable(m *Member) bool {
	if m.leaving() || m.Phase == Quarantined || m.Claimed && !m.lost() || m.busy() && !m.doomed() || m.Held || m.Stuck || q.acted(m) {
		return false
	}
	return !q.failing || m.Index != q.probation || q.desired() == 0 || q.above()
}

// above tells whether there are more slots than the ceiling allows.
func (q *pass) above() bool {
	p := &q.s.Policy
	return p.HasCeiling && q.l.slots+q.l.onTop > p.MaxMembers
}

// surgeAllowed is how many slots above the desired number may stay: no more
// than there is work left that could be rolled now. A rollout that does not
// go on keeps those that have served.
func (q *pass) surgeAllowed() int {
	switch {
	case q.desired() == 0 || q.halted || q.gate == FloorUnreachable || q.gate == RevisionNotReproducible:
		return 0
	case q.gate == PausedRollout || q.gate == ManualPolicy || q.failing:
		return q.settledSurge()
	case q.s.WindowShut: // what began inside is finished outside, or it would begin anew for ever
		return min(q.surgeMost(), q.s.Surge, q.excess(), q.workLeft())
	}
	return q.surgeRoom()
}

// surgeMost is how many surge slots there may be at most.
func (q *pass) surgeMost() int {
	p := &q.s.Policy
	if p.HasCeiling {
		return min(p.surge(), max(0, p.MaxMembers-q.l.onTop-q.desired()))
	}
	return p.surge()
}

// settledSurge is how many of the surge slots stay while the rollout does not
// go on: those that have served, and the one on probation.
func (q *pass) settledSurge() int {
	pending := 0
	for _, i := range q.odd {
		m := &q.s.Members[i]
		if !m.leaving() && !m.served() && !m.Rolling() {
			pending++
		}
	}
	n := max(0, min(q.surgeMost(), q.s.Surge, q.excess())-pending)
	if q.failing && q.probation >= 0 && !q.above() {
		n = max(n, min(1, q.excess()))
	}
	return n
}

// work is how many stale members in service could be taken now, but for the
// pool's own limits.
func (q *pass) work() int {
	if q.s.WindowShut {
		return 0
	}
	return q.workLeft()
}

// workLeft is how many could be, if it were not for a window.
func (q *pass) workLeft() int {
	return max(0, min(q.l.work-q.taken, q.l.off-q.partition()))
}

// surge makes slots above the desired number, beside what may be unavailable.
func (q *pass) surge() {
	if q.gate != "" && q.gate != FailedReplacement || q.resizing || q.s.WindowShut || q.l.noRoom > 0 {
		return
	}
	n := q.surgeRoom() - q.excess()
	if q.failing {
		n = min(n, 1)
		if q.probation != anybody || q.paused() || q.s.Policy.Manual {
			n = 0
		}
	}
	for range n {
		if !q.create(WhySurge) {
			return
		}
	}
}

package rollout

// rollUp takes stale members in service, as many as the ledger allows.
func (q *pass) rollUp() {
	q.allowed = max(0, q.ledger.offTarget-q.partition())
	q.partitionEdge = q.findPartitionEdge()
	if q.gate == "" && q.resizing {
		q.gate = PoolResizing
	}
	if !q.mayTake() || q.s.WindowShut {
		return
	}
	n := min(q.slack(), q.floorRoom(), q.s.Policy.MaxInFlight-q.ledger.rolling, q.allowed)
	if q.s.Budgeted {
		n = min(n, q.s.BudgetRoom-q.taken)
	}
	if q.gate != "" {
		n = min(n, 1) // the one on probation
	}
	for _, i := range q.first(n, q.takeable) {
		if q.probation == probationInService {
			q.probation = q.s.Members[i].Index
		}
		q.replaceOrRemove(i, Drift, q.target.ID, WhyStale)
	}
}

// slack returns how many members may be taken for the number in service. A warm pool in
// steady use always misses a member that is being made: with a floor, one member may roll
// at a time whatever room returns.
func (q *pass) slack() int {
	if q.steady() && q.ledger.rolling == 0 && q.plan.Counts.Repairing+q.dropped == 0 {
		return max(q.room(), 1)
	}
	return q.room()
}

// steady reports whether the floor alone limits a rollout of one member at a time.
func (q *pass) steady() bool { return q.s.Policy.Warm && q.s.Policy.HasFloor }

// mayTake reports whether members in service may be taken. While a failure of the target is
// open, only the one on probation may, where every failed slot is gone and no surge slot
// can try the target.
func (q *pass) mayTake() bool {
	if q.gate != FailedReplacement {
		return q.gate == "" && !q.isUnproven()
	}
	p := &q.s.Policy
	return q.probation == probationInService && !p.Manual && !p.Paused && !q.resizing && !q.overdue
}

// takeable reports whether the member is in service, stale and unprotected.
func (q *pass) takeable(m *Member) bool {
	return m.Free() && m.guard(Drift) == "" && !m.Skipped && !m.Stuck && q.revisionState(m) == stale && (!m.Asked || !q.acted(m))
}

// replaceOrRemove replaces a member in service. The last members, for which there are surge
// slots, are removed instead, so that n members cost n births.
func (q *pass) replaceOrRemove(i int, c Cause, to Revision, why Why) {
	m := &q.s.Members[i]
	stale, work := q.takeable(m), q.takeableNow()
	if q.gate != "" && c == Requested {
		work = q.recycled() // no other member is taken
	}
	if stale && m.Asked {
		q.ledger.askedStale--
	}
	if stand := q.excess() - q.ledger.notReturning; stand > 0 && work <= stand {
		q.remove(i, c, why)
	} else {
		q.replace(i, c, to, why)
	}
	q.ledger.rolling++
	if stale {
		q.taken++
		return
	}
	q.ledger.asked--
	q.ledger.takeable--
}

// findPartitionEdge returns the last member in order that may leave the partition; nil if
// all may.
func (q *pass) findPartitionEdge() *Member {
	if q.partition() == 0 || q.allowed == 0 || q.allowed >= q.ledger.takeable-q.ledger.asked-q.taken {
		return nil
	}
	if i := q.last(q.allowed, q.takeable); i >= 0 {
		return &q.s.Members[i]
	}
	return nil
}

// limit returns the reason why otherwise eligible members are not taken; Next for none.
func (q *pass) limit() Reason {
	switch {
	case q.s.WindowShut:
		return OutsideWindow
	case q.s.Budgeted && q.s.BudgetRoom <= q.taken:
		return BudgetFull
	case q.slack() < 1 && q.s.Policy.surge() > 0 && (q.ledger.noRoom > 0 || q.atCeiling()):
		return NoSurgeCapacity
	case q.slack() < 1:
		return UnavailableLimit
	case q.floorRoom() < 1:
		return FloorReached
	case q.ledger.rolling >= q.s.Policy.MaxInFlight:
		return InFlightLimit
	case q.isUnproven():
		return Unproven
	default:
		return Next
	}
}

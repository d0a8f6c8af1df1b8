package rollout

// rollUp takes stale members that are in service, one for each that the
// ledger has room for.
func (q *pass) rollUp() {
	p := &q.s.Policy
	q.allowed = max(0, q.l.off-q.partition())
	q.bound = q.lastAllowed()
	if q.gate == "" && q.resizing {
		q.gate = PoolResizing
	}
	if !q.mayTake() || q.s.WindowShut {
		return
	}
	n := min(q.room(), q.floorRoom(), p.MaxInFlight-q.l.rolling, q.allowed)
	if q.s.Budgeted {
		n = min(n, q.s.BudgetRoom-q.taken)
	}
	if q.gate != "" {
		n = min(n, 1) // the one on probation
	}
	for _, i := range q.first(n, q.takeable) {
		q.take(i)
	}
}

// mayTake tells whether members in service may be taken at all. While the
// target has failed none may; but where every slot that failed is gone and
// there is no surge to try it, one is taken on probation, since otherwise
// nobody ever would.
func (q *pass) mayTake() bool {
	if q.gate != FailedReplacement {
		return q.gate == ""
	}
	p := &q.s.Policy
	return q.probation == anybody && p.surge() == 0 && !p.Manual && !p.Paused && !q.resizing && q.l.unborn == 0 && q.l.rolling == 0
}

// takeable tells whether the member is in service, stale, and nobody's.
func (q *pass) takeable(m *Member) bool {
	return m.Free() && m.nobodys() && !m.Skipped && !m.Stuck && q.bearing(m) == stale && (!m.Asked || !q.acted(m))
}

// take replaces the member; the last ones, which surge slots stand in for, are
// removed instead, so that n stale members cost n births.
func (q *pass) take(i int) {
	if q.work() <= q.excess() {
		q.remove(i, Drift, WhyStale)
	} else {
		q.replace(i, Drift, q.target.ID, WhyStale)
	}
	q.l.rolling++
	q.taken++
}

// lastAllowed is the last member in order that the partition lets go, or nil
// if it lets all go.
func (q *pass) lastAllowed() *Member {
	if q.partition() == 0 || q.allowed == 0 || q.allowed >= q.l.work-q.taken {
		return nil
	}
	list := q.first(q.allowed, q.takeable)
	if len(list) == 0 {
		return nil
	}
	return &q.s.Members[list[len(list)-1]]
}

// limit is what keeps the members from being taken that nothing else keeps.
func (q *pass) limit() Reason {
	switch {
	case q.s.WindowShut:
		return OutsideWindow
	case q.s.Budgeted && q.s.BudgetRoom <= q.taken:
		return BudgetFull
	case q.room() < 1 && q.s.Policy.surge() > 0 && (q.l.noRoom > 0 || q.full()):
		return NoSurgeCapacity
	case q.room() < 1:
		return UnavailableLimit
	case q.floorRoom() < 1:
		return FloorReached
	case q.l.rolling >= q.s.Policy.MaxInFlight:
		return InFlightLimit
	default:
		return Next
	}
}

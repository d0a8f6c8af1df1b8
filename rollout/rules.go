package rollout

// The twelve rules of the ledger (docs/design.md, section 3). Each is the function that
// decides it; "Also" names the other functions that decide a part of it.

// Rule 1: never disrupt a member in use. guard returns what protects the member from a
// disruption of this cause: a claim, work, possible work or a hold; empty for nothing. A
// lost body prevents neither its removal nor its healing, and a body whose claim has ended
// is always replaced. Also: takeable and isStaleDown, which exclude skipped members too.
func (m *Member) guard(c Cause) Reason {
	switch {
	case c == ClaimEnded || c == BodyFailed && m.lost():
		return ""
	case m.Claimed && (c != ScaleDown || !m.lost()):
		return Claimed
	case m.busy() && (c != ScaleDown || !m.doomed()):
		if m.Occupancy == Busy {
			return BusyMember
		}
		return OccupancyUnknown
	case m.Held:
		return HeldMember
	}
	return ""
}

// Rule 2: unknown is not empty and not changed. readable reports whether anything may be
// decided. Also: enterFree, demand and onTop, by which a member of unknown occupancy is
// supply and no candidate; findGate, which reports it.
func (q *pass) readable() bool { return q.invalid == nil && q.s.Unreadable == "" && !q.s.WritesUnseen }

// Rule 3: what is already down costs nothing, and one blip condemns little. repairRoom
// returns how many more members that served and are down may be replaced by another
// revision. Also: healUnborn and healFailed, which drop and replace bodies that never
// served or failed; rollDown and repair, which take a place of this count; repairs, which
// returns until when a member keeps it.
func (q *pass) repairRoom() int { return q.s.Policy.MaxInFlight - q.ledger.repairing }

// Rule 4: what is missing is down. room returns how many more members in service the budget
// allows to take. Also: slack, floorRoom and limit, which are checked before a member is
// taken; rollUp and recycle, which take it; onTop, by which claimed members of a warm pool
// do not count.
func (q *pass) room() int { return q.ledger.up - (q.s.Policy.Desired - q.s.Policy.MaxUnavailable) }

// Rule 5: a bad revision hurts at most what the budget allows. mayTry reports whether the
// target may be born in the slot: never once it is halted; while a failure of it is open,
// only in the slot on probation and, once a body has recovered, where a body of it is on
// its way. Also: choose, which asks it for every birth; recordFailures and failureCounts,
// which count failures; forgiveFailures and recoveredSince, which close them;
// findProbation, which chooses the slot; isUnsettled, findOverdue and mayTake, which keep
// members in service meanwhile; halt; stepDown and early, which decide when a body has
// failed.
func (q *pass) mayTry(m *Member) bool {
	return !q.halted && (!q.failing || q.probation == m.Index || q.everRecovered() && q.arriving(m))
}

// Rule 6: settle first. resize makes missing slots, or removes excess ones, before anything
// in service is taken for drift. Also: resizes, by which a refill deficit is no resize;
// rollUp, recycleLimit and surge, which wait for it.
func (q *pass) resize() {
	q.allowedSurge = q.surgeAllowed()
	if q.ledger.slots < q.desired() {
		q.refill()
	} else if n := q.excess() - q.allowedSurge; n > 0 {
		q.shrink(n)
	}
}

// Rule 7: surge never exceeds the work left that could be rolled now. surgeRoom returns
// that limit. Also: takeableNow and takeableInWindow, which count that work; surge, which
// makes the slots; surgeAllowed, surgeForInUse and settledSurge, which keep or drop those
// that exist; replaceOrRemove, which removes the last stale members instead.
func (q *pass) surgeRoom() int { return min(q.surgeMost(), q.takeableNow()) }

// Rule 8: skip, don't stop. lowest returns the positions of the first n members by index
// that qualify; one that does not qualify hides no other. Also: first, last and least, for
// the other orders.
func (q *pass) lowest(n int, qualifies func(*Member) bool) []int {
	var list []int
	for i := range q.s.Members {
		if len(list) >= n {
			break
		}
		if qualifies(&q.s.Members[i]) {
			list = append(list, i)
		}
	}
	return list
}

// Rule 9: newest wins. matches reports whether the draining member's revision is wanted in
// its slot again. Also: undoReason, recycleUndone and guardReason, which take a member back
// for other reasons; refill, which takes back members that the size needs again; returns
// and mustWait, by which a slot waits for that.
func (q *pass) matches(m *Member) bool {
	if m.Runs == q.target.ID {
		return m.served() || q.birth(m) == m.Runs
	}
	return m.Runs != "" && m.Runs == q.current.ID && (q.ledger.offTarget < q.partition() || q.overdue && m.served())
}

// Rule 10: a scale-down removes what is down, then what is stale, then the highest index.
// goesBefore returns that order. Also: removable and canSpare, which decide what may be
// removed at all; shrink, which removes it; keeps, by which a slot made for a claim is no
// excess.
func (q *pass) goesBefore(m *Member) place {
	p := place{b: 1, c: -int64(m.Index)}
	if m.InService() {
		p.a = 1
	}
	if q.offTarget(m) {
		p.b = 0
	}
	return p
}

// Rule 11: refill makes what is missing minus what is being made. missing returns how many
// slots are to be made. Also: refill and enough, which decide whether they are; desired,
// demand and grown; mayFill, nextAttempt and backsOff, which delay a birth.
func (q *pass) missing() int { return q.desired() - q.ledger.slots - q.ledger.returning }

// Down returns the share of n, rounded down. Rule 12: maxUnavailable rounds down, and
// maxSurge and minAvailable up. Also: Up, percent and Budget; Collision, which names fields
// that can never work together; asOf and notAfter, by which a stored time later than now
// counts as now; wake, by which time alone changes no plan.
func (s Share) Down(n int) int {
	if !s.Percent {
		return s.N
	}
	return percent(s.N, n, 0)
}

package rollout

import "time"

// Values of pass.probation other than the index of a slot.
const (
	noProbation = -1
	// probationBySurge: a surge slot that this pass makes.
	probationBySurge = -2
	// probationInService: a member in service that this pass takes.
	probationInService = -3
)

// birth returns the revision that may be born in the slot now; empty means none, and
// the slot waits. It changes nothing. Every birth asks it.
//
// The result is the target, except
//   - the current revision for a skipped slot;
//   - the current revision if fewer slots than partition would stay off the target;
//   - the current revision while the target is halted, or a failure of it is open:
//     except for the slot on probation and, once a body has recovered, for bodies
//     on their way;
//   - the current revision for slots without a body of the target on its way, while
//     the target is overdue;
//   - none if that revision cannot be built, or if the slot is held above the ceiling.
func (q *pass) birth(m *Member) Revision {
	r := q.choose(m)
	if r.Missing || m.Held && q.aboveCeiling() {
		return ""
	}
	return r.ID
}

// noteUnbuildable records that a slot waits for a revision that cannot be built.
func (q *pass) noteUnbuildable(m *Member) {
	if r := q.choose(m); r.Missing {
		q.unbuildable = r.ID
	}
}

func (q *pass) choose(m *Member) *Record {
	t, c := &q.target, &q.current
	if c.ID == "" || c.ID == t.ID {
		return t
	}
	others := q.ledger.offTarget - q.ledger.askedStale // members to be recycled are about to go
	if m.ID != "" && q.offTarget(m) {
		others--
	}
	if m.Asked && m.Free() && m.guard(Requested) == "" && !m.Skipped && !m.Stuck && q.offTarget(m) && !q.acted(m) {
		others++ // not counted above
	}
	switch {
	case m.Skipped:
		return c
	case others < q.partition():
		return c
	case !q.mayTry(m):
		return c
	case q.overdue && !q.arriving(m):
		return c
	}
	return t
}

// arriving reports whether a body of the target is on its way into service in the slot.
func (q *pass) arriving(m *Member) bool {
	return m.Body && m.Runs == q.target.ID && m.comingUp() && !m.served() && !m.Disrupted()
}

// findProbation decides which slot tries the target while a failure of it is open: the
// first failed slot that can try, else a slot that tries already. Where all failed slots
// are gone or serve another revision, it is a surge slot or, without room for surge, a
// member in service. No slot tries while a failed slot is kept as it is; keptFailure then
// names it.
func (q *pass) findProbation() {
	q.probation, q.keptFailure = noProbation, nil
	if !q.failing {
		return
	}
	for i := range q.target.Failures {
		f := &q.target.Failures[i]
		m := q.member(f.Index)
		switch {
		case f.Forgiven || m == nil || m.ID != f.ID || m.leaving() || m.Phase == Quarantined || m.Skipped || m.InService() && m.Runs != q.target.ID:
		case m.canTry() && !q.terminatesTooLong(m):
			q.probation = f.Index
			return
		case q.keptFailure == nil:
			q.keptFailure = m
		}
	}
	for _, i := range q.irregular {
		if m := &q.s.Members[i]; q.triesTarget(m) {
			q.probation = m.Index
			return
		}
	}
	switch {
	case q.ledger.recovering != nil && !q.ledger.recovering.leaving() && !q.ledger.recovering.Skipped:
		q.wake(q.ledger.recovering.ServedSince.Add(q.s.Policy.RecoverAfter()))
		q.probation = q.ledger.recovering.Index
	case q.keptFailure != nil:
	case q.surgeMost() > q.excess() && q.ledger.noRoom == 0 && !q.atCeiling():
		q.probation = probationBySurge
	default:
		q.probation = probationInService
	}
}

// inBackoff reports whether the slot on probation waits for its next birth; if so, it wakes
// the pool for that.
func (q *pass) inBackoff(m *Member) bool {
	next := m.nextAttempt(q.now)
	if m.InService() || !q.now.Before(next) {
		return false
	}
	q.wake(next)
	return true
}

// canTry reports whether a body can be born in the slot: nothing protects its body, and
// there is capacity.
func (m *Member) canTry() bool {
	return !m.Stuck && !m.NoRoom && m.guard(BodyFailed) == ""
}

// terminatesTooLong reports whether the slot's body has been terminating for the progress
// deadline.
func (q *pass) terminatesTooLong(m *Member) bool {
	if m.Phase != Terminating {
		return false
	}
	at := m.PhaseSince.Add(q.s.Policy.ProgressDeadline)
	if q.now.Before(at) {
		q.wake(at)
		return false
	}
	return true
}

// triesTarget reports whether the slot is to get a body of the target, or has one that has
// not recovered yet.
func (q *pass) triesTarget(m *Member) bool {
	switch {
	case m.leaving() || m.Phase == Quarantined || m.Skipped || q.terminatesTooLong(m):
		return false
	case m.unborn():
		return m.Wants == q.target.ID
	case !m.Body || m.Runs != q.target.ID || m.Phase == Failed || m.recovered():
		return false
	case !m.InService():
		return true
	}
	if m.ServedSince.After(q.cutoff) {
		q.wake(m.ServedSince.Add(q.s.Policy.RecoverAfter()))
		return true
	}
	return false
}

// slowestBoot returns the longest known time from birth to service; 0 if none is known.
func (q *pass) slowestBoot() time.Duration {
	var slowest time.Duration
	for i := range q.s.Members {
		slowest = max(slowest, q.s.Members[i].BootTook)
	}
	return slowest
}

// The target is overdue after overdueFactor times the slowest boot, and minOverdue at
// least.
const (
	overdueFactor = 3
	minOverdue    = 10 * time.Second
)

// findOverdue decides whether the target is overdue: no body of it has come into service in
// the expected time, so no further slot tries it.
func (q *pass) findOverdue() {
	q.overdue = false
	if q.current.ID == "" || q.current.ID == q.target.ID || q.ledger.targetServed || q.everRecovered() || q.ledger.bootingSince.IsZero() {
		return
	}
	slowest := q.slowestBoot()
	if slowest == 0 {
		return // no boot time is known
	}
	at := q.ledger.bootingSince.Add(max(overdueFactor*slowest, minOverdue))
	if q.overdue = !q.now.Before(at); !q.overdue {
		q.wake(at)
	}
}

// isUnproven reports whether no member in service may be taken yet, because a body of the
// target is unsettled or the target is overdue.
func (q *pass) isUnproven() bool { return q.unsettled || q.overdue }

// member returns the slot with the index; nil if there is none.
func (q *pass) member(index int) *Member {
	i := q.position(index)
	if i < len(q.s.Members) && q.s.Members[i].Index == index {
		return &q.s.Members[i]
	}
	return nil
}

// position returns where the slot with the index is or would be in the list.
func (q *pass) position(index int) int {
	lo, hi := 0, len(q.s.Members)
	for lo < hi {
		mid := (lo + hi) / 2
		if q.s.Members[mid].Index < index {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

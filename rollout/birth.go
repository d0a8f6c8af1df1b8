package rollout

import "time"

// Who is on probation, where it is not the slot of an index.
const (
	noProbation = -1
	// probationBySurge: a surge slot that is made in this pass.
	probationBySurge = -2
	// probationInService: a member in service that is taken in this pass.
	probationInService = -3
)

// birth is the one function that answers which revision may be born in the
// slot now; empty means none, and the slot waits. To ask changes nothing.
//
// It is the target, but
//   - the current revision, if somebody gave up on bringing the slot to the
//     target;
//   - the current revision, if otherwise fewer slots than the partition stayed
//     off the target;
//   - the current revision, while the target is halted or a failure of it is
//     open, except for bodies on their way once one has recovered, and for the
//     one slot on probation;
//   - the current revision for all whose body is not there yet, while the target
//     has been booting for far longer than the current one took, and never
//     served;
//   - none, if what is to be born cannot be built, or if the slot is above the
//     ceiling, and stays only because somebody holds it.
func (q *pass) birth(m *Member) Revision {
	r := q.choose(m)
	if r.Missing || m.Held && q.aboveCeiling() {
		return ""
	}
	return r.ID
}

// noteUnbuildable notes that a slot waits for a revision that cannot be built.
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
	others := q.ledger.offTarget - q.ledger.askedStale // those that somebody asked to recycle are about to go
	if m.ID != "" && q.offTarget(m) {
		others--
	}
	if m.Asked && m.Free() && m.guard(Requested) == "" && !m.Skipped && !m.Stuck && q.offTarget(m) && !q.acted(m) {
		others++ // it was left out already
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

// arriving reports whether the slot has a body of the target that is on its way
// into service.
func (q *pass) arriving(m *Member) bool {
	return m.Body && m.Runs == q.target.ID && m.comingUp() && !m.served() && !m.Disrupted()
}

// findProbation decides which slot tries the target while a failure of it is
// open: of those that failed and can try the first, or one that tries already;
// where all that failed are gone or serve on another revision, a surge slot or,
// if there can be none, a member in service. It is nobody while one that failed
// is kept as it is: the sentence names it.
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

// inBackoff reports whether the slot on probation waits for its next birth, and asks to
// be woken for that.
func (q *pass) inBackoff(m *Member) bool {
	next := m.nextAttempt(q.now)
	if m.InService() || !q.now.Before(next) {
		return false
	}
	q.wake(next)
	return true
}

// canTry reports whether anything can be tried in the slot now: nothing keeps
// it as it is, and there is room.
func (m *Member) canTry() bool {
	return !m.Stuck && !m.NoRoom && m.guard(BodyFailed) == ""
}

// terminatesTooLong reports whether the slot's body has been told to go, and has not gone for
// the progress deadline, so that no other can be born there.
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

// triesTarget reports whether the slot is to get a body of the target, or has one that
// has not recovered yet.
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

// slowestBoot is the longest that a body is known to have taken until it came
// into service.
func (q *pass) slowestBoot() time.Duration {
	var slowest time.Duration
	for i := range q.s.Members {
		slowest = max(slowest, q.s.Members[i].BootTook)
	}
	return slowest
}

// Bounds of how long a target may boot until nothing more is bet on it.
const (
	overdueFactor = 3
	minOverdue    = 10 * time.Second
)

// findOverdue decides whether the target has been on its way for so long, and
// never come into service, that nobody else is to try it.
func (q *pass) findOverdue() {
	q.overdue = false
	if q.current.ID == "" || q.current.ID == q.target.ID || q.ledger.targetServed || q.everRecovered() || q.ledger.bootingSince.IsZero() {
		return
	}
	slowest := q.slowestBoot()
	if slowest == 0 {
		return // nobody knows
	}
	at := q.ledger.bootingSince.Add(max(overdueFactor*slowest, minOverdue))
	if q.overdue = !q.now.Before(at); !q.overdue {
		q.wake(at)
	}
}

// unproven reports whether nothing in service is taken until more is known of
// the target: a body of it is unsettled, or none has come up in time.
func (q *pass) isUnproven() bool { return q.unsettled || q.overdue }

// member finds the slot with the index; nil if there is none.
func (q *pass) member(index int) *Member {
	i := q.position(index)
	if i < len(q.s.Members) && q.s.Members[i].Index == index {
		return &q.s.Members[i]
	}
	return nil
}

// position is where the slot with the index stands or would stand.
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

package rollout

import (
	"slices"
	"time"
)

// judge updates the record of the target: it counts failures and recoveries, halts the
// rollout at the failure limit and decides whether the pool stands on the target. Then it
// chooses the slot on probation.
func (q *pass) judge() {
	q.standOnFirst()
	q.recordFailures()
	q.forgiveFailures()
	q.halt()
	q.failing = q.rolls() && !q.halted && q.target.open()
	if q.rolls() && q.target.Failed > 0 && !q.everRecovered() {
		q.wake(q.nextRecovery) // a recovery changes what counts as failed, and lets bodies on their way go on
	}
	q.unsettled = q.isUnsettled()
	q.stand()
	q.findOverdue()
	q.findProbation()
	if m := q.member(q.probation); m != nil {
		q.probationInBackoff = q.inBackoff(m)
	}
}

// rolls reports whether the target differs from the current revision.
func (q *pass) rolls() bool { return q.current.ID != q.target.ID }

// note adds an action on a revision.
func (q *pass) note(a Action) {
	if a.Record == nil {
		a.Revision, a.Record = q.target.ID, &q.target
	}
	q.notes = append(q.notes, a)
}

// standOnFirst makes the first revision of which a body recovered the current one, while
// there is none.
func (q *pass) standOnFirst() {
	if q.current.ID != "" {
		return
	}
	switch {
	case q.everRecovered():
		q.target.Halted = false
		q.current = q.target
		q.note(Action{Kind: Stand, Why: WhyFirst})
	case q.ledger.firstRecovered != "":
		q.current = Record{ID: q.ledger.firstRecovered}
		r := q.current
		q.note(Action{Kind: Stand, Revision: r.ID, Record: &r, Why: WhyFirst})
	}
	q.wake(q.nextRecovery)
}

// everRecovered reports whether a body of the target has recovered.
func (q *pass) everRecovered() bool {
	return q.target.Worked || q.target.Recovered > 0 || q.ledger.recovered > 0
}

// recordFailures counts each failed incarnation of the target once. Once the pool stands on
// the target, only bodies that had not recovered are counted, which only delays births.
func (q *pass) recordFailures() {
	if q.ledger.failed == 0 {
		return
	}
	r := &q.target
	if len(r.Failures) >= MaxFailures { // further slots are not counted
		r.Failures = slices.Clone(r.Failures)
		for at := range r.Failures {
			if m := q.member(r.Failures[at].Index); m != nil && m.ID == r.Failures[at].ID && q.failureCounts(m) && r.Failures[at].Incarnation < m.Incarnation {
				q.countFailure(m, at)
			}
		}
		return
	}
	cloned := false
	for _, i := range q.irregular {
		m := &q.s.Members[i]
		if !q.failureCounts(m) {
			continue
		}
		at, known := q.failureAt(m)
		if known && r.Failures[at].Incarnation >= m.Incarnation || !known && len(r.Failures) >= MaxFailures {
			continue
		}
		if !cloned {
			r.Failures, cloned = slices.Clone(r.Failures), true
		}
		if !known {
			at = len(r.Failures)
			r.Failures = append(r.Failures, Failure{ID: m.ID, Index: m.Index})
			q.indexFailure(m, at)
		}
		q.countFailure(m, at)
	}
}

// failureCounts reports whether the member's body failed in a way that counts against the
// target.
func (q *pass) failureCounts(m *Member) bool {
	return m.Phase == Failed && m.FailedEarly && m.Runs == q.target.ID && (q.rolls() || !m.relapsed())
}

// countFailure counts the failure of the member's body in entry at of the record.
func (q *pass) countFailure(m *Member, at int) {
	r := &q.target
	f := &r.Failures[at]
	f.Incarnation, f.At, f.Forgiven, f.Message = m.Incarnation, m.PhaseSince, false, m.Message
	f.Count++
	r.Failed++
	r.Worked = r.Worked || m.relapsed()
	if m.relapsed() && m.recovered() && !m.RecoveredAt.After(r.Counted) {
		r.Recovered = max(0, r.Recovered-1) // it was counted, and failed later
	}
	q.note(Action{Kind: RecordFailure, Index: m.Index, Why: WhyEarlyFailure})
}

// failureAt returns the position of the slot's failure in the record.
func (q *pass) failureAt(m *Member) (at int, known bool) {
	list := q.target.Failures
	if q.failures == nil && len(list) > 0 {
		q.failures = make(map[int]int, len(list))
		for i := range list {
			q.failures[list[i].Index] = i // the last of several slots of one index wins
		}
	}
	at, known = q.failures[m.Index]
	return at, known && list[at].ID == m.ID
}

// indexFailure stores the position of a new failure.
func (q *pass) indexFailure(m *Member, at int) {
	if q.failures == nil {
		q.failures = map[int]int{}
	}
	q.failures[m.Index] = at
}

// forgiveFailures forgives each failure after which a body of the target, in any slot, has
// been in service for as long as recovery takes. Forgiven failures that no longer count are
// dropped.
func (q *pass) forgiveFailures() {
	r := &q.target
	var keep []Failure
	changed := q.rolls() && (r.Since.After(q.now) || r.Counted.After(q.now))
	r.Since, r.Counted, r.Cutoff = notAfter(r.Since, q.now), notAfter(r.Counted, q.now), notAfter(r.Cutoff, q.now) // times later than now come from a clock that was ahead
	for i := range r.Failures {
		f := r.Failures[i]
		switch skipped := q.skipsFailed(&f); {
		case f.At.After(q.now):
			f.At, changed = q.now, true // written by a clock that was ahead
		case !f.Forgiven && (skipped || q.recoveredSince(f.At)):
			f.Forgiven, changed = true, true
			if skipped {
				f.Count = 0
			}
		}
		if f.Forgiven && (f.Count == 0 || !q.rolls() && !f.At.After(q.ledger.lastRecovery)) && !q.stillFailed(&f) {
			changed = true
			continue
		}
		keep = append(keep, f)
	}
	if !q.rolls() && len(keep) > 0 {
		q.wake(q.nextRecovery) // the next recovery drops earlier failures
	}
	if changed {
		r.Failures, q.failures = keep, nil
		q.note(Action{Kind: Recover, Why: WhyRecovered})
	}
}

// recoveredSince reports whether a body of the target has been in service without a break
// for as long as recovery takes, all of it after the time. If one still can, it wakes the
// pool for that.
func (q *pass) recoveredSince(since time.Time) bool {
	if q.ledger.servingSince.IsZero() {
		return false
	}
	if q.ledger.servingSince.After(since) {
		since = q.ledger.servingSince
	}
	at := since.Add(q.s.Policy.RecoverAfter())
	if q.now.Before(at) {
		q.wake(at)
		return false
	}
	return true
}

// isUnsettled reports whether a body of the target is unsettled, and none has recovered
// since.
func (q *pass) isUnsettled() bool {
	if !q.rolls() || q.ledger.unsettledAt.IsZero() || q.recoveredSince(q.ledger.unsettledAt) {
		return false
	}
	q.wake(q.nextRecovery)
	return true
}

// skipsFailed reports whether the failed slot is skipped.
func (q *pass) skipsFailed(f *Failure) bool {
	m := q.member(f.Index)
	return m != nil && m.ID == f.ID && m.Skipped
}

// stillFailed reports whether the counted incarnation is still there, so that it could be
// counted again.
func (q *pass) stillFailed(f *Failure) bool {
	m := q.member(f.Index)
	return m != nil && m.ID == f.ID && m.Incarnation == f.Incarnation && m.Runs == q.target.ID
}

// halt stops the rollout at the failure limit.
func (q *pass) halt() {
	t := &q.target
	if q.rolls() && !t.Halted && q.failedSlots() >= q.failureLimit() {
		t.Halted, t.RolledBack = true, q.s.Policy.Rollback && q.current.ID != ""
		q.note(Action{Kind: Halt, Why: WhyFailureLimit})
	}
	q.halted = q.rolls() && t.Halted
}

// failedSlots returns the number that counts towards the failure limit: failed slots, or
// failed bodies while none has recovered.
func (q *pass) failedSlots() int {
	if q.everRecovered() {
		return q.target.slots()
	}
	return q.target.Failed
}

// failureLimit returns the limit for failedSlots. A limit of slots is no larger than the
// number of slots.
func (q *pass) failureLimit() int {
	limit := min(q.s.Policy.FailureLimit, MaxFailures)
	if q.everRecovered() {
		limit = min(limit, q.ledger.slots+q.ledger.onTop)
	}
	return max(1, limit)
}

// stand makes the target the current revision once nothing holds it up, every member that
// serves and could be rolled is on it, and enough bodies of it have recovered.
func (q *pass) stand() {
	if !q.rolls() || q.halted || q.failing || q.unsettled || q.s.Policy.Partition > 0 || q.ledger.behind > 0 {
		return
	}
	if q.target.Recovered+q.ledger.recovered < q.enoughToStand() {
		q.wake(q.nextRecovery)
		return
	}
	q.target = Record{ID: q.target.ID, Since: q.target.Since, Missing: q.target.Missing}
	q.note(Action{Kind: Stand, Why: WhyWholePool})
	q.current = q.target
}

// enoughToStand returns how many bodies of the target have to have recovered: the desired
// number, less the members kept off the target and the slots whose last body of it failed
// or is unsettled, but at least half of the desired number and at least one.
func (q *pass) enoughToStand() int {
	d := q.s.Policy.Desired
	n := d - q.ledger.exempt - q.ledger.unsettledBodies
	for i := range q.target.Failures {
		f := &q.target.Failures[i]
		m := q.member(f.Index)
		if f.Count > 0 && m != nil && m.ID == f.ID && (!m.InService() || m.Runs != q.target.ID) {
			n--
		}
	}
	return max(n, (d+1)/2, 1)
}

// storeRecoveries adds recovered bodies to the record before a slot that shows one of them
// is removed.
func (q *pass) storeRecoveries() {
	r := &q.target
	if !q.storesRecoveries || !q.readable() || !q.rolls() || q.halted {
		return
	}
	r.Recovered += q.ledger.recovered
	r.Counted, r.Cutoff = q.now, q.cutoff
	q.note(Action{Kind: Recover, Why: WhyCounted})
}

// losesRecovery reports whether removing the slot would lose a recovery that is not counted
// yet.
func (q *pass) losesRecovery(m *Member) bool {
	t := &q.target
	switch {
	case !q.rolls() || m.relapsed():
		return false
	case m.Runs == t.ID && m.unbroken():
		at := m.ServedSince.Add(q.s.Policy.RecoverAfter())
		if q.now.Before(at) {
			q.wake(at)
			return false
		}
		return !q.counted(m)
	}
	return q.uncounted(m)
}

// uncounted reports whether the slot shows a recovery of the target that is not counted
// yet: one since the revision became the target, or that of the present body, if it was in
// service since then.
func (q *pass) uncounted(m *Member) bool {
	r := &q.s.Target
	if m.Recovered != r.ID || m.Recovered == "" || q.countedAt(m.RecoveredAt) {
		return false
	}
	served := m.Body && m.recovered() && (m.InService() || m.DownSince.After(r.Since))
	return served || m.RecoveredAt.After(r.Since)
}

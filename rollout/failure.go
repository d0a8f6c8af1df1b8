package rollout

import (
	"slices"
	"time"
)

// judge records new failures and recoveries, and decides whether the rollout
// is halted, and which slot is on probation.
func (q *pass) judge() {
	q.record(&q.target)
	if q.current.ID != q.target.ID {
		q.record(&q.current)
	}
	q.recover(&q.target)
	if q.current.ID != q.target.ID {
		q.recover(&q.current)
	}
	fallback := q.current.ID != "" && q.current.ID != q.target.ID
	if fallback && !q.target.Halted && q.target.Failed >= min(q.s.Policy.FailureLimit, MaxFailures) {
		q.target.Halted, q.target.RolledBack = true, q.s.Policy.Rollback
		q.note(Action{Kind: Halt, Revision: q.target.ID, Why: WhyFailureLimit}, &q.target)
	}
	q.halted = fallback && q.target.Halted
	q.failing = fallback && !q.halted && q.target.open()
	q.findProbation()
	q.stand()
}

// record counts each failed incarnation of the revision once.
func (q *pass) record(r *Record) {
	for _, i := range q.odd {
		m := &q.s.Members[i]
		if m.Phase != Failed || !m.FailedEarly || m.Runs != r.ID || m.Runs == "" {
			continue
		}
		f := find(r.Failures, m)
		switch {
		case f < 0 && len(r.Failures) >= MaxFailures:
			continue
		case f < 0:
			r.Failures = append(slices.Clip(r.Failures), Failure{ID: m.ID, Index: m.Index})
			f = len(r.Failures) - 1
		case r.Failures[f].Incarnation >= m.Incarnation:
			continue
		default:
			r.Failures = slices.Clone(r.Failures)
		}
		r.Failures[f].Incarnation, r.Failures[f].At = m.Incarnation, m.PhaseSince
		r.Failures[f].Count++
		r.Failures[f].Forgiven, r.Failures[f].Message = false, m.Message
		r.Failed++
		q.note(Action{Kind: RecordFailure, Index: m.Index, Revision: r.ID, Why: WhyEarlyFailure}, r)
	}
}

// find is where the slot's failure stands, or -1.
func find(list []Failure, m *Member) int {
	return slices.IndexFunc(list, func(f Failure) bool { return f.Index == m.Index && f.ID == m.ID })
}

// recover forgives what has recovered. Where there is a revision to fall back
// to, one recovery forgives all: it shows that the revision can work.
// Otherwise each slot is forgiven by itself, so that the others keep their
// backoff. What is forgiven is dropped once its incarnation has passed.
func (q *pass) recover(r *Record) {
	whole := r == &q.target && q.current.ID != q.target.ID
	recovered := slices.ContainsFunc(r.Failures, func(f Failure) bool { return !f.Forgiven && q.hasRecovered(r, f) })
	skipped := slices.ContainsFunc(r.Failures, func(f Failure) bool { return !f.Forgiven && q.skips(f) })
	keep := make([]Failure, 0, len(r.Failures))
	for _, f := range r.Failures {
		f.Forgiven = f.Forgiven || q.skips(f) || recovered && (whole || q.hasRecovered(r, f))
		if !f.Forgiven || q.stillFailed(r, f) {
			keep = append(keep, f)
		}
	}
	if !recovered && !skipped && len(keep) == len(r.Failures) {
		return
	}
	r.Failures = keep
	q.note(Action{Kind: Recover, Revision: r.ID, Why: WhyRecovered}, r)
}

// when is the time of the failure, or long ago if a clock that was ahead wrote it.
func (f *Failure) when(now time.Time) time.Time {
	if f.At.After(now) {
		return time.Time{}
	}
	return f.At
}

// skips tells whether somebody gave up on the slot that failed.
func (q *pass) skips(f Failure) bool {
	m := q.member(f.Index)
	return m != nil && m.ID == f.ID && m.Skipped
}

// stillFailed tells whether the incarnation that was counted is still there, so
// that it could be counted again.
func (q *pass) stillFailed(r *Record, f Failure) bool {
	m := q.member(f.Index)
	return m != nil && m.ID == f.ID && m.Incarnation == f.Incarnation && m.Runs == r.ID
}

// hasRecovered tells whether a body of the revision has been in service for
// long enough in the slot that failed, since it did. If that slot is gone, any
// body of the target that was born later will do; a failure of another
// revision goes with its slot.
func (q *pass) hasRecovered(r *Record, f Failure) bool {
	m := q.member(f.Index)
	if m == nil || m.ID != f.ID {
		if r.ID != q.target.ID || q.l.provenBorn.After(f.when(q.now)) {
			return true
		}
		q.wake(q.unproven)
		return false
	}
	if !m.InService() || m.Runs != r.ID || !m.ServedSince.After(f.when(q.now)) {
		return false
	}
	at := m.ServedSince.Add(q.s.Policy.RecoverAfter())
	if q.now.Before(at) {
		q.wake(at)
		return false
	}
	return true
}

// stand makes the target the current revision once the whole pool, of one
// member at least, is on it and has recovered.
func (q *pass) stand() {
	if q.current.ID == q.target.ID || q.halted || q.failing || q.l.leaving > 0 {
		return
	}
	n := q.l.slots + q.l.onTop
	if n == 0 || q.l.slots < q.s.Policy.Desired || q.plan.Counts.Updated < n {
		return
	}
	if q.l.proven < n {
		if q.plan.Counts.InService >= n {
			q.wake(q.unproven)
		}
		return
	}
	q.target.Failures, q.target.Failed = nil, 0
	q.note(Action{Kind: Stand, Revision: q.target.ID, Why: WhyWholePool}, &q.target)
}

// note adds an action on a revision, with its record as it is now.
func (q *pass) note(a Action, r *Record) {
	c := *r
	a.Record = &c
	q.plan.Actions = append(q.plan.Actions, a)
}

// backoff is when the slot may try the revision again, on which it failed.
func (q *pass) backoff(m *Member) (ready bool) {
	for _, r := range []*Record{&q.target, &q.current} {
		if r.ID != m.Runs {
			continue
		}
		if f := find(r.Failures, m); f >= 0 {
			at := r.Failures[f].when(q.now).Add(BackoffAfter(r.Failures[f].Count))
			if q.now.Before(at) {
				q.wake(at)
				return false
			}
		}
		return true
	}
	return true
}

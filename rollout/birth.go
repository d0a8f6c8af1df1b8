package rollout

// Which slot is on probation, where it is not an index.
const (
	nobody = -1
	// anybody: the next slot that asks. All that failed are gone or back.
	anybody = -2
)

// birth is the one function that answers which revision may be born in the
// slot now; empty means none, and the slot waits.
//
// It is the target, but
//   - the current revision, if somebody gave up on bringing the slot to the
//     target;
//   - the current revision, if otherwise fewer slots than the partition stayed
//     off the target;
//   - the current revision, while the target is halted or has a failure that
//     has not recovered, except for the one slot on probation;
//   - none, if what is to be born cannot be built, or if the slot is above the
//     ceiling, and stays only because somebody holds it.
func (q *pass) birth(m *Member) Revision {
	r := q.choose(m)
	if r.Missing || m.Held && q.above() {
		return ""
	}
	return r.ID
}

// starve notes that a slot waits for a revision that cannot be built.
func (q *pass) starve(m *Member) {
	if r := q.choose(m); r.Missing {
		q.unbuildable = r.ID
	}
}

func (q *pass) choose(m *Member) *Record {
	t, c := &q.target, &q.current
	if c.ID == "" || c.ID == t.ID {
		return t
	}
	others := q.l.off
	if m.ID != "" && q.off(m) {
		others--
	}
	switch {
	case m.Skipped:
		return c
	case others < q.partition():
		return c
	case !q.mayTry(m):
		return c
	}
	return t
}

// onProbation tells whether the slot is the one that may try the target
// although it has failed.
func (q *pass) onProbation(m *Member) bool {
	if q.probation == anybody {
		q.probation = m.Index
	}
	return q.probation == m.Index
}

// findProbation chooses the slot that failed first, of those that may still
// recover; if there is none, one that tries the target already; else anybody.
func (q *pass) findProbation() {
	q.probation = nobody
	if !q.failing {
		return
	}
	for i := range q.target.Failures {
		f := &q.target.Failures[i]
		m := q.member(f.Index)
		if !f.Forgiven && m != nil && m.ID == f.ID && !m.leaving() && m.triable() && (!m.InService() || m.Runs == q.target.ID) {
			q.probation = f.Index
			return
		}
	}
	for i := range q.s.Members {
		if m := &q.s.Members[i]; q.tries(m) {
			q.probation = m.Index
			return
		}
	}
	q.probation = anybody
}

// triable tells whether anything can be tried in the slot now: nobody keeps it
// as it is.
func (m *Member) triable() bool {
	return !m.Skipped && !m.Stuck && (m.lost() || !m.Held && !m.busy())
}

// tries tells whether the slot is to get a body of the target, or has one that
// has not recovered yet.
func (q *pass) tries(m *Member) bool {
	switch {
	case m.leaving() || m.Phase == Quarantined || m.Skipped:
		return false
	case m.unborn():
		return m.Wants == q.target.ID
	default:
		return m.Body && m.Runs == q.target.ID && m.Phase != Failed && (!m.served() || m.ServedSince.After(q.cutoff))
	}
}

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

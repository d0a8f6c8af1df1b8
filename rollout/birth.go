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
//   - the current revision, if otherwise fewer slots than the partition stayed
//     off the target;
//   - the current revision, while the target is halted or has a failure that
//     has not recovered, except for the one slot on probation;
//   - none, if what is to be born cannot be built.
func (q *pass) birth(m *Member) Revision {
	r := q.choose(m)
	if r.Missing {
		return ""
	}
	return r.ID
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
	case others < q.s.Policy.Partition:
		return c
	case q.halted:
		return c
	case q.failing && !q.onProbation(m):
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

// findProbation chooses the slot that failed first, of those that are still
// there and not back in service.
func (q *pass) findProbation() {
	q.probation = nobody
	if !q.failing {
		return
	}
	for i := range q.target.Failures {
		f := &q.target.Failures[i]
		if m := q.member(f.Index); m != nil && m.ID == f.ID && !m.leaving() && !m.InService() {
			q.probation = f.Index
			return
		}
	}
	q.probation = anybody
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

//go:build mutant

package rollout

import (
	"os"
	"strconv"
)

// broken is the rule that is broken in this process; 0 for none. See rules.go.
var broken = func() int {
	n, err := strconv.Atoi(os.Getenv("PAWL_MUTANT"))
	if err != nil {
		return 0
	}
	return n
}()

// Rule 1, broken: work that runs and holds are overlooked.
func (m *Member) nobodys() bool {
	return !m.Claimed && (broken == 1 || m.Occupancy == Idle && !m.Held)
}

// Rule 2, broken: what could not be read is taken for what there is.
func (q *pass) readable() bool {
	return broken == 2 || q.s.Unreadable == "" && !q.s.WritesUnseen
}

// Rule 3, broken: all that is down is condemned at once.
func (q *pass) repairRoom() int {
	if broken == 3 {
		return len(q.s.Members)
	}
	return q.s.Policy.MaxInFlight - q.l.repairing
}

// Rule 4, broken: slots between two bodies are forgotten.
func (q *pass) room() int {
	if broken == 4 {
		return q.l.up + q.l.unborn - (q.s.Policy.Desired - q.s.Policy.MaxUnavailable)
	}
	return q.l.up - (q.s.Policy.Desired - q.s.Policy.MaxUnavailable)
}

// Rule 5, broken: whoever is born gets the target.
func (q *pass) mayTry(m *Member) bool {
	return broken == 5 || !q.halted && (!q.failing || q.onProbation(m))
}

// Rule 6, broken: the size waits until the rollout is done.
func (q *pass) resize() {
	q.surplus = q.surgeAllowed()
	if broken == 6 && q.gate == "" && q.work() > 0 {
		return
	}
	if q.l.slots < q.desired() {
		q.refill()
	} else if n := q.excess() - q.surplus; n > 0 {
		q.shrink(n)
	}
}

// Rule 7, broken: surge is whatever maxSurge says.
func (q *pass) surgeRoom() int {
	if broken == 7 {
		return q.surgeMost()
	}
	return min(q.surgeMost(), q.work())
}

// Rule 8, broken: a stale member that cannot be taken hides those behind it.
func (q *pass) lowest(n int, qualifies func(*Member) bool) []int {
	var list []int
	for i := range q.s.Members {
		m := &q.s.Members[i]
		if len(list) >= n {
			break
		}
		if qualifies(m) {
			list = append(list, i)
		} else if broken == 8 && m.InService() && q.bearing(m) == stale {
			break
		}
	}
	return list
}

// Rule 9, broken: what drains goes, whatever is wanted meanwhile.
func (q *pass) matches(m *Member) bool {
	switch {
	case broken == 9:
		return false
	case m.Runs == q.target.ID:
		return m.served() || q.birth(m) == m.Runs
	}
	return m.Runs != "" && m.Runs == q.current.ID && q.l.off < q.partition()
}

// Rule 10, broken: the highest index goes, in service or not.
func (q *pass) goesBefore(a, b *Member) bool {
	if broken == 10 {
		return a.Index > b.Index
	}
	if x, y := a.InService(), b.InService(); x != y {
		return !x
	}
	if x, y := q.off(a), q.off(b); x != y {
		return x
	}
	return a.Index > b.Index
}

// Rule 11, broken: what is not in service yet is made once more.
func (q *pass) missing() int {
	if broken == 11 {
		return q.desired() - q.l.up - q.made
	}
	return q.desired() - q.l.slots - q.l.returning
}

// Rule 12, broken: maxUnavailable rounds up.
func (s Share) Down(n int) int {
	switch {
	case !s.Percent:
		return s.N
	case broken == 12:
		return (s.N*n + 99) / 100
	}
	return s.N * n / 100
}

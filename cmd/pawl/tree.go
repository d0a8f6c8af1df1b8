package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/snapshot"
)

// manyMembers is the number of members beyond which they are summed up.
const manyMembers = 50

// tree is a pool and its members as a person reads them.
type tree struct {
	pool    *v1alpha1.Pool
	members []*v1alpha1.Member
	// claims are those whose holder may have been asked to give a member back.
	claims []*v1alpha1.Claim
	now    time.Time
	// all members are told one by one, however many there are; summed: none is.
	all, summed bool
}

// String is the pool's line, what comes next, and the members below it.
func (t *tree) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pool %s/%s: %s\n", t.pool.Namespace, t.pool.Name, t.numbers())
	for _, line := range slices.Concat(remarks(t.pool, t.now), asides(t.pool, t.members, t.now), asked(t.claims)) {
		fmt.Fprintf(&b, "│ %s\n", line)
	}
	if len(t.members) == 0 {
		b.WriteString("└─ no members\n")
		return b.String()
	}
	rows := t.rows()
	lines := strings.Split(strings.TrimSuffix(aligned(rows), "\n"), "\n")
	fmt.Fprintf(&b, "│  %s\n", lines[0])
	for i, line := range lines[1:] {
		branch := "├─ "
		if i == len(lines)-2 {
			branch = "└─ "
		}
		b.WriteString(branch + line + "\n")
	}
	return b.String()
}

// numbers are the recorded ones, but for what can be seen of the members here:
// the two must not contradict each other on one screen.
func (t *tree) numbers() numbers {
	n := recorded(t.pool)
	n.free, n.claimed = 0, 0
	for _, m := range t.members {
		slot := snapshot.Member(m, time.Time{})
		if slot.Free() {
			n.free++
		}
		if slot.Claimed {
			n.claimed++
		}
	}
	return n
}

// numbers are what a person wants to know of a pool first.
type numbers struct {
	updated, total, free, claimed, rolling int
	unknown, surge, failed, waiting        int
	// state is the reason of the Updated condition.
	state string
}

// recorded are the numbers as the pool's status has them, up to a second old.
func recorded(p *v1alpha1.Pool) numbers {
	st := &p.Status
	updated, total := progress(p)
	n := numbers{
		updated: updated, total: total, free: int(st.Free), claimed: int(st.Claimed), rolling: int(st.Rolling),
		unknown: int(st.Unknown), surge: int(st.Surge), failed: int(st.Failed), waiting: int(st.WaitingClaims),
	}
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionUpdated); c != nil {
		n.state = c.Reason
	}
	return n
}

func (n numbers) String() string {
	parts := []string{fmt.Sprintf("%d of %d updated, %d free, %d claimed, %d rolling", n.updated, n.total, n.free, n.claimed, n.rolling)}
	for _, more := range []struct {
		count     int
		one, many string
	}{
		{n.unknown, "of unknown revision", "of unknown revision"}, {n.surge, "surge", "surge"},
		{n.failed, "failed", "failed"}, {n.waiting, "claim waits", "claims wait"},
	} {
		switch {
		case more.count == 1:
			parts = append(parts, "1 "+more.one)
		case more.count > 1:
			parts = append(parts, fmt.Sprintf("%d %s", more.count, more.many))
		}
	}
	line := strings.Join(parts, ", ")
	if n.state != "" {
		line += "; " + n.state
	}
	return line
}

// progress is how many members are on the target, and how many there are.
func progress(p *v1alpha1.Pool) (updated, total int) {
	if r := p.Status.Rollout; r != nil {
		return int(r.Updated), int(r.Total)
	}
	return int(p.Status.Updated), int(p.Status.Replicas)
}

// rows are the members as a table, its head first.
func (t *tree) rows() [][]string {
	if t.summed || len(t.members) > manyMembers && !t.all {
		return groups(t.members)
	}
	rows := [][]string{{"MEMBER", "PHASE", "REVISION", "CLAIM", "REASON", "ADDRESS"}}
	for _, m := range t.members {
		rows = append(rows, []string{
			m.Name, phase(m), runs(m), holder(m), reason(m), orDash(m.Status.Address),
		})
	}
	return rows
}

// groups sums members up that are in the same state.
func groups(members []*v1alpha1.Member) [][]string {
	type state struct{ phase, revision, reason string }
	count, example := map[state]int{}, map[state]string{}
	var states []state
	for _, m := range members {
		s := state{phase(m), runs(m), reason(m)}
		if count[s] == 0 {
			states, example[s] = append(states, s), m.Name
		}
		count[s]++
	}
	slices.SortStableFunc(states, func(a, b state) int { return cmp.Compare(count[b], count[a]) })
	rows := [][]string{{"MEMBERS", "PHASE", "REVISION", "REASON", "EXAMPLE"}}
	for _, s := range states {
		rows = append(rows, []string{fmt.Sprint(count[s]), s.phase, s.revision, s.reason, example[s]})
	}
	return rows
}

func phase(m *v1alpha1.Member) string {
	if m.Status.Phase == "" {
		return string(v1alpha1.PhasePending)
	}
	return string(m.Status.Phase)
}

// runs is the revision of a member's body; a slot without one remembers that of
// its last.
func runs(m *v1alpha1.Member) string {
	if m.Status.BodyUID == "" {
		return "-"
	}
	return orDash(m.Status.Revision)
}

// holder is the claim that a member has, and whose it is.
func holder(m *v1alpha1.Member) string {
	c := m.Spec.Claim
	switch {
	case c == nil:
		return "-"
	case c.Holder == "":
		return c.Name
	}
	return fmt.Sprintf("%s (%s)", c.Name, c.Holder)
}

// reason is why a member goes, or else what keeps it from being updated.
func reason(m *v1alpha1.Member) string {
	if d := disruption(m); d != nil {
		return string(d.Reason)
	}
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdated)
	if c == nil || c.Status == metav1.ConditionTrue || m.Status.BodyUID == "" {
		return "-"
	}
	return c.Reason
}

// disruption is the member's, unless it is spent.
func disruption(m *v1alpha1.Member) *v1alpha1.Disruption {
	if d := m.Spec.Disruption; d != nil && d.Incarnation >= m.Status.Incarnation {
		return d
	}
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// aligned sets rows in columns, one line each.
func aligned(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a strings.Builder takes everything
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ") // the last cell may be empty
	}
	return strings.Join(lines, "\n")
}

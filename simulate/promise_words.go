package simulate

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/pawl-dev/pawl/rollout"
)

// figures are the numbers in a pool's sentences: a pattern, and a check of its
// numbers.
var figures = []struct {
	says *regexp.Regexp
	is   func(*wording, []int) bool
}{
	{regexp.MustCompile(`\bmember (\d+)`), func(r *wording, n []int) bool { return r.known(n[0]) }},
	{regexp.MustCompile(`(\d+) of (\d+) updated`), func(r *wording, n []int) bool {
		return n[0] == r.count(r.updated) && n[1] == len(r.s.Members)
	}},
	{regexp.MustCompile(`updated; of the others, member \d+ and (\d+) more`), func(r *wording, n []int) bool { return n[0]+1 <= r.count(r.stale) }},
	{regexp.MustCompile(`, and (\d+) more out of service`), func(r *wording, n []int) bool { return n[0]+1 == r.count(r.out) }},
	{regexp.MustCompile(`what some members run: (\d+) members?`), func(r *wording, n []int) bool {
		return n[0] == r.count(func(m *rollout.Member) bool { return m.Body && m.Runs == "" && m.Phase != rollout.Quarantined })
	}},
	{regexp.MustCompile(`^(\d+) members? (?:is|are) not on revision`), func(r *wording, n []int) bool { return n[0] > 0 && n[0] == r.count(r.stale) }},
	{regexp.MustCompile(`(\d+) members? (?:is|are) more than the size asks for`), func(r *wording, n []int) bool { return n[0] <= len(r.s.Members) }},
	{regexp.MustCompile(`the pool is deleted; (\d+) members? stays?`), func(r *wording, n []int) bool { return n[0] <= len(r.s.Members) }},
	{regexp.MustCompile(`^(?:nothing to do: )?all but (\d+) members? (?:is|are) on revision`), func(r *wording, n []int) bool {
		stay := func(m *rollout.Member) bool { return r.stays(m) && m.Phase != rollout.Quarantined }
		off := r.count(func(m *rollout.Member) bool { return stay(m) && m.Body && !r.updated(m) })
		made := 0
		for i := range r.plan.Actions {
			if r.plan.Actions[i].Kind == rollout.CreateSlot {
				made++
			}
		}
		return off <= n[0] && n[0] <= made+off+r.count(func(m *rollout.Member) bool { return stay(m) && !m.Body })
	}},
	{regexp.MustCompile(`^(\d+) bod(?:y|ies) of revision \S+ failed, in (\d+) slots?`), func(r *wording, n []int) bool {
		return slices.ContainsFunc(r.records, func(f *rollout.Record) bool { return f.Failed == n[0] && failedSlots(f) == n[1] })
	}},
}

// wording has the input of the plan, and the records as the plan leaves them.
type wording struct {
	s       *rollout.Snapshot
	plan    *rollout.Plan
	records []*rollout.Record
}

// checkWording checks the sentences of a plan: the numbers have to be those of the
// members that the controller saw, and named members have to exist. A sentence that
// is repeated while reads fail was checked before.
func (j *judge) checkWording(p *pool, s *rollout.Snapshot, plan *rollout.Plan) {
	r := &wording{s: s, plan: plan, records: []*rollout.Record{&s.Target, &s.RolledBack}}
	for i := range plan.Actions {
		if a := &plan.Actions[i]; a.Record != nil {
			r.records = append(r.records, a.Record)
		}
	}
	st := &p.status
	r.check(j, p, plan.Next, st.next)
	for i, c := range []rollout.Condition{plan.Ready, plan.Reconciling, plan.Stalled, plan.Updated, plan.Available} {
		r.check(j, p, c.Message, st.conditions[i].Message)
	}
}

func (r *wording) check(j *judge, p *pool, text, before string) {
	if text == "" || text == before && r.s.Unreadable != "" {
		return
	}
	for i := range figures {
		for _, found := range figures[i].says.FindAllStringSubmatch(text, -1) {
			var list []int
			for _, digits := range found[1:] {
				n, err := strconv.Atoi(digits)
				if err != nil {
					j.breakPromise("%s writes an invalid number: %s", p.name, text)
					return
				}
				list = append(list, n)
			}
			if !figures[i].is(r, list) {
				j.breakPromise("%s writes %q, which is wrong: %s", p.name, found[0], text)
			}
		}
	}
}

// known reports whether the index is that of a member in the snapshot, of one that
// the plan makes, or of a recorded failure.
func (r *wording) known(index int) bool {
	_, ok := slices.BinarySearchFunc(r.s.Members, index, func(m rollout.Member, i int) int { return m.Index - i })
	made := func(a rollout.Action) bool { return a.Kind == rollout.CreateSlot && a.Index == index }
	failed := func(f *rollout.Record) bool {
		return slices.ContainsFunc(f.Failures, func(f rollout.Failure) bool { return f.Index == index })
	}
	return ok || slices.ContainsFunc(r.plan.Actions, made) || slices.ContainsFunc(r.records, failed)
}

func (r *wording) count(is func(*rollout.Member) bool) (n int) {
	for i := range r.s.Members {
		if is(&r.s.Members[i]) {
			n++
		}
	}
	return n
}

func (r *wording) updated(m *rollout.Member) bool {
	return m.Body && m.Phase != rollout.Quarantined && m.Runs == r.s.Target.ID
}

// stale reports whether the member's body is not on the target. A body of unknown
// revision is stale unless it was adopted.
func (r *wording) stale(m *rollout.Member) bool {
	if !m.Body || m.Phase == rollout.Quarantined || m.Runs == r.s.Target.ID {
		return false
	}
	return m.Runs != "" || r.s.Policy.ReplaceUnknown || m.Wants != "" && m.Wants != r.s.Target.ID
}

// stays reports whether the member stays once the plan is carried out.
func (r *wording) stays(m *rollout.Member) bool {
	stays := !r.leaving(m)
	for i := range r.plan.Actions {
		switch a := &r.plan.Actions[i]; {
		case a.Record != nil || a.Index != m.Index:
		case a.Kind == rollout.Disrupt:
			stays = stays && !a.Disruption.Remove
		case a.Kind == rollout.Undo:
			stays = !m.Deleting
		}
	}
	return stays
}

func (r *wording) leaving(m *rollout.Member) bool {
	d := &m.Disruption
	return m.Deleting || d.Cause != rollout.NoCause && d.Incarnation == m.Incarnation && d.Remove
}

// out reports whether the member should be in service and is not.
func (r *wording) out(m *rollout.Member) bool {
	return !m.InService() && !r.leaving(m) && m.Phase != rollout.Quarantined
}

func failedSlots(r *rollout.Record) (n int) {
	for i := range r.Failures {
		if r.Failures[i].Count > 0 {
			n++
		}
	}
	return n
}

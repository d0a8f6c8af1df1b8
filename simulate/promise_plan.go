package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// This file has the promises about conditions and wake times of plans.

// checkStalled checks that a pool is not Stalled too early: a member must have been
// on its way for progressDeadline and minReadySeconds, and none may have come into
// service for the first time meanwhile.
func (j *judge) checkStalled(p *pool, plan *rollout.Plan) {
	if plan.Stalled.Status != rollout.True || plan.Stalled.Reason != "ProgressDeadlineExceeded" {
		return
	}
	spec := p.planner.cache.spec
	if p.late(p.slots, p.spec) || p.late(p.planner.cache.slots, spec) {
		return
	}
	j.breakPromise("%s is Stalled too early: no member has been on its way for %s while none came into service: %s",
		p.name, spec.policy.ProgressDeadline+spec.policy.MinReady, plan.Stalled.Message)
}

// late reports whether a member has been on its way into service for longer than
// the deadline, and none has come into service for the first time meanwhile.
func (p *pool) late(list slots, spec *specRecord) bool {
	now := p.w.clock()
	last := now - spec.policy.ProgressDeadline - spec.policy.MinReady
	on := false
	for _, s := range list {
		if s.watch.arrived > last {
			return false
		}
		on = on || !s.inService() && !s.leaves() && !p.kept(s) && s.watch.away <= last
	}
	return on
}

// checkWake checks one in checkOneIn plans, and one in checkOneInLarge of a large
// pool.
const checkOneIn, checkOneInLarge = 6, 100

// checkWake checks for some plans that time alone does not change the plan before
// its wake time.
func (j *judge) checkWake(p *pool, s *rollout.Snapshot, plan *rollout.Plan) {
	n := checkOneIn
	if len(s.Members) >= largePool {
		n = checkOneInLarge
	}
	if j.rng.IntN(n) != 0 || ahead(&s.Target, j.w.time()) {
		return
	}
	later := 24 * time.Hour
	if !plan.Wake.IsZero() {
		later = plan.Wake.Sub(j.w.time())
	}
	if later <= 1 {
		return
	}
	if j.rng.IntN(2) == 0 {
		later-- // the last instant before it
	} else {
		later = time.Duration(j.rng.Int64N(int64(later)))
	}
	if what := planDifference(plan, s.Plan(j.w.time().Add(later))); what != "" {
		wake := "never"
		if !plan.Wake.IsZero() {
			wake = j.w.since(plan.Wake).String()
		}
		j.breakPromise("%s later, before its wake time (%s), the plan for %s is another one: %s", later, wake, p.name, what)
	}
}

// ahead reports whether a clock that was ahead wrote the record. A plan corrects
// such times at each call.
func ahead(r *rollout.Record, now time.Time) bool {
	return r.Since.After(now) || r.Counted.After(now) ||
		slices.ContainsFunc(r.Failures, func(f rollout.Failure) bool { return f.At.After(now) })
}

// planDifference names the first difference of two plans for one snapshot, other
// than times; empty for none.
func planDifference(a, b *rollout.Plan) string {
	is := []struct {
		what          string
		first, second any
	}{
		{"Updated", a.Updated, b.Updated}, {"Ready", a.Ready, b.Ready}, {"Reconciling", a.Reconciling, b.Reconciling},
		{"Stalled", a.Stalled, b.Stalled}, {"Available", a.Available, b.Available}, {"the sentence", a.Next, b.Next},
		{"the surge", a.Surge, b.Surge}, {"the size", a.Size, b.Size}, {"the counts", a.Counts, b.Counts},
	}
	for i := range is {
		if d := &is[i]; d.first != d.second {
			return fmt.Sprintf("%s changes from %v to %v", d.what, d.first, d.second)
		}
	}
	if !slices.Equal(a.Blockers, b.Blockers) {
		return fmt.Sprintf("blockers change from %v to %v", a.Blockers, b.Blockers)
	}
	if !slices.EqualFunc(a.Actions, b.Actions, sameAction) {
		return fmt.Sprintf("actions change from %s to %s", kinds(a.Actions), kinds(b.Actions))
	}
	return ""
}

// sameAction reports whether two actions are equal except for times.
func sameAction(a, b rollout.Action) bool {
	x, y := a.Record, b.Record
	a.Record, b.Record = nil, nil
	a.Disruption.Since, b.Disruption.Since = time.Time{}, time.Time{}
	return a == b && (x == nil) == (y == nil) && (x == nil || sameRecord(x, y))
}

// sameRecord compares records of a revision without the number of recovered bodies,
// which depends on the time of counting.
func sameRecord(a, b *rollout.Record) bool {
	return a.ID == b.ID && a.Failed == b.Failed && a.Halted == b.Halted && a.RolledBack == b.RolledBack &&
		slices.EqualFunc(a.Failures, b.Failures, func(x, y rollout.Failure) bool {
			x.At, y.At = time.Time{}, time.Time{}
			return x == y
		})
}

func kinds(list []rollout.Action) string {
	out := []string{}
	for i := range list {
		a := &list[i]
		out = append(out, fmt.Sprintf("%s %d %s (%s)", a.Kind, a.Index, a.Revision, a.Why))
	}
	return fmt.Sprint(out)
}

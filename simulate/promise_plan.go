package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// What follows are promises about what a plan says, beside what it does.

// stalls checks that a pool is not called stalled before its time: for as long
// as progressDeadline and minReadySeconds some member has been on its way, and
// none has come newly into service.
func (j *judge) stalls(p *pool, plan *rollout.Plan) {
	if plan.Stalled.Status != rollout.True || plan.Stalled.Reason != "ProgressDeadlineExceeded" {
		return
	}
	spec := p.planner.cache.spec
	if p.late(p.slots, p.spec) || p.late(p.planner.cache.slots, spec) {
		return
	}
	j.promise("%s is called stalled, and no member has been on its way for %s without another one that came into service: %s",
		p.name, spec.policy.ProgressDeadline+spec.policy.MinReady, plan.Stalled.Message)
}

// late reports whether a member has been on its way into service for longer than
// it may, and none has come newly into service meanwhile.
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

// oftenLarge is one in how many plans for a large pool is made again, and often
// for any other.
const often, oftenLarge = 6, 100

// lasts checks, now and then, that time alone changes nothing between a plan and
// the time at which it asks to be made anew.
func (j *judge) lasts(p *pool, s *rollout.Snapshot, plan *rollout.Plan) {
	n := often
	if len(s.Members) >= largePool {
		n = oftenLarge
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
		later-- // the very last instant
	} else {
		later = time.Duration(j.rng.Int64N(int64(later)))
	}
	again := s.Plan(j.w.time().Add(later))
	if what := differs(plan, again); what != "" {
		wake := "never"
		if !plan.Wake.IsZero() {
			wake = j.w.since(plan.Wake).String()
		}
		j.promise("%s later, before the plan for %s asks to be made again (%s), it is another one: %s", later, p.name, wake, what)
	}
}

// ahead reports whether a clock that was ahead wrote the record: the plan corrects
// it, as long as that is so.
func ahead(r *rollout.Record, now time.Time) bool {
	return r.Since.After(now) || r.Counted.After(now) ||
		slices.ContainsFunc(r.Failures, func(f rollout.Failure) bool { return f.At.After(now) })
}

// differs says in what two plans for one snapshot differ, but for times; empty
// for nothing.
func differs(a, b *rollout.Plan) string {
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
			return fmt.Sprintf("%s is %v, and was %v", d.what, d.second, d.first)
		}
	}
	if !slices.Equal(a.Blockers, b.Blockers) {
		return fmt.Sprintf("blockers are %v, and were %v", b.Blockers, a.Blockers)
	}
	if !slices.EqualFunc(a.Actions, b.Actions, sameAction) {
		return fmt.Sprintf("actions are %s, and were %s", kinds(b.Actions), kinds(a.Actions))
	}
	return ""
}

// sameAction reports whether two actions differ in nothing but times.
func sameAction(a, b rollout.Action) bool {
	x, y := a.Record, b.Record
	a.Record, b.Record = nil, nil
	a.Disruption.Since, b.Disruption.Since = time.Time{}, time.Time{}
	return a == b && (x == nil) == (y == nil) && (x == nil || sameRecord(x, y))
}

// sameRecord compares what is to be stored of a revision. How many bodies have
// recovered depends on the time at which they are counted.
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

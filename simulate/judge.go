package simulate

import (
	"fmt"
	"slices"
	"time"
)

// judge watches a world: it sees to it that what the scenario expects holds,
// and what Pawl promises anyhow; and it has entries happen that wait for an
// expression.
//
// It looks after every single write, and after every change of a body: what
// lies between two writes at one instant is a state that others can read.
// What users do at one instant is one edit, and only its end is looked at.
type judge struct {
	w        *world
	failures []Failure
	// always and never are the expectations that have held so far.
	always, never []*expression
	within        []deadline
	at            []timed
	waiting       []trigger
	observing     bool
	promises      promises
	// stop ends the run: something is so wrong that it makes no sense to go on.
	stop bool
}

// deadline is an expression that has to be true once before its time.
type deadline struct {
	timed
	met bool
}

// trigger is an entry that waits for its expression.
type trigger struct {
	entry *entry
	left  int
	// on: the expression was true when it was looked at last.
	on bool
}

func newJudge(w *world) *judge {
	x := &w.scn.expect
	j := &judge{w: w, always: slices.Clone(x.always), never: slices.Clone(x.never), at: slices.Clone(x.at)}
	for _, t := range x.within {
		j.within = append(j.within, deadline{timed: t})
	}
	slices.SortStableFunc(j.at, func(a, b timed) int { return int(a.at - b.at) })
	for i := range w.scn.timeline {
		if e := &w.scn.timeline[i]; e.when != nil {
			j.waiting = append(j.waiting, trigger{entry: e, left: e.repeat})
		}
	}
	return j
}

// moments are the times at which time alone may change what holds.
func (j *judge) moments() []time.Duration {
	var list []time.Duration
	add := func(e *expression) {
		for _, s := range e.moments {
			list = append(list, time.Duration(s)*time.Second)
		}
	}
	x := &j.w.scn.expect
	for _, l := range [][]*expression{x.always, x.never} {
		for _, e := range l {
			add(e)
		}
	}
	for _, t := range append(slices.Clone(x.at), x.within...) {
		list = append(list, t.at)
	}
	for _, t := range x.within {
		add(t.e)
	}
	for _, t := range j.waiting {
		add(t.entry.when)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// observe looks at the world as it is now.
func (j *judge) observe() {
	if j.observing {
		return
	}
	j.observing = true
	defer func() { j.observing = false }()
	j.always = j.keep("always", j.always, true)
	j.never = j.keep("never", j.never, false)
	for i := range j.within {
		if d := &j.within[i]; !d.met && j.w.now <= d.at {
			d.met, _ = d.e.holds(j.w)
		}
	}
	for i := range j.waiting {
		j.trip(&j.waiting[i])
	}
}

// keep looks at expectations for all times, and drops those that are broken.
func (j *judge) keep(kind string, list []*expression, want bool) []*expression {
	for i := 0; i < len(list); {
		is, err := list[i].holds(j.w)
		if err == nil && is == want {
			i++
			continue
		}
		j.broke(kind, list[i], err)
		list = slices.Delete(list, i, i+1)
	}
	return list
}

// trip has an entry happen if its expression has become true. A crash happens
// there and then, also between two writes of one pass; anything else next.
func (j *judge) trip(t *trigger) {
	if t.left == 0 {
		return
	}
	was := t.on
	t.on, _ = t.entry.when.holds(j.w)
	if !t.on || was {
		return
	}
	t.left--
	happen := func() {
		j.begin()
		t.entry.edit.apply(j.w, j.w.find(t.entry.pool))
	}
	if _, ok := t.entry.edit.(crashEdit); ok {
		happen()
		return
	}
	j.w.first(j.w.now, func() { j.w.atomic(happen) })
}

// begin notes that an entry of the timeline happens: what is expected within
// some time has to come true after it.
func (j *judge) begin() {
	j.disturb()
	for i := range j.within {
		if d := &j.within[i]; j.w.now < d.at {
			d.met = false
		}
	}
}

// pass is told that time goes on to the given instant: nothing more happens in
// this one.
func (j *judge) pass(to time.Duration) {
	for len(j.at) > 0 && j.at[0].at < to {
		t := j.at[0]
		j.at = j.at[1:]
		if ok, err := t.e.holds(j.w); err != nil || !ok {
			j.broke("at "+t.at.String(), t.e, err)
		}
	}
	for i := 0; i < len(j.within); {
		d := &j.within[i]
		if d.at >= to {
			i++
			continue
		}
		if !d.met {
			_, err := d.e.holds(j.w)
			j.broke("within "+d.at.String(), d.e, err)
		}
		j.within = slices.Delete(j.within, i, i+1)
	}
}

// finish looks at what has to hold in the end.
func (j *judge) finish() {
	j.pass(longest + 1)
	x := &j.w.scn.expect
	for _, e := range x.finally {
		if ok, err := e.holds(j.w); err != nil || !ok {
			j.broke("finally", e, err)
		}
	}
	creates, deletes := 0, 0
	var order []int
	for _, p := range j.w.pools {
		creates += p.creates
		deletes += p.deletes
		order = p.order
	}
	j.inSpan("creates", x.creates, creates)
	j.inSpan("deletes", x.deletes, deletes)
	if x.ordered && (len(order) < len(x.order) || !slices.Equal(order[:len(x.order)], x.order)) {
		j.fail("order", fmt.Sprint(x.order), x.orderLine, fmt.Sprintf("it was %v", order))
	}
}

func (j *judge) inSpan(kind string, s *span, n int) {
	if s == nil || n >= s.min && n <= s.max {
		return
	}
	want := itoa(s.min)
	if s.min != s.max {
		want = fmt.Sprintf("from %d to %d", s.min, s.max)
	}
	j.fail(kind, want, s.line, "there were "+itoa(n))
}

func (j *judge) broke(kind string, e *expression, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	j.fail(kind, e.text, e.line, text)
}

// maxFailures is how many failures are worth reading.
const maxFailures = 50

// fail notes that something does not hold.
func (j *judge) fail(kind, expression string, line int, text string) {
	if len(j.failures) >= maxFailures {
		j.stop = true
		return
	}
	f := Failure{At: Time(j.w.now), Kind: kind, Expression: expression, Line: line, Text: text, State: j.w.dump()}
	j.failures = append(j.failures, f)
	j.w.sayFailure(&f)
}

// broken notes that the run cannot go on.
func (j *judge) broken(err error) {
	if !j.stop {
		j.fail("run", "", 0, err.Error())
	}
	j.stop = true
}

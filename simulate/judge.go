package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// judge checks a simulated world against the scenario's expectations and Pawl's
// promises. It also fires the entries that wait for an expression.
//
// It checks after every single write and every change of a body, because others
// can read the state between two writes. An edit by users is checked at its end.
type judge struct {
	*checker

	w        *world
	promises promises
	// rng draws which plans checkWake makes again, and for which time.
	rng *rand.Rand
}

func newJudge(w *world, seed int64) *judge {
	j := &judge{w: w, rng: rand.New(rand.NewPCG(uint64(seed), 0x3c6e))} //nolint:gosec // a seed asks for the same numbers again
	j.checker = newChecker(w.scn, w)
	j.now = func() time.Duration { return w.now }
	j.dump, j.onFailure, j.fire = w.dump, w.sayFailure, j.fireEntry
	return j
}

// fireEntry applies an entry whose expression has become true. A crash happens at
// once, even between two writes of one pass; any other edit as the next event.
func (j *judge) fireEntry(e *entry) {
	apply := func() {
		j.begin()
		e.edit.apply(j.w, j.w.find(e.pool))
	}
	if _, ok := e.edit.(crashEdit); ok {
		apply()
		return
	}
	j.w.first(j.w.now, func() { j.w.atomic(apply) })
}

// pass checks the end of the current instant, before time advances to the given
// one.
func (j *judge) pass(to time.Duration) {
	for _, p := range j.w.pools {
		j.checkCurrent(p, to)
	}
	j.checker.pass(to)
}

// begin notes that an entry of the timeline is applied.
func (j *judge) begin() {
	j.noteDisturbance()
	j.checker.begin()
}

// finish checks the end of the run.
func (j *judge) finish() {
	var end totals
	for _, p := range j.w.pools {
		end.creates += p.creates
		end.deletes += p.deletes
		end.order = p.order
	}
	j.checker.finish(end)
}

// checker checks the expectations of a scenario against pictures.
type checker struct {
	scn *Scenario
	pic picture
	now func() time.Duration
	// slack is how much earlier or later than the file says something may happen;
	// 0 if time is exact.
	slack time.Duration
	// dump describes the state, onFailure is called with each failure, and fire
	// with each entry whose expression has become true.
	dump      func() string
	onFailure func(*Failure)
	fire      func(*entry)

	failures []Failure
	// always and never are the expectations that have held so far.
	always, never []*expression
	within, at    []deadline
	waiting       []trigger
	observing     bool
	// stop ends the run, after too many failures or an error.
	stop bool
}

// deadline is an expression that has to become true by its time, or to be true
// at it.
type deadline struct {
	timed
	met bool
}

// trigger is an entry that waits for its expression.
type trigger struct {
	entry *entry
	left  int
	// on: the expression was true at the last check.
	on bool
}

// totals are the results of a run that expectations count.
type totals struct {
	creates, deletes int
	order            []int
}

func newChecker(s *Scenario, see picture) *checker {
	x := &s.expect
	c := &checker{scn: s, pic: see, always: slices.Clone(x.always), never: slices.Clone(x.never)}
	for _, t := range x.within {
		c.within = append(c.within, deadline{timed: t})
	}
	for _, t := range x.at {
		c.at = append(c.at, deadline{timed: t})
	}
	slices.SortStableFunc(c.at, func(a, b deadline) int { return int(a.at - b.at) })
	for i := range s.timeline {
		if e := &s.timeline[i]; e.when != nil {
			c.waiting = append(c.waiting, trigger{entry: e, left: e.repeat})
		}
	}
	return c
}

// moments returns the times at which time alone may change an expression.
func (c *checker) moments() []time.Duration {
	var list []time.Duration
	add := func(e *expression) {
		for _, s := range e.moments {
			at := time.Duration(s) * time.Second
			list = append(list, at)
			if c.slack > 0 { // from here on the slack allows no other value
				list = append(list, at+c.slack+time.Millisecond)
			}
		}
	}
	x := &c.scn.expect
	for _, l := range [][]*expression{x.always, x.never} {
		for _, e := range l {
			add(e)
		}
	}
	for _, t := range x.at {
		list = append(list, max(0, t.at-c.slack), t.at+c.slack)
	}
	for _, t := range x.within {
		list = append(list, t.at+c.slack)
		add(t.e)
	}
	for _, t := range c.waiting {
		add(t.entry.when)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// observe checks the current picture.
func (c *checker) observe() {
	if c.observing {
		return
	}
	c.observing = true
	defer func() { c.observing = false }()
	c.always = c.checkAll("always", c.always, true)
	c.never = c.checkAll("never", c.never, false)
	now := c.now()
	for i := range c.within {
		if d := &c.within[i]; !d.met && now <= d.at+c.slack {
			d.met, _ = c.hasValue(d.e, true)
		}
	}
	if c.slack > 0 {
		c.observeAround(now)
	}
	for i := range c.waiting {
		c.checkTrigger(&c.waiting[i])
	}
}

// observeAround checks expectations for times that are now within the slack.
func (c *checker) observeAround(now time.Duration) {
	for i := range c.at {
		d := &c.at[i]
		if d.at-c.slack > now {
			return
		}
		if !d.met && now <= d.at+c.slack {
			d.met, _ = c.hasValue(d.e, true)
		}
	}
}

// hasValue reports whether the expression has the value now, or at another second
// within the slack.
func (c *checker) hasValue(e *expression, want bool) (bool, error) {
	v, err := e.holds(c.pic)
	if err != nil || v == want || c.slack == 0 {
		return err == nil && v == want, err
	}
	now := c.now()
	for _, s := range e.moments {
		if d := now - time.Duration(s)*time.Second; d < -c.slack || d > c.slack {
			continue
		}
		for _, s := range []int64{s - 1, s} {
			if v, err := e.holds(atSecond{c.pic, s}); err == nil && v == want {
				return true, nil
			}
		}
	}
	return false, nil
}

// atSecond is a picture with another time.
type atSecond struct {
	picture

	t int64
}

func (p atSecond) seconds() int64 { return p.t }

// checkAll checks expectations for all times, and returns those that still hold.
func (c *checker) checkAll(kind string, list []*expression, want bool) []*expression {
	for i := 0; i < len(list); {
		ok, err := c.hasValue(list[i], want)
		if ok {
			i++
			continue
		}
		c.failExpectation(kind, list[i], err)
		list = slices.Delete(list, i, i+1)
	}
	return list
}

// checkTrigger fires an entry if its expression has become true.
func (c *checker) checkTrigger(t *trigger) {
	if t.left == 0 {
		return
	}
	was := t.on
	t.on, _ = t.entry.when.holds(c.pic)
	if !t.on || was {
		return
	}
	t.left--
	c.fire(t.entry)
}

// begin notes that an entry of the timeline is applied: `within` has to become
// true after it.
func (c *checker) begin() {
	for i := range c.within {
		if d := &c.within[i]; c.now() < d.at {
			d.met = false
		}
	}
}

// pass checks deadlines before time advances to the given instant: no more events
// happen at the current one.
func (c *checker) pass(to time.Duration) {
	for len(c.at) > 0 && c.at[0].at+c.slack < to {
		d := c.at[0]
		c.at = c.at[1:]
		if d.met {
			continue
		}
		if ok, err := c.hasValue(d.e, true); err != nil || !ok {
			c.failExpectation("at "+d.at.String(), d.e, err)
		}
	}
	for i := 0; i < len(c.within); {
		d := &c.within[i]
		if d.at+c.slack >= to {
			i++
			continue
		}
		if !d.met {
			_, err := d.e.holds(c.pic)
			c.failExpectation("within "+d.at.String(), d.e, err)
		}
		c.within = slices.Delete(c.within, i, i+1)
	}
}

// finish checks the expectations for the end of the run.
func (c *checker) finish(end totals) {
	c.pass(longest + c.slack + 1)
	x := &c.scn.expect
	for _, e := range x.finally {
		if ok, err := c.hasValue(e, true); err != nil || !ok {
			c.failExpectation("finally", e, err)
		}
	}
	c.inSpan("creates", x.creates, end.creates)
	c.inSpan("deletes", x.deletes, end.deletes)
	if x.ordered && (len(end.order) < len(x.order) || !slices.Equal(end.order[:len(x.order)], x.order)) {
		c.fail("order", fmt.Sprint(x.order), x.orderLine, fmt.Sprintf("it was %v", end.order))
	}
}

func (c *checker) inSpan(kind string, s *span, n int) {
	if s == nil || n >= s.min && n <= s.max {
		return
	}
	want := itoa(s.min)
	if s.min != s.max {
		want = fmt.Sprintf("from %d to %d", s.min, s.max)
	}
	c.fail(kind, want, s.line, "there were "+itoa(n))
}

func (c *checker) failExpectation(kind string, e *expression, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	c.fail(kind, e.text, e.line, text)
}

// maxFailures is the number of failures after which the run ends.
const maxFailures = 50

// fail records a failure.
func (c *checker) fail(kind, expression string, line int, text string) {
	if len(c.failures) >= maxFailures {
		c.stop = true
		return
	}
	f := Failure{At: Time(c.now()), Kind: kind, Expression: expression, Line: line, Text: text, State: c.dump()}
	c.failures = append(c.failures, f)
	c.onFailure(&f)
}

// abort ends the run with an error.
func (c *checker) abort(err error) {
	if !c.stop {
		c.fail("run", "", 0, err.Error())
	}
	c.stop = true
}

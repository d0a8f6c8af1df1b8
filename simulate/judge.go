package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// judge watches a simulated world: it sees to it that what the scenario expects
// holds, and what Pawl promises anyhow; and it has entries happen that wait for
// an expression.
//
// It looks after every single write, and after every change of a body: what
// lies between two writes at one instant is a state that others can read.
// What users do at one instant is one edit, and only its end is looked at.
type judge struct {
	*court

	w        *world
	promises promises
	// rng draws which plans are made again, and when.
	rng *rand.Rand
}

func newJudge(w *world, seed int64) *judge {
	j := &judge{w: w, rng: rand.New(rand.NewPCG(uint64(seed), 0x3c6e))} //nolint:gosec // a seed asks for the same numbers again
	j.court = newCourt(w.scn, w)
	j.now = func() time.Duration { return w.now }
	j.dump, j.said, j.happen = w.dump, w.sayFailure, j.enter
	return j
}

// enter has an entry happen whose expression has become true. A crash happens
// there and then, also between two writes of one pass; anything else next.
func (j *judge) enter(e *entry) {
	happen := func() {
		j.begin()
		e.edit.apply(j.w, j.w.find(e.pool))
	}
	if _, ok := e.edit.(crashEdit); ok {
		happen()
		return
	}
	j.w.first(j.w.now, func() { j.w.atomic(happen) })
}

// pass is told that time goes on to the given instant.
func (j *judge) pass(to time.Duration) {
	for _, p := range j.w.pools {
		j.currents(p, to)
	}
	j.court.pass(to)
}

// begin notes that an entry of the timeline happens.
func (j *judge) begin() {
	j.disturb()
	j.court.begin()
}

// finish looks at what has to hold in the end.
func (j *judge) finish() {
	var end tallied
	for _, p := range j.w.pools {
		end.creates += p.creates
		end.deletes += p.deletes
		end.order = p.order
	}
	j.court.finish(end)
}

// court sees to it that what a scenario expects holds of whatever is pictured.
type court struct {
	scn *Scenario
	see picture
	now func() time.Duration
	// slack is how much sooner or later than a file says something may be: 0
	// where time is exact.
	slack time.Duration
	// dump is the state in words, said is told of each failure, and happen has
	// an entry happen that has waited for its expression.
	dump   func() string
	said   func(*Failure)
	happen func(*entry)

	failures []Failure
	// always and never are the expectations that have held so far.
	always, never []*expression
	within, at    []deadline
	waiting       []trigger
	observing     bool
	// stop ends the run: something is so wrong that it makes no sense to go on.
	stop bool
}

// deadline is an expression that has to be true once before its time, or at
// it.
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

// tallied is what a run has come to.
type tallied struct {
	creates, deletes int
	order            []int
}

func newCourt(s *Scenario, see picture) *court {
	x := &s.expect
	c := &court{scn: s, see: see, always: slices.Clone(x.always), never: slices.Clone(x.never)}
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

// moments are the times at which time alone may change what holds.
func (c *court) moments() []time.Duration {
	var list []time.Duration
	add := func(e *expression) {
		for _, s := range e.moments {
			at := time.Duration(s) * time.Second
			list = append(list, at)
			if c.slack > 0 { // by then nothing else can be meant
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

// observe looks at the world as it is now.
func (c *court) observe() {
	if c.observing {
		return
	}
	c.observing = true
	defer func() { c.observing = false }()
	c.always = c.keep("always", c.always, true)
	c.never = c.keep("never", c.never, false)
	now := c.now()
	for i := range c.within {
		if d := &c.within[i]; !d.met && now <= d.at+c.slack {
			d.met, _ = c.is(d.e, true)
		}
	}
	if c.slack > 0 {
		c.around(now)
	}
	for i := range c.waiting {
		c.trip(&c.waiting[i])
	}
}

// around looks at what has to be true at a time that is about now.
func (c *court) around(now time.Duration) {
	for i := range c.at {
		d := &c.at[i]
		if d.at-c.slack > now {
			return
		}
		if !d.met && now <= d.at+c.slack {
			d.met, _ = c.is(d.e, true)
		}
	}
}

// is tells whether the expression has the value, at one of the times that may
// be meant by now.
func (c *court) is(e *expression, want bool) (bool, error) {
	v, err := e.holds(c.see)
	if err != nil || v == want || c.slack == 0 {
		return err == nil && v == want, err
	}
	now := c.now()
	for _, s := range e.moments {
		if d := now - time.Duration(s)*time.Second; d < -c.slack || d > c.slack {
			continue
		}
		for _, s := range []int64{s - 1, s} {
			if v, err := e.holds(atSecond{c.see, s}); err == nil && v == want {
				return true, nil
			}
		}
	}
	return false, nil
}

// atSecond is a picture as if it were of another time.
type atSecond struct {
	picture

	t int64
}

func (p atSecond) seconds() int64 { return p.t }

// keep looks at expectations for all times, and drops those that are broken.
func (c *court) keep(kind string, list []*expression, want bool) []*expression {
	for i := 0; i < len(list); {
		ok, err := c.is(list[i], want)
		if ok {
			i++
			continue
		}
		c.broke(kind, list[i], err)
		list = slices.Delete(list, i, i+1)
	}
	return list
}

// trip has an entry happen if its expression has become true.
func (c *court) trip(t *trigger) {
	if t.left == 0 {
		return
	}
	was := t.on
	t.on, _ = t.entry.when.holds(c.see)
	if !t.on || was {
		return
	}
	t.left--
	c.happen(t.entry)
}

// begin notes that an entry of the timeline happens: what is expected within
// some time has to come true after it.
func (c *court) begin() {
	for i := range c.within {
		if d := &c.within[i]; c.now() < d.at {
			d.met = false
		}
	}
}

// pass is told that time goes on to the given instant: nothing more happens in
// this one.
func (c *court) pass(to time.Duration) {
	for len(c.at) > 0 && c.at[0].at+c.slack < to {
		d := c.at[0]
		c.at = c.at[1:]
		if d.met {
			continue
		}
		if ok, err := c.is(d.e, true); err != nil || !ok {
			c.broke("at "+d.at.String(), d.e, err)
		}
	}
	for i := 0; i < len(c.within); {
		d := &c.within[i]
		if d.at+c.slack >= to {
			i++
			continue
		}
		if !d.met {
			_, err := d.e.holds(c.see)
			c.broke("within "+d.at.String(), d.e, err)
		}
		c.within = slices.Delete(c.within, i, i+1)
	}
}

// finish looks at what has to hold in the end.
func (c *court) finish(end tallied) {
	c.pass(longest + c.slack + 1)
	x := &c.scn.expect
	for _, e := range x.finally {
		if ok, err := c.is(e, true); err != nil || !ok {
			c.broke("finally", e, err)
		}
	}
	c.inSpan("creates", x.creates, end.creates)
	c.inSpan("deletes", x.deletes, end.deletes)
	if x.ordered && (len(end.order) < len(x.order) || !slices.Equal(end.order[:len(x.order)], x.order)) {
		c.fail("order", fmt.Sprint(x.order), x.orderLine, fmt.Sprintf("it was %v", end.order))
	}
}

func (c *court) inSpan(kind string, s *span, n int) {
	if s == nil || n >= s.min && n <= s.max {
		return
	}
	want := itoa(s.min)
	if s.min != s.max {
		want = fmt.Sprintf("from %d to %d", s.min, s.max)
	}
	c.fail(kind, want, s.line, "there were "+itoa(n))
}

func (c *court) broke(kind string, e *expression, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	c.fail(kind, e.text, e.line, text)
}

// maxFailures is how many failures are worth reading.
const maxFailures = 50

// fail notes that something does not hold.
func (c *court) fail(kind, expression string, line int, text string) {
	if len(c.failures) >= maxFailures {
		c.stop = true
		return
	}
	f := Failure{At: Time(c.now()), Kind: kind, Expression: expression, Line: line, Text: text, State: c.dump()}
	c.failures = append(c.failures, f)
	c.said(&f)
}

// broken notes that the run cannot go on.
func (c *court) broken(err error) {
	if !c.stop {
		c.fail("run", "", 0, err.Error())
	}
	c.stop = true
}

package simulate

import (
	"fmt"
	"strings"
	"time"
)

// Failure is one expectation or promise that did not hold.
type Failure struct {
	// At is when it broke.
	At Time `json:"at"`
	// Kind is always, never, "at 5m", "within 10m", finally, creates, deletes,
	// order, promise, or run for a run that could not go on.
	Kind string `json:"kind"`
	// Expression is the file's, on the Line; empty and 0 for a promise.
	Expression string `json:"expression,omitempty"`
	Line       int    `json:"line,omitempty"`
	// Text says what was instead, where that is not in the State.
	Text string `json:"text,omitempty"`
	// State is the world at that time, in a few lines.
	State string `json:"state"`
}

// short is the failure without the state.
func (f *Failure) short() string {
	s := f.Kind
	if f.Expression != "" {
		s += ": " + f.Expression
	}
	if f.Text != "" {
		s += ": " + f.Text
	}
	return s
}

// Words is the failure in one line, without the state; file is where the
// expectation stands.
func (f *Failure) Words(file string) string {
	if f.Line == 0 {
		return f.short()
	}
	return fmt.Sprintf("%s (%s:%d)", f.short(), file, f.Line)
}

// Result is how one run of a scenario went.
type Result struct {
	Scenario string `json:"scenario"`
	Seed     int64  `json:"seed"`
	// Failures in the order in which they broke; none if all held.
	Failures []Failure `json:"failures,omitempty"`
	// End is when the run ended, Creates and Deletes what it took, Writes how
	// many writes there were in all.
	End     Time `json:"end"`
	Creates int  `json:"creates"`
	Deletes int  `json:"deletes"`
	Writes  int  `json:"writes"`
	// Narrative is what happened, if it was asked for.
	Narrative []Line `json:"narrative,omitempty"`
}

// Passed tells whether everything held.
func (r *Result) Passed() bool { return len(r.Failures) == 0 }

// String prints the narrative, one line a thing.
func (r *Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, seed %d\n", r.Scenario, r.Seed)
	last := Time(-1)
	for _, l := range r.Narrative {
		at := ""
		if l.At != last {
			at = l.At.String()
		}
		last = l.At
		fmt.Fprintf(&b, "%12s  %-11s  %s\n", at, l.Who, l.Text)
	}
	fmt.Fprintf(&b, "%12s  %-11s  %d created, %d deleted, %d writes\n", r.End, "end", r.Creates, r.Deletes, r.Writes)
	return b.String()
}

// Run plays the scenario under the seed. Seed 1 takes every time as the file
// says it; other seeds vary boot and stop times, the order in which
// controllers act, and how late they read. The same scenario and seed always
// have the same result. A scenario with needs must not be run.
func (s *Scenario) Run(seed int64, narrate bool) *Result {
	w := newWorld(s, seed)
	if narrate {
		w.log = &log{}
	}
	w.play()
	r := &Result{Scenario: s.Name, Seed: seed, Failures: w.judge.failures, End: Time(w.now), Writes: w.writes}
	for _, p := range w.pools {
		r.Creates += p.creates
		r.Deletes += p.deletes
	}
	if w.log != nil {
		r.Narrative = w.log.lines
	}
	return r
}

// Bounds of what may happen at one instant, and in all: more means that it
// never ends. Each member adds to them.
const (
	maxAtOnce, moreAtOnce = 2000, 100
	maxInAll, moreInAll   = 50_000, 2000
)

// play has everything happen that the scenario has time for.
func (w *world) play() {
	w.schedule()
	w.judge.observe()
	for _, p := range w.pools {
		p.boot()
	}
	instant, n, most := time.Duration(-1), 0, 0
	for all := 1; !w.judge.stop && w.step(w.scn.run); all++ {
		if w.now != instant {
			instant, n = w.now, 0
		}
		most = max(most, w.size()) // members that are gone by now took part, too
		if n++; n > maxAtOnce+moreAtOnce*most {
			w.judge.broken(fmt.Errorf("it never comes to rest: %d things have happened at this instant", n))
		}
		if all > maxInAll+moreInAll*most {
			w.judge.broken(fmt.Errorf("it never comes to rest: %d things have happened", all))
		}
	}
	if !w.judge.stop {
		w.judge.finish()
		w.rest()
	}
}

func (w *world) size() (n int) {
	for _, p := range w.pools {
		n += len(p.slots) + p.spec.policy.Desired + len(p.claims)
	}
	return n
}

// schedule enters the timeline and the moments that expressions name.
func (w *world) schedule() {
	list := w.scn.timeline
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j].at == list[i].at {
			j++
		}
		w.together(list[i:j])
		i = j
	}
	for _, t := range w.judge.moments() {
		w.first(t, w.judge.observe)
	}
}

// together has entries happen as one edit.
func (w *world) together(list []entry) {
	w.first(list[0].at, func() {
		w.atomic(func() {
			for i := range list {
				if e := &list[i]; e.when == nil {
					w.judge.begin()
					e.edit.apply(w, w.find(e.pool))
				}
			}
		})
	})
}

// rest has every controller look once more: where nothing has changed, nothing
// may be written.
func (w *world) rest() {
	if w.down || w.hints > 0 || w.busy() {
		return
	}
	before := w.writes
	w.wakeAll()
	for !w.judge.stop && w.step(w.now) {
		if w.writes != before {
			w.judge.promise("something is written although nothing has changed")
			return
		}
	}
}

// busy tells whether a write is still on its way to somebody who reads.
func (w *world) busy() bool {
	for _, p := range w.pools {
		for _, c := range p.caches {
			if !c.ready || len(c.last) > 0 {
				return true
			}
		}
	}
	return false
}

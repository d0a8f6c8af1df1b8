package simulate

import (
	"fmt"
	"strings"
	"time"
)

// Failure is one expectation or promise that did not hold.
type Failure struct {
	// At is when it failed.
	At Time `json:"at"`
	// Kind is always, never, "at 5m", "within 10m", finally, creates, deletes,
	// order, promise, or run for a run that could not go on.
	Kind string `json:"kind"`
	// Expression is that of the file, at the Line; empty and 0 for a promise.
	Expression string `json:"expression,omitempty"`
	Line       int    `json:"line,omitempty"`
	// Text is the actual value, if State does not show it, or the broken promise.
	Text string `json:"text,omitempty"`
	// State describes the world at that time, in a few lines.
	State string `json:"state"`
}

// short returns the failure without the state.
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

// Words returns the failure in one line, without the state; file is the scenario
// file.
func (f *Failure) Words(file string) string {
	if f.Line == 0 {
		return f.short()
	}
	return fmt.Sprintf("%s (%s:%d)", f.short(), file, f.Line)
}

// Result is the outcome of one run of a scenario.
type Result struct {
	Scenario string `json:"scenario"`
	Seed     int64  `json:"seed"`
	// Failures are sorted by time; empty if everything held.
	Failures []Failure `json:"failures,omitempty"`
	// End is when the run ended. Creates and Deletes count bodies, Writes all
	// writes.
	End     Time `json:"end"`
	Creates int  `json:"creates"`
	Deletes int  `json:"deletes"`
	Writes  int  `json:"writes"`
	// Narrative has the run in sentences, if it was requested.
	Narrative []Line `json:"narrative,omitempty"`
}

// Passed reports whether everything held.
func (r *Result) Passed() bool { return len(r.Failures) == 0 }

// String returns the narrative as text.
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

// Run plays the scenario under the seed. Seed 1 uses exactly the times of the file;
// other seeds vary boot and stop times, the order in which controllers act, and the
// delays of their reads. The same scenario and seed always give the same result. A
// scenario with Needs must not be run.
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

// Bounds of the number of events at one instant and in total, beyond which the run
// is taken for endless. Each member adds to them.
const (
	maxAtOnce, moreAtOnce = 2000, 100
	maxInAll, moreInAll   = 50_000, 2000
)

// play runs all events until the end of the run.
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
		most = max(most, w.size()) // members that are gone caused events, too
		if n++; n > maxAtOnce+moreAtOnce*most {
			w.judge.abort(fmt.Errorf("the pool does not come to rest: %d events at this instant", n))
		}
		if all > maxInAll+moreInAll*most {
			w.judge.abort(fmt.Errorf("the pool does not come to rest: %d events", all))
		}
	}
	if !w.judge.stop {
		w.judge.finish()
		w.checkRest()
	}
}

func (w *world) size() (n int) {
	for _, p := range w.pools {
		n += len(p.slots) + p.spec.policy.Desired + len(p.claims)
	}
	return n
}

// schedule queues the timeline and the moments of expressions.
func (w *world) schedule() {
	list := w.scn.timeline
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j].at == list[i].at {
			j++
		}
		w.scheduleEdit(list[i:j])
		i = j
	}
	for _, t := range w.judge.moments() {
		w.first(t, w.judge.observe)
	}
}

// scheduleEdit queues the entries of one instant as one edit.
func (w *world) scheduleEdit(list []entry) {
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

// checkRest wakes every controller once more: nothing may be written, because
// nothing has changed.
func (w *world) checkRest() {
	if w.down || w.hints > 0 || w.writesInFlight() {
		return
	}
	before := w.writes
	w.wakeAll()
	for !w.judge.stop && w.step(w.now) {
		if w.writes != before {
			w.judge.breakPromise("something is written although nothing has changed")
			return
		}
	}
}

// writesInFlight reports whether a cache has not received every write yet.
func (w *world) writesInFlight() bool {
	for _, p := range w.pools {
		for _, c := range p.caches {
			if !c.ready || len(c.last) > 0 {
				return true
			}
		}
	}
	return false
}

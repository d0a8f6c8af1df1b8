package states

import (
	"fmt"

	"github.com/pawl-dev/pawl/rollout"
)

// kind is what an edge does.
type kind uint8

const (
	noEdge    kind = iota
	planEdge       // the plan is carried out; n: only so many actions of it, or all
	stepEdge       // slot i takes its next step; n: see refused and noRoom
	claimEdge      // claim i takes its next step
	timeEdge       // time moves

	// Only the next step of its slot reads a body, and that step is part of the edge.
	bootsEdge  // the body of slot i comes up, for the first time or again
	goesEdge   // it is gone, after it was told to go
	drainsEdge // its drain is done

	exitsEdge  // a fault: the body ends by itself
	vanishEdge // a fault: it is gone
	downEdge   // a fault: it is not ready for a while
	slowEdge   // a fault: it takes long to boot, drain or stop
	outageEdge // a fault: time moves although controllers have something to do

	editEdge      // a user edits the template to revision i
	pauseEdge     // pauses, or ends that
	scaleEdge     // scales to i
	partitionEdge // sets the partition to i
	makeEdge      // makes claim i
	releaseEdge   // deletes claim i
	holdEdge      // holds slot i, or ends that
	workEdge      // work begins on slot i, or ends
	recycleEdge   // asks for another body in slot i
	skipEdge      // gives up on slot i
	retryEdge     // asks for one more round
)

var kindNames = [...]string{
	"nothing", "plan", "step", "claim steps", "time", "boots", "is gone", "has drained", "exits", "vanishes", "goes down", "is slow",
	"outage", "edit to", "pause", "scale to", "partition", "claim", "release", "hold", "work", "recycle", "skip", "retry",
}

// How a step of a slot ends that creates or updates a body.
const (
	succeeds = iota
	refused  // a fault
	noRoom   // a fault
)

// whole is the n of a plan that is carried out to its end.
const whole = 31

// edge is one thing that happens. late: it happens between the read and the writes of a
// plan, which is carried out all the same.
type edge struct {
	kind kind
	i, n int8
	late bool
}

func (e edge) String() string {
	s := kindNames[e.kind]
	switch {
	case e.kind == planEdge && e.n != whole:
		s += fmt.Sprintf(", cut off after %d", e.n)
	case e.kind == editEdge:
		s += " " + string(revisions[e.i])
	case e.kind != planEdge && e.kind != timeEdge && e.kind != outageEdge && e.kind != pauseEdge && e.kind != retryEdge:
		s += fmt.Sprintf(" %d", e.i)
	}
	if e.kind != planEdge && e.n > 0 {
		s += [...]string{"", ", refused", ", without room"}[e.n]
	}
	if e.late {
		s += ", and a plan that has not seen that"
	}
	return s
}

// fault reports whether the edge is one, and user whether a user acts.
func (e edge) fault() bool {
	return e.kind >= exitsEdge && e.kind <= outageEdge || e.kind != planEdge && e.n > 0
}

func (e edge) user() bool { return e.kind >= editEdge }

// edges appends all edges that lead on from the state.
func (v *view) edges(list []edge) []edge {
	w := v.w
	if v.planned {
		list = append(list, edge{kind: planEdge, n: whole})
		for n := range len(v.plan.Actions) - 1 {
			list = append(list, edge{kind: planEdge, n: int8(n + 1)})
		}
	}
	for i := range v.claimed {
		if v.claimed[i] {
			list = v.lates(append(list, edge{kind: claimEdge, i: int8(i)}))
		}
	}
	for i := range w.slots[:w.n] {
		list = v.slotEdges(list, int8(i))
	}
	if !v.busy() && w.mayWait() {
		list = append(list, edge{kind: timeEdge})
	} else if w.faults > 0 && !v.wake().IsZero() {
		list = append(list, edge{kind: outageEdge})
	}
	if w.users > 0 {
		list = v.userEdges(list)
	}
	return list
}

// lates appends the last edge once more, on the read of a plan that comes late.
func (v *view) lates(list []edge) []edge {
	e := list[len(list)-1]
	if len(v.plan.Actions) > 1 {
		e.late = true
		list = append(list, e)
	}
	return list
}

// slotEdges appends what the slot and its body do.
func (v *view) slotEdges(list []edge, i int8) []edge {
	s, fault := &v.w.slots[i], v.w.faults > 0
	if v.moves[i] {
		list = v.ways(list, stepEdge, i)
	}
	b := &s.body
	switch {
	case b.state == rollout.Booting:
		list = v.ways(list, bootsEdge, i)
	case b.state == rollout.Stopping:
		list = v.ways(list, goesEdge, i)
	case b.draining && !b.drained:
		list = v.ways(list, drainsEdge, i)
	}
	if !fault {
		return list
	}
	if b.state == rollout.Booting || b.state == rollout.Ready {
		list = v.lates(append(list, edge{kind: exitsEdge, i: i}))
		list = v.lates(append(list, edge{kind: vanishEdge, i: i}))
	}
	if b.state == rollout.Ready {
		list = v.lates(append(list, edge{kind: downEdge, i: i}))
	}
	if !b.slow && (b.state == rollout.Booting && !b.booted || b.state == rollout.Stopping || b.draining && !b.drained) {
		list = append(list, edge{kind: slowEdge, i: i})
	}
	return list
}

// ways appends the step that the slot takes once the body has done that, in each way
// in which it may end.
func (v *view) ways(list []edge, k kind, i int8) []edge {
	list = v.lates(append(list, edge{kind: k, i: i}))
	if v.w.faults == 0 {
		return list
	}
	s := v.w.slots[i]
	s.happen(k)
	switch do := rollout.Step(s.Member, s.sight(), v.r.life, v.w.now).Do; do {
	case rollout.CreateBody:
		list = append(list, edge{kind: k, i: i, n: noRoom}, edge{kind: k, i: i, n: refused})
	case rollout.UpdateBody:
		list = append(list, edge{kind: k, i: i, n: refused})
	}
	return list
}

func (v *view) userEdges(list []edge) []edge {
	w := v.w
	for r := range revisions {
		if r := int8(r); r != w.template && (r < 2 || w.knows(1)) {
			list = append(list, edge{kind: editEdge, i: r})
		}
	}
	list = append(list, edge{kind: pauseEdge})
	for d := range int8(maxDesired + 1) {
		if d != w.desired && int(d) <= v.r.policy.Desired+1 {
			list = append(list, edge{kind: scaleEdge, i: d})
		}
	}
	for p := range int8(3) {
		if p != w.partition {
			list = append(list, edge{kind: partitionEdge, i: p})
		}
	}
	for i := range w.claims {
		switch c := &w.claims[i]; {
		case c.made && !c.deleted:
			list = append(list, edge{kind: releaseEdge, i: int8(i)})
		case !c.made && (i == 0 || w.claims[i-1].made):
			list = append(list, edge{kind: makeEdge, i: int8(i)})
		}
	}
	for i := range w.slots[:w.n] {
		list = v.memberEdges(list, int8(i))
	}
	if r := &w.records[w.template]; r.Halted || r.RolledBack {
		list = append(list, edge{kind: retryEdge})
	}
	return list
}

func (v *view) memberEdges(list []edge, i int8) []edge {
	w, s := v.w, &v.w.slots[i]
	leaving := s.Disrupted() && s.Disruption.Remove
	list = v.lates(append(list, edge{kind: holdEdge, i: i}))
	if s.body.state == rollout.Ready && !s.ServedSince.IsZero() {
		list = append(list, edge{kind: workEdge, i: i})
	}
	if s.Body && !s.Asked && !leaving {
		list = v.lates(append(list, edge{kind: recycleEdge, i: i}))
	}
	onTarget := s.Body && s.InService() && s.Runs == revisions[w.target()]
	if w.target() != w.current && s.Phase != rollout.Terminating && !onTarget && !s.Skipped {
		list = v.lates(append(list, edge{kind: skipEdge, i: i}))
	}
	return list
}

// knows reports whether anything is left of the revision. One of which nothing is left
// is as good as any other.
func (w *world) knows(r int8) bool {
	if w.template == r || w.current == r || w.records[r].Halted || len(w.records[r].Failures) > 0 {
		return true
	}
	for i := range w.slots[:w.n] {
		if s := &w.slots[i]; s.Runs == revisions[r] || s.Wants == revisions[r] || s.Recovered == revisions[r] {
			return true
		}
	}
	return false
}

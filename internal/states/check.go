package states

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// breaks notes a promise that is broken.
func (w *world) breaks(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

// promise checks a stored version of a slot.
func (w *world) promise(s *slot) {
	switch {
	case s.Claimed && s.Disrupted():
		w.breaks("slot %d holds a claim and a live disruption", s.Index)
	case s.Claimed && (s.Phase == rollout.Draining || s.Phase == rollout.Terminating || s.Phase == rollout.Updating):
		w.breaks("slot %d is %s although a claim holds it", s.Index, s.Phase)
	case s.Claimed != (s.claim >= 0):
		w.breaks("slot %d says that it is claimed, which is %t, and carries claim %d", s.Index, s.Claimed, s.claim)
	}
}

// never stands for a time that does not come, where a plan names no wake.
const never = 240 * time.Hour

// check plans for the state and returns what the plan breaks; empty for nothing.
func (w *world) check(r *rules) string {
	var room [maxSlots]rollout.Member
	s := w.snapshot(r, room[:0])
	p := s.Plan(w.now)
	if err := rollout.CheckInvariants(s, p); err != nil {
		return err.Error()
	}
	if c := &w.current; *c >= 0 && (w.records[*c].Halted || w.records[*c].RolledBack) {
		return "the current revision is halted"
	}
	if what := removes(s, p); what != "" {
		return what
	}
	if what := takesBack(s, p); what != "" {
		return what
	}
	for i := range s.Members {
		if m := &s.Members[i]; p.Verdict(m.Index) == rollout.Next {
			return fmt.Sprintf("%s could be taken, and is not", short(m))
		}
	}
	s.Unreadable = rollout.Unreachable
	if unread := s.Plan(w.now); len(unread.Actions) > 0 {
		return "rule 2: a pool that cannot be read changes: " + words(unread.Actions)
	}
	s.Unreadable = ""
	until := p.Wake
	if until.IsZero() {
		until = w.now.Add(never)
	}
	if !until.After(w.now) {
		return "the plan asks to be made again at once"
	}
	if what := differs(p, s.Plan(until.Add(-1))); what != "" {
		return "before the plan's wake, time alone changes it: " + what
	}
	return ""
}

// acts is what the plan does to the member; nil for nothing.
func acts(p *rollout.Plan, m *rollout.Member) *rollout.Action {
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Record == nil && a.Index == m.Index {
			return a
		}
	}
	return nil
}

// takesBack checks rule 9: what only drains for a revision that it is on, or was held or
// got work meanwhile, goes back into service.
func takesBack(s *rollout.Snapshot, p *rollout.Plan) string {
	for i := range s.Members {
		m := &s.Members[i]
		drains := m.Disrupted() && m.Disruption.Cause == rollout.Drift && m.Body && !m.ServedSince.IsZero() &&
			(m.Phase == rollout.Available || m.Phase == rollout.Draining)
		wanted := m.Runs == s.Target.ID || m.Held || m.Occupancy != rollout.Idle || s.Policy.Paused
		if a := acts(p, m); drains && wanted && (a == nil || a.Kind != rollout.Undo) {
			return fmt.Sprintf("rule 9: %s drains, is to stay, and is not taken back", short(m))
		}
	}
	return ""
}

// worth is in which order members go that are too many.
func worth(s *rollout.Snapshot, m *rollout.Member) int {
	switch {
	case !m.InService():
		return 0
	case m.Runs != s.Target.ID:
		return 1
	}
	return 2
}

// removes checks rule 10: what is one too many goes in order, what is down first, then
// what is stale. While the target fails, the slot that tries it stays, and so does for a
// while what was made for a claim.
func removes(s *rollout.Snapshot, p *rollout.Plan) string {
	target := &s.Target
	for i := range p.Actions {
		if r := p.Actions[i].Record; r != nil && r.ID == target.ID {
			target = r
		}
	}
	if !target.Halted && slices.ContainsFunc(target.Failures, func(f rollout.Failure) bool { return !f.Forgiven }) {
		return ""
	}
	for i := range s.Members {
		m := &s.Members[i]
		a := acts(p, m)
		if a == nil || a.Kind != rollout.Disrupt || a.Disruption.Cause != rollout.ScaleDown || m.Disrupted() {
			continue
		}
		for k := range s.Members {
			o := &s.Members[k]
			stays := o.Claimed || o.Held || o.ForClaim || o.Occupancy != rollout.Idle || o.Disrupted() && o.Disruption.Remove || acts(p, o) != nil
			if !stays && worth(s, o) < worth(s, m) {
				return fmt.Sprintf("rule 10: %s is removed, and %s stays", short(m), short(o))
			}
		}
	}
	return ""
}

// differs says in what two plans for one snapshot differ, but for times; empty for
// nothing.
func differs(a, b *rollout.Plan) string {
	for _, c := range [...]struct {
		name string
		a, b rollout.Condition
	}{
		{"Updated", a.Updated, b.Updated}, {"Ready", a.Ready, b.Ready}, {"Reconciling", a.Reconciling, b.Reconciling},
		{"Stalled", a.Stalled, b.Stalled}, {"Available", a.Available, b.Available},
	} {
		if c.a != c.b {
			return fmt.Sprintf("%s is %v, and was %v", c.name, c.b, c.a)
		}
	}
	switch {
	case a.Next != b.Next:
		return fmt.Sprintf("the sentence is %q, and was %q", b.Next, a.Next)
	case a.Surge != b.Surge || a.Size != b.Size || a.Counts != b.Counts:
		return "the counts"
	case !slices.Equal(a.Blockers, b.Blockers):
		return fmt.Sprintf("blockers are %v, and were %v", b.Blockers, a.Blockers)
	case !slices.EqualFunc(a.Actions, b.Actions, sameAction):
		return fmt.Sprintf("actions are %s, and were %s", words(b.Actions), words(a.Actions))
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

func words(list []rollout.Action) string {
	out := make([]string, len(list))
	for i := range list {
		a := &list[i]
		out[i] = fmt.Sprintf("%s %d %s (%s)", a.Kind, a.Index, a.Revision, a.Why)
	}
	return fmt.Sprint(out)
}

// ended are the reasons for which a stale member may stay so: a person can end them.
var ended = []rollout.Reason{
	"", rollout.HaltedTarget, rollout.PausedRollout, rollout.FloorUnreachable, rollout.Claimed, rollout.BusyMember, rollout.HeldMember, rollout.Partitioned,
}

// short is the member in a few words.
func short(m *rollout.Member) string {
	list := []string{fmt.Sprintf("member %d", m.Index), m.Phase.String()}
	for _, w := range [...]struct {
		is   bool
		word string
	}{
		{m.Claimed, "claimed"}, {m.Held, "held"}, {m.Occupancy != rollout.Idle, "busy"}, {m.Skipped, "skipped"}, {m.Asked, "asked"},
		{!m.ServedSince.IsZero(), "served"}, {m.Disrupted(), "disrupted for " + m.Disruption.Cause.String()},
	} {
		if w.is {
			list = append(list, w.word)
		}
	}
	return strings.Join(list, ", ")
}

// rest says what is wrong with a state in which nothing happens any more; empty for
// nothing: the pool is as asked, or what keeps it is something that a person can end.
func (w *world) rest(r *rules) string {
	var room [maxSlots]rollout.Member
	s := w.snapshot(r, room[:0])
	p := s.Plan(w.now)
	kept, down, counted := s.Policy.Partition > 0 || s.Policy.Paused, 0, 0
	for i := range s.Members {
		m := &s.Members[i]
		used := m.Held || m.Occupancy != rollout.Idle || m.Claimed || m.Skipped
		kept = kept || used
		if !m.InService() && !used {
			down++
		}
		if !s.Policy.Warm || !m.Claimed {
			counted++
		}
	}
	for i := range s.Members {
		m := &s.Members[i]
		v := p.Verdict(m.Index)
		limits := v == rollout.UnavailableLimit || v == rollout.FloorReached || v == rollout.InFlightLimit || v == rollout.NoSurgeCapacity || v == rollout.FailedReplacement
		if !slices.Contains(ended, v) && (!limits || !kept && !s.Policy.HasCeiling) {
			return fmt.Sprintf("at rest, and no person can remove the blocker of %s: %s", short(m), v)
		}
	}
	want := s.Policy.Desired
	if s.Policy.HasCeiling {
		want = min(want, s.Policy.MaxMembers)
	}
	switch {
	case p.Reconciling.Status == rollout.True && !kept:
		return "at rest, and Reconciling: " + p.Reconciling.Message
	case down > 0:
		return fmt.Sprintf("at rest, and %d members are down", down)
	case counted > want && !kept && !w.paused:
		return fmt.Sprintf("at rest, and there are %d members of %d", counted, want)
	case counted < want && s.Policy.RefillBelow == 0 && !s.Policy.HasCeiling:
		return fmt.Sprintf("at rest, and there are %d members of %d", counted, want)
	}
	return ""
}

package rollout

import (
	"fmt"
	"slices"
	"time"
)

// String describes the action, with the index as the member's name.
func (a *Action) String() string { return a.Describe(fmt.Sprintf("member %d", a.Index)) }

// Describe returns one sentence: what the action does, and why. Name is the member's name.
func (a *Action) Describe(name string) string { return a.what(name) + ": " + a.Why.Sentence() }

func (a *Action) what(name string) string {
	switch a.Kind {
	case RecordFailure:
		return fmt.Sprintf("a failure of %s counts against revision %s, number %d", name, a.Revision, a.failed())
	case Recover:
		if a.Why == WhyCounted {
			return fmt.Sprintf("recovered bodies of revision %s are counted", a.Revision)
		}
		return fmt.Sprintf("failures of revision %s are forgiven", a.Revision)
	case Halt:
		return fmt.Sprintf("the rollout of revision %s is halted", a.Revision)
	case Stand:
		return fmt.Sprintf("revision %s becomes the current one", a.Revision)
	case Undo:
		return "the disruption of " + name + " is withdrawn"
	case Grant:
		return fmt.Sprintf("%s is to be of %s", name, orNone(a.Revision))
	case CreateSlot:
		return fmt.Sprintf("%s is made, for a body of %s", name, orNone(a.Revision))
	}
	switch d := &a.Disruption; {
	case d.Remove:
		return name + " is removed"
	case a.Revision == "":
		return name + " is taken down"
	case d.Update:
		return fmt.Sprintf("%s is updated in place to revision %s", name, a.Revision)
	}
	return fmt.Sprintf("%s is replaced by a body of revision %s", name, a.Revision)
}

func (a *Action) failed() int {
	if a.Record == nil {
		return 0
	}
	return a.Record.Failed
}

func orNone(r Revision) string {
	if r == "" {
		return "no revision yet"
	}
	return "revision " + string(r)
}

// Apply returns the member as the action leaves it at the time. For CreateSlot m is ignored
// and the result is the new slot, without an ID. An action on a revision changes no member.
func (a *Action) Apply(m Member, now time.Time) Member {
	switch a.Kind {
	case CreateSlot:
		return Member{Index: a.Index, Wants: a.Revision, BornAt: now, PhaseSince: now, ForClaim: a.ForClaim}
	case Grant:
		m.Wants = a.Revision
	case Undo:
		m.Wants, m.Disruption = a.Revision, a.Disruption
	case Disrupt:
		m.Wants, m.Disruption = a.Revision, a.Disruption
		m.Claimed = m.Claimed && !a.DropClaim
	}
	return m
}

// Apply enters the action in the snapshot, in a copy of its members, as a caller reads it
// back after carrying it out. For CreateSlot, id is the ID of the new slot.
func (s *Snapshot) Apply(a *Action, id string, now time.Time) {
	if a.Record != nil {
		s.applyRecord(a)
		return
	}
	i, found := slices.BinarySearchFunc(s.Members, a.Index, func(m Member, index int) int { return m.Index - index })
	switch {
	case found && a.Kind == CreateSlot: // it was created meanwhile
	case found:
		s.Members = slices.Clone(s.Members)
		s.Members[i] = a.Apply(s.Members[i], now)
	case a.Kind == CreateSlot:
		m := a.Apply(Member{}, now)
		m.ID = id
		s.Members = slices.Insert(slices.Clone(s.Members), i, m)
	}
}

func (s *Snapshot) applyRecord(a *Action) {
	for _, r := range []*Record{&s.Target, &s.Current} {
		if r.ID == a.Record.ID {
			*r = *a.Record
		}
	}
	switch {
	case a.Kind == Stand:
		s.Current = *a.Record
	case a.Kind == Halt && a.Record.RolledBack:
		s.RolledBack, s.Target = *a.Record, s.Current
	}
}

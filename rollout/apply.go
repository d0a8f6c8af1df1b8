package rollout

import (
	"slices"
	"time"
)

// Apply is the member as the action leaves it, and with CreateSlot the slot that
// is made, at the time; the zero member goes in. The slot's ID is the caller's. An
// action on a revision leaves every member as it is.
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

// Apply enters the action in the snapshot, in a copy of its members: what a caller
// reads back that has carried it out. With CreateSlot, id is the slot's ID.
func (s *Snapshot) Apply(a *Action, id string, now time.Time) {
	if a.Record != nil {
		s.applyRecord(a)
		return
	}
	i, found := slices.BinarySearchFunc(s.Members, a.Index, func(m Member, index int) int { return m.Index - index })
	switch {
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

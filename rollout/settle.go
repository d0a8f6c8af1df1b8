package rollout

// takeBack withdraws the disruptions of draining members that need not go any more.
func (q *pass) takeBack() {
	if q.ledger.disrupted == 0 {
		return
	}
	for _, i := range q.irregular {
		m := &q.s.Members[i]
		if !m.drains() {
			continue
		}
		if why := q.undoReason(m); why != "" {
			q.undo(i, why)
		}
	}
}

// drains reports whether the member is disrupted and its end has not begun.
func (m *Member) drains() bool {
	return m.Disrupted() && !m.Deleting && !m.Stuck && m.Body && m.Phase != Terminating && m.Phase != Updating &&
		(!m.lost() || m.Disruption.Cause == ScaleDown)
}

// undo withdraws the disruption, and the member stays as it is.
func (q *pass) undo(i int, why Why) {
	m := &q.s.Members[i]
	rev := m.Runs
	switch {
	case rev != "":
	case m.Disruption.Remove:
		rev = m.Wants // the revision as which it was adopted, if it was
	case q.current.ID != q.target.ID:
		rev = q.current.ID // stays stale, although its revision is unknown
	}
	if m.leaving() {
		q.ledger.leaving--
		q.ledger.slots++
	} else {
		q.ledger.unborn--
		if q.offTarget(m) {
			q.ledger.offTarget--
		}
	}
	if m.Runs != q.target.ID {
		q.ledger.offTarget++
	}
	a := Action{Kind: Undo, Revision: rev, Why: why}
	if m.Rolling() && !m.served() {
		a.Disruption = Disruption{Cause: Drift, Rolling: true, Incarnation: m.Incarnation - 1, Since: m.Disruption.Since}
	}
	q.act(i, a)
}

// correctGrants gives each slot without a body the revision that may be born there now, and
// adopts members of unknown revision.
func (q *pass) correctGrants() {
	if q.ledger.unborn == 0 && q.plan.Counts.Unknown == 0 {
		return
	}
	for _, i := range q.irregular {
		m := &q.s.Members[i]
		switch {
		case q.actedOn.has(i) || m.Deleting || m.Stuck || m.Phase == Quarantined:
		case m.unborn():
			rev := q.birth(m)
			if rev == "" {
				q.noteUnbuildable(m)
			}
			if rev != m.Wants {
				q.setGrant(i, rev)
			}
		case m.Body && m.Runs == "" && m.Wants == "" && !q.s.Policy.ReplaceUnknown && !m.leaving():
			q.act(i, Action{Kind: Grant, Revision: q.target.ID, Why: WhyAdopt})
		}
	}
}

func (q *pass) setGrant(i int, rev Revision) {
	why := WhyRetarget
	if rev == "" {
		why = WhyNotBuildable
	}
	q.countGrant(&q.s.Members[i], rev)
	q.act(i, Action{Kind: Grant, Revision: rev, Why: why})
}

// undoReason returns why the disruption is withdrawn; empty if it is not.
func (q *pass) undoReason(m *Member) Why {
	switch m.Disruption.Cause {
	case ScaleDown:
		return m.guardReason()
	case BodyFailed:
		if m.healthy() {
			return WhyServesAgain
		}
		return m.guardReason()
	case Requested:
		return m.recycleUndone()
	case Drift:
	default:
		return ""
	}
	switch {
	case q.matches(m):
		return WhyMatchesAgain
	case m.guardReason() != "":
		return m.guardReason()
	case m.Skipped && m.served():
		return WhyTurnedHeld
	case !m.served():
		return "" // losing it costs nothing
	case q.gate == ManualPolicy || q.gate == PausedRollout:
		return WhyPaused
	case q.halted || q.failing && m.Index != q.probation:
		return WhyHalted
	}
	return ""
}

// recycleUndone returns why a recycle is withdrawn; empty if it is not. Losing a body that
// never served costs nothing.
func (m *Member) recycleUndone() Why {
	switch why := m.guardReason(); {
	case why != "":
		return why
	case !m.served():
		return ""
	case !m.Asked:
		return WhyNotAsked
	}
	return ""
}

// guardReason returns why a disrupted body stays, work or a hold that began after the
// decision; empty for none.
func (m *Member) guardReason() Why {
	switch m.guard(m.Disruption.Cause) {
	case "":
		return ""
	case HeldMember:
		return WhyTurnedHeld
	}
	return WhyTurnedBusy
}

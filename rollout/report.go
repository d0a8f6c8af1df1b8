package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// verdict returns the rank of the reason why the member at the position is not updated.
// Gate and limit are the ranks of the reasons that stop the rollout and that the pool's
// limits give.
func (q *pass) verdict(i int, m *Member, gate, limit int) int {
	if q.revisionState(m) != stale {
		return 0
	}
	guard := m.guard(Drift)
	switch {
	case (m.Disrupted() || m.Deleting || m.Phase == Draining) && !m.Claimed:
		return rankRolling
	case gate != 0:
		return gate
	case guard != "":
		return rank(guard)
	case m.Skipped:
		return rankHeld
	case m.Stuck:
		return rankStuck
	case q.partition() > 0 && q.allowed == 0:
		return rankPartitioned
	case q.partitionEdge != nil && q.s.Policy.before(q.partitionEdge, m):
		return rankPartitioned
	case q.actedOn.has(i):
		return rankRolling
	case !m.InService() && q.repairRoom() <= 0:
		return rankInFlight
	default:
		return limit
	}
}

// tally collects the verdicts and counts them.
func (q *pass) tally() {
	gate, limit := rank(q.gate), rank(q.limit())
	var tallies [len(reasons)]Tally
	var says [len(reasons)]string
	last := 0
	for i := q.stale.from; i < q.stale.to; i++ {
		m := &q.s.Members[i]
		r := q.verdict(i, m, gate, limit)
		if t := &tallies[r]; r > 0 && t.Count == 0 {
			t.Reason, t.Example = reasons[r].is, m.Index
			says[r] = q.because(t.Reason)
		}
		tallies[r].Count++
		if r > 0 && r == last {
			q.plan.Verdicts[len(q.plan.Verdicts)-1].To = m.Index
		} else if r > 0 {
			q.plan.Verdicts = append(q.plan.Verdicts, Verdict{m.Index, m.Index, reasons[r].is, says[r]})
		}
		last = r
	}
	for r := 1; r < len(reasons); r++ {
		if tallies[r].Count > 0 {
			q.plan.Blockers = append(q.plan.Blockers, tallies[r])
		}
	}
	slices.SortStableFunc(q.plan.Blockers, func(a, b Tally) int { return cmp.Compare(b.Count, a.Count) })
}

// requests collects the reasons why members are not recycled.
func (q *pass) requests() {
	if q.ledger.asking == 0 {
		return
	}
	says := map[Reason]string{}
	for _, i := range q.irregular {
		m := &q.s.Members[i]
		if !m.Asked {
			continue
		}
		r := q.requestReason(m)
		if r == "" {
			continue
		}
		if _, ok := says[r]; !ok {
			says[r] = q.because(r)
		}
		q.plan.Requests = append(q.plan.Requests, Verdict{m.Index, m.Index, r, says[r]})
	}
}

// Verdict returns the reason why the member with the index is not updated: the first
// obstacle that has to go. Empty: the member is on the target, or has no body.
func (p *Plan) Verdict(index int) Reason { return find(p.Verdicts, index).Reason }

// find returns the verdict on the member with the index; the zero Verdict for none.
func find(list []Verdict, index int) Verdict {
	i, ok := slices.BinarySearchFunc(list, index, func(v Verdict, index int) int {
		switch {
		case index < v.From:
			return 1
		case index > v.To:
			return -1
		}
		return 0
	})
	if !ok {
		return Verdict{}
	}
	return list[i]
}

// report fills in the messages of the plan.
func (q *pass) report() {
	c := &q.plan.Counts
	q.tally()
	q.requests()
	c.Surge = q.plan.Surge
	q.plan.Updated = q.updatedCondition()
	q.plan.Next = q.sentence()
	q.kstatus()
}

// blocked returns how many members the reason blocks, and the first of them.
func (q *pass) blocked(r Reason) (n, example int) {
	for _, t := range q.plan.Blockers {
		if t.Reason == r {
			return t.Count, t.Example
		}
	}
	return 0, 0
}

// moving reports whether a member is on its way to the target.
func (q *pass) moving() bool {
	if q.plan.Counts.Rolling > 0 || q.ledger.repairing > 0 || q.ledger.moving > 0 {
		return true
	}
	for i := range q.plan.Actions {
		switch a := &q.plan.Actions[i]; a.Kind {
		case Disrupt, CreateSlot:
			return true
		}
	}
	return false
}

// updatedCondition reports whether every member is on the target and, if not, why.
func (q *pass) updatedCondition() Condition {
	c, p := &q.plan.Counts, &q.s.Policy
	rolling := Condition{False, "RollingUpdate", fmt.Sprintf("members are brought to revision %s", q.target.ID)}
	switch {
	case q.invalid != nil:
		return Condition{Unknown, string(InvalidSnapshot), q.invalid.Error()}
	case q.s.Unreadable != "":
		return Condition{Unknown, string(q.s.Unreadable), q.s.Unreadable.Sentence()}
	case q.s.RolledBack.ID != "":
		return Condition{False, "RolledBack", q.rollbackSentence()}
	case q.s.Deleting:
		return Condition{False, "PoolDeleted", q.deletionSentence()}
	case q.halted:
		return Condition{False, "UpdateHalted", q.haltSentence()}
	case q.neverServed() && c.Stale == 0 || c.Stale+c.Unknown+q.ledger.offTarget == 0 && q.unseen():
		return rolling
	case c.Stale == 0 && c.Rolling == 0 && c.Unknown == 0 && q.ledger.offTarget == 0:
		return Condition{True, "AllMembersCurrent", fmt.Sprintf("every body is on revision %s", q.target.ID)}
	case c.Stale == 0 && c.Rolling == 0 && q.ledger.offTarget == c.Unknown:
		return Condition{Unknown, "RevisionUnknown", "the revision is unknown of " + members(c.Unknown)}
	case p.Manual && c.Stale > 0:
		return Condition{False, "TemplateChanged", fmt.Sprintf("%s not on revision %s; update.type is Manual", are(c.Stale), q.target.ID)}
	case q.partition() > 0 && q.ledger.offTarget <= q.partition() && q.ledger.rolling == 0 && q.ledger.unborn == 0 && q.taken == 0 && !q.failing:
		return Condition{True, "PartitionReached", q.partitionSentence()}
	case q.gate == PausedRollout:
		return Condition{False, "UpdatePaused", q.pauseSentence()}
	case q.moving():
		return rolling
	}
	return q.standstill()
}

// neverServed reports whether no body of any revision has come into service yet, though the
// size asks for one.
func (q *pass) neverServed() bool {
	c := &q.plan.Counts
	return q.current.ID == "" && q.target.Recovered == 0 && !q.ledger.targetServed && q.desired() > 0 && c.Unknown == 0 && c.InService == 0
}

// unseen reports whether no body of a target that is not the current revision has come into
// service yet, though the size asks for one.
func (q *pass) unseen() bool {
	return q.rolls() && !q.ledger.targetServed && !q.everRecovered() && q.desired() > 0
}

// standstill reports why a rollout that is due does not move.
func (q *pass) standstill() Condition {
	for _, r := range []Reason{OutsideWindow, BudgetFull} {
		n, i := q.blocked(r)
		if n == 0 {
			continue
		}
		is := Condition{False, "UpdateDeferred", fmt.Sprintf("member %d%s: %s", i, more(n-1), q.because(r))}
		if r == OutsideWindow && q.s.WindowNever {
			is.Reason = "UpdateBlocked"
		}
		return is
	}
	if len(q.plan.Blockers) == 0 {
		return Condition{False, "RollingUpdate", fmt.Sprintf("members are brought to revision %s", q.target.ID)}
	}
	t := q.plan.Blockers[0]
	return Condition{False, "UpdateBlocked", fmt.Sprintf("member %d%s: %s", t.Example, more(t.Count-1), q.because(t.Reason))}
}

// kstatus fills in the conditions that other tools read.
func (q *pass) kstatus() {
	c, p := &q.plan.Counts, &q.s.Policy
	d, up := p.Desired, c.InService
	if p.Warm {
		up = c.Free
	}
	if q.s.Deleting {
		d = 0
	}
	q.plan.Available = Condition{True, "EnoughInService", "no more than maxUnavailable members are out of service"}
	switch {
	case q.neverServed():
		q.plan.Available = Condition{False, "NeverInService", fmt.Sprintf("no body of revision %s has come into service yet%s", q.target.ID, q.lastWords())}
	case up >= d-p.MaxUnavailable:
	case q.sufficient():
		q.plan.Available = Condition{True, "EnoughFree", "as many members are free as spec.refillBelow asks for"}
	default:
		q.plan.Available = Condition{False, "TooFewInService", "more than maxUnavailable members are out of service"}
	}
	q.plan.Ready = Condition{True, "InService", "every member that the size asks for is in service"}
	switch {
	case up < d && q.ledger.slots < q.desired() && q.enough():
		q.plan.Ready = Condition{True, "EnoughFree", "as many members are free as spec.refillBelow asks for; missing ones are made once fewer are"}
	case up < d && q.belowSize():
		q.plan.Ready = Condition{False, "MaxMembersReached", "spec.maxMembers leaves no room for all members that spec.replicas asks for"}
	case up < d:
		q.plan.Ready = Condition{False, "OutOfService", "members that the size asks for are out of service"}
	}
	q.plan.Reconciling = Condition{False, "Settled", "nothing is on its way"}
	if q.s.Deleting || q.ledger.leaving > 0 || q.ledger.unborn > 0 || q.ledger.slots < q.desired() && !q.enough() || q.moving() {
		q.plan.Reconciling = Condition{True, "Progressing", "bodies are on their way in or out"}
	}
	q.plan.Stalled = q.stalled()
}

// stalled reports whether members are on their way and none has come into service for the
// progress deadline.
func (q *pass) stalled() Condition {
	switch {
	case q.halted:
		return Condition{True, "UpdateHalted", q.haltSentence()}
	case q.s.RolledBack.ID != "":
		return Condition{True, "RolledBack", q.rollbackSentence()}
	case q.s.WindowError != "":
		return Condition{True, "InvalidWindow", q.s.WindowError}
	case q.unbuildable != "":
		return Condition{True, string(RevisionNotReproducible), fmt.Sprintf("members wait for a body of revision %s: %s", q.unbuildable, RevisionNotReproducible.Sentence())}
	case q.gate == FloorUnreachable:
		return Condition{True, string(FloorUnreachable), q.because(FloorUnreachable)}
	}
	m := q.longestUnderway()
	if m == nil {
		return Condition{False, "NotStalled", "members come into service in time"}
	}
	since, _ := q.underway(m)
	if last := q.lastArrival(); last.After(since) {
		since = last
	}
	at := since.Add(q.s.Policy.ProgressDeadline + q.s.Policy.MinReady)
	if q.now.Before(at) {
		q.wake(at)
		return Condition{False, "NotStalled", "members come into service in time"}
	}
	return Condition{True, "ProgressDeadlineExceeded", fmt.Sprintf(
		"members are on their way, and none has come into service for progressDeadline: member %d%s", m.Index, whyDown(m))}
}

// longestUnderway returns the member that has been on its way into service for longest; nil
// if none is. A member on which this plan acts starts anew.
func (q *pass) longestUnderway() *Member {
	if q.ledger.longestUnderway == 0 {
		return nil
	}
	if !q.actedOn.has(q.ledger.longestUnderway - 1) {
		return &q.s.Members[q.ledger.longestUnderway-1]
	}
	var first *Member
	var oldest time.Time
	for _, i := range q.irregular {
		m := &q.s.Members[i]
		if q.actedOn.has(i) {
			continue
		}
		if since, on := q.underway(m); on && (first == nil || since.Before(oldest)) {
			first, oldest = m, since
		}
	}
	return first
}

// underway reports since when the member is on its way into service: from the decision, or
// from when it went down. A member kept by a claim, work, a hold or a window is not on its
// way.
func (q *pass) underway(m *Member) (time.Time, bool) {
	switch {
	case m.leaving() || m.InService() || m.Phase == Quarantined:
		return time.Time{}, false
	case m.Phase == Failed && m.guard(BodyFailed) != "":
		return time.Time{}, false
	case m.Rolling() || m.Repairing():
		if m.drains() && m.guard(m.Disruption.Cause) != "" {
			return time.Time{}, false
		}
		return m.Disruption.Since, true
	case m.Phase == Failed && m.served() && q.target.ID != m.Runs && q.s.WindowShut && !m.Gone:
		return time.Time{}, false
	case m.comingUp() || m.Phase == Failed || m.Disrupted():
		if m.Disruption.Since.After(m.outSince()) { // an obstacle before that does not count
			return m.Disruption.Since, true
		}
		return m.outSince(), true
	}
	return time.Time{}, false
}

// lastArrival returns when a body last came into service for the first time. For a body
// that is gone only its recovery is known, a little later.
func (q *pass) lastArrival() time.Time {
	var last time.Time
	for i := range q.s.Members {
		m := &q.s.Members[i]
		at := m.RecoveredAt
		if m.served() {
			at = m.BornAt.Add(m.BootTook)
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

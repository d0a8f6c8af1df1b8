package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Plan is what is to be done with a pool now, and why nothing else is done. It shares no
// memory with the snapshot.
type Plan struct {
	// Target is the revision to which members are brought.
	Target Revision
	// Actions are to be carried out in order. Those on revisions come first: if one of them
	// fails, the caller carries out none after it. If an action on a member fails, the
	// caller goes on; the next pass plans that member anew.
	Actions []Action
	// Wake is when the plan changes without any other change; zero for never.
	Wake time.Time
	// Counts are those before the actions.
	Counts Counts
	// Blockers count the reasons of the stale members, the most frequent first.
	Blockers []Tally
	// Verdicts hold the reason for each stale member, Requests for each member with a
	// recycle request, in order of index.
	Verdicts, Requests []Verdict
	// The conditions of the pool.
	Updated, Ready, Reconciling, Stalled, Available Condition
	// Surge is the number of slots above the desired number that are kept as surge. The
	// caller stores it for the next Snapshot: slots left over by a scale-down are not
	// surge.
	Surge int
	// Size is the number of members for which slots have been made. The caller stores it
	// for the next Snapshot, from which the next pass knows that the pool has grown.
	Size int
	// Next is one sentence: what happens next, or what a person has to do.
	Next string
}

// Verdict is the reason why the members with index From to To are not updated, or not
// recycled. It holds for every listed member in the range.
type Verdict struct {
	From, To int
	Reason   Reason
	// Says is the reason as a sentence, with names and numbers.
	Says string
}

// Counts are numbers of members.
type Counts struct {
	// Members counts all slots, those on their way out included.
	Members int
	// InService counts members that are free, or claimed with a healthy body.
	Free, Claimed, InService int
	// Provisioning counts members whose body is on its way.
	Provisioning int
	// Updated, Stale and Unknown count bodies by revision.
	Updated, Stale, Unknown int
	// Rolling and Repairing count the members for which [Member.Rolling] and
	// [Member.Repairing] report true.
	Rolling, Repairing int
	// Surge counts slots above the desired number.
	Surge int
	// Failed and Quarantined count members by phase.
	Failed, Quarantined int
}

// Tally is the number of members that a reason blocks.
type Tally struct {
	Reason Reason
	Count  int
	// Example is the index of the first of them.
	Example int
}

// Status is the status of a condition.
type Status string

// The statuses.
const (
	True    Status = "True"
	False   Status = "False"
	Unknown Status = "Unknown"
)

// Condition is one of a pool's conditions. Messages hold no times, so they do not change
// between passes.
type Condition struct {
	Status          Status
	Reason, Message string
}

// Plan returns the plan for the snapshot at the time. For an invalid snapshot it has no
// actions, and the condition Updated holds the error.
func (s *Snapshot) Plan(now time.Time) *Plan {
	q := s.decide(now)
	q.report()
	return q.plan
}

// decide plans without messages.
func (s *Snapshot) decide(now time.Time) *pass {
	q := &pass{}
	q.decide(s, now, rest{})
	return q
}

// decide plans for the snapshot and the members in r, which are only counted. It writes no
// messages: forecasts call it thousands of times, and messages would cost more than
// deciding. It reuses the memory of the last pass.
func (q *pass) decide(s *Snapshot, now time.Time, r rest) {
	s = s.usual()
	q.reset(s, now, r)
	if q.invalid = s.Validate(); q.invalid == nil {
		q.read()
	}
	if q.ahead && q.invalid == nil {
		q.reset(s.asOf(now), now, r)
		q.read()
	}
	q.gate = q.findGate()
	if q.readable() {
		q.judge()
		q.gate = q.findGate()
		q.takeBack()
		q.resize()
		q.correctGrants()
		q.heal()
		q.recycle()
		q.rollDown()
		q.rollUp()
		q.surge()
	}
	q.plan.Surge, q.plan.Size = min(q.excess(), q.allowedSurge), q.size()
	q.storeRecoveries()
	q.conclude()
}

// reset begins a pass over the snapshot.
func (q *pass) reset(s *Snapshot, now time.Time, r rest) {
	*q = pass{s: s, rest: r, now: now, plan: &Plan{Target: s.Target.ID}, target: s.Target, current: s.Current}
}

// conclude puts the writes to revisions before all other actions. All writes to the target
// share one final record.
func (q *pass) conclude() {
	if len(q.notes) == 0 {
		return
	}
	target := q.target
	target.Failures = slices.Clone(target.Failures)
	for i := range q.notes {
		if q.notes[i].Record == &q.target {
			q.notes[i].Record = &target
		}
	}
	q.plan.Actions = append(q.notes, q.plan.Actions...)
}

// pass is the state of one planning.
type pass struct {
	s      *Snapshot
	rest   rest
	now    time.Time
	plan   *Plan
	ledger ledger

	// target and current are the records as this pass leaves them.
	target, current Record
	halted, failing bool
	// unsettled: a body of the target is unsettled, and none has recovered since. overdue:
	// no body of the target has come into service in the expected time.
	unsettled, overdue bool
	// probation is the slot that tries the target while a failure is open. keptFailure is a
	// failed slot that is kept as it is. probationInBackoff: the next birth of the slot on
	// probation is not due yet.
	probation          int
	keptFailure        *Member
	probationInBackoff bool
	// notes are the actions on revisions. failures maps an index to its position in the
	// record; nil until it is needed.
	notes    []Action
	failures map[int]int
	// invalid is the error in the snapshot. ahead: it holds times of a clock that was
	// ahead.
	invalid error
	ahead   bool
	// storesRecoveries: a slot is removed that shows an uncounted recovery.
	storesRecoveries bool
	// gate is the reason that stops the whole rollout; empty for none.
	gate Reason
	// irregular are the positions of the members that are not regular, ascending. actedOn
	// are those on which this plan acts.
	irregular []int
	actedOn   positions
	// stale is the range of the stale members.
	stale extent
	// needsRecoveries: it matters which members have been in service since cutoff.
	needsRecoveries bool
	cutoff          time.Time
	// resizing: slots are made or removed in this pass, or still to be made.
	resizing bool
	// unbuildable is a revision that cannot be built and for which slots wait.
	unbuildable Revision
	// nextIndex is the lowest index that may be free. made counts the slots that this plan
	// makes.
	nextIndex, made int
	// allowed is how many more members may leave the partition. partitionEdge is the last
	// one that may; nil if all may.
	allowed       int
	partitionEdge *Member
	// taken counts the members in service that this pass takes, dropped those out of
	// service that it replaces for drift. allowedSurge is how many slots above the desired
	// number may stay. nextRecovery is when the next body will have recovered.
	taken        int
	dropped      int
	allowedSurge int
	nextRecovery time.Time
}

// findGate returns the reason that stops the whole rollout; empty for none.
func (q *pass) findGate() Reason {
	p := &q.s.Policy
	switch {
	case q.invalid != nil:
		return InvalidSnapshot
	case !q.readable() && q.s.WritesUnseen:
		return WritesUnseen
	case !q.readable():
		return q.s.Unreadable
	case p.Manual || q.s.Deleting:
		return ManualPolicy
	case q.halted:
		return HaltedTarget
	case q.failing && !q.target.Missing:
		return FailedReplacement
	case p.Paused || p.Zero:
		return PausedRollout
	case q.floorUnreachable() != "":
		return FloorUnreachable
	case q.target.Missing:
		return RevisionNotReproducible
	}
	return ""
}

// floorUnreachable names the two colliding fields of a policy that can never take a member;
// empty if none collide.
func (q *pass) floorUnreachable() string {
	field, other := q.s.Policy.Collision()
	if field == "" {
		return ""
	}
	return field + " and " + other
}

// act adds an action on the member at the position, at most one a plan.
func (q *pass) act(i int, a Action) {
	if q.actedOn == nil {
		q.actedOn = make(positions, len(q.s.Members)/64+1)
	}
	q.actedOn.add(i)
	a.Index = q.s.Members[i].Index
	q.plan.Actions = append(q.plan.Actions, a)
}

// acted reports whether this plan acts on the member already.
func (q *pass) acted(m *Member) bool {
	return q.actedOn != nil && q.actedOn.has(q.position(m.Index))
}

// positions is a set of positions in the list of members.
type positions []uint64

func (s positions) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s positions) has(i int) bool { return s != nil && s[i/64]&(1<<(i%64)) != 0 }

// replace gives the slot at the position a new body. An empty revision withdraws the grant.
func (q *pass) replace(i int, c Cause, to Revision, why Why) {
	m := &q.s.Members[i]
	q.leaveService(m)
	if !m.leaving() {
		q.countGrant(m, to)
		if !m.unborn() {
			q.ledger.unborn++
		}
	}
	if c == Drift && !m.InService() {
		q.dropped++
	}
	d := Disruption{Cause: c, Update: q.updates(m, c), Rolling: m.Rolling() || why == WhyStale || why == WhyAsked && m.InService()}
	q.disrupt(i, d, to, why)
}

// updates reports whether the body is updated in place. A recycle request gets a new body,
// and a holder's body ends with the claim.
func (q *pass) updates(m *Member, c Cause) bool {
	return q.s.Policy.InPlace && m.Body && !m.Claimed && c != Requested
}

// remove removes the slot at the position.
func (q *pass) remove(i int, c Cause, why Why) {
	m := &q.s.Members[i]
	to := m.Wants
	if m.Body && m.Runs == "" && m.Disrupted() && !m.leaving() && q.current.ID != q.target.ID {
		to = q.current.ID // it is stale; the grant does not say what it runs
	}
	q.leaveService(m)
	q.storesRecoveries = q.storesRecoveries || q.losesRecovery(m)
	if !m.leaving() {
		if q.offTarget(m) {
			q.ledger.offTarget--
		}
		if m.unborn() {
			q.ledger.unborn--
		}
		q.ledger.slots--
		q.ledger.leaving++
	}
	if m.Disrupted() && m.Disruption.Cause == ClaimEnded {
		c = ClaimEnded // a used body never serves again, even if the size grows
	}
	q.disrupt(i, Disruption{Cause: c, Remove: true, Rolling: m.Rolling() || why == WhyStale || why == WhyAsked}, to, why)
}

func (q *pass) disrupt(i int, d Disruption, to Revision, why Why) {
	m := &q.s.Members[i]
	d.Incarnation, d.Since = m.Incarnation, q.now
	if m.Rolling() {
		d.Since = m.Disruption.Since // out of service since then
	}
	q.act(i, Action{Kind: Disrupt, Revision: to, Why: why, DropClaim: m.Claimed, Disruption: d})
}

// leaveService takes the member out of service in the ledger.
func (q *pass) leaveService(m *Member) {
	if m.InService() {
		q.ledger.up--
	}
	if m.Free() {
		q.ledger.free--
		if m.Occupancy == Idle {
			q.ledger.claimable--
		}
	}
}

// countGrant enters the slot's new grant in the ledger.
func (q *pass) countGrant(m *Member, to Revision) {
	if q.offTarget(m) {
		q.ledger.offTarget--
	}
	if to != "" && to != q.target.ID {
		q.ledger.offTarget++
	}
}

// wake asks for another pass at the time.
func (q *pass) wake(at time.Time) { q.plan.Wake = earliest(q.plan.Wake, at) }

// String lists the actions, the blockers, the conditions and what comes next, one a line.
func (p *Plan) String() string {
	var b strings.Builder
	for i := range p.Actions {
		fmt.Fprintln(&b, p.Actions[i].String())
	}
	for _, t := range p.Blockers {
		fmt.Fprintf(&b, "%s: %s, the first is %d\n", t.Reason, members(t.Count), t.Example)
	}
	for _, c := range []struct {
		name string
		Condition
	}{{"Updated", p.Updated}, {"Ready", p.Ready}, {"Reconciling", p.Reconciling}, {"Stalled", p.Stalled}, {"Available", p.Available}} {
		if c.Status != "" {
			fmt.Fprintf(&b, "%s=%s %s: %s\n", c.name, c.Status, c.Reason, c.Message)
		}
	}
	if p.Next != "" {
		fmt.Fprintf(&b, "next: %s\n", p.Next)
	}
	if !p.Wake.IsZero() {
		fmt.Fprintf(&b, "wake: %s\n", p.Wake.UTC().Format(time.RFC3339Nano))
	}
	return b.String()
}

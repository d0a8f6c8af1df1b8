package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Plan is what is to be done with a pool now, and why nothing else is. It is data:
// it holds on to nothing of the snapshot.
type Plan struct {
	// Target is the revision that members are brought to.
	Target Revision
	// Actions in the order in which they are to be carried out. Those on
	// revisions come first: if one of them fails, none after it may be carried
	// out. One on a member that fails costs that member only; the next pass
	// plans anew.
	Actions []Action
	// Wake is when time alone changes the plan; zero for never.
	Wake time.Time
	// Counts of the members as they are, before the actions.
	Counts Counts
	// Blockers of the stale members, the most frequent first.
	Blockers []Tally
	// Verdicts are what keeps each stale member, and Requests what keeps each
	// member that somebody asked to recycle, in order of index.
	Verdicts, Requests []Verdict
	// The conditions of the pool.
	Updated, Ready, Reconciling, Stalled, Available Condition
	// Surge is how many slots above the desired number this plan leaves on
	// purpose. It is to be stored, and given to the next pass: what a
	// scale-down leaves over is not surge.
	Surge int
	// Size is the number of members for which slots are made. It is to be stored,
	// and given to the next pass, which thereby sees that the pool has grown.
	Size int
	// Next is one sentence: what happens next, or who has to do what.
	Next string
}

// Verdict is what keeps the members from index From to index To from being
// updated, or recycled; all that there are between them.
type Verdict struct {
	From, To int
	Reason   Reason
	// Says is the reason as a sentence, with the names and numbers of this plan.
	Says string
}

// Counts are numbers of members.
type Counts struct {
	// Members are all slots, those on their way out included.
	Members int
	// Free and Claimed; InService is free, or claimed with a healthy body.
	Free, Claimed, InService int
	// Provisioning: the body is on its way.
	Provisioning int
	// Updated, Stale and Unknown are bodies by revision.
	Updated, Stale, Unknown int
	// Rolling: a rollout took them and they are not back. Repairing: they were
	// down when they were replaced and are not back.
	Rolling, Repairing int
	// Surge are slots above the desired number.
	Surge int
	// Failed and Quarantined by phase.
	Failed, Quarantined int
}

// Tally is how many members one reason blocks.
type Tally struct {
	Reason Reason
	Count  int
	// Example is the index of the first of them.
	Example int
}

// Status is that of a condition.
type Status string

// The statuses.
const (
	True    Status = "True"
	False   Status = "False"
	Unknown Status = "Unknown"
)

// Condition is one of a pool's conditions. Messages are stable between passes:
// they hold no times.
type Condition struct {
	Status          Status
	Reason, Message string
}

// Plan plans for the snapshot at the time. Of a snapshot that is not valid it does
// nothing, and says why in the condition Updated.
func (s *Snapshot) Plan(now time.Time) *Plan {
	q := s.decide(now, rest{})
	q.report()
	return q.plan
}

// decide plans for the snapshot and more members, which are only counted. It says
// nothing about the plan: building messages would cost a forecast more than
// deciding.
func (s *Snapshot) decide(now time.Time, r rest) *pass {
	q := &pass{}
	q.decide(s, now, r)
	return q
}

// decide plans as Snapshot.decide does, in the room that the last pass had.
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

// conclude puts what is stored with revisions before all other actions. What
// concerns the target is one record, whatever came to it.
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
	// unsettled: a body of the target went down before it recovered, and none has
	// served long enough since. untried: none has come up, for too long.
	unsettled, overdue bool
	// probation is the slot that tries the target while failing, keeper one that
	// failed and is kept as it is. probationPauses: its next birth is not yet due.
	probation          int
	keptFailure        *Member
	probationInBackoff bool
	// notes are the actions on revisions; failures is where in the record each
	// slot's failure stands, made when it is asked for.
	notes    []Action
	failures map[int]int
	// invalid is what is wrong with the snapshot. ahead: a clock that was ahead
	// wrote some of it.
	invalid error
	ahead   bool
	// storesRecoveries: a slot goes with which a body that recovered would be forgotten.
	storesRecoveries bool
	// gate is what keeps the whole rollout from going on.
	gate Reason
	// irregular are the positions of members that are not simply in service, in
	// order; done those that this plan acts upon.
	irregular []int
	actedOn   positions
	// stale is where the stale members stand.
	stale extent
	// needsRecoveries: it matters which members have been in service since cutoff.
	needsRecoveries bool
	cutoff          time.Time
	// resizing: slots are made or named for removal in this very pass, or
	// still to be made.
	resizing bool
	// unbuildable is a revision for which slots wait, and that cannot be built.
	unbuildable Revision
	// next is the lowest index that may be free, made how many slots this plan
	// makes.
	nextIndex, made int
	// allowed is how many more members may leave the partition; bound is the
	// last one that may, if only some.
	allowed       int
	partitionEdge *Member
	// taken are the members in service taken in this pass, dropped those out of
	// service that it replaces for drift, surplus the slots above the desired number
	// that are wanted.
	taken        int
	dropped      int
	allowedSurge int
	nextRecovery time.Time
}

// findGate is what keeps the whole rollout from going on; empty for nothing.
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

// floorUnreachable names the two fields that collide, if this policy can never
// take a member.
func (q *pass) floorUnreachable() string {
	field, other := q.s.Policy.Collision()
	if field == "" {
		return ""
	}
	return field + " and " + other
}

// act adds an action on the member at the position, once in a plan.
func (q *pass) act(i int, a Action) {
	if q.actedOn == nil {
		q.actedOn = make(positions, len(q.s.Members)/64+1)
	}
	q.actedOn.add(i)
	a.Index = q.s.Members[i].Index
	q.plan.Actions = append(q.plan.Actions, a)
}

// acted tells whether this plan acts on the member already.
func (q *pass) acted(m *Member) bool {
	return q.actedOn != nil && q.actedOn.has(q.position(m.Index))
}

// positions is a set of positions in the list of members.
type positions []uint64

func (s positions) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s positions) has(i int) bool { return s != nil && s[i/64]&(1<<(i%64)) != 0 }

// replace gives the slot at the position a new body; empty is no grant yet.
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

// updates tells whether the member's body is kept, and only what it is made
// from changes. Who asks for another body gets one, and a holder's body ends
// with the claim.
func (q *pass) updates(m *Member, c Cause) bool {
	return q.s.Policy.InPlace && m.Body && !m.Claimed && c != Requested
}

// remove takes the slot at the position away.
func (q *pass) remove(i int, c Cause, why Why) {
	m := &q.s.Members[i]
	to := m.Wants
	if m.Body && m.Runs == "" && m.Disrupted() && !m.leaving() && q.current.ID != q.target.ID {
		to = q.current.ID // it is stale; what it was to become says nothing of what it is
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
		c = ClaimEnded // what somebody has used never serves again, whatever the size asks for
	}
	q.disrupt(i, Disruption{Cause: c, Remove: true, Rolling: m.Rolling() || why == WhyStale || why == WhyAsked}, to, why)
}

func (q *pass) disrupt(i int, d Disruption, to Revision, why Why) {
	m := &q.s.Members[i]
	d.Incarnation, d.Since = m.Incarnation, q.now
	if m.Rolling() {
		d.Since = m.Disruption.Since // it has been out of service since then
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

// countGrant enters in the ledger what the slot is bound for now.
func (q *pass) countGrant(m *Member, to Revision) {
	if q.offTarget(m) {
		q.ledger.offTarget--
	}
	if to != "" && to != q.target.ID {
		q.ledger.offTarget++
	}
}

// wake asks to plan again at the time.
func (q *pass) wake(at time.Time) { q.plan.Wake = earliest(q.plan.Wake, at) }

// String lists the actions of the plan, what keeps other members, and what comes
// next, one line each.
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

package rollout

import "time"

// Plan is what is to be done with a pool now, and why nothing else is.
type Plan struct {
	// Actions in the order in which they are to be carried out. One that fails
	// ends the pass; the next pass begins anew.
	Actions []Action
	// Wake is when time alone changes the plan; zero for never.
	Wake time.Time
	// Counts of the members as they are, before the actions.
	Counts Counts
	// Blockers of the stale members, the most frequent first.
	Blockers []Tally
	// The conditions of the pool.
	Updated, Ready, Reconciling, Stalled, Available Condition
	// Next is one sentence: what happens next, or who has to do what.
	Next string

	pass *pass
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

// New plans for the snapshot at the time.
func New(s *Snapshot, now time.Time) *Plan {
	return &Plan{}
}

// Verdict is what keeps the member from being updated, empty for nothing.
func (p *Plan) Verdict(m *Member) Reason { return "" }

type pass struct{}

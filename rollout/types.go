package rollout

import (
	"slices"
	"strconv"
	"time"
)

// Revision names one content-addressed version of everything that decides
// what a body is. Empty means unknown.
type Revision string

// Phase is where a slot is in its life.
type Phase uint8

// The phases of a slot.
const (
	Pending      Phase = iota // no body yet
	Provisioning              // the body boots
	Preparing                 // the body is ready, but not for long enough yet
	Available                 // in service, if unclaimed and undisturbed free
	InClaim                   // somebody holds it
	Unready                   // it has served, and is down
	Updating                  // another revision is applied to the body
	Draining                  // it is to go, and may still be taken back
	Terminating               // it goes; nothing brings it back
	Failed                    // it did not come up, crashed, is gone, or stayed down
	Quarantined               // failed and kept for inspection
)

var phaseNames = [...]string{
	"Pending", "Provisioning", "Preparing", "Available", "Claimed",
	"Unready", "Updating", "Draining", "Terminating", "Failed", "Quarantined",
}

func (p Phase) String() string { return nameOf(phaseNames[:], int(p)) }

// nameOf is the name of a number, or the number in words if it has none.
func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown " + strconv.Itoa(i)
}

// ParsePhase returns the phase with the name; Pending for the empty one.
func ParsePhase(name string) (Phase, bool) {
	for i, n := range phaseNames {
		if n == name {
			return Phase(i), true
		}
	}
	return Pending, name == ""
}

// Occupancy is whether work runs on a member.
type Occupancy uint8

// The occupancies. Unknown counts as busy; a body that has never been in
// service is idle by definition.
const (
	Idle Occupancy = iota
	Busy
	OccupancyUnsure
)

// Cause is why a member is disrupted.
type Cause uint8

// The causes.
const (
	NoCause Cause = iota
	Drift
	ScaleDown
	BodyFailed
	ClaimEnded
	Requested
)

var causeNames = [...]string{"", "Drift", "ScaleDown", "Failed", "ClaimEnded", "Requested"}

func (c Cause) String() string { return nameOf(causeNames[:], int(c)) }

// ParseCause returns the cause with the name.
func ParseCause(name string) (Cause, bool) {
	for i, n := range causeNames {
		if n == name {
			return Cause(i), true
		}
	}
	return NoCause, false
}

// Disruption is the recorded decision to replace, update or remove a body. The
// zero value is none.
type Disruption struct {
	Cause Cause
	// Remove: the slot goes with the body. Update: the body stays, and becomes
	// another revision. Neither: a new body takes its place.
	Remove, Update bool
	// Rolling: a rollout took the member out of service, and it has not been
	// back since. A slot keeps it through failed replacements.
	Rolling bool
	// Incarnation is the one that is disrupted. A disruption of an earlier
	// one is spent.
	Incarnation int64
	Since       time.Time
}

// Member is what the engine knows of one slot. What is looked at for every
// member in every pass comes first: memory is what a large pool waits for.
type Member struct {
	// Index is the slot's place in its pool.
	Index int
	// Wants is the revision granted to this or the next body; Runs what really
	// runs, or, without a body, what the last one was or was to be.
	Wants, Runs Revision
	// Incarnation counts the bodies of the slot; 0 before the first.
	Incarnation int64
	// Phase is as recorded, Body whether there is one, Gone whether the body
	// has ended by itself or vanished.
	Phase      Phase
	Body, Gone bool

	Claimed, Cordoned, Held bool
	// Asked: somebody asked for another body. Skipped: somebody gave up on
	// bringing the slot to the target. Stuck: what was to be written to the slot
	// is refused for what it is, so that nothing more is planned for it.
	Asked, Skipped, Stuck bool
	Occupancy             Occupancy
	// Deleting: somebody deletes the slot itself.
	Deleting bool
	// Cost orders the members: lower ones are disrupted first.
	Cost int32
	// ServedSince is when the body last came into service, zero if never.
	ServedSince time.Time
	Disruption  Disruption

	// BornAt is when the body was created, or the slot where there was none
	// yet; PhaseSince when the slot entered its phase.
	BornAt, PhaseSince time.Time
	// DownSince is when the slot was last in service, or was made where it never
	// was; zero while it is in service.
	DownSince time.Time
	// UnsettledSince is when the body first left service before it had recovered;
	// zero if it never did. It means nothing once the body has recovered.
	UnsettledSince time.Time
	// Recovered is the revision of the slot's last body that recovered, as far as
	// that is recorded, and RecoveredAt when it did. A body that is in service
	// since long enough has recovered although it is not recorded yet.
	Recovered   Revision
	RecoveredAt time.Time
	// ID identifies the slot itself: another slot of the same index that was
	// made later has another one.
	ID string
	// FailedEarly: in phase Failed, the body had served for less than ten times
	// what recovery takes, so that it counts against its revision.
	FailedEarly bool
	// NoRoom: the last birth was refused for lack of capacity. Attempts counts
	// the births in a row whose body did not recover: refused, failed, vanished or
	// without room. The next one of the same revision is not tried before
	// NextAttempt.
	NoRoom bool
	// ForClaim: the slot was made because a claim waited.
	ForClaim    bool
	Attempts    int32
	NextAttempt time.Time
	// Message is what the body last said about itself.
	Message string
	// BootTook is how long the slot's last body that came into service took
	// from its birth until then, StopTook how long the last one that went took
	// from the decision until it was gone; 0 for not known.
	BootTook, StopTook time.Duration
}

// Disrupted reports whether a disruption of the present body is recorded.
func (m *Member) Disrupted() bool {
	return m.Disruption.Cause != NoCause && m.Disruption.Incarnation == m.Incarnation
}

// leaving tells whether the slot goes.
func (m *Member) leaving() bool {
	return m.Deleting || m.Disrupted() && m.Disruption.Remove
}

// healthy tells whether the body serves.
func (m *Member) healthy() bool { return m.Phase == Available || m.Phase == InClaim }

// recovered reports whether the present body has recovered, as is recorded.
func (m *Member) recovered() bool {
	return m.RecoveredAt.After(m.BornAt) && m.Recovered == m.Runs
}

// relapsed reports whether the body has recovered, and failed later.
func (m *Member) relapsed() bool {
	return m.Phase == Failed && m.FailedEarly && m.Attempts == 0 && m.served()
}

// outSince is since when the slot is not in service; of what was recorded without
// it, since it entered its phase.
func (m *Member) outSince() time.Time {
	switch {
	case !m.DownSince.IsZero():
		return m.DownSince
	case m.served():
		return m.PhaseSince
	}
	return m.BornAt
}

// Free tells whether the member can be claimed.
func (m *Member) Free() bool {
	return m.healthy() && !m.Claimed && !m.Cordoned && !m.Deleting && !m.Disrupted()
}

// InService tells whether the member is free, or claimed with a healthy body.
func (m *Member) InService() bool {
	return m.Free() || m.Claimed && m.healthy()
}

// Rolling tells whether a rollout took the member out of service and it is not
// back yet. One that is quarantined is replaced by another slot.
func (m *Member) Rolling() bool {
	return m.Disruption.Rolling && m.Phase != Quarantined && (m.Disrupted() || !m.served())
}

// Repairing tells whether the member was down when it was replaced, and is not
// back yet.
func (m *Member) Repairing() bool {
	d := m.Disruption
	return (d.Cause == Drift || d.Cause == BodyFailed) && !d.Rolling && !d.Remove && (m.Disrupted() || !m.served())
}

func (m *Member) served() bool { return !m.ServedSince.IsZero() }

// busy tells whether work may run on it.
func (m *Member) busy() bool { return m.Occupancy != Idle && m.served() }

// lost tells whether the body has ended by itself, or vanished, for good.
func (m *Member) lost() bool { return m.Phase == Failed && m.Gone }

// doomed tells whether the body is lost, or goes whatever is decided now.
func (m *Member) doomed() bool {
	c := m.Disruption.Cause
	return m.lost() || m.Disrupted() && !m.Disruption.Update && (m.Phase == Terminating || c == ClaimEnded || c == BodyFailed)
}

// unborn tells whether the slot is owed a body: a grant decides which.
func (m *Member) unborn() bool {
	if m.leaving() {
		return false
	}
	return m.Phase == Pending || m.Disrupted()
}

// comingUp tells whether the slot has, or waits for, a body that has not served.
func (m *Member) comingUp() bool {
	switch m.Phase {
	case Pending, Provisioning, Preparing, Updating:
		return true
	default:
		return false
	}
}

// recoveryFactor is how many times as long as recovery takes a body has to have served
// until its failure does not count against a target any more.
const recoveryFactor = 10

// Failure is a slot in which bodies of a revision failed.
type Failure struct {
	// ID and Index are those of the slot.
	ID    string
	Index int
	// Incarnation is the last one that was counted, Count how many were since the
	// revision became the target or was retried; 0 keeps an incarnation from
	// being counted again.
	Incarnation int64
	Count       int
	// At is when the last one failed.
	At time.Time
	// Forgiven: a body of the revision has recovered since, so that the failure
	// holds nothing up any more. The slot still counts towards the limit.
	Forgiven bool
	// Message is the body's own words.
	Message string
}

// MaxFailures is the number of slots that a record names. More of them failing
// at once reach any failure limit.
const MaxFailures = 500

// Record is what is stored with a revision.
type Record struct {
	ID Revision
	// Failures are the slots in which bodies failed, in the order in which they
	// failed first; at most MaxFailures.
	Failures []Failure
	// Failed is the number of bodies that failed since the revision became the
	// target or was retried.
	Failed int
	// Recovered is how many of its bodies had recovered by Counted and did not
	// fail later. Those that recovered after it are counted from the members.
	Recovered int
	Counted   time.Time
	// Cutoff is since when a body had to be in service at the latest to be counted
	// then: so long before Counted as recovery took. Zero: as long as it takes now.
	Cutoff time.Time
	// Worked: a body recovered that failed later, so that Recovered may be 0 again.
	Worked bool
	// Since is when the revision became the target.
	Since time.Time
	// Halted: the failure limit was reached. RolledBack: and the target went
	// back to the current revision.
	Halted, RolledBack bool
	// Missing: what it is made from is gone, so that it cannot be built.
	Missing bool
}

// Renewed is the record of a revision that becomes the target at the time, or
// gets one more round: it starts clean, unless it is halted. What was counted is
// not counted again.
func (r Record) Renewed(now time.Time) Record {
	r.Since = now
	if r.Halted {
		return r
	}
	r.Failed, r.Failures = 0, slices.Clone(r.Failures)
	for i := range r.Failures {
		r.Failures[i].Forgiven, r.Failures[i].Count = true, 0
	}
	r.Recovered, r.Counted, r.Cutoff, r.Worked = 0, time.Time{}, time.Time{}, false
	return r
}

// open reports whether a failure holds the revision up.
func (r *Record) open() bool {
	return slices.ContainsFunc(r.Failures, func(f Failure) bool { return !f.Forgiven })
}

// slots is the number of slots in which a body failed.
func (r *Record) slots() int {
	n := 0
	for i := range r.Failures {
		if r.Failures[i].Count > 0 {
			n++
		}
	}
	return n
}

// Order is the order in which members are taken.
type Order uint8

// The orders.
const (
	LowestIndex Order = iota
	OldestFirst
)

// Policy is how a pool is to be kept, in resolved numbers.
type Policy struct {
	// Desired is the number of members, 0 or more.
	Desired int
	// Warm: members count towards Desired only while nobody holds them, and
	// those that are claimed come on top.
	Warm bool
	// RefillBelow: missing members are made only once fewer than this are free,
	// or drift waits to be rolled; 0 for at once.
	RefillBelow int
	// MaxMembers is the largest number of slots there may be, of any kind, where
	// HasCeiling is set.
	MaxMembers int
	HasCeiling bool
	// InPlace: members are updated rather than replaced. It allows no surge.
	InPlace bool
	// Manual: drift is shown and not acted on.
	Manual bool
	// Paused: nothing new for drift. Zero: because maxUnavailable and maxSurge
	// are both written as 0.
	Paused, Zero bool
	// MaxUnavailable, MaxSurge and MinAvailable are numbers of members, 0 or
	// more; MinAvailable is a floor only where HasFloor is set.
	MaxUnavailable, MaxSurge, MinAvailable int
	HasFloor                               bool
	// MaxInFlight is how many members may roll at once, 1 or more.
	MaxInFlight int
	// Partition is how many members stay off the target.
	Partition int
	Order     Order
	// MinReady is how long a body has to be ready until it is in service.
	MinReady time.Duration
	// ProgressDeadline is how long no member may come into service while one
	// should, until the pool is stalled.
	ProgressDeadline time.Duration
	// FailureLimit is in how many slots bodies of the target may fail until the
	// rollout halts, 1 or more; while none of its bodies has recovered, how many
	// bodies may.
	FailureLimit int
	// Rollback: at the failure limit the target goes back to the current
	// revision.
	Rollback bool
	// ReplaceUnknown: members of unknown revision are stale at once.
	ReplaceUnknown bool
}

// surge is how many slots there may be above the desired number.
func (p *Policy) surge() int {
	if p.InPlace {
		return 0
	}
	return p.MaxSurge
}

// most is how many members may be in service while the last one is taken, which
// has one surge body at most to stand in for it.
func (p *Policy) most() int {
	n := p.Desired + min(p.surge(), 1)
	if p.HasCeiling {
		n = min(n, p.MaxMembers)
	}
	return n
}

// RecoverAfter is how long a body has to be in service until its failures are
// forgiven: the larger of minReadySeconds and a minute.
func (p *Policy) RecoverAfter() time.Duration { return max(p.MinReady, time.Minute) }

// Snapshot is everything a plan depends on, but for the time.
type Snapshot struct {
	Policy Policy
	// Target is what the template says now; Current the last revision on which
	// the pool stood, or the first one of which a body recovered. They may be the
	// same. Current has no ID until a body has recovered.
	Target, Current Record
	// Surge is Plan.Surge of the last pass, 0 if that is not known any more.
	Surge int
	// Size is Plan.Size of the last pass, 0 if that is not known: the number of
	// members that were made. A larger Policy.Desired starts a refill.
	Size int
	// Members in ascending order of Index, each index once.
	Members []Member
	// Unreadable is why the world cannot be told: Unreachable,
	// SourcesUnresolved, or empty.
	Unreadable Reason
	// WritesUnseen: the reader has not seen its own last writes.
	WritesUnseen bool
	// RolledBack is the template's revision after it was rolled back, so that
	// Target is the current one instead; without an ID otherwise.
	RolledBack Record
	// Pool is what sentences call the pool.
	Pool string
	// Deleting: the pool goes, and all that is free with it.
	Deleting bool
	// Waiting are the claims that wait for a member and are on none.
	Waiting int
	// WindowShut: outside all windows in which a disruption may start.
	// WindowNever: and none of them will ever open. WindowError is why one of
	// them never does; empty if all can.
	WindowShut, WindowNever bool
	WindowError             string
	// Budgeted: shared budgets leave room for BudgetRoom more members to roll.
	Budgeted   bool
	BudgetRoom int
}

// Kind is what an action does.
type Kind uint8

// The kinds of actions. Those that write to revisions come first in a plan.
const (
	// RecordFailure counts the failure of slot Index on Revision: Record is
	// what is to be stored.
	RecordFailure Kind = iota
	// Recover forgives failures of Revision, since a body of it recovered, or
	// counts the bodies that recovered and are about to go. Record is what is to
	// be stored.
	Recover
	// Halt stops the rollout of Revision; if Record.RolledBack, the target goes
	// back to the current revision.
	Halt
	// Stand makes Revision the current one.
	Stand
	// Undo withdraws the disruption, or leaves a spent one: Wants becomes
	// Revision, what runs.
	Undo
	// Grant sets Wants to Revision; empty withdraws the grant.
	Grant
	// Disrupt sets Disruption and Wants, and drops the claim if DropClaim.
	Disrupt
	// CreateSlot makes slot Index with Wants = Revision.
	CreateSlot
)

var kindNames = [...]string{"RecordFailure", "Recover", "Halt", "Stand", "Undo", "Grant", "Disrupt", "CreateSlot"}

func (k Kind) String() string { return nameOf(kindNames[:], int(k)) }

// Action is one write. Every write to a member is meant for the snapshot's
// version of it: one that has changed since is left alone.
type Action struct {
	Kind     Kind
	Index    int
	Revision Revision
	// Record is what is to be stored with Revision, with RecordFailure,
	// Recover, Halt and Stand. Actions on one revision in one plan share it: one
	// write stores all of them.
	Record *Record
	// Disruption is what is to be stored with Disrupt and with Undo. With Undo it
	// is none, or one that is spent: the slot is still rolling, which it does
	// not forget.
	Disruption Disruption
	// DropClaim: the claim's body is gone, and the claim goes with it.
	DropClaim bool
	// Surge: the slot is made above the desired number. ForClaim: it is made
	// because a claim waits.
	Surge, ForClaim bool
	// Why is the machine reason.
	Why Why
}

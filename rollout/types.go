package rollout

import (
	"slices"
	"strconv"
	"time"
)

// Revision names one content-addressed version of everything that decides
// what a body is. Empty means unknown.
type Revision string

// Phase is the place of a slot in its life.
type Phase uint8

// The phases of a slot.
const (
	Pending      Phase = iota // no body yet, or the next body waits for a grant or a backoff
	Provisioning              // the body boots
	Preparing                 // the body is ready, but not yet for minReadySeconds
	Available                 // in service; free if unclaimed, uncordoned and undisrupted
	InClaim                   // claimed
	Unready                   // down after it has served
	Updating                  // another revision is being applied to the body
	Draining                  // is being drained; the disruption can still be withdrawn
	Terminating               // is being deleted, which cannot be undone
	Failed                    // the body did not come up, crashed, vanished or stayed down
	Quarantined               // failed and kept for inspection
)

var phaseNames = [...]string{
	"Pending", "Provisioning", "Preparing", "Available", "Claimed",
	"Unready", "Updating", "Draining", "Terminating", "Failed", "Quarantined",
}

func (p Phase) String() string { return nameOf(phaseNames[:], int(p)) }

// nameOf returns names[i], or "unknown" and the number for an i beyond the list.
func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown " + strconv.Itoa(i)
}

// ParsePhase returns the phase with the name, Pending for the empty name. The second result
// is false for an unknown name.
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

// The occupancies. Unknown counts as busy. A body that never served is idle.
const (
	Idle Occupancy = iota
	Busy
	OccupancyUnsure
)

// Cause is the reason of a disruption.
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

// ParseCause returns the cause with the name. The second result is false for an unknown
// name.
func ParseCause(name string) (Cause, bool) {
	for i, n := range causeNames {
		if n == name {
			return Cause(i), true
		}
	}
	return NoCause, false
}

// Disruption is the stored decision to replace, update or remove a body. The zero value is
// no disruption.
type Disruption struct {
	Cause Cause
	// Remove: the slot is removed with the body. Update: the body stays and is updated in
	// place. Neither: a new body replaces it.
	Remove, Update bool
	// Rolling: the member was in service, a rollout or a recycle request took it, and it is
	// not back in service. A slot keeps it through failed replacements.
	Rolling bool
	// Incarnation is the number of the disrupted body. A disruption of an earlier
	// incarnation is spent.
	Incarnation int64
	Since       time.Time
}

// Member is the engine's view of one slot. Fields that each pass reads for every member
// come first: memory access dominates the planning time of a large pool.
type Member struct {
	// Index is the place of the slot in its pool.
	Index int
	// Wants is the grant: the revision of this body or, before a birth, of the next one.
	// Runs is the revision of the body, empty if unknown. Without a body it is that of the
	// last body.
	Wants, Runs Revision
	// Incarnation is the number of the slot's body; 0 before the first.
	Incarnation int64
	// Phase is the stored phase. Body: there is a body. Gone: the body has exited or
	// vanished.
	Phase      Phase
	Body, Gone bool

	Claimed, Cordoned, Held bool
	// Asked: the annotation recycle asks for another body. Skipped: the annotation skip
	// leaves the slot off this target. Stuck: the API server rejects writes to this slot,
	// so nothing more is planned for it.
	Asked, Skipped, Stuck bool
	Occupancy             Occupancy
	// Deleting: the slot itself is being deleted.
	Deleting bool
	// Cost orders the members: those with a lower cost are disrupted first.
	Cost int32
	// ServedSince is when the body last came into service; zero if it never did.
	ServedSince time.Time
	Disruption  Disruption

	// BornAt is when the body was created, before the first birth when the slot was
	// created. PhaseSince is when the slot entered its phase.
	BornAt, PhaseSince time.Time
	// DownSince is when the slot was last in service, or was created if it never was; zero
	// while it is in service.
	DownSince time.Time
	// UnsettledSince is when the body first went down before it had recovered; zero if it
	// never did. It is ignored once the body has recovered.
	UnsettledSince time.Time
	// Recovered is the revision of the slot's last body that recovered, and RecoveredAt
	// when it did, as far as recorded. A body that has been in service for long enough has
	// recovered even before that is recorded.
	Recovered   Revision
	RecoveredAt time.Time
	// ID identifies the slot. A later slot of the same index has another ID.
	ID string
	// FailedEarly: the body in phase Failed had served for less than ten times
	// [Policy.RecoverAfter], so its failure counts against its revision.
	FailedEarly bool
	// NoRoom: the last birth was refused for lack of capacity. Attempts is the number of
	// births in a row whose body did not recover, for any reason. The next birth of the
	// same revision is not tried before NextAttempt.
	NoRoom bool
	// ForClaim: the slot was made because a claim waited.
	ForClaim    bool
	Attempts    int32
	NextAttempt time.Time
	// Message is what the body last reported about itself.
	Message string
	// BootTook is the time from birth to service of the slot's last body that served.
	// StopTook is the time from the decision to the end of its last body that ended. 0 if
	// unknown.
	BootTook, StopTook time.Duration
}

// Disrupted reports whether a disruption of the present body is recorded.
func (m *Member) Disrupted() bool {
	return m.Disruption.Cause != NoCause && m.Disruption.Incarnation == m.Incarnation
}

// leaving reports whether the slot is being removed.
func (m *Member) leaving() bool {
	return m.Deleting || m.Disrupted() && m.Disruption.Remove
}

// healthy reports whether the body serves.
func (m *Member) healthy() bool { return m.Phase == Available || m.Phase == InClaim }

// recovered reports whether a recovery of the present body is recorded.
func (m *Member) recovered() bool {
	return m.RecoveredAt.After(m.BornAt) && m.Recovered == m.Runs
}

// relapsed reports whether the body failed after it had recovered.
func (m *Member) relapsed() bool {
	return m.Phase == Failed && m.FailedEarly && m.Attempts == 0 && m.served()
}

// outSince returns since when the slot is out of service. Where DownSince was never
// recorded, the time is that of its phase or birth.
func (m *Member) outSince() time.Time {
	switch {
	case !m.DownSince.IsZero():
		return m.DownSince
	case m.served():
		return m.PhaseSince
	}
	return m.BornAt
}

// Free reports whether the member can be claimed.
func (m *Member) Free() bool {
	return m.healthy() && !m.Claimed && !m.Cordoned && !m.Deleting && !m.Disrupted()
}

// InService reports whether the member is free, or claimed with a healthy body.
func (m *Member) InService() bool {
	return m.Free() || m.Claimed && m.healthy()
}

// Rolling reports whether a rollout or a recycle request took the member out of service and
// it is not back. A quarantined member does not count: another slot replaces it.
func (m *Member) Rolling() bool {
	return m.Disruption.Rolling && m.Phase != Quarantined && (m.Disrupted() || !m.served())
}

// Repairing reports whether the member was down when it was replaced and is not back in
// service.
func (m *Member) Repairing() bool {
	d := m.Disruption
	return (d.Cause == Drift || d.Cause == BodyFailed) && !d.Rolling && !d.Remove && (m.Disrupted() || !m.served())
}

func (m *Member) served() bool { return !m.ServedSince.IsZero() }

// busy reports whether work may run on the member.
func (m *Member) busy() bool { return m.Occupancy != Idle && m.served() }

// lost reports whether the body has exited or vanished.
func (m *Member) lost() bool { return m.Phase == Failed && m.Gone }

// doomed reports whether the body is lost, or ends whatever is decided now.
func (m *Member) doomed() bool {
	c := m.Disruption.Cause
	return m.lost() || m.Disrupted() && !m.Disruption.Update && (m.Phase == Terminating || c == ClaimEnded || c == BodyFailed)
}

// unborn reports whether the slot is to get another body.
func (m *Member) unborn() bool {
	if m.leaving() {
		return false
	}
	return m.Phase == Pending || m.Disrupted()
}

// comingUp reports whether the slot waits for a body, or has one that has not come into
// service.
func (m *Member) comingUp() bool {
	switch m.Phase {
	case Pending, Provisioning, Preparing, Updating:
		return true
	default:
		return false
	}
}

// recoveryFactor times [Policy.RecoverAfter] is the time of service after which a failure
// does not count against the target.
const recoveryFactor = 10

// Failure is a slot in which bodies of a revision failed.
type Failure struct {
	// ID and Index identify the slot.
	ID    string
	Index int
	// Incarnation is the last failed incarnation that was counted. Count is the number of
	// failed incarnations since the revision became the target or was retried; an entry
	// with 0 only keeps Incarnation from being counted again.
	Incarnation int64
	Count       int
	// At is the time of the last failure.
	At time.Time
	// Forgiven: a body of the revision has recovered since, so the failure is not open. The
	// slot still counts towards the failure limit.
	Forgiven bool
	// Message is what the body last reported about itself.
	Message string
}

// MaxFailures is the largest number of slots in a record. As many failures reach any
// failure limit.
const MaxFailures = 500

// Record is stored with a revision.
type Record struct {
	ID Revision
	// Failures are the slots in which bodies failed, at most MaxFailures, in the order of
	// their first failure.
	Failures []Failure
	// Failed is the number of bodies that failed since the revision became the target or
	// was retried.
	Failed int
	// Recovered is the number of bodies that had recovered by Counted and did not fail
	// later. Later recoveries are counted from the members.
	Recovered int
	Counted   time.Time
	// Cutoff is the latest ServedSince of the bodies in Recovered: Counted less
	// [Policy.RecoverAfter] at that time. Zero: less the present RecoverAfter.
	Cutoff time.Time
	// Worked: a body recovered and failed later, so Recovered may be 0 again.
	Worked bool
	// Since is when the revision became the target.
	Since time.Time
	// Halted: the failure limit was reached. RolledBack: the target then went back to the
	// current revision.
	Halted, RolledBack bool
	// Missing: the sources of the revision are gone, so that it cannot be built.
	Missing bool
}

// Renewed returns the record of a revision that becomes the target at the time, or is
// retried. It starts clean, unless it is halted; counted incarnations are not counted
// again.
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

// open reports whether a failure of the revision is open.
func (r *Record) open() bool {
	return slices.ContainsFunc(r.Failures, func(f Failure) bool { return !f.Forgiven })
}

// slots returns the number of slots in which a body failed.
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

// Policy is a pool's policy, with every number resolved.
type Policy struct {
	// Desired is the number of members, 0 or more.
	Desired int
	// Warm: only unclaimed members count towards Desired; claimed ones come on top.
	Warm bool
	// RefillBelow: missing members are made only once fewer than this are free, Desired is
	// raised, or drift waits to be rolled; 0 for at once.
	RefillBelow int
	// MaxMembers is the largest number of slots of any kind. It applies if HasCeiling is
	// set.
	MaxMembers int
	HasCeiling bool
	// InPlace: bodies are updated instead of replaced. It allows no surge.
	InPlace bool
	// Manual: drift is reported, and no member is disrupted for it.
	Manual bool
	// Paused: no disruption and no surge for drift. Zero: as Paused, because maxUnavailable
	// and maxSurge are both written as 0.
	Paused, Zero bool
	// MaxUnavailable, MaxSurge and MinAvailable are numbers of members, 0 or more.
	// MinAvailable applies if HasFloor is set.
	MaxUnavailable, MaxSurge, MinAvailable int
	HasFloor                               bool
	// MaxInFlight is the largest number of members that roll at once, 1 or more.
	MaxInFlight int
	// Partition is the number of members that stay off the target, 0 or more.
	Partition int
	Order     Order
	// MinReady is how long a body has to be ready before it is in service.
	MinReady time.Duration
	// ProgressDeadline is how long a body may be on its way without any member coming into
	// service; then the pool is stalled.
	ProgressDeadline time.Duration
	// FailureLimit is the number of slots in which a body of the target fails before the
	// rollout halts, 1 or more. While no body of the target has recovered, failed bodies
	// are counted instead of slots.
	FailureLimit int
	// Rollback: at the failure limit the target goes back to the current revision.
	Rollback bool
	// ReplaceUnknown: members of unknown revision are stale at once.
	ReplaceUnknown bool
}

// surge returns the largest number of slots above the desired number.
func (p *Policy) surge() int {
	if p.InPlace {
		return 0
	}
	return p.MaxSurge
}

// most returns the largest number of members in service when the last one is taken, with
// one surge body to replace it.
func (p *Policy) most() int {
	n := p.Desired + min(p.surge(), 1)
	if p.HasCeiling {
		n = min(n, p.MaxMembers)
	}
	return n
}

// RecoverAfter is how long a body has to be in service to have recovered: the larger of
// minReadySeconds and a minute.
func (p *Policy) RecoverAfter() time.Duration { return max(p.MinReady, time.Minute) }

// Snapshot is the input of a plan, except for the time.
type Snapshot struct {
	Policy Policy
	// Target is the revision of the template. Current is the last revision on which the
	// pool stood or, before that, the first of which a body recovered; before that it has
	// no ID. Both may be the same revision.
	Target, Current Record
	// Surge is Plan.Surge of the last pass; 0 if unknown.
	Surge int
	// Size is Plan.Size of the last pass: the number of members that were made; 0 if
	// unknown. A larger Policy.Desired starts a refill.
	Size int
	// Members are in ascending order of Index, each index once.
	Members []Member
	// Unreadable is why the pool could not be read: Unreachable, SourcesUnresolved, or
	// empty.
	Unreadable Reason
	// WritesUnseen: the caller's cache does not show its own last writes yet.
	WritesUnseen bool
	// RolledBack is the record of the template's revision after a rollback, when Target is
	// the current revision instead. It has no ID otherwise.
	RolledBack Record
	// Pool is the name of the pool in sentences.
	Pool string
	// Deleting: the pool is being deleted, and every free member with it.
	Deleting bool
	// Waiting is the number of claims that wait for a member.
	Waiting int
	// WindowShut: no window in which a disruption may start is open. WindowNever: no window
	// will ever open. WindowError names a window that never opens, and why; empty if all
	// can.
	WindowShut, WindowNever bool
	WindowError             string
	// Budgeted: shared budgets leave room for BudgetRoom more members to roll.
	Budgeted   bool
	BudgetRoom int
}

// Kind is the effect of an action.
type Kind uint8

// The kinds of actions. In a plan, writes to revisions come before all others.
const (
	// RecordFailure counts the failure of slot Index on Revision. Record is to be stored.
	RecordFailure Kind = iota
	// Recover forgives failures of Revision after a body of it has recovered, or counts
	// recovered bodies that are about to be removed. Record is to be stored.
	Recover
	// Halt stops the rollout of Revision. If Record.RolledBack, the target goes back to the
	// current revision.
	Halt
	// Stand makes Revision the current one.
	Stand
	// Undo withdraws the disruption, or leaves a spent one. Wants becomes Revision, which
	// the body runs.
	Undo
	// Grant sets Wants to Revision; empty withdraws the grant.
	Grant
	// Disrupt sets Disruption and Wants, and drops the claim if DropClaim.
	Disrupt
	// CreateSlot creates slot Index with Wants = Revision.
	CreateSlot
)

var kindNames = [...]string{"RecordFailure", "Recover", "Halt", "Stand", "Undo", "Grant", "Disrupt", "CreateSlot"}

func (k Kind) String() string { return nameOf(kindNames[:], int(k)) }

// Action is one write. A write to a member is conditional on the version in the snapshot: a
// member that has changed since is left alone.
type Action struct {
	Kind     Kind
	Index    int
	Revision Revision
	// Record is to be stored with Revision, for RecordFailure, Recover, Halt and Stand.
	// Actions on one revision in one plan share it, so one write stores all of them.
	Record *Record
	// Disruption is to be stored, for Disrupt and Undo. With Undo it is none, or a spent
	// one which keeps the slot rolling.
	Disruption Disruption
	// DropClaim: the body of the claim is gone, so the claim is dropped.
	DropClaim bool
	// Surge: the slot is above the desired number. ForClaim: it is made because a claim
	// waits.
	Surge, ForClaim bool
	// Why is the machine-readable reason.
	Why Why
}

package rollout

// Reason is why a member is not updated: the first obstacle that has to go. Empty means
// none.
type Reason string

// The reasons. The table below has them in order, with their meaning.
const (
	InvalidSnapshot         Reason = "InvalidSnapshot"
	WritesUnseen            Reason = "WritesUnseen"
	Unreachable             Reason = "Unreachable"
	SourcesUnresolved       Reason = "SourcesUnresolved"
	ManualPolicy            Reason = "ManualPolicy"
	HaltedTarget            Reason = "Halted"
	FailedReplacement       Reason = "FailedReplacement"
	PausedRollout           Reason = "Paused"
	FloorUnreachable        Reason = "FloorUnreachable"
	PoolResizing            Reason = "PoolResizing"
	RevisionNotReproducible Reason = "RevisionNotReproducible"

	Claimed          Reason = "Claimed"
	BusyMember       Reason = "Busy"
	OccupancyUnknown Reason = "OccupancyUnknown"
	HeldMember       Reason = "Held"
	Partitioned      Reason = "Partitioned"

	OutsideWindow Reason = "OutsideWindow"
	BudgetFull    Reason = "BudgetFull"

	NoSurgeCapacity  Reason = "NoSurgeCapacity"
	UnavailableLimit Reason = "UnavailableLimit"
	FloorReached     Reason = "FloorReached"
	InFlightLimit    Reason = "InFlightLimit"
	Unproven         Reason = "Unproven"
	Backoff          Reason = "Backoff"

	RollingMember Reason = "Rolling"
	Next          Reason = "Next"
)

// Scope is the kind of obstacle.
type Scope string

// The scopes, in the order in which reasons are checked.
const (
	OfRollout Scope = "Rollout" // the rollout as a whole
	OfMember  Scope = "Member"  // the member itself
	OfTime    Scope = "Time"    // a window, or a budget shared with other pools
	OfPool    Scope = "Pool"    // the pool's own limits
	OfTurn    Scope = "Turn"    // none: it is the member's turn
)

// Need is what has to act before the reason goes. Empty: nothing has to; the member stays
// as the policy says, or goes on by itself.
type Need string

// The needs.
const (
	// NeedsPerson: a person has to change the pool or the member.
	NeedsPerson Need = "Person"
	// NeedsHolder: the holder has to release the claim.
	NeedsHolder Need = "Holder"
	// NeedsWork: the work on the member has to end.
	NeedsWork Need = "Work"
	// NeedsRoom: there has to be capacity for one more body.
	NeedsRoom Need = "Room"
	// NeedsOthers: other members have to come back, or be released, first.
	NeedsOthers Need = "Others"
)

// reasons holds every reason by rank. If several keep a member, the first is reported. The
// sentence is the general message; because adds names and numbers.
var reasons = [...]struct {
	is       Reason
	scope    Scope
	needs    Need
	sentence string
}{
	{},
	{InvalidSnapshot, OfRollout, NeedsPerson, "the pool was read in a state that cannot exist"},
	{WritesUnseen, OfRollout, NeedsPerson, "the controller's cache does not show its own last writes yet; planning goes on once it does"},
	{Unreachable, OfRollout, NeedsPerson, "the pool's members cannot be read; nothing is done until they can"},
	{SourcesUnresolved, OfRollout, NeedsPerson, "the sources of a body cannot be read; the last known revision is kept until they can"},
	{ManualPolicy, OfRollout, NeedsPerson, "update.type is Manual; set it to RollingUpdate to replace stale members"},
	{HaltedTarget, OfRollout, NeedsPerson, "too many bodies of the target failed; correct the template or take it back"},
	{FailedReplacement, OfRollout, NeedsPerson, "a body of the target failed and none has recovered since; one slot tries the target, and no other member in service is taken"},
	{PausedRollout, OfRollout, NeedsPerson, "update.paused is set; unset it to go on"},
	{FloorUnreachable, OfRollout, NeedsPerson, "two fields of the policy collide, so that no rollout can ever end"},
	{PoolResizing, OfRollout, NeedsOthers, "the pool is being brought to its size first"},
	{RevisionNotReproducible, OfRollout, NeedsPerson, "the sources of the revision are gone, so that it cannot be built"},

	{Claimed, OfMember, NeedsHolder, "it is claimed, and waits until the claim is released"},
	{BusyMember, OfMember, NeedsWork, "work runs on it, and it waits until that is done"},
	{OccupancyUnknown, OfMember, NeedsPerson, "its occupancy cannot be read, which counts as busy"},
	{HeldMember, OfMember, NeedsPerson, "it is held by annotation pawl.dev/hold, or skipped by pawl.dev/skip"},
	{Partitioned, OfMember, "", "update.partition keeps it off the target"},

	{OutsideWindow, OfTime, NeedsPerson, "outside the windows in which a disruption may start"},
	{BudgetFull, OfTime, NeedsOthers, "a shared budget has no room"},

	{NoSurgeCapacity, OfPool, NeedsRoom, "there is no capacity for a surge body, and nothing else may be out of service"},
	{UnavailableLimit, OfPool, NeedsOthers, "as many members are out of service as maxUnavailable allows"},
	{FloorReached, OfPool, NeedsOthers, "no more than minAvailable members are free"},
	{InFlightLimit, OfPool, NeedsOthers, "as many members roll as maxInFlight allows"},
	{Unproven, OfPool, NeedsPerson, "it is not known yet whether the target can serve: no member in service is taken until a body of the target has recovered"},
	{Backoff, OfPool, NeedsPerson, "its last attempt failed, and the next one waits"},

	{RollingMember, OfTurn, NeedsPerson, "it is being replaced"},
	{Next, OfTurn, NeedsPerson, "it is next"},
}

// rank returns the position of the reason in the table; 0 for none.
func rank(r Reason) int {
	for i := range reasons {
		if reasons[i].is == r {
			return i
		}
	}
	return 0
}

// The ranks of the reasons that concern single members.
var (
	rankRolling     = rank(RollingMember)
	rankHeld        = rank(HeldMember)
	rankStuck       = rank(Unreachable)
	rankPartitioned = rank(Partitioned)
	rankInFlight    = rank(InFlightLimit)
)

// Reasons returns all reasons, in the order in which they are checked.
func Reasons() []Reason {
	list := make([]Reason, 0, len(reasons)-1)
	for i := range reasons[1:] {
		list = append(list, reasons[i+1].is)
	}
	return list
}

// Rank returns the position of the reason in [Reasons], from 1; 0 for none.
func (r Reason) Rank() int { return rank(r) }

// Scope returns the kind of obstacle.
func (r Reason) Scope() Scope { return reasons[rank(r)].scope }

// Needs returns what has to act before the reason goes.
func (r Reason) Needs() Need { return reasons[rank(r)].needs }

// Sentence returns the general message of the reason.
func (r Reason) Sentence() string { return reasons[rank(r)].sentence }

// Why is the reason of an action.
type Why string

// The reasons of actions.
const (
	WhyFill         Why = "Fill"
	WhySurge        Why = "Surge"
	WhyStale        Why = "Stale"
	WhyAsked        Why = "Asked"
	WhySkipped      Why = "Skipped"
	WhyNotAsked     Why = "NotAsked"
	WhyStaleDown    Why = "StaleDown"
	WhyNeverServed  Why = "NeverServed"
	WhyFailed       Why = "Failed"
	WhyBodyGone     Why = "BodyGone"
	WhyExcess       Why = "Excess"
	WhyPoolDeleted  Why = "PoolDeleted"
	WhyMatchesAgain Why = "MatchesAgain"
	WhyTurnedBusy   Why = "TurnedBusy"
	WhyTurnedHeld   Why = "TurnedHeld"
	WhyServesAgain  Why = "ServesAgain"
	WhyPaused       Why = "Paused"
	WhyHalted       Why = "Halted"
	WhyNeededAgain  Why = "NeededAgain"
	WhyRetarget     Why = "Retarget"
	WhyAdopt        Why = "Adopt"
	WhyNotBuildable Why = "NotBuildable"
	WhyFailureLimit Why = "FailureLimit"
	WhyRecovered    Why = "Recovered"
	WhyFirst        Why = "First"
	WhyCounted      Why = "Counted"
	WhyWholePool    Why = "WholePool"
	WhyEarlyFailure Why = "EarlyFailure"
)

// whys holds the message of each.
var whys = map[Why]string{
	WhyFill:         "the size asks for one more",
	WhySurge:        "one more while there is drift to roll",
	WhyStale:        "it is on another revision than the target, and can be spared",
	WhyAsked:        "another body was asked for (pawl recycle)",
	WhySkipped:      "the slot is skipped (pawl skip)",
	WhyNotAsked:     "the recycle request was withdrawn",
	WhyStaleDown:    "it is on another revision than the target, and down anyway",
	WhyNeverServed:  "its body has never served, and another revision is to be born now",
	WhyFailed:       "its body failed",
	WhyBodyGone:     "its body is gone",
	WhyExcess:       "there are more members than the size asks for",
	WhyPoolDeleted:  "the pool is deleted",
	WhyMatchesAgain: "its revision is wanted again",
	WhyTurnedBusy:   "work has begun on it",
	WhyTurnedHeld:   "it is held now",
	WhyServesAgain:  "it is back in service",
	WhyPaused:       "the rollout is paused",
	WhyHalted:       "bodies of the target fail",
	WhyNeededAgain:  "the size asks for it again",
	WhyRetarget:     "another revision is to be born now",
	WhyAdopt:        "its revision is unknown, and it is adopted as it is",
	WhyNotBuildable: "the revision of its grant cannot be built",
	WhyFailureLimit: "too many bodies of it failed",
	WhyRecovered:    "a body of it has recovered since, or its failures no longer count",
	WhyFirst:        "it is the first of which a body recovered",
	WhyCounted:      "members that show them are removed",
	WhyWholePool:    "the pool stands on it",
	WhyEarlyFailure: "the body had not served for long enough",
}

// Sentence returns the message of the reason; for one that the engine does not give, its
// name.
func (w Why) Sentence() string {
	if s, ok := whys[w]; ok {
		return s
	}
	return string(w)
}

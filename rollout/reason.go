package rollout

// Reason is what keeps a member from being updated: the one thing that a
// person would have to remove first. Empty means nothing.
type Reason string

// The reasons, in the order in which they are looked for: what concerns the
// whole rollout, then the member itself, then a window or budget, then the
// pool's own limits.
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

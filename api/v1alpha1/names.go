package v1alpha1

// Labels, annotations and finalizers that Pawl reads or writes.
const (
	// LabelPool is on every Member and every body: the name of its Pool.
	LabelPool = "pawl.dev/pool"
	// LabelMember is on every body: the name of its Member.
	LabelMember = "pawl.dev/member"
	// LabelIncarnation is on every body: the incarnation of the Member that it is.
	LabelIncarnation = "pawl.dev/incarnation"
	// LabelRevision is on every body: the revision that it was made from.
	LabelRevision = "pawl.dev/revision"
	// LabelSource is on the ConfigMaps and Secrets that keep what the sources of
	// a Pool said for a revision: the source's name. With an empty value and no
	// LabelRevision it is on the Secret with the key of the Pool's digests.
	LabelSource = "pawl.dev/source"

	// AnnotationRecord on a ControllerRevision is what happened to its bodies:
	// failures, halts, and when the whole pool stood on it. JSON.
	AnnotationRecord = "pawl.dev/record"

	// AnnotationHold on a Member keeps it from being disrupted for drift. Its
	// value is a JSON object {"reason": string, "until": RFC 3339 time}, both
	// optional; any other value holds without an end.
	AnnotationHold = "pawl.dev/hold"
	// AnnotationDisruptionCost on a Member is an integer; members with a lower
	// cost are disrupted first. Absent means 0.
	AnnotationDisruptionCost = "pawl.dev/disruption-cost"

	// AnnotationRetry on a Pool grants a revision that failed one more round, as
	// if it had just become the target. Its value is "REVISION@TIME": the
	// revision, and anything that tells one request from another. It is granted
	// once.
	AnnotationRetry = "pawl.dev/retry"
	// AnnotationRecycle on a Member asks for another body. Its value is the
	// incarnation that is to go; of an earlier one it is spent.
	AnnotationRecycle = "pawl.dev/recycle"
	// AnnotationSkip on a Member gives up on bringing it to a revision, whose
	// name is the value: its slot stays on, or goes back to, the current one
	// until the target changes, and holds nobody up.
	AnnotationSkip = "pawl.dev/skip"

	// AnnotationGranted on a Member is the incarnation that comes next and the
	// revisions that were granted for it and taken away again: of them, too,
	// something may have been made. Of an earlier incarnation it is spent.
	AnnotationGranted = "pawl.dev/granted"

	// FinalizerBody on a Member: its body has to go first.
	FinalizerBody = "pawl.dev/body"
	// FinalizerMembers on a Pool: its Members have to go first.
	FinalizerMembers = "pawl.dev/members"
	// FinalizerRevision on a ControllerRevision, and on what is kept of sources
	// for it: the Pool and its Members may still need it.
	FinalizerRevision = "pawl.dev/revision"
	// FinalizerBinding on a Claim: the Member it binds has to be released first.
	FinalizerBinding = "pawl.dev/binding"
)

// Condition types of Pools.
const (
	// ConditionReady: the pool has what its size asks for (kstatus).
	ConditionReady = "Ready"
	// ConditionReconciling: the pool is on its way (kstatus).
	ConditionReconciling = "Reconciling"
	// ConditionStalled: the pool gets no further without help (kstatus).
	ConditionStalled = "Stalled"
	// ConditionUpdated: every member is on the target revision.
	ConditionUpdated = "Updated"
	// ConditionAvailable: no more than maxUnavailable members are out of service.
	ConditionAvailable = "Available"
	// ConditionSourcesResolved: everything that decides what a body is could be read.
	ConditionSourcesResolved = "SourcesResolved"
	// ConditionUpdateRequested: the claim's member is stale, and the pool would
	// like to have it back.
	ConditionUpdateRequested = "UpdateRequested"
	// ConditionOccupied: work runs on the member, though nobody may have claimed
	// it. Absent: its kind of body cannot tell.
	ConditionOccupied = "Occupied"
	// ConditionBound: the claim has its member.
	ConditionBound = "Bound"
)

// FieldPool is the field of Members and Claims that names their Pool; the API
// server selects by it.
const FieldPool = "spec.pool"

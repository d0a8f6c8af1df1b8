// Package rollout is Pawl's engine: it decides which members of a pool are born,
// replaced, removed, taken back or left alone, and why.
//
// It is pure: [Snapshot] in, [Plan] out. There is no I/O, no clock, no randomness and
// no logging; equal input gives an equal plan, byte for byte. The caller reads the
// pool, passes it with the time, carries out [Plan.Actions] in order, and plans again
// after every change, at the latest at [Plan.Wake].
//
// # The ledger
//
// D is the desired number of members, U maxUnavailable, S maxSurge.
//
//	up        = members in service: free, or claimed with a healthy body
//	room      = up − (D − U)
//	floorRoom = members that a claim could get − minAvailable
//
// In a warm pool D and up count unclaimed members only; claimed ones come on top.
// maxMembers limits slots of every kind. A warm pool in steady use always misses a
// member that is being made: with minAvailable, one member may roll at a time whatever
// the room is, down to that floor.
//
// A member is a slot, not a body. A slot whose body is missing, or on its way in or
// out, is not up. So it uses the budget on every pass and after every restart, without
// further state.
//
// # Births
//
// One function, birth, returns which revision may be born in a slot now, for every
// birth: first fill, refill, scale-up, healing, surge and replacement. It is the
// target, or the current revision in the cases listed in birth.go. With method InPlace
// the present body is updated to that revision. A slot stores its grant (Wants);
// without a grant there is no birth.
//
// # Recovery
//
// A body has recovered once it has been in service for [Policy.RecoverAfter] without a
// break. The slot stores the last recovery, and the record of the target their number
// ([Record.Recovered]), so that a pool can stand on its target although no two bodies
// of it ever served together. A failure is open until a body of the target, in any
// slot, has been in service for as long, all of it after the failure. The same closes
// an unsettled body.
//
// # Order of a pass
//
//  1. failures and recoveries are recorded, and the rollout is halted at the limit;
//  2. draining members that match again, became busy or need not go are taken back;
//  3. slots are made or removed until the size is right, and grants corrected;
//  4. bodies that never served and are not what would be born now are dropped; failed
//     bodies are replaced after their backoff;
//  5. members with a recycle request are replaced;
//  6. stale members that are down are replaced, with a limit of their own;
//  7. stale members in service are taken, if the ledger allows it;
//  8. surge slots are made, if members are left that could be rolled.
//
// rules.go holds the twelve rules of the design, each as the function that decides it.
// [Plan.Verdict] returns why a member is not updated, and [CheckInvariants] checks a
// plan against the rules.
//
// [Step] is the life of one slot, from Pending over Available to Terminating and to
// the next incarnation; [StepClaim] is the life of a claim. Both are pure.
// [Action.Apply] returns the member as an action leaves it.
//
// docs/engine.md shows how to use the package by itself.
package rollout

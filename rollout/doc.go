// Package rollout is Pawl's engine: which members of a pool are to be born,
// replaced, removed, taken back or left alone, and why.
//
// It is pure. [Snapshot] goes in, [Plan] comes out; there is no I/O, no clock,
// no randomness and no logging, and equal input gives an equal plan, byte for
// byte. The caller reads the world, hands it over together with the time,
// carries out [Plan.Actions] in their order, and comes again when something
// changed, at the latest at [Plan.Wake].
//
// # The ledger
//
// D is the desired number of members, U maxUnavailable, S maxSurge.
//
//	up        = members in service: free, or claimed with a healthy body
//	room      = up − (D − U)
//	floorRoom = members that a claim could get − minAvailable
//
// In a warm pool D counts the members that nobody holds, and up the free ones:
// what is claimed comes on top. maxMembers bounds slots of every kind. A warm
// pool in steady use is always short of a member that is being made: with a
// minAvailable one may roll at a time whatever the room is, down to that floor.
//
// A member is a slot, not a body. A slot whose body is on its way out or in,
// or missing, is not up, so it uses the budget on every pass and after every
// restart, without anything being remembered.
//
// # Births
//
// One function, birth, answers which revision may be born in a slot now, for
// every birth there is: first fill, refill, scale-up, healing, surge and
// replacement. It is the target, or the current revision where birth.go says so.
// To ask changes nothing. With method InPlace the body that is there becomes what
// would be born. A slot records its grant (Wants); an empty grant gives no birth.
//
// # Recovery
//
// A body has recovered once it has been in service for [Policy.RecoverAfter]
// without a break. The slot remembers the last body that did, and the record of
// the target how many have ([Record.Recovered]), so that the pool comes to stand
// on its target although no two of them ever served together. A failure is open
// until a body of the target, in whatever slot, has been in service for as long,
// all of it after the failure; so is a body that went down before it recovered.
//
// # Order of a pass
//
//  1. failures and recoveries are recorded, and the rollout halted if need be;
//  2. draining members that match again, turned busy or are not to go any more
//     are taken back;
//  3. slots are made or named for removal, until the size is right, and grants
//     corrected;
//  4. bodies that never served and are not what would be born now are dropped;
//     bodies that failed are replaced once their backoff is over;
//  5. members are replaced for which somebody asked so;
//  6. stale members that are down are replaced, on a count of their own;
//  7. stale members in service are taken, if the ledger allows it;
//  8. surge slots are made, if there is work left for them.
//
// rules.go holds the twelve rules of the design, each as the function that
// decides it.
//
// [Plan.Verdict] says for each member what keeps it from being updated, and
// [CheckInvariants] states the promises as code.
//
// [Step] is the other half: the life of one slot, from Pending over Available
// to Terminating and to the next incarnation, as pure as the first. [StepClaim] is
// the life of a claim, and [Action.Apply] what an action makes of a member.
//
// docs/engine.md shows how to use the package by itself.
package rollout

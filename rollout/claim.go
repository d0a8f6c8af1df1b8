package rollout

import "time"

// Pick chooses the member that a claim gets, by its position in the list, or
// -1 if none is free: one on the target before any other, and among the
// others the one that a rollout would take last. Members on which work runs
// are left out.
func Pick(members []Member, target Revision) int {
	best := -1
	for i := range members {
		m := &members[i]
		if !m.Free() || m.busy() {
			continue
		}
		if m.Runs == target {
			return i
		}
		best = i
	}
	return best
}

// Taken counts a member that still looks free as claimed, since a claim says
// that it holds it: what was read of the one is older than of the other.
func (m *Member) Taken() {
	if m.Free() {
		m.Claimed = true
	}
}

// Release is what decides how a member goes back when its claim ends.
type Release struct {
	// Reuse: the pool uses members again. InPlace: it updates them rather than
	// replace them.
	Reuse, InPlace bool
	// Blocker is what was last said to keep the member from being updated; empty
	// for a member that is not stale.
	Blocker Reason
	// Held and Skipped are the member's, WindowShut the pool's.
	Held, Skipped, WindowShut bool
	// Stale is how many members are off the target, Partition how many are to be,
	// Waiting how many claims wait for a member.
	Stale, Partition, Waiting int
}

// Disruption is what the write that ends the claim of the incarnation sets; none
// if the next holder gets the body as it is. A pool that uses members again gives
// no stale one to a claim that waits while a rollout could take it but for the
// numbers that it may take at once; where no claim waits, the rollout itself takes
// it as soon as the numbers allow.
func (r *Release) Disruption(incarnation int64, now time.Time) Disruption {
	d := Disruption{Cause: ClaimEnded, Incarnation: incarnation, Since: now}
	if !r.Reuse {
		return d
	}
	if r.Blocker != Claimed || r.Held || r.Skipped || r.WindowShut || r.Stale <= r.Partition || r.Waiting == 0 {
		return Disruption{}
	}
	d.Update = r.InPlace
	return d
}

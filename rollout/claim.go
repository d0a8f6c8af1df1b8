package rollout

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

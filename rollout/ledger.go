package rollout

import "time"

// bearing is how a member stands to the target.
type bearing uint8

const (
	bodiless bearing = iota
	updated
	stale
	unsure // of unknown revision, and adopted as it is
)

// ledger is the sum of a pool. Everything that is decided in a pass is
// entered at once, so that the next decision counts it.
type ledger struct {
	// slots are those that stay, neither leaving nor quarantined, and count
	// towards the desired number; onTop those that stay and come on top of it.
	slots, onTop int
	// up are the members in service of those that count, free those that can be
	// claimed.
	up, free int
	// rolling and repairing as Member says.
	rolling, repairing int
	// off are the slots that are not bound for the target.
	off int
	// work are the stale members in service that could be taken, but for the
	// partition and the pool's own limits.
	work int
	// unborn are slots owed a body, leaving those on their way out, returning
	// those of them that somebody deletes: they are made anew in their place.
	unborn, leaving, returning int
	// noRoom are births refused for lack of capacity.
	noRoom int
	// proven are the members of the target that have recovered; provenBorn is
	// the latest birth among them.
	proven     int
	provenBorn time.Time
	// ordered: somebody has given members a cost.
	ordered bool
	// oldest is when the member that is on its way for longest set out.
	oldest time.Time
}

// read enters every member, and notes those that are not simply in service.
func (q *pass) read() {
	p := &q.s.Policy
	// Who has recovered matters only while something depends on it.
	q.proving = q.s.Current.ID != q.s.Target.ID || len(q.s.Target.Failures) > 0
	q.cutoff = q.now.Add(-p.RecoverAfter())
	c := &q.plan.Counts
	for i := range q.s.Members {
		m := &q.s.Members[i]
		if m.Simple() {
			q.enterSimple(m)
		} else {
			q.enter(m)
			q.odd = append(q.odd, i)
		}
		if c.Stale != q.stale.count {
			q.stale.add(i)
		}
	}
	c.Members, c.Free, c.Rolling = len(q.s.Members), q.l.free, q.l.rolling
	q.enterRest()
}

// extent is where some of the members stand: all between from and to.
type extent struct{ from, to, count int }

func (e *extent) add(i int) {
	if e.count == 0 {
		e.from = i
	}
	e.to = i + 1
	e.count++
}

// Simple tells whether the member is in service, free or claimed, and nothing
// else is to be said of it. Most are; only such may be among the [Rest].
func (m *Member) Simple() bool {
	return m.healthy() && m.Body && m.Runs != "" && !m.Deleting && !m.Cordoned && !m.Asked && !m.Stuck &&
		(m.Disruption.Cause == NoCause || m.Disruption.Incarnation < m.Incarnation)
}

// enterSimple adds one such member to the ledger and the counts.
func (q *pass) enterSimple(m *Member) {
	c, l := &q.plan.Counts, &q.l
	c.InService++
	switch {
	case !m.Claimed:
		l.slots++
		l.up++
		l.free++
	case q.s.Policy.Warm:
		c.Claimed++
		l.onTop++
	default:
		c.Claimed++
		l.slots++
		l.up++
	}
	if m.Cost != 0 {
		l.ordered = true
	}
	if m.Runs == q.s.Target.ID {
		c.Updated++
		q.prove(m)
		return
	}
	c.Stale++
	l.off++
	if m.nobodys() && !m.Skipped { // as takeable says
		l.work++
	}
}

// enter adds any other member.
func (q *pass) enter(m *Member) {
	c, l := &q.plan.Counts, &q.l
	up := m.InService()
	if up {
		c.InService++
		if !q.onTop(m) {
			l.up++
		}
	}
	if m.Free() {
		l.free++
	}
	switch q.bearing(m) {
	case updated:
		c.Updated++
		if up {
			q.prove(m)
		}
	case stale:
		c.Stale++
		if q.takeable(m) {
			l.work++
		}
	case unsure:
		c.Unknown++
	}
	if m.Claimed {
		c.Claimed++
	}
	if m.Cost != 0 {
		l.ordered = true
	}
	if m.Rolling() {
		l.rolling++
	}
	if m.Phase == Quarantined {
		c.Quarantined++
		return
	}
	if m.leaving() {
		l.leaving++
		if m.Deleting && (!m.live() || !m.Disruption.Remove) {
			l.returning++
		}
		return
	}
	if q.onTop(m) {
		l.onTop++
	} else {
		l.slots++
	}
	if q.off(m) {
		l.off++
	}
	if !up {
		q.enterDown(m)
	}
}

// enterDown adds what only members out of service have.
func (q *pass) enterDown(m *Member) {
	c, l := &q.plan.Counts, &q.l
	switch {
	case m.coming():
		c.Provisioning++
	case m.Phase == Failed:
		c.Failed++
	}
	if m.NoRoom {
		l.noRoom++
	}
	if m.Repairing() {
		c.Repairing++
		until := m.Disruption.Since.Add(q.s.Policy.ProgressDeadline)
		if m.Phase != Terminating {
			l.repairing++
		} else if q.now.Before(until) {
			l.repairing++
			q.wake(until)
		}
	}
	if m.unborn() {
		l.unborn++
	}
	if since, on := m.underway(); on && (l.oldest.IsZero() || since.Before(l.oldest)) {
		l.oldest = since
	}
}

// underway tells since when the member is on its way into service.
func (m *Member) underway() (time.Time, bool) {
	switch {
	case m.Rolling() || m.Repairing():
		return m.Disruption.Since, true
	case m.coming() || m.Phase == Failed:
		return m.BornAt, true
	}
	return time.Time{}, false
}

// prove counts a member of the target that has recovered, or asks to be woken
// when it will have.
func (q *pass) prove(m *Member) {
	if !q.proving {
		return
	}
	if m.ServedSince.After(q.cutoff) {
		q.unproven = earliest(q.unproven, m.ServedSince.Add(q.s.Policy.RecoverAfter()))
		return
	}
	q.l.proven++
	if m.BornAt.After(q.l.provenBorn) {
		q.l.provenBorn = m.BornAt
	}
}

// latest is when a member last came into service.
func (q *pass) latest() time.Time {
	var last time.Time
	for i := range q.s.Members {
		if m := &q.s.Members[i]; m.ServedSince.After(last) && m.InService() {
			last = m.ServedSince
		}
	}
	return last
}

// bearing tells how the member stands to the target.
func (q *pass) bearing(m *Member) bearing {
	switch {
	case !m.Body:
		return bodiless
	case m.Runs == q.s.Target.ID:
		return updated
	case m.Runs != "" || q.s.Policy.ReplaceUnknown:
		return stale
	case m.Wants != "" && m.Wants != q.s.Target.ID:
		return stale
	default:
		return unsure
	}
}

// off tells whether the slot is bound for another revision than the target.
func (q *pass) off(m *Member) bool {
	if m.unborn() {
		return m.Wants != "" && m.Wants != q.s.Target.ID
	}
	return m.Runs != q.s.Target.ID
}

// floorRoom is how many more free members may be taken down to the floor.
func (q *pass) floorRoom() int {
	if !q.s.Policy.HasFloor {
		return q.l.free
	}
	return q.l.free - q.s.Policy.MinAvailable
}

// excess is how many slots there are above the desired number.
func (q *pass) excess() int { return max(0, q.l.slots-q.desired()) }

// desired is how many slots there should be: what the size says, in a warm pool
// one more for each claim that waits, and no more than the ceiling leaves.
func (q *pass) desired() int {
	p := &q.s.Policy
	if q.s.Deleting {
		return 0
	}
	n := p.Desired
	if p.Warm {
		n += q.s.Waiting
	}
	if p.HasCeiling {
		n = max(0, min(n, p.MaxMembers-q.l.onTop))
	}
	return n
}

// partition is how many members stay off the target: none where there is no
// other revision for them to stay on.
func (q *pass) partition() int {
	if q.current.ID == "" || q.current.ID == q.target.ID {
		return 0
	}
	return q.s.Policy.Partition
}

// capped tells whether the ceiling keeps the pool below its size.
func (q *pass) capped() bool { return !q.s.Deleting && q.desired() < q.s.Policy.Desired }

// onTop tells whether the member does not count towards the desired number. One
// whose claim goes with its body does.
func (q *pass) onTop(m *Member) bool { return q.s.Policy.Warm && m.Claimed && !m.lost() }

// earliest is the earlier of two times, of which zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

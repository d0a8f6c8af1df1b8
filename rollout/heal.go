package rollout

// heal replaces the bodies that failed, once their backoff is over, and drops
// those that never served and are not what would be born in their slot now.
// Neither costs anything: they are down.
func (q *pass) heal() {
	if c := &q.plan.Counts; c.Failed+c.Provisioning+q.ledger.lost == 0 {
		return
	}
	for _, i := range q.irregular {
		m := &q.s.Members[i]
		if q.actedOn.has(i) || m.Disrupted() || m.Deleting || m.Stuck || m.Phase == Quarantined {
			continue
		}
		switch {
		case m.Claimed && m.lost():
			q.replace(i, BodyFailed, q.birth(m), WhyBodyGone)
		case m.Claimed || q.s.Deleting:
		case m.Phase == Failed:
			q.healFailed(i)
		case m.Body && !m.served() && m.guard(Drift) == "":
			q.healUnborn(i)
		}
	}
}

// healUnborn drops a body that never served and is not what would be born in
// its slot now.
func (q *pass) healUnborn(i int) {
	m := &q.s.Members[i]
	rev := q.birth(m)
	switch {
	case rev == "" || rev == m.Runs:
	case m.Skipped:
		q.replace(i, Requested, rev, WhySkipped)
	case !q.paused():
		q.replace(i, Drift, rev, WhyNeverServed)
	}
}

func (q *pass) paused() bool { return q.s.Policy.Paused || q.s.Policy.Zero }

// healFailed replaces a failed body: at once where another revision is to be
// born, otherwise after its backoff; bodies that served and are stale on the
// count of what is being repaired.
func (q *pass) healFailed(i int) {
	m := &q.s.Members[i]
	if m.guard(BodyFailed) != "" {
		return
	}
	rev := q.birth(m)
	switch next := m.nextAttempt(q.now); {
	case rev == "":
		q.noteUnbuildable(m)
		return
	case rev == m.Runs && q.now.Before(next):
		q.wake(next)
		return
	case rev != m.Runs && m.served() && !m.Gone && !q.repair():
		return
	}
	why := WhyFailed
	if !m.Body {
		why = WhyBodyGone
	}
	q.replace(i, BodyFailed, rev, why)
}

// repair takes one place among the members that are being repaired.
func (q *pass) repair() bool {
	if q.repairRoom() <= 0 {
		return false
	}
	q.ledger.repairing++
	return true
}

// rollDown replaces stale members that have served and are down: they cost
// nothing, but few at a time, since many may come back by themselves.
func (q *pass) rollDown() {
	n := q.repairRoom()
	if q.gate != "" || q.s.WindowShut || n <= 0 || q.ledger.staleDown == 0 {
		return
	}
	for _, i := range q.first(n, q.repairable) {
		if m := &q.s.Members[i]; q.repairable(m) && q.repair() { // the last one may have changed what is born
			q.replace(i, Drift, q.birth(m), WhyStaleDown)
		}
	}
}

// repairable reports whether another revision may be born in place of a stale
// body that is down.
func (q *pass) repairable(m *Member) bool {
	if !q.isStaleDown(m) {
		return false
	}
	rev := q.birth(m)
	return rev != "" && rev != m.Runs
}

func (q *pass) isStaleDown(m *Member) bool {
	down := m.Phase == Unready || m.Phase == Preparing && m.served() || m.Phase == Available && m.Cordoned
	return down && m.Body && !m.Disrupted() && !m.Deleting && !m.Stuck && q.revisionState(m) == stale &&
		m.guard(Drift) == "" && !m.Skipped && !q.acted(m)
}

// recycle replaces the members for which somebody asked so: those in service
// through the same gates as a rollout, whatever the policy says about drift.
func (q *pass) recycle() {
	if q.s.Deleting || q.ledger.asking == 0 {
		return
	}
	for _, i := range q.irregular {
		m := &q.s.Members[i]
		if !q.recyclable(m) || q.actedOn.has(i) {
			continue
		}
		rev := q.rebirth(m)
		if rev == "" || m.Free() && (q.recycleLimit() != Next || q.failing && rev == q.target.ID) {
			continue
		}
		if !m.Free() {
			q.replace(i, Requested, rev, WhyAsked)
			continue
		}
		q.replaceOrRemove(i, Requested, rev, WhyAsked)
	}
}

// rebirth is the revision that may be born in the slot once its body is gone.
func (q *pass) rebirth(m *Member) Revision {
	next := *m
	next.Body = false
	return q.birth(&next)
}

// recyclable reports whether somebody asked for another body, and nothing keeps
// the one that is there.
func (q *pass) recyclable(m *Member) bool {
	return m.Asked && m.Body && !m.Disrupted() && !m.Deleting && !m.Stuck && m.guard(Requested) == "" &&
		m.Phase != Quarantined && m.Phase != Failed
}

// recycleLimit is what keeps a member in service from being recycled.
func (q *pass) recycleLimit() Reason {
	switch {
	case q.floorUnreachable() != "":
		return FloorUnreachable
	case q.resizing:
		return PoolResizing
	}
	return q.limit()
}

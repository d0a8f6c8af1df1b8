package rollout

// heal replaces failed bodies after their backoff, and drops bodies that never served and
// are not of the revision that would be born now. Both are down, so neither uses the
// budget.
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

// healUnborn drops a body that never served, if another revision would be born in its slot
// now.
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

// healFailed replaces a failed body: at once if another revision is born, else after its
// backoff. Stale bodies that served count as being repaired.
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

// repair takes one place of repairRoom, and reports whether there was one.
func (q *pass) repair() bool {
	if q.repairRoom() <= 0 {
		return false
	}
	q.ledger.repairing++
	return true
}

// rollDown replaces stale members that have served and are down. They use no budget, but
// only a few are replaced at a time, since many may come back by themselves.
func (q *pass) rollDown() {
	n := q.repairRoom()
	if q.gate != "" || q.s.WindowShut || n <= 0 || q.ledger.staleDown == 0 {
		return
	}
	for _, i := range q.first(n, q.repairable) {
		if m := &q.s.Members[i]; q.repairable(m) && q.repair() { // the last repair may have changed the birth
			q.replace(i, Drift, q.birth(m), WhyStaleDown)
		}
	}
}

// repairable reports whether another revision may be born in place of a stale body that is
// down.
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

// recycle replaces members with the annotation recycle. Members in service pass the same
// gates as in a rollout, whatever the policy says about drift.
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

// rebirth returns the revision that may be born in the slot once its body is gone.
func (q *pass) rebirth(m *Member) Revision {
	next := *m
	next.Body = false
	return q.birth(&next)
}

// recyclable reports whether the member is to be recycled and nothing protects its body.
func (q *pass) recyclable(m *Member) bool {
	return m.Asked && m.Body && !m.Disrupted() && !m.Deleting && !m.Stuck && m.guard(Requested) == "" &&
		m.Phase != Quarantined && m.Phase != Failed
}

// recycleLimit returns the reason why members in service are not recycled now; Next for
// none.
func (q *pass) recycleLimit() Reason {
	switch {
	case q.floorUnreachable() != "":
		return FloorUnreachable
	case q.resizing:
		return PoolResizing
	}
	return q.limit()
}

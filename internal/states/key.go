package states

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// longest is, in units, more than any threshold to which the engine holds the difference
// of two times: ten times what recovery takes, after a slow boot.
const longest = 70

// tidy brings the state into the form in which equal states are equal: what decides
// nothing any more is cleared, incarnations are numbered anew, and times are ages at
// epoch, of whose gaps none is longer than longest.
func (w *world) tidy() {
	for i := range w.slots[:w.n] {
		w.slots[i].tidy(w)
	}
	for i := range w.records {
		w.tidyRecord(int8(i))
	}
	w.number()
	w.age()
	w.broken, w.outside = "", false
}

// tidy clears what decides nothing.
func (s *slot) tidy(w *world) {
	m := &s.Member
	m.Message, m.StopTook = "", 0
	served, healthy := !m.ServedSince.IsZero(), m.Phase == rollout.Available || m.Phase == rollout.InClaim
	live := m.Disruption.Incarnation == m.Incarnation
	if !m.NextAttempt.After(w.now) {
		m.NextAttempt = time.Time{}
	}
	if d := &m.Disruption; d.Cause == rollout.NoCause || served && !live {
		*d = rollout.Disruption{}
	} else if d.Rolling || d.Remove || d.Cause != rollout.Drift && d.Cause != rollout.BodyFailed {
		d.Since = w.now // only the time until a pool is stalled depends on it
	}
	switch {
	case m.Phase == rollout.Preparing || m.Phase == rollout.Terminating || m.Phase == rollout.Failed:
	case healthy:
		m.PhaseSince = m.ServedSince
	case served && m.DownSince.IsZero() && m.Phase != rollout.Draining: // it stands for DownSince
	default:
		m.PhaseSince = m.BornAt
	}
	if !served {
		m.UnsettledSince = time.Time{}
		m.DownSince = m.BornAt
	}
	recovered := m.Recovered == m.Runs && m.RecoveredAt.After(m.BornAt)
	if recovered {
		m.UnsettledSince = time.Time{}
	}
	target := &w.records[w.template]
	if !recovered && (m.Recovered != target.ID || !m.RecoveredAt.After(target.Since) || !m.RecoveredAt.After(target.Counted)) {
		m.Recovered, m.RecoveredAt = "", time.Time{}
	}
	if s.body.state == rollout.Absent || s.body.state == rollout.Exited {
		s.body = body{state: s.body.state}
	}
}

// tidyRecord clears what decides nothing in a record. A revision starts clean when a
// template names it, unless it is halted; the current one comes back as it is.
func (w *world) tidyRecord(i int8) {
	r := &w.records[i]
	if i != w.template && i != w.current && !r.Halted {
		*r = r.Renewed(w.now)
	}
	if i != w.target() {
		r.Since, r.Counted = time.Time{}, time.Time{}
	}
	if len(r.Failures) == 0 {
		r.Failures = nil
		return
	}
	r.Failures = slices.Clone(r.Failures)
	for i := range r.Failures {
		f := &r.Failures[i]
		f.Message = ""
		if f.Count == 0 && f.Forgiven {
			f.At = w.now // it only keeps an incarnation from being counted again
		}
	}
}

// number gives incarnations the lowest numbers that compare as they do.
func (w *world) number() {
	for i := range w.slots[:w.n] {
		m := &w.slots[i].Member
		was := m.Incarnation
		m.Incarnation = min(was, 2)
		if m.Disruption.Cause != rollout.NoCause {
			m.Disruption.Incarnation = m.Incarnation - min(1, was-m.Disruption.Incarnation)
		}
		for k := range w.records {
			list := w.records[k].Failures
			for f := range list {
				if list[f].ID == m.ID {
					list = slices.Clone(list)
					list[f].Incarnation = m.Incarnation - min(1, was-list[f].Incarnation)
				}
			}
			w.records[k].Failures = list
		}
	}
	for k := range w.records {
		for f, list := 0, w.records[k].Failures; f < len(list); f++ {
			if list[f].ID == deadID {
				list[f].Incarnation = 0
			}
		}
	}
}

// age makes times ages at epoch.
func (w *world) age() {
	var room [12 * maxSlots]*time.Time
	times := room[:0]
	add := func(list ...*time.Time) {
		for _, t := range list {
			if !t.IsZero() {
				times = append(times, t)
			}
		}
	}
	for i := range w.slots[:w.n] {
		m := &w.slots[i].Member
		add(&m.BornAt, &m.PhaseSince, &m.ServedSince, &m.DownSince, &m.UnsettledSince, &m.RecoveredAt, &m.NextAttempt, &m.Disruption.Since)
	}
	for i := range w.records {
		r := &w.records[i]
		add(&r.Since, &r.Counted)
		for f := range r.Failures {
			add(&r.Failures[f].At)
		}
	}
	slices.SortFunc(times, func(a, b *time.Time) int { return b.Compare(*a) })
	was, is := w.now, epoch
	for _, t := range times {
		at := *t
		if at.After(w.now) {
			*t = epoch.Add(at.Sub(w.now))
			continue
		}
		is = is.Add(-min(was.Sub(at), longest*unit))
		was = at
		*t = is
	}
	w.now = epoch
}

// coder writes a state as bytes, and reads it.
type coder struct {
	b  []byte
	at int
}

func (c *coder) put(n ...int8) {
	for _, n := range n {
		c.b = append(c.b, byte(n))
	}
}

func (c *coder) flags(list ...bool) {
	var bits byte
	for i, is := range list {
		if is {
			bits |= 1 << i
		}
	}
	c.b = append(c.b, bits)
}

func (c *coder) time(t time.Time) {
	age := uint16(0) // zero
	if !t.IsZero() {
		age = uint16(epoch.Sub(t)/unit) + 1000
	}
	c.b = binary.LittleEndian.AppendUint16(c.b, age)
}

func (c *coder) get() int8 {
	c.at++
	return int8(c.b[c.at-1])
}

func (c *coder) bits(list ...*bool) {
	bits := byte(c.get())
	for i, is := range list {
		*is = bits&(1<<i) != 0
	}
}

func (c *coder) when() time.Time {
	age := binary.LittleEndian.Uint16(c.b[c.at:])
	c.at += 2
	if age == 0 {
		return time.Time{}
	}
	return epoch.Add(-time.Duration(int(age)-1000) * unit)
}

func revisionOf(i int8) rollout.Revision {
	if i < 0 {
		return ""
	}
	return revisions[i]
}

// encode appends the tidied state to the bytes. What a plan depends on comes first;
// planned is where that ends.
func (w *world) encode(to []byte) (b []byte, planned int) {
	c := coder{b: to}
	c.put(w.template, w.current, w.n, w.surge, w.size, w.desired, w.partition, int8(w.waiting()))
	c.flags(w.paused)
	for i := range w.records {
		c.record(&w.records[i])
	}
	for i := range w.slots[:w.n] {
		c.member(&w.slots[i].Member)
	}
	planned = len(c.b)
	c.put(w.users, w.faults, w.stale)
	for i := range w.slots[:w.n] {
		s := &w.slots[i]
		c.put(int8(s.body.state), s.claim)
		c.flags(s.body.booted, s.body.slow, s.body.draining, s.body.drained, s.blocked)
	}
	for _, l := range w.claims {
		c.flags(l.made, l.bound, l.deleted)
	}
	return c.b, planned
}

func (c *coder) record(r *rollout.Record) {
	c.put(int8(len(r.Failures)), int8(min(r.Failed, 100)), int8(min(r.Recovered, maxSlots+2)))
	c.flags(r.Halted, r.RolledBack)
	c.time(r.Since)
	c.time(r.Counted)
	for i := range r.Failures {
		f := &r.Failures[i]
		c.put(int8(f.Index), int8(f.Incarnation), int8(f.Count))
		c.flags(f.ID == deadID, f.Forgiven)
		c.time(f.At)
	}
}

func (c *coder) member(m *rollout.Member) {
	d := &m.Disruption
	c.put(int8(m.Index), indexOf(m.Wants), indexOf(m.Runs), indexOf(m.Recovered), int8(m.Incarnation), int8(m.Phase), int8(m.Attempts),
		int8(m.Occupancy), int8(d.Cause), int8(d.Incarnation), int8(min(m.BootTook/unit, 100)))
	c.flags(m.Body, m.Gone, m.Claimed, m.Held, m.Asked, m.Skipped, m.FailedEarly, m.NoRoom)
	c.flags(m.ForClaim, d.Remove, d.Update, d.Rolling)
	for _, t := range [...]time.Time{m.BornAt, m.PhaseSince, m.ServedSince, m.DownSince, m.UnsettledSince, m.RecoveredAt, m.NextAttempt, d.Since} {
		c.time(t)
	}
}

// decode reads the state.
func (w *world) decode(b []byte) {
	*w = world{now: epoch}
	c := coder{b: b}
	w.template, w.current, w.n, w.surge, w.size, w.desired, w.partition = c.get(), c.get(), c.get(), c.get(), c.get(), c.get(), c.get()
	c.get() // what waits follows from the claims
	c.bits(&w.paused)
	for i := range w.records {
		c.readRecord(&w.records[i])
		w.records[i].ID = revisions[i]
	}
	for i := range w.slots[:w.n] {
		c.readMember(&w.slots[i].Member)
	}
	w.users, w.faults, w.stale = c.get(), c.get(), c.get()
	for i := range w.slots[:w.n] {
		s := &w.slots[i]
		s.body.state, s.claim = rollout.BodyState(c.get()), c.get()
		c.bits(&s.body.booted, &s.body.slow, &s.body.draining, &s.body.drained, &s.blocked)
	}
	for i := range w.claims {
		l := &w.claims[i]
		c.bits(&l.made, &l.bound, &l.deleted)
	}
}

func (c *coder) readRecord(r *rollout.Record) {
	n := c.get()
	r.Failed, r.Recovered = int(c.get()), int(c.get())
	c.bits(&r.Halted, &r.RolledBack)
	r.Since, r.Counted = c.when(), c.when()
	if n == 0 {
		return
	}
	r.Failures = make([]rollout.Failure, n)
	for i := range r.Failures {
		f := &r.Failures[i]
		f.Index, f.Incarnation, f.Count = int(c.get()), int64(c.get()), int(c.get())
		dead := false
		c.bits(&dead, &f.Forgiven)
		f.ID = deadID
		if !dead {
			f.ID = slotIDs[f.Index]
		}
		f.At = c.when()
	}
}

func (c *coder) readMember(m *rollout.Member) {
	d := &m.Disruption
	m.Index, m.Wants, m.Runs, m.Recovered = int(c.get()), revisionOf(c.get()), revisionOf(c.get()), revisionOf(c.get())
	m.ID = slotIDs[m.Index]
	m.Incarnation, m.Phase, m.Attempts = int64(c.get()), rollout.Phase(c.get()), int32(c.get())
	m.Occupancy, d.Cause, d.Incarnation, m.BootTook = rollout.Occupancy(c.get()), rollout.Cause(c.get()), int64(c.get()), time.Duration(c.get())*unit
	c.bits(&m.Body, &m.Gone, &m.Claimed, &m.Held, &m.Asked, &m.Skipped, &m.FailedEarly, &m.NoRoom)
	c.bits(&m.ForClaim, &d.Remove, &d.Update, &d.Rolling)
	for _, t := range [...]*time.Time{&m.BornAt, &m.PhaseSince, &m.ServedSince, &m.DownSince, &m.UnsettledSince, &m.RecoveredAt, &m.NextAttempt, &d.Since} {
		*t = c.when()
	}
}

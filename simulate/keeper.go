package simulate

import (
	"errors"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// keeper is the member controller: it brings each slot through its life.
type keeper struct {
	cache   cache
	errands map[int]*errand
}

// errand is what is to be looked after in one slot.
type errand struct {
	queued bool
	wakeAt time.Duration
	run    func()
}

// reset forgets everything.
func (k *keeper) reset() { k.errands = map[int]*errand{} }

func (k *keeper) errand(index int) *errand {
	e := k.errands[index]
	if e == nil {
		e = &errand{}
		e.run = func() {
			e.queued = false
			k.reconcile(index, e)
		}
		k.errands[index] = e
	}
	return e
}

// wake has the slot looked at soon.
func (k *keeper) wake(index int) {
	w := k.cache.p.w
	if index < 0 {
		k.wakeAll() // the spec has changed: other deadlines may hold
		return
	}
	if w.down || !k.cache.ready {
		return
	}
	if e := k.errand(index); !e.queued {
		e.queued = true
		w.act(w.now, e.run)
	}
}

func (k *keeper) wakeAll() {
	for _, s := range k.cache.slots {
		k.wake(s.Index)
	}
}

// remind has the slot looked at when time alone has changed what is to be done.
func (k *keeper) remind(e *errand, at time.Duration) {
	w := k.cache.p.w
	if at <= w.now || e.wakeAt == at {
		return
	}
	e.wakeAt = at
	w.act(at, func() {
		if e.wakeAt == at {
			e.wakeAt = 0
		}
		e.run()
	})
}

// reconcile steps until nothing changes. It does not act on a slot in which
// it has written what it cannot see yet.
func (k *keeper) reconcile(index int, e *errand) {
	p := k.cache.p
	w := p.w
	for {
		s := k.cache.slots.get(index)
		if s == nil || w.down || k.cache.unseen[index] > 0 || w.without(loseMembers) {
			return
		}
		m := p.seen(s)
		tr := rollout.Step(m, p.sight(s), k.cache.spec.life, w.time())
		next := time.Duration(0)
		if s.held(w.clock()) && s.holdUntil < longest {
			next = s.holdUntil - w.skew
		}
		if at := w.since(tr.Wake); !tr.Wake.IsZero() && (next == 0 || at < next) {
			next = at
		}
		k.remind(e, next)
		if !k.do(s, m, tr) {
			return
		}
	}
}

// do carries out one transition, and tells whether there may be more to do.
func (k *keeper) do(s *slot, m rollout.Member, tr rollout.Transition) bool {
	b := k.cache.p.bodies[s.Index]
	changed := tr.Member != m
	switch tr.Do {
	case rollout.DropSlot:
		if b != nil {
			b.tell() // made on a late read; the slot has to wait for its end
			return false
		}
		return k.cache.p.put(byKeeper, s, nil, func() string { return k.cache.p.member(s.Index) + " goes" })
	case rollout.CreateBody:
		return k.create(s, tr.Member)
	case rollout.UndrainBody:
		if b != nil {
			b.undrain()
		}
	}
	if changed && !k.record(s, tr.Member) {
		return false
	}
	switch tr.Do {
	case rollout.DrainBody:
		if b == nil || b.draining {
			return changed
		}
		b.drain()
		return true
	case rollout.UpdateBody:
		return k.update(s.Index)
	case rollout.DeleteBody:
		if b == nil || b.stopping {
			return changed
		}
		b.tell()
		return false
	}
	return changed
}

// record stores the slot as the step leaves it. What is only read through it
// stays as it was stored.
func (k *keeper) record(s *slot, m rollout.Member) bool {
	next := *s
	p := k.cache.p
	m = s.stored(m)
	switch {
	case m.Phase != rollout.Failed:
		m.Message = ""
	case s.Phase != rollout.Failed:
		m.Message = p.bodies[s.Index].words()
	}
	next.Member = m
	return p.put(byKeeper, s, &next, func() string { return p.moves(s, &next) })
}

// stored is the member as it is to be stored: what is only read through it
// stays as it was.
func (s *slot) stored(m rollout.Member) rollout.Member {
	m.Held, m.Asked, m.Skipped, m.Occupancy = s.Held, s.Asked, s.Skipped, s.Occupancy
	return m
}

// create makes the next body and records what became of that.
func (k *keeper) create(s *slot, m rollout.Member) bool {
	p := k.cache.p
	now := p.w.time()
	b, err := p.create(s.Index, m.NextIncarnation(), m.Wants)
	if p.w.down {
		return false
	}
	switch {
	case errors.Is(err, errRefused):
		m = m.Refused(now)
		m.Message = err.Error()
	case errors.Is(err, errNoRoom):
		m = m.WithoutRoom(now)
	case errors.Is(err, errOccupied):
		p.bodies[s.Index].tell() // what is left of another incarnation makes room
		return false
	case err != nil:
		return false // looked at again when the world has changed
	default:
		m = m.Born(now)
		m.Runs = b.revision // it may be there since before a restart
	}
	next := *s
	m = s.stored(m)
	if b != nil {
		m.Occupancy = b.occupancy
	}
	next.Member = m
	return p.put(byKeeper, s, &next, func() string { return p.member(s.Index) + " " + birthWords(err, &m) })
}

// update makes the body what is wanted, where it is, and records what became
// of that.
func (k *keeper) update(index int) bool {
	p := k.cache.p
	s := k.cache.slots.get(index)
	if s == nil || k.cache.unseen[index] > 0 {
		return false // that it updates is recorded, and has to be seen first
	}
	now := p.w.time()
	m := s.Member
	err := p.update(s)
	if p.w.down {
		return false
	}
	switch {
	case errors.Is(err, errRefused):
		m = m.Refused(now)
		m.Message = err.Error()
	case err != nil:
		return false // looked at again when the world has changed
	default:
		m = m.Updated(now)
		m.Occupancy = rollout.Idle
	}
	m.Held = false
	next := *s
	next.Member = m
	return p.put(byKeeper, s, &next, func() string {
		if err != nil {
			return p.member(index) + " failed: its body cannot become " + string(m.Runs)
		}
		return p.member(index) + " becomes " + string(m.Runs) + " where it is"
	})
}

func birthWords(err error, m *rollout.Member) string {
	switch {
	case errors.Is(err, errRefused):
		return "failed: its body on " + string(m.Wants) + " is refused"
	case errors.Is(err, errNoRoom):
		return "finds no room for its body on " + string(m.Wants)
	}
	return "boots on " + string(m.Runs)
}

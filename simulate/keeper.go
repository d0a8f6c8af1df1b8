package simulate

import (
	"errors"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// keeper is the member controller: it advances each slot through its life.
type keeper struct {
	cache cache
	items map[int]*workItem
}

// workItem is the entry of one slot in the keeper's work queue.
type workItem struct {
	queued bool
	wakeAt time.Duration
	run    func()
}

func (k *keeper) reset() { k.items = map[int]*workItem{} }

func (k *keeper) item(index int) *workItem {
	e := k.items[index]
	if e == nil {
		e = &workItem{}
		e.run = func() {
			e.queued = false
			k.reconcile(index, e)
		}
		k.items[index] = e
	}
	return e
}

// wake queues the slot.
func (k *keeper) wake(index int) {
	w := k.cache.p.w
	if index < 0 {
		k.wakeAll() // the spec has changed, and deadlines with it
		return
	}
	if w.down || !k.cache.ready {
		return
	}
	if e := k.item(index); !e.queued {
		e.queued = true
		w.act(w.now, e.run)
	}
}

func (k *keeper) wakeAll() {
	for _, s := range k.cache.slots {
		k.wake(s.Index)
	}
}

// wakeLater queues the slot at the time.
func (k *keeper) wakeLater(e *workItem, at time.Duration) {
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

// reconcile steps until nothing changes. It does not act on a slot until it has
// seen its own last write to it.
func (k *keeper) reconcile(index int, e *workItem) {
	p := k.cache.p
	w := p.w
	for {
		s := k.cache.slots.get(index)
		if s == nil || w.down || k.cache.unseen[index] > 0 || w.without(loseMembers) {
			return
		}
		m := p.readMember(s)
		tr := rollout.Step(m, p.bodySight(s), k.cache.spec.life, w.time())
		next := time.Duration(0)
		if s.held(w.clock()) && s.holdUntil < longest {
			next = s.holdUntil - w.skew
		}
		if at := w.since(tr.Wake); !tr.Wake.IsZero() && (next == 0 || at < next) {
			next = at
		}
		k.wakeLater(e, next)
		if !k.execute(s, m, tr) {
			return
		}
	}
}

// execute carries out one transition, and reports whether another may follow.
func (k *keeper) execute(s *slot, m rollout.Member, tr rollout.Transition) bool {
	b := k.cache.p.bodies[s.Index]
	changed := tr.Member != m
	switch tr.Do {
	case rollout.DropSlot:
		if b != nil {
			b.stopOnce() // made from an outdated read; the slot waits for its end
			return false
		}
		return k.cache.p.put(byKeeper, s, nil, func() string { return k.cache.p.member(s.Index) + " is gone" })
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
		b.stopOnce()
		return false
	}
	return changed
}

// record stores the result of a step.
func (k *keeper) record(s *slot, m rollout.Member) bool {
	next := *s
	p := k.cache.p
	m = s.stored(m)
	switch {
	case m.Phase != rollout.Failed:
		m.Message = ""
	case s.Phase != rollout.Failed:
		m.Message = p.bodies[s.Index].failureMessage()
	}
	next.Member = m
	return p.put(byKeeper, s, &next, func() string { return p.describeMove(s, &next) })
}

// stored returns the member with the stored values of the fields that readMember
// computes.
func (s *slot) stored(m rollout.Member) rollout.Member {
	m.Held, m.Asked, m.Skipped, m.Occupancy = s.Held, s.Asked, s.Skipped, s.Occupancy
	return m
}

// create creates the next body and records the result.
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
		p.bodies[s.Index].stopOnce() // a body of another incarnation has to go first
		return false
	case err != nil:
		return false // retried when the world has changed
	default:
		m = m.Born(now)
		m.Runs = b.revision // the body may have been created before a restart
	}
	next := *s
	m = s.stored(m)
	if b != nil {
		m.Occupancy = b.occupancy
	}
	next.Member = m
	return p.put(byKeeper, s, &next, func() string { return p.member(s.Index) + " " + birthWords(err, &m) })
}

// update updates the body in place and records the result.
func (k *keeper) update(index int) bool {
	p := k.cache.p
	s := k.cache.slots.get(index)
	if s == nil || k.cache.unseen[index] > 0 {
		return false // the phase Updating has been written and must be seen first
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
		return false // retried when the world has changed
	default:
		m = m.Updated(now)
		m.Occupancy = rollout.Idle
	}
	m.Held = false
	next := *s
	next.Member = m
	return p.put(byKeeper, s, &next, func() string {
		if err != nil {
			return p.member(index) + " failed: its body cannot be updated to " + string(m.Runs)
		}
		return p.member(index) + " is updated in place to " + string(m.Runs)
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

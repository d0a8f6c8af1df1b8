package simulate

import (
	"errors"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// body is a simulated body. It boots, serves and stops independently of the
// controllers.
type body struct {
	p           *pool
	index       int
	incarnation int64
	// revision is what it runs; empty if that is unknown.
	revision rollout.Revision
	breed    breed
	// booted: it has become ready once. sick: it is not ready although it has
	// booted. exited: it has ended by itself. stopping: it is being deleted.
	booted, sick, exited, stopping bool
	draining, drained              bool
	// drains counts drains. A scheduled end of a drain compares it, so that it does
	// nothing after the drain was withdrawn.
	drains    int
	occupancy rollout.Occupancy
	// starts counts boots, turns the edits of its health, and ends how often its
	// end was scheduled. Scheduled events compare them, to notice that they are
	// outdated.
	starts, turns, ends int
	// hangs: it never stops once it is deleted. stop replaces the world's stop
	// time.
	hangs bool
	stop  *time.Duration
}

// ready reports whether the body serves.
func (b *body) ready() bool { return b.booted && !b.sick && !b.exited && !b.stopping }

// bodyOf returns the slot's body, or nil. A body of another incarnation was made
// from an outdated read and does not count, with two exceptions: an update that
// was refused leaves a body of an earlier incarnation, and an update that is not
// recorded yet a body of the next one.
func (p *pool) bodyOf(s *slot) *body {
	b := p.bodies[s.Index]
	switch {
	case b == nil || b.incarnation == s.Incarnation:
		return b
	case b.incarnation < s.Incarnation && s.Body:
		return b
	case b.incarnation == s.Incarnation+1 && s.Phase == rollout.Updating && s.disrupted():
		return b
	}
	return nil
}

// bodySight returns the state of the slot's body as a controller observes it.
func (p *pool) bodySight(s *slot) rollout.Sight {
	b := p.bodyOf(s)
	if b == nil {
		return rollout.Sight{State: rollout.Absent}
	}
	seen := rollout.Sight{State: rollout.Booting, Drained: b.drained}
	switch {
	case b.stopping:
		seen.State = rollout.Stopping
	case b.exited:
		seen.State = rollout.Exited
	case b.ready():
		seen.State = rollout.Ready
	}
	return seen
}

// Reasons for which a body cannot be created.
var (
	errUnreadable = errors.New("its template or sources cannot be read")
	errOccupied   = errors.New("another body exists in the slot")
	errRefused    = errors.New("refused")
	errNoRoom     = errors.New("no room")
)

// create creates the body of the incarnation, unless it exists.
func (p *pool) create(index int, incarnation int64, r rollout.Revision) (*body, error) {
	w := p.w
	if b := p.bodies[index]; b != nil {
		if b.incarnation != incarnation || b.stopping {
			return nil, errOccupied
		}
		return b, nil
	}
	breed := w.nature.breed(r)
	switch {
	case w.without(loseSources) || w.without(loseRender):
		return nil, errUnreadable
	case breed.outcome == createError || w.now < p.refused[index]:
		p.refusals++
		return nil, errRefused
	case w.bodies >= w.nature.capacity:
		return nil, errNoRoom
	}
	b := &body{p: p, index: index, incarnation: incarnation, revision: r, breed: breed}
	p.bodies[index] = b
	p.creates++
	w.bodies++
	p.counts.touch(index)
	w.judge.checkBirth(b)
	w.sayLazily("member", func() string {
		return "body " + b.name() + " is born on " + string(r)
	})
	b.start()
	w.changed()
	return b, nil
}

// failureMessage is the message of a failed body.
func (b *body) failureMessage() string {
	switch {
	case b == nil:
		return "it is gone"
	case b.exited:
		return "it ended with an error"
	case !b.booted:
		return "it has not become ready"
	}
	return "it is not ready any more"
}

// name is unique among all bodies of the slot.
func (b *body) name() string { return b.p.member(b.index) + "#" + itoa(b.incarnation) }

// update turns the slot's body into the next incarnation, on the granted
// revision, unless it is that already. No body is created or deleted. If the
// update is refused, the body stays as it was.
func (p *pool) update(s *slot) error {
	w := p.w
	b, next, r := p.bodies[s.Index], s.NextIncarnation(), s.Wants
	breed := w.nature.breed(r)
	switch {
	case b == nil || b.stopping:
		return errOccupied
	case b.incarnation == next && b.revision == r:
		return nil
	case w.without(loseSources) || w.without(loseRender):
		return errUnreadable
	case breed.outcome == createError || w.now < p.refused[s.Index]:
		return errRefused
	}
	w.sayLazily("member", func() string { return "body " + b.name() + " becomes " + string(r) })
	b.incarnation, b.revision, b.breed, b.occupancy = next, r, breed, rollout.Idle
	b.booted, b.sick, b.exited, b.draining, b.drained = false, false, false, false, false
	p.counts.touch(b.index)
	b.start()
	w.changed()
	return nil
}

// start boots the body.
func (b *body) start() {
	b.starts++
	if b.breed.outcome == neverReady {
		return
	}
	w, n := b.p.w, b.starts
	w.at(w.now+w.vary(w.nature.bootOf(b.revision)), func() {
		if b.gone() || b.stopping || b.booted || b.starts != n {
			return
		}
		b.booted = true
		w.sayLazily("world", func() string { return "body " + b.name() + " is ready" })
		b.serve()
		b.changed()
	})
}

// serve schedules what its breed does after it has become ready.
func (b *body) serve() {
	switch b.breed.outcome {
	case crashes:
		b.serveUntilCrash()
	case flaps:
		b.flap(flap{b.breed.up, b.breed.down, longest}, b.p.w.vary)
	}
}

// flap makes a ready body unready and ready in turn until a time; after it the
// body stays ready. vary returns the actual length of each span.
func (b *body) flap(f flap, vary func(time.Duration) time.Duration) {
	w := b.p.w
	n, starts := b.turns, b.starts
	turn := func(at time.Duration, up bool, then func()) {
		w.at(at, func() {
			if b.gone() || b.stopping || b.turns != n || b.starts != starts {
				return
			}
			if b.sick == up {
				w.sayLazily("world", func() string { return "body " + b.name() + " goes " + upOrDown(up) })
				b.sick = !up
				b.changed()
			}
			if then != nil {
				then()
			}
		})
	}
	var down, up func()
	down = func() {
		if at := w.now + vary(f.up); at < f.until {
			turn(at, false, up)
		}
	}
	up = func() {
		if at := w.now + vary(f.down); at < f.until {
			turn(at, true, down)
		} else {
			turn(f.until, true, nil)
		}
	}
	down()
}

func upOrDown(up bool) string {
	if up {
		return "Up"
	}
	return "Down"
}

func (b *body) serveUntilCrash() {
	w, n := b.p.w, b.starts
	w.at(w.now+w.vary(b.breed.after), func() {
		if b.gone() || b.stopping || b.exited || b.starts != n {
			return
		}
		b.exited = true
		w.sayLazily("world", func() string { return "body " + b.name() + " crashes" })
		b.changed()
	})
}

// drain starts the body's drain, unless it is draining.
func (b *body) drain() {
	if b.draining {
		return
	}
	w := b.p.w
	b.draining = true
	b.drains++
	n := b.drains
	w.sayLazily("member", func() string { return "body " + b.name() + " drains" })
	done := func() {
		if b.draining && b.drains == n && !b.gone() {
			b.drained = true
			b.changed()
		}
	}
	if w.nature.drain == 0 {
		b.drained = true
		return
	}
	w.at(w.now+w.vary(w.nature.drain), done)
}

func (b *body) undrain() { b.draining, b.drained = false, false }

// stopOnce deletes the body, unless that was done.
func (b *body) stopOnce() {
	if b.stopping {
		return
	}
	b.p.deletes++
	b.p.w.sayLazily("member", func() string { return "deletes body " + b.name() })
	b.beginStop()
	b.p.w.changed()
}

// beginStop starts the body's stop.
func (b *body) beginStop() {
	b.stopping = true
	b.p.counts.touch(b.index)
	switch {
	case b.hangs:
	case b.stop != nil:
		b.stopAfter(*b.stop)
	default:
		b.stopAfter(b.p.w.vary(b.p.w.nature.stopOf(b.revision)))
	}
}

// stopAfter schedules the end of the body.
func (b *body) stopAfter(d time.Duration) {
	w := b.p.w
	b.ends++
	n := b.ends
	w.at(w.now+d, func() {
		if !b.gone() && b.ends == n {
			w.sayLazily("world", func() string { return "body " + b.name() + " is gone" })
			b.vanish()
		}
	})
}

// setStopTime sets how long the body takes to stop, also if it is stopping;
// negative for ever.
func (b *body) setStopTime(d time.Duration) {
	b.hangs, b.stop = d < 0, &d
	switch {
	case b.hangs:
		b.ends++ // cancels a scheduled end
	case b.stopping:
		b.stopAfter(d)
	}
}

func (b *body) gone() bool { return b.p.bodies[b.index] != b }

// vanish removes the body.
func (b *body) vanish() {
	delete(b.p.bodies, b.index)
	b.p.w.bodies--
	b.changed()
}

// changed notifies the member controller of a change of the body.
func (b *body) changed() {
	w := b.p.w
	b.p.counts.touch(b.index)
	if w.editing {
		w.edited = append(w.edited, delivery{to: &b.p.keeper.cache, key: b.index})
	} else {
		w.hint(func() { b.p.keeper.wake(b.index) })
	}
	w.changed()
}

// health makes the body ready or unready. A body that has not booted stays unready.
func (b *body) health(up bool) {
	b.turns++
	b.sick = !up
	b.changed()
}

package simulate

import (
	"errors"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// body is what a slot holds. Bodies live on whether or not a controller looks.
type body struct {
	p           *pool
	index       int
	incarnation int64
	// revision is what it runs; empty if nobody can tell.
	revision rollout.Revision
	breed    breed
	// booted: it has come up. sick: it is not ready all the same. exited: it
	// has ended by itself. stopping: it was told to go.
	booted, sick, exited, stopping bool
	draining, drained              bool
	// drains counts how often a drain began, so that one that was taken back
	// does not end.
	drains    int
	occupancy rollout.Occupancy
	// starts counts how often it was started: once, and for each update; turns
	// how often somebody set its health, which ends what was to come of it
	// before; ends how often it was set when it will be gone.
	starts, turns, ends int
	// hangs: once it is told to go it does not. stop is how long it takes
	// instead of what the world says.
	hangs bool
	stop  *time.Duration
}

// ready tells whether it serves.
func (b *body) ready() bool { return b.booted && !b.sick && !b.exited && !b.stopping }

// own is the slot's body, nil if there is none. One of another incarnation is
// none of this one's: it was made by a controller that read too late. But a
// body may stay what it was when it should have become this one, and may be the
// next one before that is recorded.
func (p *pool) own(s *slot) *body {
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

// sight is how a controller finds the slot's body.
func (p *pool) sight(s *slot) rollout.Sight {
	b := p.own(s)
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

// What may keep a body from being created.
var (
	errUnreadable = errors.New("what it is made from cannot be read")
	errOccupied   = errors.New("another body is still there")
	errRefused    = errors.New("refused as it is")
	errNoRoom     = errors.New("no room")
)

// create makes the body of the incarnation, unless it is there already.
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
	w.judge.born(b)
	w.saying("member", func() string {
		return "body " + b.name() + " is born on " + string(r)
	})
	b.start()
	w.changed()
	return b, nil
}

// words are what the body says about itself when it has failed.
func (b *body) words() string {
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

// name tells the body from the others of its slot.
func (b *body) name() string { return b.p.member(b.index) + "#" + itoa(b.incarnation) }

// update makes the body that is there the slot's next incarnation, of the
// revision that is wanted, unless it is that already. It is neither born nor
// does it go. One that is refused stays what it was.
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
	w.saying("member", func() string { return "body " + b.name() + " becomes " + string(r) })
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
		w.saying("world", func() string { return "body " + b.name() + " is ready" })
		b.serve()
		b.touched()
	})
}

// serve begins what becomes of a body of its breed that has come up.
func (b *body) serve() {
	switch b.breed.outcome {
	case crashes:
		b.serveUntilCrash()
	case flaps:
		b.flap(flap{b.breed.up, b.breed.down, longest}, b.p.w.vary)
	}
}

// flap has the body, which is up, go down and up in turn until a time, from
// which on it stays up. Vary is how long a span takes in truth.
func (b *body) flap(f flap, vary func(time.Duration) time.Duration) {
	w := b.p.w
	n, starts := b.turns, b.starts
	turn := func(at time.Duration, up bool, then func()) {
		w.at(at, func() {
			if b.gone() || b.stopping || b.turns != n || b.starts != starts {
				return
			}
			if b.sick == up {
				w.saying("world", func() string { return "body " + b.name() + " goes " + upOrDown(up) })
				b.sick = !up
				b.touched()
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
		w.saying("world", func() string { return "body " + b.name() + " crashes" })
		b.touched()
	})
}

// drain begins what comes before the end, or goes on with it.
func (b *body) drain() {
	if b.draining {
		return
	}
	w := b.p.w
	b.draining = true
	b.drains++
	n := b.drains
	w.saying("member", func() string { return "body " + b.name() + " drains" })
	done := func() {
		if b.draining && b.drains == n && !b.gone() {
			b.drained = true
			b.touched()
		}
	}
	if w.nature.drain == 0 {
		b.drained = true
		return
	}
	w.at(w.now+w.vary(w.nature.drain), done)
}

func (b *body) undrain() { b.draining, b.drained = false, false }

// tell tells the body to go, once.
func (b *body) tell() {
	if b.stopping {
		return
	}
	b.p.deletes++
	b.p.w.saying("member", func() string { return "tells body " + b.name() + " to go" })
	b.end()
	b.p.w.changed()
}

// end is how a body goes.
func (b *body) end() {
	b.stopping = true
	b.p.counts.touch(b.index)
	switch {
	case b.hangs:
	case b.stop != nil:
		b.endIn(*b.stop)
	default:
		b.endIn(b.p.w.vary(b.p.w.nature.stopOf(b.revision)))
	}
}

// endIn has the body be gone in some time.
func (b *body) endIn(d time.Duration) {
	w := b.p.w
	b.ends++
	n := b.ends
	w.at(w.now+d, func() {
		if !b.gone() && b.ends == n {
			w.saying("world", func() string { return "body " + b.name() + " is gone" })
			b.vanish()
		}
	})
}

// stopsIn sets how long the body takes to go, from now on, also if it has been
// told to; negative for ever.
func (b *body) stopsIn(d time.Duration) {
	b.hangs, b.stop = d < 0, &d
	switch {
	case b.hangs:
		b.ends++ // what was to be the end is not
	case b.stopping:
		b.endIn(d)
	}
}

func (b *body) gone() bool { return b.p.bodies[b.index] != b }

// vanish removes the body.
func (b *body) vanish() {
	delete(b.p.bodies, b.index)
	b.p.w.bodies--
	b.touched()
}

// touched tells the member controller that the body is not what it was.
func (b *body) touched() {
	w := b.p.w
	b.p.counts.touch(b.index)
	if w.editing {
		w.edited = append(w.edited, news{to: &b.p.keeper.cache, key: b.index})
	} else {
		w.hint(func() { b.p.keeper.wake(b.index) })
	}
	w.changed()
}

// health makes the body sick or well. One that never came up stays as it is.
func (b *body) health(up bool) {
	b.turns++
	b.sick = !up
	b.touched()
}

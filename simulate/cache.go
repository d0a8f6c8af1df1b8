package simulate

import (
	"slices"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// Keys of cached objects other than slots.
const (
	specKey  = -1
	stateKey = -2
	noKey    = -3 // and below: claims
)

func claimKey(uid int64) int { return noKey - int(uid) }

// cache is the world as one controller reads it. Each write arrives up to `lag`
// late; writes to one object arrive in order. A controller that starts gets one
// consistent list, also up to `lag` late.
type cache struct {
	p  *pool
	by actor

	ready  bool
	slots  slots
	claims claims
	spec   *specRecord
	state  *stateRecord
	// last is the arrival of the newest write in flight, by object; unseen counts
	// the controller's own writes in flight, by object.
	last   map[int]arrival
	unseen map[int]int
	// notify is called with the object that has changed.
	notify func(key int)
}

// arrival is when a write reaches a cache; tie orders it within the instant.
type arrival struct {
	at  time.Duration
	tie uint32
}

// boot lists everything, and calls ready when the list has arrived.
func (c *cache) boot(ready func()) {
	c.ready = false
	c.slots, c.claims = slices.Clone(c.p.slots), slices.Clone(c.p.claims)
	c.spec, c.state = c.p.spec, c.p.state
	c.last, c.unseen = nil, nil
	c.p.w.act(c.p.w.now+c.p.w.delay(), func() {
		c.ready = true
		ready()
	})
}

// delivery is a write in flight to a cache. If apply is nil, it only notifies.
type delivery struct {
	to    *cache
	key   int
	apply func(*cache)
}

// publish sends a write to every cache.
func (p *pool) publish(by actor, key int, apply func(*cache)) {
	for _, c := range p.caches {
		switch {
		case key < noKey && c.by == byKeeper: // the member controller reads no claims
		case p.w.editing:
			p.w.edited = append(p.w.edited, delivery{c, key, apply})
		default:
			c.receive(by, key, apply)
		}
	}
}

// deliverEdit sends the writes of an edit to the caches. Each cache gets all of
// them at one instant, so that no controller sees half an edit.
func (w *world) deliverEdit() {
	list := w.edited
	w.edited = nil
	for len(list) > 0 {
		var mine, others []delivery
		for _, n := range list {
			if n.to == list[0].to {
				mine = append(mine, n)
			} else {
				others = append(others, n)
			}
		}
		mine[0].to.receiveAll(mine)
		list = others
	}
}

// receiveAll schedules writes of others to arrive together, after all earlier
// writes to the same objects.
func (c *cache) receiveAll(list []delivery) {
	w := c.p.w
	if w.down {
		return // the next start lists
	}
	next, pending := arrival{w.now + w.delay(), w.tie()}, false
	for _, n := range list {
		last, ok := c.last[n.key]
		pending = pending || ok
		if ok && (next.at < last.at || next.at == last.at && next.tie < last.tie) {
			next = last
		}
	}
	arrive := func() {
		for _, n := range list {
			if n.apply != nil {
				n.apply(c)
			}
		}
		for _, n := range list {
			if c.last[n.key] == next {
				delete(c.last, n.key)
			}
		}
		for _, n := range list {
			c.notify(n.key)
		}
	}
	if !pending && next.at <= w.now {
		arrive()
		return
	}
	c.expect()
	for _, n := range list {
		c.last[n.key] = next
	}
	w.queue.push(event{at: next.at, tie: next.tie, life: w.life, do: arrive})
}

// expect allocates the maps of writes in flight.
func (c *cache) expect() {
	if c.last == nil {
		c.last, c.unseen = map[int]arrival{}, map[int]int{}
	}
}

// receive schedules the arrival of a write.
func (c *cache) receive(by actor, key int, apply func(*cache)) {
	w := c.p.w
	if w.down {
		return // the next start lists
	}
	last, pending := c.last[key]
	next := arrival{w.now + w.delay(), w.tie()}
	if pending && (next.at < last.at || next.at == last.at && next.tie < last.tie) {
		next = last
	}
	if !pending && next.at <= w.now {
		apply(c)
		c.notify(key)
		return
	}
	c.expect()
	c.last[key] = next
	own := by == c.by
	if own {
		c.unseen[key]++
	}
	w.queue.push(event{at: next.at, tie: next.tie, life: w.life, do: func() {
		apply(c)
		if c.last[key] == next {
			delete(c.last, key)
		}
		if own {
			if c.unseen[key]--; c.unseen[key] == 0 {
				delete(c.unseen, key)
			}
		}
		c.notify(key)
	}})
}

// target returns the revision to which members are brought, from the cache.
func (c *cache) target() rollout.Revision { return targetOf(c.spec, c.state) }

// hasUnseenWrites reports whether writes of the controller itself are in flight.
func (c *cache) hasUnseenWrites() bool { return len(c.unseen) > 0 }

package simulate

import (
	"slices"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// Keys of objects in a cache that are no slots.
const (
	specKey  = -1
	stateKey = -2
	noKey    = -3 // and below: claims
)

func claimKey(uid int64) int { return noKey - int(uid) }

// cache is the world as one controller sees it: each write up to `lag` late,
// the writes to one object in their order. A controller that starts gets one
// consistent list, also up to `lag` late.
type cache struct {
	p  *pool
	by actor

	ready  bool
	slots  slots
	claims claims
	spec   *specRecord
	state  *stateRecord
	// last is when the newest write on its way arrives, by object; unseen are its own
	// writes by object that have not arrived yet.
	last   map[int]arrival
	unseen map[int]int
	// notify tells its controller which object has changed.
	notify func(key int)
}

// arrival is when a write reaches a reader, and where among what happens then.
type arrival struct {
	at  time.Duration
	tie uint32
}

// boot lists everything, and notifies once the list is there.
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

// publish brings a write to every cache.
func (p *pool) publish(by actor, key int, apply func(*cache)) {
	for _, c := range p.caches {
		if key >= noKey || c.by != byKeeper { // who keeps members reads no claims
			c.receive(by, key, apply)
		}
	}
}

// receive has the write arrive at some time.
func (c *cache) receive(by actor, key int, apply func(*cache)) {
	w := c.p.w
	if w.down {
		return // nobody is there; the next start lists
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
	if c.last == nil {
		c.last, c.unseen = map[int]arrival{}, map[int]int{}
	}
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

// target is the revision that members are brought to: the template's, or,
// after that one was rolled back, the current one.
func (c *cache) target() rollout.Revision { return targetOf(c.spec, c.state) }

// blindOfSlots tells whether its controller has written a slot that it cannot
// see yet.
func (c *cache) blindOfSlots() bool {
	for key := range c.unseen {
		if key >= 0 {
			return true
		}
	}
	return false
}

// blind tells whether its controller has written something that it cannot see
// yet.
func (c *cache) blind() bool { return len(c.unseen) > 0 }

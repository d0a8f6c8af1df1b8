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

// news is a write on its way to a cache, or only word of a change, which
// leaves the cache as it is: apply is nil then.
type news struct {
	to    *cache
	key   int
	apply func(*cache)
}

// publish brings a write to every cache.
func (p *pool) publish(by actor, key int, apply func(*cache)) {
	for _, c := range p.caches {
		switch {
		case key < noKey && c.by == byKeeper: // who keeps members reads no claims
		case p.w.editing:
			p.w.edited = append(p.w.edited, news{c, key, apply})
		default:
			c.receive(by, key, apply)
		}
	}
}

// spread brings all that an edit wrote to the caches: to each of them at one
// instant, so that nobody sees a half of it.
func (w *world) spread() {
	list := w.edited
	w.edited = nil
	for len(list) > 0 {
		var mine, others []news
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

// receiveAll has writes of others arrive at one time, none before an earlier
// one to the same object.
func (c *cache) receiveAll(list []news) {
	w := c.p.w
	if w.down {
		return // nobody is there; the next start lists
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

// expect makes room for what is on its way.
func (c *cache) expect() {
	if c.last == nil {
		c.last, c.unseen = map[int]arrival{}, map[int]int{}
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

// target is the revision that members are brought to: the template's, or,
// after that one was rolled back, the current one.
func (c *cache) target() rollout.Revision { return targetOf(c.spec, c.state) }

// blind tells whether its controller has written something that it cannot see
// yet.
func (c *cache) blind() bool { return len(c.unseen) > 0 }

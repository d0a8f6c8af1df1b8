package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// epoch is when a story starts that says nothing else.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// world is one run of a scenario: everything that is stored, every body, and
// the controllers.
type world struct {
	scn *Scenario
	// exact: times are what the file says. Otherwise they vary by the seed.
	exact bool
	rng   *rand.Rand
	// epoch is what the clock shows at the start, now how long ago that is, and
	// skew how far the controllers' clock is ahead of that.
	epoch     time.Time
	now, skew time.Duration
	queue     queue
	nature    nature
	pools     []*pool
	// bodies are all that there are, those that terminate included.
	bodies int
	// down: the controllers are dead. Each time they start they begin another
	// life.
	// Started is when this one began.
	down      bool
	downUntil time.Duration
	life      int
	started   time.Duration
	// renderers counts how often the renderer has changed.
	renderers int
	lost      [numLosses]time.Duration
	// hints are notices on their way to a controller that are no writes.
	hints  int
	uids   int64
	writes int
	// editing: an edit is being made, which nobody sees half of; edited is what
	// it has written so far.
	editing bool
	edited  []news
	judge   *judge
	log     *log
}

// newWorld sets the scenario up at its first instant.
func newWorld(s *Scenario, seed int64) *world {
	w := &world{
		scn: s, exact: seed == 1, life: 1, nature: s.world, epoch: s.date,
		rng: rand.New(rand.NewPCG(uint64(seed), 0x9a71)), //nolint:gosec // a seed asks for the same numbers again
	}
	w.judge = newJudge(w, seed)
	for i := range s.pools {
		w.pools = append(w.pools, newPool(w, &s.pools[i]))
	}
	return w
}

// clock is how long after the start it is by the controllers' clock, which
// somebody may set.
func (w *world) clock() time.Duration { return w.now + w.skew }

// time is the instant, as controllers read it.
func (w *world) time() time.Time { return w.epoch.Add(w.clock()) }

// since is when the controllers' clock shows the time, as the file counts it.
func (w *world) since(t time.Time) time.Duration { return t.Sub(w.epoch) - w.skew }

// at has something happen later, or at once but after what is happening now.
func (w *world) at(t time.Duration, do func()) {
	w.queue.push(event{at: max(t, w.now), tie: w.tie(), do: do})
}

// first has something happen at the time before everything else.
func (w *world) first(t time.Duration, do func()) {
	w.queue.push(event{at: max(t, w.now), do: do})
}

// act has the controllers do something at the time, if they are still alive.
func (w *world) act(t time.Duration, do func()) {
	w.queue.push(event{at: max(t, w.now), tie: w.tie(), life: w.life, do: do})
}

// hint has a controller told of something, as late as it is told of a write.
func (w *world) hint(tell func()) {
	d := w.delay()
	if d == 0 {
		tell()
		return
	}
	w.hints++
	w.act(w.now+d, func() {
		w.hints--
		tell()
	})
}

func (w *world) tie() uint32 {
	if w.exact {
		return 1
	}
	return 1 + w.rng.Uint32N(1<<30)
}

// vary stretches or shrinks a time by up to a fifth.
func (w *world) vary(d time.Duration) time.Duration {
	if w.exact || d == 0 {
		return d
	}
	return time.Duration(float64(d) * (0.8 + 0.4*w.rng.Float64())).Round(time.Millisecond)
}

// delay is how late one reader sees one write.
func (w *world) delay() time.Duration {
	if w.exact || w.nature.lag == 0 {
		return w.nature.lag
	}
	return time.Duration(w.rng.Int64N(int64(w.nature.lag) + 1)).Round(time.Millisecond)
}

// uid names an object for ever.
func (w *world) uid() int64 {
	w.uids++
	return w.uids
}

// changed tells everybody who watches that something is different now.
func (w *world) changed() {
	if !w.editing {
		w.judge.observe()
	}
}

// atomic makes an edit of which nobody sees a half.
func (w *world) atomic(edit func()) {
	before := w.editing
	w.editing = true
	edit()
	w.editing = before
	if !before {
		w.spread()
		w.judge.observe()
	}
}

// loss is a kind of reads that may fail.
type loss int

const (
	loseOccupancy loss = iota
	loseSources
	loseMembers
	loseRender
	loseRoles
	loseAll
	numLosses
)

var lossNames = []string{"occupancy", "sources", "members", "render", "roles", "all"}

func (w *world) without(l loss) bool { return w.now < w.lost[l] || w.now < w.lost[loseAll] }

// unreadable is why nothing may be decided now.
func (w *world) unreadable() rollout.Reason {
	switch {
	case w.without(loseMembers):
		return rollout.Unreachable
	case w.without(loseSources) || w.without(loseRender):
		return rollout.SourcesUnresolved
	}
	return ""
}

// crash kills the controllers, with everything that they know.
func (w *world) crash(long time.Duration) {
	w.down = true
	w.life++
	w.hints = 0
	w.downUntil = max(w.downUntil, w.now+long)
	until := w.downUntil
	w.first(until, func() {
		if w.down && w.downUntil == until {
			w.restart()
		}
	})
}

// restart starts the controllers anew. They list what is stored, and act on it
// once the list has reached them.
func (w *world) restart() {
	w.down = false
	w.life++
	w.hints = 0
	w.started = w.clock()
	w.say("controllers", "start, and know what is stored")
	w.judge.disturb()
	for _, p := range w.pools {
		p.boot()
	}
}

// wakeAll has every controller look again.
func (w *world) wakeAll() {
	for _, p := range w.pools {
		p.wakeAll()
	}
}

// step has the next event happen; it tells whether there was one in time.
func (w *world) step(until time.Duration) bool {
	if len(w.queue.heap) == 0 || w.queue.heap[0].at > until {
		return false
	}
	e := w.queue.pop()
	if e.life != 0 && e.life != w.life {
		return true
	}
	if e.at > w.now {
		w.judge.pass(e.at)
		w.now = e.at
	}
	e.do()
	return true
}

// resolve makes a pool's spec into what controllers read.
func resolve(raw spec, target rollout.Revision, bootTimeout time.Duration) *specRecord {
	r := &specRecord{raw: raw, target: target}
	decoded, err := raw.decode()
	if err == nil {
		err = refused(&decoded)
	}
	if err == nil {
		r.policy, err = snapshot.Policy(&decoded)
	}
	if err != nil {
		r.err = err
		return r
	}
	r.windows = snapshot.UpdateWindows(&decoded)
	for i := range decoded.Sources {
		r.sources = append(r.sources, decoded.Sources[i].Name)
	}
	r.notify = decoded.Update != nil && decoded.Update.OnClaimed != nil && *decoded.Update.OnClaimed == v1alpha1.ClaimedNotify
	r.claims = decoded.Claims
	if r.claims != nil && r.claims.Heartbeat != nil {
		r.heartbeat = r.claims.Heartbeat.Duration
	}
	r.life = snapshot.Lifecycle(&decoded, r.policy)
	r.life.BootTimeout = bootTimeout
	return r
}

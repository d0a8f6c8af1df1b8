package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// epoch is the time at t=0 of a scenario without a date.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// world is one run of a scenario: the stored objects, the bodies and the
// controllers.
type world struct {
	scn *Scenario
	// exact: times are those of the file. Otherwise they vary with the seed.
	exact bool
	rng   *rand.Rand
	// epoch is the time at the start, now the time since then, and skew how far the
	// controllers' clock is ahead.
	epoch     time.Time
	now, skew time.Duration
	queue     queue
	nature    nature
	pools     []*pool
	// bodies counts all bodies, terminating ones included.
	bodies int
	// down: the controllers have crashed, until downUntil. life counts crashes and
	// starts; started is the time of the last start.
	down      bool
	downUntil time.Duration
	life      int
	started   time.Duration
	// renderers counts how often the renderer has changed.
	renderers int
	lost      [numLosses]time.Duration
	// hints counts the notifications in flight to controllers, other than writes.
	hints  int
	uids   int64
	writes int
	// editing: an edit is being applied; edited are its writes so far, which are
	// delivered together.
	editing bool
	edited  []delivery
	judge   *judge
	log     *log
}

// newWorld returns the world at the start of the scenario.
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

// clock returns the time since the start by the controllers' clock.
func (w *world) clock() time.Duration { return w.now + w.skew }

// time returns the time by the controllers' clock.
func (w *world) time() time.Time { return w.epoch.Add(w.clock()) }

// since converts a time of the controllers' clock to the world's time since the
// start.
func (w *world) since(t time.Time) time.Duration { return t.Sub(w.epoch) - w.skew }

// at schedules do at the time, or after the current event if that has passed.
func (w *world) at(t time.Duration, do func()) {
	w.queue.push(event{at: max(t, w.now), tie: w.tie(), do: do})
}

// first schedules do at the time, before all other events of that instant.
func (w *world) first(t time.Duration, do func()) {
	w.queue.push(event{at: max(t, w.now), do: do})
}

// act schedules do at the time, unless the controllers crash before.
func (w *world) act(t time.Duration, do func()) {
	w.queue.push(event{at: max(t, w.now), tie: w.tie(), life: w.life, do: do})
}

// hint notifies a controller with the delay of a write.
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

// vary changes a duration by up to a fifth; not if times are exact.
func (w *world) vary(d time.Duration) time.Duration {
	if w.exact || d == 0 {
		return d
	}
	return time.Duration(float64(d) * (0.8 + 0.4*w.rng.Float64())).Round(time.Millisecond)
}

// delay returns the delay of one write to one cache.
func (w *world) delay() time.Duration {
	if w.exact || w.nature.lag == 0 {
		return w.nature.lag
	}
	return time.Duration(w.rng.Int64N(int64(w.nature.lag) + 1)).Round(time.Millisecond)
}

// uid returns a new unique number.
func (w *world) uid() int64 {
	w.uids++
	return w.uids
}

// changed lets the judge check the new state, unless an edit is being applied.
func (w *world) changed() {
	if !w.editing {
		w.judge.observe()
	}
}

// atomic applies an edit, and delivers and checks it as a whole.
func (w *world) atomic(edit func()) {
	before := w.editing
	w.editing = true
	edit()
	w.editing = before
	if !before {
		w.deliverEdit()
		w.judge.observe()
	}
}

// loss is a kind of read that fails.
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

// unreadable returns the reason for which nothing may be decided now; empty for none.
func (w *world) unreadable() rollout.Reason {
	switch {
	case w.without(loseMembers):
		return rollout.Unreachable
	case w.without(loseSources) || w.without(loseRender):
		return rollout.SourcesUnresolved
	}
	return ""
}

// crash stops the controllers, which lose everything that is not stored.
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

// restart starts the controllers. They list everything, and act once the list has
// arrived.
func (w *world) restart() {
	w.down = false
	w.life++
	w.hints = 0
	w.started = w.clock()
	w.say("controllers", "start, and list what is stored")
	w.judge.noteDisturbance()
	for _, p := range w.pools {
		p.boot()
	}
}

// wakeAll queues everything for every controller.
func (w *world) wakeAll() {
	for _, p := range w.pools {
		p.wakeAll()
	}
}

// step runs the next event, and reports whether there was one until the time.
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

// resolve converts a pool's spec for the controllers.
func resolve(raw spec, target rollout.Revision, bootTimeout time.Duration) *specRecord {
	r := &specRecord{raw: raw, target: target}
	decoded, err := raw.decode()
	if err == nil {
		err = validateSpec(&decoded)
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

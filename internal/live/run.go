package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body/sim"
	"github.com/pawl-dev/pawl/simulate"
)

// run is one performance of a scenario. Everything that is not guarded belongs
// to the goroutine of play.
type run struct {
	scn   *simulate.Scenario
	stage *simulate.Stage
	judge *simulate.Judge
	speed float64
	slack time.Duration

	config    *rest.Config
	namespace string
	user      client.WithWatch
	clock     *Clock
	traffic   *traffic
	births    *births
	notices   *notices
	changes   *notices
	changed   chan types.NamespacedName
	world     *sim.World
	life      *life
	downUntil time.Time

	book   *book
	inbox  inbox
	losses losses
	// due is what is to be done now, moments are when the judge looks although
	// nothing happens.
	due     []func(context.Context) error
	moments []time.Duration
	// bound is what the owner of a claim does once it is bound.
	bound   map[string]func()
	churned int
	// skew is how far the controllers' clock is ahead, in nanoseconds.
	skew atomic.Int64
	// turns counts how often somebody set a body's health, by member, which ends
	// what was to come of it before.
	turns map[string]int
	// flapping are the bodies that go up and down, by UID and incarnation.
	flapping map[string]bool
	// editing counts the edits that have begun and are not over for the judge.
	editing     int
	hashVersion int
	// held: the controller of Pools waits until all else is done.
	held bool
	// observed is the time up to which the judge has seen everything, and wrote
	// that of the last write.
	observed, wrote time.Duration
	// free is how few free members there were, by pool.
	free map[string]int
	ctx  context.Context //nolint:containedctx // that of the performance, for what is done later
}

// losses are until when what cannot be read.
type losses struct {
	mu  sync.Mutex
	end map[string]time.Time
	now func() time.Time
}

func (l *losses) until(kind string, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end[kind] = later(end, l.end[kind])
}

func (l *losses) lost(kind string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now().Before(l.end[kind])
}

// now is the time of the story.
func (r *run) now() time.Duration { return r.clock.Now().Sub(r.stage.Start) }

// shown is what the controllers' clock shows.
func (r *run) shown() time.Time { return r.clock.Now().Add(time.Duration(r.skew.Load())) }

// after has something done in some time of the story.
func (r *run) after(d time.Duration, do func(context.Context) error) {
	r.clock.AfterFunc(d, func() { r.due = append(r.due, do) })
}

// newRun sets a scenario up, without touching anything.
func newRun(s *simulate.Scenario, o Options, config *rest.Config) (*run, error) {
	stage := s.Stage()
	r := &run{
		scn: s, stage: stage, clock: NewClock(stage.Start), speed: o.Speed, config: rest.CopyConfig(config),
		traffic: newTraffic(), births: &births{at: map[types.UID]time.Time{}},
		notices: newNotices(), changes: newNotices(), changed: make(chan types.NamespacedName, 64),
		bound: map[string]func(){}, free: map[string]int{}, turns: map[string]int{}, flapping: map[string]bool{},
	}
	if r.speed == 0 {
		r.speed = speedFor(r.stage.Nature.Shortest())
	}
	r.slack = time.Duration(float64(slack) * r.speed)
	r.losses = losses{end: map[string]time.Time{}, now: r.clock.Now}
	r.judge = s.NewJudge(r.slack)
	r.moments = r.judge.Moments()
	names := make([]string, len(r.stage.Pools))
	for i := range r.stage.Pools {
		names[i] = r.stage.Pools[i].Name
	}
	r.book = newBook(names)
	r.book.now = r.shown
	r.namespace = namespaceOf(s.Name)
	r.config.QPS = -1
	r.config.ContentType, r.config.AcceptContentTypes = "application/json", "application/json"
	var err error
	r.user, err = r.newUser()
	if err != nil {
		return nil, err
	}
	r.world, err = sim.New(sim.Options{Clock: r.clock, Nature: r.nature, Watch: r.inbox.body(r), Told: r.told}, nil)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the bodies
	}
	r.world.SetCapacity(r.stage.Nature.Capacity())
	return r, nil
}

// play plays the story to its end and gives what came of it.
func (r *run) play(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.ctx = ctx
	defer func() { err = errors.Join(err, r.world.Close()) }()
	if err := r.set(ctx); err != nil {
		return err
	}
	watching, err := r.watch(ctx)
	if err != nil {
		return err
	}
	defer watching.Wait()
	defer cancel()
	r.look()
	for _, in := range r.stage.Timeline {
		r.at(in.At, func(ctx context.Context) error { return r.enter(ctx, in.Edits) })
	}
	r.start(ctx)
	defer func() { err = errors.Join(err, r.stop()) }()
	end := r.stage.Start.Add(r.stage.Run)
	if err := r.loop(ctx, end); err != nil || r.judge.Aborted() {
		return err
	}
	return r.rest(ctx, end)
}

// settled is for how long nothing may have been written, in the time of the
// story, so that nothing more has to be.
const settled = time.Minute

// rest has the controllers start anew where nothing has been written for a
// while: then nothing is.
func (r *run) rest(ctx context.Context, end time.Time) error {
	if r.life == nil || r.stage.Nature.Lag() > 0 || r.wrote+settled > r.observed || len(r.due) > 0 {
		return nil
	}
	if err := r.stop(); err != nil {
		return err
	}
	before := r.traffic.writes()
	r.start(ctx)
	if err := r.loop(ctx, end); err != nil {
		return err
	}
	if n := r.traffic.writes() - before; n > 0 {
		r.judge.Break(fmt.Sprintf("%d writes are made after a restart, although nothing has changed", n))
	}
	return nil
}

// at has something done at a time of the story.
func (r *run) at(t time.Duration, do func(context.Context) error) { r.after(t-r.now(), do) }

// enter has entries of the timeline happen, as one edit. What happens to
// several members at once is noticed member by member: nothing is decided until
// all of it is.
func (r *run) enter(ctx context.Context, edits []simulate.Edit) error {
	members := 0
	for i := range edits {
		if edits[i].Member != nil {
			members++
		}
	}
	if members > 1 {
		r.held = true
		r.life.hold(true)
	}
	r.inbox.mark(r, true)
	err := r.edit(ctx, edits)
	r.wait(ctx)
	r.inbox.mark(r, false)
	return err
}

// wait waits until the judge has got all that was written: what is over is over
// after it.
func (r *run) wait(ctx context.Context) {
	for _, all := r.traffic.place(); r.traffic.settled() < all && ctx.Err() == nil; time.Sleep(tick) {
		continue
	}
}

// loop moves the clock to the end of the story: fast while there is nothing to
// do, at the run's speed while something happens, and not at all while it is
// about to fall behind.
func (r *run) loop(ctx context.Context, end time.Time) error {
	p := &pulse{last: time.Now()}
	for ctx.Err() == nil && !r.judge.Aborted() {
		if err := r.life.failed(); err != nil {
			return err
		}
		if err := r.inbox.failed(); err != nil {
			return err
		}
		r.absorb()
		if len(r.due) > 0 {
			do := r.due[0]
			r.due = r.due[1:]
			if err := do(ctx); err != nil {
				return fmt.Errorf("at %s: %w", r.now(), err)
			}
			p.last = time.Now()
			continue
		}
		if r.step(p, end) {
			return r.absorbAll(ctx)
		}
	}
	return ctx.Err()
}

// pulse is how fast time goes on.
type pulse struct {
	last time.Time
	// calm is how often in a row there was nothing to do.
	calm int
}

const (
	// tick is how often it is looked whether there is anything to do.
	tick = time.Millisecond
	// calmRounds is how often in a row there has to be nothing to do until
	// time is skipped, and firstRounds the same after controllers have started:
	// what they do first they do by timers of their own.
	calmRounds, firstRounds = 4, 200
	// behind is for how long something may take until time waits for it.
	behind = 100 * time.Millisecond
)

// step moves the clock on as far as it may go now, and tells whether the story
// is over.
func (r *run) step(p *pulse, end time.Time) bool {
	since := r.busy()
	now := time.Now()
	passed := now.Sub(p.last)
	p.last = now
	switch {
	case since.IsZero():
		if p.calm++; p.calm < r.life.calmRounds() {
			break
		}
		if r.held {
			r.held = false
			r.life.hold(false)
			p.calm = 0
			break
		}
		if !r.clock.Now().Before(end) {
			return true
		}
		r.life.calmed(r.traffic)
		p.calm = 0
		r.move(r.nextStop(end))
		return false
	case now.Sub(since) > behind:
		p.calm = 0
	default:
		p.calm = 0
		to := r.clock.Now().Add(time.Duration(float64(passed) * r.speed))
		if stop := r.nextStop(end); stop.Before(to) {
			to = stop
		}
		r.move(to)
	}
	time.Sleep(tick)
	return false
}

// busy tells since when there is something to do, in real time; zero for never.
func (r *run) busy() time.Time {
	since := sooner(r.notices.busy(), r.changes.busy())
	since = sooner(since, r.traffic.busy())
	return sooner(since, sooner(r.life.busy(r.traffic), r.inbox.busy()))
}

// told notes that the controllers, if there are any, are told of a member.
func (r *run) told(namespace, member string) {
	r.notices.sent(types.NamespacedName{Namespace: namespace, Name: member})
}

// nextStop is when something happens next: a timer goes off, or the judge looks.
func (r *run) nextStop(end time.Time) time.Time {
	stop := end
	if t := r.clock.next(); !t.IsZero() && t.Before(stop) {
		stop = t
	}
	if len(r.moments) > 0 {
		if t := r.stage.Start.Add(r.moments[0]); t.Before(stop) {
			stop = t
		}
	}
	return later(stop, r.clock.Now())
}

// move moves the clock, and has the judge look when it is time to.
func (r *run) move(to time.Time) {
	r.clock.move(to)
	for len(r.moments) > 0 && r.moments[0] <= r.now() {
		r.moments = r.moments[1:]
		r.inbox.moment(r)
	}
}

// absorb takes in what was observed, as far as its order is certain.
func (r *run) absorb() {
	for _, o := range r.inbox.take(r.traffic.settled()) {
		r.observe(&o)
	}
}

// absorbAll takes in all that is left.
func (r *run) absorbAll(ctx context.Context) error {
	for r.busy() != (time.Time{}) && ctx.Err() == nil {
		r.absorb()
		time.Sleep(tick)
	}
	r.absorb()
	return ctx.Err()
}

// look has the judge see how everything is.
func (r *run) look() {
	if r.editing > 0 {
		return
	}
	for name, p := range r.book.scene.Pools {
		free := 0
		for i := range p.Members {
			if m := &p.Members[i]; m.Serves && !m.Claimed {
				free++
			}
		}
		if least, ok := r.free[name]; !ok || free < least {
			r.free[name] = free
		}
	}
	for _, e := range r.judge.Look(r.observed, r.book.scene) {
		r.due = append(r.due, func(ctx context.Context) error { return r.enter(ctx, []simulate.Edit{e}) })
	}
}

// claimed has the owner of a claim do what he does once it is bound.
func (r *run) claimed(c *v1alpha1.Claim) {
	if do := r.bound[c.Name]; do != nil && c.Status.Phase == v1alpha1.ClaimBound {
		delete(r.bound, c.Name)
		do()
	}
}

// speedFor is how fast a story may go: a reaction, of some milliseconds, has to
// be short beside the shortest time that matters.
func speedFor(shortest time.Duration) float64 {
	if shortest == 0 {
		return slowest
	}
	return min(fastest, max(slowest, shortest.Seconds()*perSecond))
}

const (
	// perSecond is how many times faster a story goes for each second of the
	// shortest time in it, slowest and fastest bound that.
	perSecond, slowest, fastest = 2.0, 1.0, 60.0
	// slack is how much sooner or later than the file says something may be, in
	// real time.
	slack = 250 * time.Millisecond
)

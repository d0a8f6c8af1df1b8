package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/operator"
)

// life is one life of the controllers, from a start to a crash.
type life struct {
	began  time.Time
	dead   atomic.Bool
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	// waited: it has been calm since they started.
	waited bool

	mu     sync.Mutex
	queues []*queue
	taps   []*tap
	// pools is the queue of the controller of Pools.
	pools *queue
}

// start starts the controllers. They know what is stored.
func (r *run) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logr.Discard()))
	l := &life{began: time.Now(), cancel: cancel, done: make(chan struct{})}
	r.life = l
	config := rest.CopyConfig(r.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &road{next, r.traffic, &l.dead} })
	go func() {
		defer close(l.done)
		l.err = operator.Run(ctx, config, r.options(l))
	}()
}

// options are how the controllers run in a life.
func (r *run) options(l *life) operator.Options {
	return operator.Options{
		Sim: true, MetricsAddr: "0", HealthAddr: "0", HashVersion: r.hashVersion, Renderer: r.renderer(),
		Setting: operator.Setting{
			Lost: r.lost, Changed: r.changed,
			Now: r.shown, Steady: r.clock.Now, NewQueue: r.newQueue(l), NewInformer: r.newInformer(l), Namespace: r.namespace, World: r.world,
		},
	}
}

// renderer is what the present renderer is called.
func (r *run) renderer() string {
	if r.book.renderer == 0 {
		return ""
	}
	return fmt.Sprintf("renderer %d of the story", r.book.renderer)
}

// lost says why something cannot be read now.
func (r *run) lost(what operator.Loss) error {
	if r.losses.lost(string(what)) {
		return errLost
	}
	return nil
}

func (r *run) newQueue(l *life) func(string, limiter) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(controller string, limiter limiter) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		q := newQueue(r.clock, limiter)
		l.mu.Lock()
		defer l.mu.Unlock()
		switch controller {
		case "member":
			q.notices = r.notices
		case "pool":
			q.notices = r.changes
			l.pools = q
		}
		l.queues = append(l.queues, q)
		return q
	}
}

// newInformer makes what the controllers' cache reads a kind through.
func (r *run) newInformer(l *life) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, i toolscache.Indexers) toolscache.SharedIndexInformer {
		kind := kindFor(o)
		if kind == "" {
			return toolscache.NewSharedIndexInformer(lw, o, resync, i)
		}
		t := &tap{on: map[types.UID]arrival{}}
		t.SharedIndexInformer = toolscache.NewSharedIndexInformer(&reader{
			ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(lw), kind: kind, clock: r.clock, traffic: r.traffic,
			lag: r.stage.Nature.Lag, born: r.births, tap: t, watcher: r.traffic.controllers(),
		}, o, resync, i)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.taps = append(l.taps, t)
		return t
	}
}

// kindFor is the resource of an object, if stories are told by it.
func kindFor(o runtime.Object) string {
	switch o.(type) {
	case *v1alpha1.Pool:
		return "pools"
	case *v1alpha1.Member:
		return "members"
	case *v1alpha1.Claim:
		return "claims"
	case *appsv1.ControllerRevision:
		return "controllerrevisions"
	}
	return ""
}

// crash kills the controllers between two requests, and has them start anew in
// some time.
func (r *run) crash(long time.Duration) error {
	if err := r.stop(); err != nil {
		return err
	}
	r.downUntil = later(r.downUntil, r.clock.Now().Add(long))
	until := r.downUntil
	again := func(context.Context) error {
		if r.life == nil && r.downUntil.Equal(until) {
			r.start(r.ctx)
		}
		return nil
	}
	if long == 0 && !until.After(r.clock.Now()) {
		return again(r.ctx)
	}
	r.after(until.Sub(r.clock.Now()), again)
	return nil
}

// stop ends the controllers: no request of theirs gets through any more.
func (r *run) stop() error {
	l := r.life
	if l == nil {
		return nil
	}
	r.life = nil
	l.dead.Store(true)
	l.cancel()
	<-l.done
	r.traffic.crashed()
	r.notices.clear()
	r.changes.clear()
	if l.err != nil && !errors.Is(l.err, errDead) && !errors.Is(l.err, context.Canceled) {
		return fmt.Errorf("the controllers: %w", l.err)
	}
	return nil
}

// failed is why the controllers have ended by themselves.
func (l *life) failed() error {
	if l == nil {
		return nil
	}
	select {
	case <-l.done:
		return fmt.Errorf("the controllers have stopped: %w", l.err)
	default:
		return nil
	}
}

// busy tells since when there is something to do for the controllers; zero for
// nothing. They have something to do until they have read everything, but for
// what only time brings: while a list waits for it, those that need the list do
// not begin, and only what is at work counts.
func (l *life) busy(t *traffic) (since time.Time) {
	if l == nil {
		return time.Time{}
	}
	listed, waiting := t.begun()
	if !listed && !waiting {
		return l.began
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// Against the order in which things go from one to the next, they could pass
	// by unseen.
	for _, t := range l.taps {
		if !waiting {
			since = sooner(since, t.busy())
		}
	}
	for _, q := range l.queues {
		since = sooner(since, q.line.busy(!waiting))
	}
	return since
}

// calmRounds is how often in a row there has to be nothing to do.
func (l *life) calmRounds() int {
	if l != nil && !l.waited {
		return firstRounds
	}
	return calmRounds
}

// calmed notes that they had nothing to do, having read everything.
func (l *life) calmed(t *traffic) {
	if listed, waiting := t.begun(); l != nil && listed && !waiting {
		l.waited = true
	}
}

// hold has the controller of Pools wait, or go on.
func (l *life) hold(on bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pools != nil {
		l.pools.hold(on)
	}
}

// Package operator runs Pawl's controllers against an API server: in a
// cluster, inside pawld, and in tests, always the same.
package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/controller/claim"
	"github.com/pawl-dev/pawl/internal/controller/member"
	"github.com/pawl-dev/pawl/internal/controller/pool"
	"github.com/pawl-dev/pawl/internal/controller/roster"
	"github.com/pawl-dev/pawl/internal/reach"
	"github.com/pawl-dev/pawl/internal/render"
	"github.com/pawl-dev/pawl/internal/source"
)

// Options say which controllers run and how.
type Options struct {
	// ProcessDir is where the process kind keeps its bodies' directories.
	// Empty: the kind is off.
	ProcessDir string
	// Sim switches the sim kind on. SimFile, if not empty, is where its bodies
	// are kept across restarts.
	Sim     bool
	SimFile string
	// MetricsAddr and HealthAddr are host:port to serve on; "0" is off.
	MetricsAddr, HealthAddr string
	// LeaderElection makes sure that only one of several copies is active. The
	// lease is in LeaderElectionNamespace; empty: in the namespace of the pod
	// that this runs in.
	LeaderElection          bool
	LeaderElectionNamespace string
	// Setting is where and when the controllers run.
	Setting Setting
	// HashVersion is that of the hash that names new revisions; 0 for the
	// present one. Renderer names a renderer that differs from the present one
	// by nothing else; empty is the present one. Tests upgrade Pawl by them.
	HashVersion int
	Renderer    string
}

// gracePeriod is how long the controllers may take to finish what they do.
const gracePeriod = 20 * time.Second

// logging is set up once in a process.
var logging sync.Once

// Run runs the controllers until ctx ends, and returns once they have stopped.
func Run(ctx context.Context, c *rest.Config, o Options) error {
	// A later call would change nothing, and two at the same time race.
	logging.Do(func() { ctrl.SetLogger(klog.FromContext(ctx)) })
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	reached := &reach.Reach{Now: o.Setting.steady()}
	c = rest.CopyConfig(c)
	c.Wrap(reached.Wrap)
	var of roster.Roster
	mgr, err := newManager(ctx, c, scheme, &of, o)
	if err != nil {
		return err
	}
	in := inboxes{
		bodies:  newInbox(func() client.Object { return &v1alpha1.Member{} }),
		sources: newInbox(func() client.Object { return &v1alpha1.Pool{} }),
		claims:  newInbox(func() client.Object { return &v1alpha1.Claim{} }),
	}
	passOn := manager.RunnableFunc(func(ctx context.Context) error { return o.Setting.pass(ctx, in.sources.tell) })
	clock := newClockWatch(&o.Setting, func(ctx context.Context) error { return in.wakeAll(ctx, mgr.GetClient()) })
	if err := errors.Join(mgr.Add(in.bodies), mgr.Add(in.sources), mgr.Add(in.claims), mgr.Add(passOn), mgr.Add(clock)); err != nil {
		return fmt.Errorf("add inboxes: %w", err)
	}
	read := sources{setting: &o.Setting, Resolver: source.New(source.Options{
		Config: c, Mapper: mgr.GetRESTMapper(), Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Notify: in.sources.tell,
	})}
	defer read.Close()
	kinds, closeKinds, err := newKinds(c, mgr, o, in.bodies.notify)
	if err == nil {
		err = addControllers(mgr, kinds, read, in, around{&of, reached}, o)
	}
	if err == nil {
		err = mgr.Start(ctx)
	}
	return errors.Join(err, closeKinds())
}

// inboxes take what is noticed of members' bodies and of pools' sources; and those
// of all kinds, what the clock watch wakes.
type inboxes struct{ bodies, sources, claims *inbox }

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	return s, nil
}

func newManager(ctx context.Context, c *rest.Config, scheme *runtime.Scheme, of *roster.Roster, o Options) (manager.Manager, error) {
	ours, err := labels.NewRequirement(v1alpha1.LabelPool, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("select revisions: %w", err)
	}
	c = rest.CopyConfig(c)
	c.QPS = -1 // the API server's own priorities and fairness decide
	reads := cache.Options{ByObject: map[client.Object]cache.ByObject{
		&appsv1.ControllerRevision{}: {Label: labels.NewSelector().Add(*ours)},
	}}
	o.Setting.narrow(&reads)
	reads.NewInformer = of.Follow(reads.NewInformer)
	mgr, err := ctrl.NewManager(c, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        klog.FromContext(ctx),
		Metrics:                       server.Options{BindAddress: o.MetricsAddr},
		HealthProbeBindAddress:        o.HealthAddr,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              "pawl.dev",
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(gracePeriod),
		Controller:                    config.Controller{SkipNameValidation: new(true)},
		Cache:                         reads,
		NewCache: func(c *rest.Config, o cache.Options) (cache.Cache, error) {
			filled, err := cache.New(c, o)
			return stoppable{filled, ctx}, err
		},
	})
	if err != nil {
		return nil, fmt.Errorf("set up controllers: %w", err)
	}
	if o.HealthAddr != "0" && o.HealthAddr != "" {
		err = errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
	}
	return mgr, err
}

// stoppable is a cache that is not waited for any longer once the controllers are to
// stop. A manager that is stopped before its caches are filled would never return:
// runnableGroup.Start of controller-runtime v0.25 waits for them in a busy loop.
type stoppable struct {
	cache.Cache

	run context.Context //nolint:containedctx // that of Run, which outlives the cache
}

// WaitForCacheSync waits until the cache is filled, or the controllers are to stop.
func (c stoppable) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.run, cancel)()
	return c.Cache.WaitForCacheSync(ctx) || c.run.Err() != nil
}

// around is what the controllers know beside the API.
type around struct {
	roster *roster.Roster
	reach  *reach.Reach
}

func addControllers(mgr manager.Manager, kinds member.Kinds, read sources, in inboxes, a around, o Options) error {
	of := a.roster
	now, newQueue := o.Setting.now(), o.Setting.NewQueue
	recorder := mgr.GetEventRecorder("pawl")
	return errors.Join(
		(&pool.Reconciler{
			Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Roster: of, Events: recorder, Now: now, NewQueue: newQueue,
			Check:    func(p *v1alpha1.Pool) error { return check(kinds, p) },
			Validate: func(p *v1alpha1.Pool, sources map[string]any) error { return validate(kinds, p, sources) },
			Render: func(ctx context.Context, t *v1alpha1.Template, sources map[string]any) (string, error) {
				if err := o.Setting.lost(LostRender); err != nil {
					return "", err
				}
				return render.Sample(ctx, t, sources, o.Renderer)
			},
			Sources: read, Changed: in.sources.events, HashVersion: o.HashVersion,
		}).SetupWithManager(mgr),
		(&member.Reconciler{
			Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Roster: of, Kinds: kinds, Now: now, NewQueue: newQueue, Changed: in.bodies.events, Sources: read,
		}).SetupWithManager(mgr),
		(&claim.Reconciler{
			Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Roster: of, Events: recorder, Now: now, NewQueue: newQueue, Reach: a.reach,
			Steady: o.Setting.steady(), Changed: in.claims.events,
		}).SetupWithManager(mgr),
	)
}

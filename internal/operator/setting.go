package operator

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body/sim"
	"github.com/pawl-dev/pawl/internal/controller/pace"
	"github.com/pawl-dev/pawl/internal/controller/roster"
	"github.com/pawl-dev/pawl/internal/source"
)

// Setting is where and when controllers run. The zero value is the real world;
// stories that are played on a real API server have another one.
type Setting struct {
	// Now is the clock. Nil: the real one.
	Now func() time.Time
	// Steady is a clock that nobody sets, whose times are only compared with one
	// another. Nil: Now, which nobody sets either.
	Steady func() time.Time
	// NewQueue makes a controller's queue, whose waiting times have to be those
	// of Now. Nil: as usual.
	NewQueue pace.NewQueue
	// NewInformer makes what the cache reads through. Nil: as usual.
	NewInformer roster.NewInformer
	// Namespace is the only one that is looked at. Empty: all are.
	Namespace string
	// World is where the bodies of kind sim are; they outlive the controllers.
	// It takes the place of Options.SimFile.
	World *sim.World
	// Lost says why what a pool's bodies are made from, its sources or what is
	// rendered of them, cannot be read now; nil means that it can. Changed
	// brings the pools for which that is not what it was. Nil: nothing is lost.
	Lost    func(what Loss) error
	Changed <-chan types.NamespacedName
}

// Loss is something that cannot be read.
type Loss string

// What can be lost.
const (
	LostSources Loss = "sources"
	LostRender  Loss = "render"
)

func (s *Setting) now() func() time.Time {
	if s.Now == nil {
		return time.Now
	}
	return s.Now
}

// steady is a clock that nobody sets: differences of real times are those of the
// monotonic clock.
func (s *Setting) steady() func() time.Time {
	if s.Steady == nil {
		return s.now()
	}
	return s.Steady
}

// narrow has the cache read as the setting says.
func (s *Setting) narrow(o *cache.Options) {
	o.NewInformer = s.NewInformer
	if s.Namespace != "" {
		o.DefaultNamespaces = map[string]cache.Config{s.Namespace: {}}
	}
}

// lost says why something cannot be read now.
func (s *Setting) lost(what Loss) error {
	if s.Lost == nil {
		return nil
	}
	return s.Lost(what)
}

// sources are those of a setting in which they may be lost.
type sources struct {
	*source.Resolver

	setting *Setting
}

// Resolve implements pool.Sources.
func (s sources) Resolve(ctx context.Context, p *v1alpha1.Pool, keyed bool) (*source.Content, error) {
	if err := s.setting.lost(LostSources); err != nil {
		return nil, err
	}
	return s.Resolver.Resolve(ctx, p, keyed) //nolint:wrapcheck // it stands in for what it calls
}

// pass hands on what has changed until ctx ends.
func (s *Setting) pass(ctx context.Context, tell func(types.NamespacedName)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case pool := <-s.Changed:
			tell(pool)
		}
	}
}

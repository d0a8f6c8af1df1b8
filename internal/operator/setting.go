package operator

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/pawl-dev/pawl/internal/body/sim"
	"github.com/pawl-dev/pawl/internal/controller/pace"
)

// Setting is where and when controllers run. The zero value is the real world;
// stories that are played on a real API server have another one.
type Setting struct {
	// Now is the clock. Nil: the real one.
	Now func() time.Time
	// NewQueue makes a controller's queue, whose waiting times have to be those
	// of Now. Nil: as usual.
	NewQueue pace.NewQueue
	// NewInformer makes what the cache reads through. Nil: as usual.
	NewInformer func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer
	// Namespace is the only one that is looked at. Empty: all are.
	Namespace string
	// World is where the bodies of kind sim are; they outlive the controllers.
	// It takes the place of Options.SimFile.
	World *sim.World
}

func (s *Setting) now() func() time.Time {
	if s.Now == nil {
		return time.Now
	}
	return s.Now
}

// narrow has the cache read as the setting says.
func (s *Setting) narrow(o *cache.Options) {
	o.NewInformer = s.NewInformer
	if s.Namespace != "" {
		o.DefaultNamespaces = map[string]cache.Config{s.Namespace: {}}
	}
}

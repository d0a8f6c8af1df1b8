// Package operator runs Pawl's controllers against an API server: in a
// cluster, inside pawld, and in tests, always the same.
package operator

import (
	"context"

	"k8s.io/client-go/rest"
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
	// LeaderElection makes sure that only one of several copies is active.
	LeaderElection bool
}

// Run runs the controllers until ctx ends, and returns once they have stopped.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	<-ctx.Done()
	return nil
}

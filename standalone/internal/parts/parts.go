// Package parts starts the parts of a process one after the other, and stops
// them in the other order.
package parts

import (
	"context"
	"errors"
	"fmt"
)

// Group are the parts that run, in the order of their start. It is for one
// goroutine.
type Group struct {
	running []*part
	failed  func(error)
}

type part struct {
	name string
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// New makes a group that calls failed, from any goroutine, when a part ends
// without having been stopped.
func New(failed func(error)) *Group { return &Group{failed: failed} }

// Start runs a part until Stop, even if ctx ends before: parts are stopped in
// order, not all at once. The context that run gets has the values of ctx.
func (g *Group) Start(ctx context.Context, name string, run func(context.Context) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &part{name: name, stop: stop, done: make(chan struct{})}
	g.running = append(g.running, p)
	go func() {
		defer close(p.done)
		err := run(ctx)
		if ctx.Err() != nil {
			p.err = err
			return
		}
		if err == nil {
			err = errors.New("ended by itself")
		}
		g.failed(fmt.Errorf("%s: %w", name, err))
	}()
}

// Stop stops the parts, the last one first, each once the one after it has
// ended. It returns how those ended that were still running.
func (g *Group) Stop() error {
	var errs []error
	for len(g.running) > 0 {
		last := g.running[len(g.running)-1]
		g.running = g.running[:len(g.running)-1]
		last.stop()
		<-last.done
		if last.err != nil && !errors.Is(last.err, context.Canceled) {
			errs = append(errs, fmt.Errorf("stop %s: %w", last.name, last.err))
		}
	}
	return errors.Join(errs...)
}

package main

import (
	"context"
	"errors"
	"fmt"
)

// components are the parts of pawld that run, in the order of their start.
type components struct {
	running []*component
	// failed is told of a part that ended without having been stopped.
	failed func(error)
}

type component struct {
	name string
	stop context.CancelFunc
	done chan struct{}
	err  error
}

// start runs a part until stop, even if ctx ends before: parts are stopped in
// order, not all at once.
func (c *components) start(ctx context.Context, name string, run func(context.Context) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	part := &component{name: name, stop: stop, done: make(chan struct{})}
	c.running = append(c.running, part)
	go func() {
		defer close(part.done)
		err := run(ctx)
		if ctx.Err() != nil {
			part.err = err
			return
		}
		if err == nil {
			err = errors.New("ended by itself")
		}
		c.failed(fmt.Errorf("%s: %w", name, err))
	}()
}

// stop stops the parts, the last one first, each once the one after it has
// ended.
func (c *components) stop() error {
	var errs []error
	for len(c.running) > 0 {
		last := c.running[len(c.running)-1]
		c.running = c.running[:len(c.running)-1]
		last.stop()
		<-last.done
		if last.err != nil && !errors.Is(last.err, context.Canceled) {
			errs = append(errs, fmt.Errorf("stop %s: %w", last.name, last.err))
		}
	}
	return errors.Join(errs...)
}

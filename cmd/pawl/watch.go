package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/follow"
)

// errTimeout ends a watch that took too long.
var errTimeout = errors.New("timeout")

// frame is the time between two pictures on a terminal.
const frame = 100 * time.Millisecond

// observer is told what changes, and asked now and then to draw it.
type observer interface {
	pool(p *v1alpha1.Pool)
	member(m *v1alpha1.Member, gone bool)
	lost(err error)
	tick()
}

// follow shows the pool until its rollout ends.
func (s *status) follow(ctx context.Context, k *cluster, pool string) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if s.timeout > 0 {
		timer := time.AfterFunc(s.timeout, func() { end(errTimeout) })
		defer timer.Stop()
	}
	f := &following{observer: s.observer(), finish: end}
	f.run(ctx, k, pool)
	return f.verdict(ctx, pool, s.timeout)
}

// observer is a picture on a terminal, and lines elsewhere.
func (s *status) observer() observer {
	if file, ok := s.Out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		return newLive(s.Out, func() (int, int) {
			width, height, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return 80, 24
			}
			return width, height
		}, s.now, s.all)
	}
	return newJournal(s.Out, s.now)
}

// following is one watch on a pool and its members.
type following struct {
	observer observer
	finish   context.CancelCauseFunc

	mu   sync.Mutex
	last *v1alpha1.Pool
}

func (f *following) run(ctx context.Context, k *cluster, pool string) {
	var wait sync.WaitGroup
	ns := client.InNamespace(k.namespace)
	wait.Go(func() {
		f.done(follow.Objects(ctx, k, &v1alpha1.PoolList{}, follow.Listener{Changed: f.changed, Gone: f.gone, Lost: f.lost}, ns, named(pool)))
	})
	wait.Go(func() {
		f.done(follow.Objects(ctx, k, &v1alpha1.MemberList{}, follow.Listener{Changed: f.changed, Gone: f.gone, Lost: f.lost}, ns, ofPool(pool)))
	})
	wait.Go(func() { f.draw(ctx) })
	wait.Wait()
	f.observer.tick()
}

// draw has the observer draw until ctx ends.
func (f *following) draw(ctx context.Context) {
	t := time.NewTicker(frame)
	defer t.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-t.C:
			f.mu.Lock()
			f.observer.tick()
			f.mu.Unlock()
		}
	}
}

func (f *following) done(err error) {
	if err != nil {
		f.finish(err)
	}
}

func (f *following) changed(o client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch o := o.(type) {
	case *v1alpha1.Pool:
		f.last = o
		f.observer.pool(o)
		if over(o) {
			f.finish(nil)
		}
	case *v1alpha1.Member:
		f.observer.member(o, false)
	}
}

func (f *following) gone(o client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch o := o.(type) {
	case *v1alpha1.Pool:
		f.finish(fmt.Errorf("pool %s was deleted", o.Name))
	case *v1alpha1.Member:
		f.observer.member(o, true)
	}
}

func (f *following) lost(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observer.lost(err)
}

// verdict is how the watch ended.
func (f *following) verdict(ctx context.Context, pool string, timeout time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errTimeout) && f.last == nil:
		return fmt.Errorf("pool %s could not be read within %s", pool, timeout)
	case errors.Is(cause, errTimeout):
		return fmt.Errorf("pool %s is not updated after %s: %v", pool, timeout, recorded(f.last))
	case !errors.Is(cause, context.Canceled):
		return cause
	case f.last == nil || !over(f.last):
		return cause // interrupted
	case stoppedFor(f.last) != "":
		return fmt.Errorf("pool %s: %s", pool, stoppedFor(f.last))
	}
	return nil
}

// over tells whether the rollout of the pool as it is now has ended, well or
// not: with births, which Updated does not cover.
func over(p *v1alpha1.Pool) bool {
	if p.Status.ObservedGeneration < p.Generation {
		return false
	}
	updated := meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionUpdated)
	return updated && meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.ConditionReconciling) || stoppedFor(p) != ""
}

// stoppedFor is why nothing but another template brings the rollout to an end;
// empty if something else may.
func stoppedFor(p *v1alpha1.Pool) string {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionUpdated)
	if c == nil || c.Reason != "UpdateHalted" && c.Reason != "RolledBack" {
		return ""
	}
	return c.Reason + ": " + c.Message
}

package operator

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

const (
	// clockEvery is how often the clocks are compared, in real time, and
	// storyEvery where the clock is that of a story.
	clockEvery = 2 * time.Second
	storyEvery = 20 * time.Millisecond
	// clockSlack is how far apart they may move between two looks.
	clockSlack = time.Second
	// clockRetry is how soon what could not be listed is listed again.
	clockRetry = time.Second
)

// clockWatch has everything looked at once when the wall clock was set. A stored
// time that is later than now counts as now, which a slot records when it is
// looked at; and what waits for a time of day waits by a clock that nobody sets.
type clockWatch struct {
	// now is the wall clock, and passed the time since some moment by a clock that
	// nobody sets.
	now    func() time.Time
	passed func() time.Duration
	every  time.Duration
	// wake has every object looked at.
	wake func(context.Context) error
}

// Start watches until ctx ends.
func (w *clockWatch) Start(ctx context.Context) error {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	start := w.now().Round(0) // without the monotonic reading
	apart := w.apart(start)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		was := apart
		if apart = w.apart(start); (apart - was).Abs() > clockSlack {
			klog.FromContext(ctx).Info("the clock was set; everything is looked at again", "by", (apart - was).String())
			if err := w.wakeAll(ctx); err != nil {
				return nil // ctx has ended
			}
		}
	}
}

// apart is how much further the wall clock has moved since start than the other
// one, which began before that.
func (w *clockWatch) apart(start time.Time) time.Duration {
	return w.now().Round(0).Sub(start) - w.passed()
}

// wakeAll wakes until that succeeds, or ctx ends.
func (w *clockWatch) wakeAll(ctx context.Context) error {
	for {
		err := w.wake(ctx)
		if err == nil {
			return nil
		}
		klog.FromContext(ctx).Error(err, "not everything is looked at again after the clock was set", "retryAfter", clockRetry)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(clockRetry):
		}
	}
}

// newClockWatch watches the clock of the setting, if it can tell that it was set.
func newClockWatch(s *Setting, wake func(context.Context) error) *clockWatch {
	if s.Now == nil {
		start := time.Now()
		return &clockWatch{now: time.Now, passed: func() time.Duration { return time.Since(start) }, every: clockEvery, wake: wake}
	}
	start := s.steady()()
	return &clockWatch{now: s.Now, passed: func() time.Duration { return s.steady()().Sub(start) }, every: storyEvery, wake: wake}
}

// wakeAll has every Pool, Member and Claim that the cache has looked at.
func (in *inboxes) wakeAll(ctx context.Context, c client.Reader) error {
	var pools v1alpha1.PoolList
	var members v1alpha1.MemberList
	var claims v1alpha1.ClaimList
	for _, list := range []client.ObjectList{&pools, &members, &claims} {
		if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
	}
	for i := range members.Items {
		in.bodies.tell(client.ObjectKeyFromObject(&members.Items[i]))
	}
	for i := range claims.Items {
		in.claims.tell(client.ObjectKeyFromObject(&claims.Items[i]))
	}
	for i := range pools.Items {
		in.sources.tell(client.ObjectKeyFromObject(&pools.Items[i]))
	}
	return nil
}

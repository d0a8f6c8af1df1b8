package operator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// TestClockWatch: whoever sets the clock by more than a second, in whichever
// direction, wakes everything once; a clock that is corrected bit by bit does not.
func TestClockWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var ahead, woken, fails atomic.Int64
		w := &clockWatch{
			now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, passed: func() time.Duration { return time.Since(start) }, every: clockEvery,
			wake: func(context.Context) error {
				if fails.Load() > 0 {
					fails.Add(-1)
					return errors.New("the cache has not started")
				}
				woken.Add(1)
				return nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Start(ctx) }()
		for _, s := range []struct {
			reason string
			set    time.Duration
			fails  int64
			want   int64
		}{
			{"nothing has happened", 0, 0, 0},
			{"it is corrected by a little", -time.Second / 2, 0, 0},
			{"and again", -time.Second / 2, 0, 0},
			{"it is set back", -time.Hour, 0, 1},
			{"once is enough", 0, 0, 1},
			{"it is set forward", time.Hour, 0, 2},
			{"it is set back, and not all can be told", -2 * time.Second, 3, 3},
		} {
			ahead.Add(int64(s.set))
			fails.Store(s.fails)
			time.Sleep(5 * clockEvery)
			synctest.Wait()
			if got := woken.Load(); got != s.want {
				t.Errorf("%s: woken %d times, want %d", s.reason, got, s.want)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestNewClockWatch(t *testing.T) {
	t.Parallel()
	w := newClockWatch(&Setting{}, nil)
	start := w.now().Round(0)
	if apart := w.apart(start); apart.Abs() > clockSlack {
		t.Errorf("real clocks are %s apart", apart)
	}
	now, steady := time.Unix(100, 0), time.Unix(5000, 0)
	w = newClockWatch(&Setting{Now: func() time.Time { return now }, Steady: func() time.Time { return steady }}, nil)
	start = now
	now, steady = now.Add(time.Minute), steady.Add(time.Hour)
	if apart := w.apart(start); apart != time.Minute-time.Hour {
		t.Errorf("the clocks of a story are %s apart", apart)
	}
}

// TestInboxes_wakeAll: all that there is gets to its own controller.
func TestInboxes_wakeAll(t *testing.T) {
	t.Parallel()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}},
		&v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web-0"}},
		&v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "db-0"}},
		&v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "mine"}},
	).Build()
	in := inboxes{
		bodies:  newInbox(func() client.Object { return &v1alpha1.Member{} }),
		sources: newInbox(func() client.Object { return &v1alpha1.Pool{} }),
		claims:  newInbox(func() client.Object { return &v1alpha1.Claim{} }),
	}
	if err := in.wakeAll(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for want, box := range map[string]*inbox{"a/web-0 b/db-0": in.bodies, "a/web": in.sources, "a/mine": in.claims} {
		var got []string
		for _, key := range box.take() {
			got = append(got, key.String())
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%v are woken, want %s", got, want)
		}
	}
}

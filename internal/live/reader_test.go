package live

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// events is a list and a watch that a test feeds.
type events struct {
	list *v1alpha1.MemberList
	*watch.FakeWatcher
}

func (e *events) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return e.list, nil
}

func (e *events) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return e.FakeWatcher, nil
}

func memberOf(name string, v int) *v1alpha1.Member {
	return &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(v)}}
}

func newTestReader(lag time.Duration) (*reader, *events) {
	e := &events{list: &v1alpha1.MemberList{}, FakeWatcher: watch.NewFakeWithChanSize(100, false)}
	tr := newTraffic()
	return &reader{
		watcher: tr.controllers(), ListerWatcherWithContext: e, kind: "members", clock: NewClock(noon), traffic: tr,
		lag:  func() time.Duration { return lag },
		born: &births{at: map[types.UID]time.Time{}}, tap: &tap{on: map[types.UID]arrival{}},
	}, e
}

// Events are late, by no more than the lag, and those of one object keep their
// order; none is lost when the watch ends.
func TestReader_Lag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lag = 5 * time.Second
		r, e := newTestReader(lag)
		w, err := r.WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		last, late, got := map[string]int{}, 0, 0
		receive := func() {
			synctest.Wait()
			for {
				select {
				case e, ok := <-w.ResultChan():
					if !ok {
						return
					}
					m, _ := e.Object.(*v1alpha1.Member)
					v, _ := strconv.Atoi(m.ResourceVersion)
					if v <= last[m.Name] {
						t.Errorf("%s comes with version %d after %d", m.Name, v, last[m.Name])
					}
					last[m.Name] = v
					got++
				default:
					return
				}
				synctest.Wait()
			}
		}
		const n = 60
		for v := 1; v <= n; v++ {
			e.Modify(memberOf(fmt.Sprint(v%3), v))
			synctest.Wait()
			before := got
			receive()
			if got == before {
				late++
			}
			r.clock.move(r.clock.Now().Add(lag / 20))
			receive()
		}
		if late < n/2 {
			t.Errorf("only %d of %d events are late", late, n)
		}
		e.Stop()
		for r.clock.move(r.clock.Now().Add(lag)) {
			receive()
		}
		receive()
		if got != n {
			t.Errorf("%d of %d events have come within the lag", got, n)
		}
		if _, open := <-w.ResultChan(); open {
			t.Error("the watch has not ended")
		}
	})
}

// Without a lag nothing waits for the clock, and objects were made when they
// were first seen.
func TestReader_Births(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, e := newTestReader(0)
		w, err := r.WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		e.Add(memberOf("a", 1))
		first, _ := (<-w.ResultChan()).Object.(*v1alpha1.Member)
		r.clock.move(noon.Add(time.Hour))
		e.list.Items = []v1alpha1.Member{*memberOf("a", 2), *memberOf("b", 3)}
		if _, err := r.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			m    *v1alpha1.Member
			want time.Time
		}{{first, noon}, {&e.list.Items[0], noon}, {&e.list.Items[1], noon.Add(time.Hour)}} {
			if got := tt.m.CreationTimestamp.Time; !got.Equal(tt.want) {
				t.Errorf("%s was made at %s, want %s", tt.m.Name, got, tt.want)
			}
		}
	})
}

// A list is as late as anything else, and whoever waits for it is not waited
// for.
func TestReader_LateList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, e := newTestReader(time.Hour)
		e.list.ResourceVersion = "9"
		done := false
		go func() {
			_, _ = r.ListWithContext(t.Context(), metav1.ListOptions{})
			done = true
		}()
		synctest.Wait()
		if _, waiting := r.traffic.begun(); !waiting || done {
			t.Errorf("it waits: %t, and has come: %t", waiting, done)
		}
		r.clock.move(noon.Add(time.Hour))
		synctest.Wait()
		if _, waiting := r.traffic.begun(); waiting || !done || r.traffic.seen[byControllers]["members"].version != 9 {
			t.Errorf("it waits: %t, and has come: %t", waiting, done)
		}
	})
}

// An event is on its way until every handler was told of it.
func TestTap(t *testing.T) {
	t.Parallel()
	tp := &tap{on: map[types.UID]arrival{}}
	fast, slow := tp.follow(toolscache.ResourceEventHandlerFuncs{}), tp.follow(toolscache.ResourceEventHandlerFuncs{})
	busy := func(want bool, when string) {
		t.Helper()
		if got := !tp.busy().IsZero(); got != want {
			t.Errorf("%s busy is %t", when, got)
		}
	}
	tp.came("a", 5)
	fast.OnUpdate(nil, memberOf("a", 5))
	busy(true, "when one was told")
	slow.OnAdd(memberOf("a", 4), false)
	busy(true, "when the other was told of an older version")
	slow.OnUpdate(nil, memberOf("a", 6))
	busy(false, "when both were told")
	tp.came("b", 7)
	fast.OnDelete(memberOf("b", 7))
	slow.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: memberOf("b", 7)})
	busy(false, "when both were told of its end")
}

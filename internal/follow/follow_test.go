package follow

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// server plays a list and a watch per round.
type server struct {
	client.WithWatch
	rounds []round
}

type round struct {
	names  []string
	refuse error
	events []watch.Event
}

func (s *server) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if len(s.rounds) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := s.rounds[0].refuse; err != nil {
		s.rounds = s.rounds[1:]
		return err
	}
	for _, name := range s.rounds[0].names {
		out := list.(*corev1.ConfigMapList)
		out.Items = append(out.Items, *object(name))
	}
	return nil
}

func (s *server) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	events := s.rounds[0].events
	s.rounds = s.rounds[1:]
	w := watch.NewFakeWithChanSize(len(events), false)
	for _, e := range events {
		w.Action(e.Type, e.Object)
	}
	w.Stop()
	return w, nil
}

func object(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	away := errors.New("connection refused")
	tests := map[string]struct {
		reason string
		rounds []round
		want   []string
	}{
		"first": {
			reason: "what is there is told at once, then what changes",
			rounds: []round{{names: []string{"a"}, events: []watch.Event{{Type: watch.Added, Object: object("b")}, {Type: watch.Deleted, Object: object("a")}}}},
			want:   []string{"a", "b", "-a"},
		},
		"a watch ends": {
			reason: "what went while nobody watched is told all the same",
			rounds: []round{{names: []string{"a", "b"}}, {names: []string{"b"}}},
			want:   []string{"a", "b", "b", "-a"},
		},
		"too old": {
			reason: "an error of the watch means another list, no end",
			rounds: []round{{names: []string{"a"}, events: []watch.Event{{Type: watch.Error, Object: &metav1.Status{Reason: metav1.StatusReasonExpired}}}}, {names: []string{"a"}}},
			want:   []string{"a", "a"},
		},
		"away": {
			reason: "a server that is away is waited for, and what it had is not gone",
			rounds: []round{{names: []string{"a"}}, {refuse: away}, {names: []string{"a"}}},
			want:   []string{"a", "lost: connection refused", "a"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				var got []string
				done := make(chan error)
				go func() {
					done <- Objects(ctx, &server{rounds: tt.rounds}, &corev1.ConfigMapList{}, Listener{
						Changed: func(o client.Object) { got = append(got, o.GetName()) },
						Gone:    func(o client.Object) { got = append(got, "-"+o.GetName()) },
						Lost:    func(err error) { got = append(got, "lost: "+err.Error()) },
					})
				}()
				time.Sleep(2 * pause)
				synctest.Wait()
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s: (-want +got)\n%s", tt.reason, diff)
				}
			})
		})
	}
}

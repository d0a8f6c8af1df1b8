package parts

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestGroup_Stop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []string
		g := New(func(err error) { t.Errorf("a part that was stopped has failed: %v", err) })
		ctx, cancel := context.WithCancel(t.Context())
		for _, name := range []string{"a", "b", "c"} {
			g.Start(ctx, name, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Minute) // it takes its time, and the others wait
				ended = append(ended, name)
				if name == "b" {
					return errors.New("went badly")
				}
				return ctx.Err()
			})
		}
		cancel()
		synctest.Wait()
		if len(ended) > 0 {
			t.Errorf("%v ended with the context that they were started under", ended)
		}
		err := g.Stop()
		if want := []string{"c", "b", "a"}; !slices.Equal(ended, want) {
			t.Errorf("ended in the order %v, want %v", ended, want)
		}
		if err == nil || err.Error() != "stop b: went badly" {
			t.Errorf("error is %v", err)
		}
		if err := g.Stop(); err != nil {
			t.Errorf("a second stop: %v", err)
		}
	})
}

func TestGroup_Failed(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"error": {"a part that fails says why", errors.New("no disk"), "etcd: no disk"},
		"end":   {"a part that ends has failed", nil, "etcd: ended by itself"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			failed := make(chan error, 1)
			g := New(func(err error) { failed <- err })
			g.Start(t.Context(), "etcd", func(context.Context) error { return c.err })
			if err := <-failed; err.Error() != c.want {
				t.Errorf("%s: %q, want %q", c.reason, err, c.want)
			}
			if err := g.Stop(); err != nil {
				t.Errorf("it is told twice: %v", err)
			}
		})
	}
}

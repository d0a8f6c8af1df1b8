//go:build integration

package apitest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl/internal/operator"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// TestOperator_stopsEarly: the controllers stop also while their caches cannot be
// filled. A manager that is stopped then would go on for ever, in a busy loop.
func TestOperator_stopsEarly(t *testing.T) {
	t.Parallel()
	config := rest.CopyConfig(pawldtest.Shared(t).Config)
	asked := make(chan struct{}, 1)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/apis/pawl.dev/v1alpha1/members") {
				select {
				case asked <- struct{}{}:
				default:
				}
				return nil, errors.New("no list is answered")
			}
			return next.RoundTrip(r)
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		stopped <- operator.Run(ctx, config, operator.Options{Sim: true, MetricsAddr: "0", HealthAddr: "0"})
	}()
	<-asked
	cancel()
	select {
	case err := <-stopped:
		t.Log(err)
	case <-time.After(time.Minute):
		t.Error("the controllers do not stop")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

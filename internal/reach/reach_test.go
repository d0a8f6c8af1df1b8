package reach

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

var noon = time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)

// roadTrip answers every request in the same way.
type roadTrip struct {
	status int
	err    error
}

func (t *roadTrip) RoundTrip(*http.Request) (*http.Response, error) {
	if t.err != nil {
		return nil, t.err
	}
	return &http.Response{StatusCode: t.status, Body: http.NoBody}, nil
}

func TestReach(t *testing.T) {
	t.Parallel()
	const (
		ours   = "https://host/prefix/apis/pawl.dev/v1alpha1/namespaces/ns/claims/mine"
		theirs = "https://host/apis/metrics.k8s.io/v1beta1/pods"
	)
	type step struct {
		at     time.Duration
		path   string // empty: no request
		status int    // 0: no answer
		expect time.Duration
		// back is the end of the last outage, after noon; -1: there was none.
		back time.Duration
	}
	const never = -1
	for name, tt := range map[string]struct {
		reason string
		steps  []step
	}{
		"idle":           {"a process that asks nothing sees no outage", []step{{0, ours, 200, 0, never}, {time.Hour, "", 0, 0, never}, {time.Hour, ours, 200, 0, never}}},
		"expected":       {"one that asks again and again sees that no answer comes", []step{{0, "", 0, 10 * time.Second, never}, {10 * time.Second, "", 0, 10 * time.Second, never}, {11 * time.Second, "", 0, 10 * time.Second, 11 * time.Second}, {20 * time.Second, ours, 200, 10 * time.Second, 20 * time.Second}, {25 * time.Second, "", 0, 10 * time.Second, 20 * time.Second}}},
		"asked anew":     {"what was not expected was no outage", []step{{0, ours, 200, 0, never}, {time.Hour, "", 0, 10 * time.Second, never}, {time.Hour + 5*time.Second, ours, 200, 10 * time.Second, never}}},
		"more often":     {"what was rare enough was no outage", []step{{0, "", 0, 10 * time.Second, never}, {5 * time.Second, "", 0, time.Second, never}, {7 * time.Second, "", 0, time.Second, 7 * time.Second}}},
		"no longer":      {"nor is what is not expected any more", []step{{0, "", 0, 10 * time.Second, never}, {5 * time.Second, ours, 200, 0, never}, {time.Hour, "", 0, 0, never}}},
		"failing":        {"it is away for as long as requests fail", []step{{0, ours, 0, 0, never}, {2 * time.Second, "", 0, 0, 2 * time.Second}, {5 * time.Second, theirs, 0, 0, 5 * time.Second}, {9 * time.Second, ours, 200, 0, 9 * time.Second}, {time.Hour, "", 0, 0, 9 * time.Second}}},
		"brief":          {"a connection that is made anew is no outage", []step{{0, ours, 0, 0, never}, {time.Second / 2, ours, 200, 0, never}, {time.Hour, "", 0, 0, never}}},
		"refused":        {"an answer that refuses is an answer", []step{{0, ours, 403, 0, never}, {5 * time.Second, ours, 404, 0, never}}},
		"storage":        {"an API server without its storage is away", []step{{0, ours, 500, 0, never}, {5 * time.Second, ours, 429, 0, 5 * time.Second}, {6 * time.Second, ours, 404, 0, 6 * time.Second}}},
		"aggregated API": {"one that serves another API is another one", []step{{0, theirs, 503, 0, never}, {5 * time.Second, theirs, 503, 0, never}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := noon
			r := &Reach{Now: func() time.Time { return now }}
			for _, s := range tt.steps {
				now = noon.Add(s.at)
				r.Expect(s.expect)
				if s.path != "" {
					trip := &roadTrip{status: s.status}
					if s.status == 0 {
						trip.err = errors.New("connection refused")
					}
					request(t.Context(), t, r.Wrap(trip), s.path)
				}
				want := noon.Add(s.back)
				if s.back == never {
					want = time.Time{}
				}
				if got := r.Back(); !got.Equal(want) {
					t.Errorf("%s: after %s it was back at %s, want %s", tt.reason, s.at, got, want)
				}
			}
		})
	}
}

// TestReach_givenUp: what the process itself gave up says nothing, and what took
// too long is no answer.
func TestReach_givenUp(t *testing.T) {
	t.Parallel()
	now := noon
	r := &Reach{Now: func() time.Time { return now }}
	gone := r.Wrap(&roadTrip{err: context.Canceled})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request(ctx, t, gone, "https://host/")
	now = now.Add(time.Minute)
	if got := r.Back(); !got.IsZero() {
		t.Errorf("a request that was given up is an outage: %s", got)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	request(ctx, t, gone, "https://host/")
	now = now.Add(time.Minute)
	if got := r.Back(); !got.Equal(now) {
		t.Errorf("a request without an answer is no outage: %s", got)
	}
}

func request(ctx context.Context, t *testing.T, road http.RoundTripper, path string) {
	t.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := road.RoundTrip(q); err == nil {
		_ = answer.Body.Close()
	}
}

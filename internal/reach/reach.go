// Package reach remembers when the API server could not be reached.
package reach

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// brief is how long requests may fail until the API server counts as away: a
// connection that is closed, and made anew at once, is no outage.
const brief = time.Second

// Reach sees the answers to a process's requests. The zero value with a Now is
// ready; it is safe for concurrent use.
type Reach struct {
	// Now is the clock. Its times are only compared with one another.
	Now func() time.Time

	mu sync.Mutex
	// answered is when the last answer came, failed when the first request failed
	// since, back when the last outage was over.
	answered, failed, back time.Time
	// within is how long there may be no answer; 0 for as long as nobody asks.
	within time.Duration
}

// Wrap returns a transport whose answers are seen.
func (r *Reach) Wrap(next http.RoundTripper) http.RoundTripper { return &road{next, r} }

// Expect says that an answer should come at least this often from now on; 0 for
// no longer. Without it only requests that fail show an outage.
func (r *Reach) Expect(within time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.Now(); r.within == 0 || within < r.within && !r.away(now) {
		r.answered = now
	}
	r.within = within
}

// Back is when the API server was reached again after the last outage: now, while
// it is away, and zero if it never was. It is away while requests have failed for
// a second, and none succeeded since, or no answer has come for as long as
// Expect says.
func (r *Reach) Back() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.Now(); r.away(now) {
		return now
	}
	return r.back
}

// away reports whether the API server has not been reached for too long.
func (r *Reach) away(now time.Time) bool {
	return !r.failed.IsZero() && now.Sub(r.failed) >= brief || r.within > 0 && now.Sub(r.answered) > r.within
}

func (r *Reach) succeed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	if r.away(now) {
		r.back = now
	}
	r.answered, r.failed = now, time.Time{}
}

func (r *Reach) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed.IsZero() {
		r.failed = r.Now()
	}
}

// road is a transport that tells Reach of its answers.
type road struct {
	http.RoundTripper

	reach *Reach
}

// RoundTrip implements http.RoundTripper.
func (d *road) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := d.RoundTripper.RoundTrip(request)
	switch {
	case errors.Is(request.Context().Err(), context.Canceled):
	case err != nil:
		d.reach.fail()
	case answer.StatusCode < http.StatusInternalServerError && answer.StatusCode != http.StatusTooManyRequests:
		d.reach.succeed()
	case strings.Contains(request.URL.Path, own):
		d.reach.fail()
	}
	return answer, err //nolint:wrapcheck // it stands in for what it calls
}

// WrappedRoundTripper lets client-go find what is below.
func (d *road) WrappedRoundTripper() http.RoundTripper { return d.RoundTripper }

// own is in the paths that the API server itself answers: that it has no answer
// there says more than one of an aggregated API, or of a webhook.
var own = "/apis/" + v1alpha1.GroupVersion.Group + "/"

package schemas

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwait(t *testing.T) {
	cases := map[string]struct {
		reason string
		path   string
		code   int
		after  time.Duration // when the schemas are there
		want   time.Duration // when the answer comes
	}{
		"published":    {"what is there is told at once", Path, http.StatusOK, 0, 0},
		"soon":         {"a question waits for it", Path, http.StatusOK, time.Second, time.Second},
		"never":        {"and not for ever", Path, http.StatusOK, time.Hour, 10 * time.Second},
		"not ready":    {"an error may pass", Path, http.StatusServiceUnavailable, time.Hour, 10 * time.Second},
		"unauthorized": {"a refusal does not", Path, http.StatusUnauthorized, time.Hour, 0},
		"other path":   {"other questions are none of its business", "/openapi/v3/apis/apps/v1", http.StatusOK, time.Hour, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				h := Await(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(c.code)
					if time.Since(start) >= c.after {
						_, _ = w.Write([]byte(`{"paths":{"apis/pawl.dev/v1alpha1":{}}}`))
					}
				}), "pawl.dev")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
				if took := time.Since(start); took < c.want || took > c.want+pause {
					t.Errorf("%s: answered after %s, want %s", c.reason, took, c.want)
				}
				if w.Code != c.code {
					t.Errorf("%s: answered with %d, want %d", c.reason, w.Code, c.code)
				}
			})
		})
	}
}

// Once the schemas have been there, nobody waits again.
func TestAwait_Once(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there := true
		h := Await(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if there {
				_, _ = w.Write([]byte("apis/pawl.dev/v1alpha1"))
			}
		}), "pawl.dev")
		start := time.Now()
		for range 2 {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, Path, nil))
			there = false
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("waited for %s", took)
		}
	})
}

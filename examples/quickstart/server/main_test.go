package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHandler(t *testing.T) {
	t.Parallel()
	a := answer{Version: "2", PID: 7, Member: "web-1"}
	for name, tt := range map[string]struct {
		path   string
		from   time.Time
		status int
		says   string
	}{
		"serves":     {"/", time.Now(), http.StatusOK, `{"version":"2","pid":7,"member":"web-1"}`},
		"is healthy": {"/healthz", time.Now(), http.StatusOK, "ok"},
		"warms up":   {"/", time.Now().Add(time.Hour), http.StatusServiceUnavailable, "warming up"},
		"not ready":  {"/healthz", time.Now().Add(time.Hour), http.StatusServiceUnavailable, "warming up"},
		"no page":    {"/x", time.Now(), http.StatusNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			handler(tt.from, a).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, tt.path, nil))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
}

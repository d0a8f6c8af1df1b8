package main

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	schemasPath    = "/openapi/v3"
	schemasTimeout = 10 * time.Second
)

// awaitSchemas holds questions for the list of schemas until Pawl's are in it,
// for at most schemasTimeout. The admission policies that mutate ask for that
// list when the API server starts and then every five seconds, and refuse
// objects whose schema they do not know; asked too early, Claims would be
// refused for five seconds after every start.
func awaitSchemas(next http.Handler) http.Handler {
	var published atomic.Bool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == schemasPath && !published.Load() {
			deadline := time.Now().Add(schemasTimeout)
			for !listsPawl(next, r) && time.Now().Before(deadline) && r.Context().Err() == nil {
				time.Sleep(startPoll)
			}
			published.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}

// listsPawl says whether the answer to r names Pawl's schemas, or is one that
// waiting does not change.
func listsPawl(next http.Handler, r *http.Request) bool {
	a := answer{header: http.Header{}, code: http.StatusOK}
	next.ServeHTTP(&a, r.Clone(r.Context()))
	refused := a.code == http.StatusUnauthorized || a.code == http.StatusForbidden
	return refused || a.code == http.StatusOK && bytes.Contains(a.body.Bytes(), []byte("apis/pawl.dev/v1alpha1"))
}

// answer keeps what a handler writes.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

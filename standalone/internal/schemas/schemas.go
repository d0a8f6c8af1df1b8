// Package schemas makes an API server publish schemas before it is asked for
// them.
package schemas

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// Path is where the list of schemas is.
	Path = "/openapi/v3"
	// patience is how long a question is held.
	patience = 10 * time.Second
	pause    = 20 * time.Millisecond
)

// Await holds questions for the list of schemas that next serves until group is
// in it, for at most ten seconds. The admission policies that mutate ask for
// that list when the API server starts and then every five seconds, and refuse
// objects whose schema they do not know: asked too early, they would refuse
// those of group for five seconds after every start.
func Await(next http.Handler, group string) http.Handler {
	var published atomic.Bool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Path && !published.Load() {
			deadline := time.Now().Add(patience)
			for !lists(next, r, group) && time.Now().Before(deadline) && r.Context().Err() == nil {
				time.Sleep(pause)
			}
			published.Store(true)
		}
		next.ServeHTTP(w, r)
	})
}

// lists says whether the answer to r names the group, or is one that waiting
// does not change.
func lists(next http.Handler, r *http.Request, group string) bool {
	a := answer{header: http.Header{}, code: http.StatusOK}
	next.ServeHTTP(&a, r.Clone(r.Context()))
	refused := a.code == http.StatusUnauthorized || a.code == http.StatusForbidden
	return refused || a.code == http.StatusOK && bytes.Contains(a.body.Bytes(), []byte("apis/"+group+"/"))
}

// answer keeps what a handler writes.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header is the answer's header.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader keeps the code.
func (a *answer) WriteHeader(code int) { a.code = code }

// Write keeps the body.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

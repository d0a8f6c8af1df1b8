package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The kinds of objects that a story is told by, as they stand in the paths of
// the API.
var resources = map[string]bool{"pools": true, "members": true, "claims": true, "controllerrevisions": true}

// traffic follows every write from when it is sent until whoever watches has
// seen it: what is on its way is not over.
type traffic struct {
	mu   sync.Mutex
	seq  int
	open map[int]*write
	// newest is the largest resource version that any write came to.
	newest uint64
	// watched is the newest version that the judge has seen of a kind, and read
	// the newest one that has reached the controllers' reader; a kind that is
	// not there is not read now.
	watched, read map[string]uint64
	// listed are the kinds that the controllers have listed, and delayed is how
	// many of those lists wait for the clock.
	listed  map[string]bool
	delayed int
	count   int
}

// write is one write.
type write struct {
	kind  string
	began time.Time
	// version is what it came to; 0 while it is on its way to the server.
	version uint64
}

// lostAfter is when a write is forgotten that nobody ever sees, in real time.
const lostAfter = 20 * time.Second

func newTraffic() *traffic {
	return &traffic{open: map[int]*write{}, watched: map[string]uint64{}, read: map[string]uint64{}, listed: map[string]bool{}}
}

// begin notes a write that is about to be sent.
func (t *traffic) begin(kind string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq++
	t.open[t.seq] = &write{kind: kind, began: time.Now()}
	return t.seq
}

// end notes what a write has come to; 0 where it has changed nothing.
func (t *traffic) end(seq int, version uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.open[seq]
	if w == nil {
		return
	}
	if version == 0 {
		delete(t.open, seq)
		return
	}
	t.count++
	t.newest = max(t.newest, version)
	w.version = version
	t.sweep()
}

// sweep forgets what everybody has seen.
func (t *traffic) sweep() {
	for seq, w := range t.open {
		read, reading := t.read[w.kind]
		seen := w.version != 0 && t.watched[w.kind] >= w.version && (!reading || read >= w.version)
		if seen || time.Since(w.began) > lostAfter {
			delete(t.open, seq)
		}
	}
}

// saw notes what the judge has seen.
func (t *traffic) saw(kind string, version uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched[kind] = max(t.watched[kind], version)
	t.sweep()
}

// reads notes what has reached the controllers' reader, and unread that there
// is none any more.
func (t *traffic) reads(kind string, version uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read[kind] = max(t.read[kind], version)
	t.sweep()
}

func (t *traffic) unread() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.read)
	clear(t.listed)
	t.sweep()
}

// lists notes that the controllers have listed a kind.
func (t *traffic) lists(kind string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listed[kind] = true
}

// delay notes that so many lists more wait for the clock.
func (t *traffic) delay(more int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delayed += more
}

// begun tells whether the controllers have listed everything, and whether they
// only wait for the clock to get it.
func (t *traffic) begun() (listed, waiting bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.listed) == len(resources), t.delayed > 0
}

// busy tells since when a write is on its way, in real time; zero for none.
func (t *traffic) busy() (since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	for _, w := range t.open {
		since = sooner(since, w.began)
	}
	return since
}

// place is where in the order of all writes something stands that happens now
// and is no write: after all that have come back.
func (t *traffic) place() (version uint64, barrier int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest, t.seq
}

// settled tells up to which barrier every write has been seen by the judge, or
// has failed.
func (t *traffic) settled() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.seq + 1
	for seq, w := range t.open {
		if w.version == 0 || t.watched[w.kind] < w.version {
			first = min(first, seq)
		}
	}
	return first - 1
}

// writes is how many writes have changed something.
func (t *traffic) writes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// errDead is what a request comes to that is made by controllers that have
// crashed.
var errDead = errors.New("the controllers have crashed")

// road carries requests and notes the writes among them, until whoever sends
// them is dead.
type road struct {
	http.RoundTripper

	traffic *traffic
	dead    *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (r *road) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.dead.Load() {
		return nil, errDead
	}
	kind := kindOf(req.URL.Path)
	switch {
	case kind == "events" && req.Method != http.MethodGet:
		return swallow(req)
	case req.Method == http.MethodGet || !resources[kind]:
		return r.RoundTripper.RoundTrip(req) //nolint:wrapcheck // it is a RoundTripper too
	}
	seq := r.traffic.begin(kind)
	res, err := r.RoundTripper.RoundTrip(req)
	if err != nil || res.StatusCode >= http.StatusMultipleChoices {
		r.traffic.end(seq, 0)
		return res, err //nolint:wrapcheck // it is a RoundTripper too
	}
	version, err := peek(res)
	r.traffic.end(seq, version)
	return res, err
}

// kindOf is the resource that a path of the API is about; empty for none.
func kindOf(path string) string {
	_, rest, ok := strings.Cut(path, "/namespaces/")
	if !ok {
		return ""
	}
	_, rest, _ = strings.Cut(rest, "/") // the namespace's name
	kind, _, _ := strings.Cut(rest, "/")
	return kind
}

// peek reads the resource version out of a response, which stays as it was. It
// is 0 where there is none.
func peek(res *http.Response) (uint64, error) {
	data, err := io.ReadAll(res.Body)
	err = errors.Join(err, res.Body.Close())
	res.Body = io.NopCloser(bytes.NewReader(data))
	var o struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err != nil || json.Unmarshal(data, &o) != nil {
		return 0, err
	}
	return version(o.Metadata.ResourceVersion), nil
}

// version is a resource version as a number; 0 for none.
func version(text string) uint64 {
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// swallow answers a request as if what it brings had been stored. Nobody reads
// the events of a story, and they are a third of all writes.
func swallow(req *http.Request) (*http.Response, error) {
	body := io.NopCloser(strings.NewReader("{}"))
	if req.Body != nil {
		body = req.Body
	}
	return &http.Response{
		Status: "201 Created", StatusCode: http.StatusCreated, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": req.Header["Content-Type"]}, Body: body, Request: req,
	}, nil
}

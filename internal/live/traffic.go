package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	// seen is what each party has seen of a kind; one that is not there does not
	// read it now.
	seen [parties]map[string]*sight
	// told is the newest version of an object that anybody was answered.
	told map[types.UID]uint64
	// life is that of the present controllers, lists are the kinds that they have
	// listed, and delayed is how many of those lists wait for the clock.
	life    int
	lists   map[string]bool
	delayed int
	count   int
}

// party is somebody who watches.
type party int

const (
	byJudge party = iota
	// byControllers: what has reached the reader of their cache.
	byControllers
	parties
)

// watcher is a party that may be of a life that is over.
type watcher struct {
	party party
	life  int
}

// judge is the watcher that judges.
var judge = watcher{party: byJudge}

// controllers are the present ones.
func (t *traffic) controllers() watcher {
	t.mu.Lock()
	defer t.mu.Unlock()
	return watcher{byControllers, t.life}
}

// over tells whether a watcher is of a life that is over.
func (t *traffic) over(w watcher) bool { return w.party == byControllers && w.life != t.life }

// sight is what a party has seen of a kind: up to which version, and what is
// there.
type sight struct {
	version uint64
	there   map[types.UID]bool
}

// write is one write.
type write struct {
	answer

	kind  string
	began time.Time
	// lost is since when nobody knows what it came to.
	lost time.Time
}

// answer is what a write came to: a version of an object, or its end. The API
// server does not tell the version of an end: it is one after that which was told
// of the object last. Nothing stands in it while the write is on its way.
type answer struct {
	uid     types.UID
	version uint64
	ended   bool
}

// seenBy tells whether what it came to was seen.
func (a answer) seenBy(s *sight) bool {
	switch {
	case s == nil || s.version < a.version:
		return false
	case a.ended:
		return !s.there[a.uid]
	}
	return a.version != 0
}

// lostAfter is when a write is forgotten that nobody ever sees, in real time, and
// failedAfter when one is whose sender has not heard what it came to.
const (
	lostAfter   = 20 * time.Second
	failedAfter = 500 * time.Millisecond
)

func newTraffic() *traffic {
	return &traffic{
		open: map[int]*write{}, seen: [parties]map[string]*sight{{}, {}}, told: map[types.UID]uint64{}, lists: map[string]bool{},
	}
}

// begin notes a write that is about to be sent.
func (t *traffic) begin(kind string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq++
	t.open[t.seq] = &write{kind: kind, began: time.Now()}
	return t.seq
}

// end notes what a write has come to, which is nothing where it was refused.
func (t *traffic) end(seq int, is answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.open[seq]
	if w == nil {
		return
	}
	if is == (answer{}) {
		delete(t.open, seq)
		return
	}
	t.count++
	is.version = max(is.version, t.told[is.uid])
	if is.uid != "" {
		t.told[is.uid] = is.version
	}
	t.newest = max(t.newest, is.version)
	w.answer = is
	t.sweep()
}

// lose notes that nobody will hear what a write has come to, which the API server
// may carry out all the same.
func (t *traffic) lose(seq int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.open[seq]; w != nil {
		w.lost = time.Now()
	}
}

// sweep forgets what everybody has seen.
func (t *traffic) sweep() {
	for seq, w := range t.open {
		seen := w.seenBy(t.seen[byJudge][w.kind]) && (w.seenBy(t.seen[byControllers][w.kind]) || t.unread(w.kind))
		if seen || time.Since(w.began) > lostAfter || !w.lost.IsZero() && time.Since(w.lost) > failedAfter {
			delete(t.open, seq)
		}
	}
}

// unread tells whether the controllers do not read a kind. Once they have asked
// for a list of it they do, though it may still be on its way, of before a write.
func (t *traffic) unread(kind string) bool {
	return t.seen[byControllers][kind] == nil && !t.lists[kind]
}

// saw notes that somebody has seen an object, or its end, or a bookmark.
func (t *traffic) saw(who watcher, kind string, o metav1.Object, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.seen[who.party][kind]
	if s == nil || t.over(who) {
		return // it has not listed anything, or does not read any more
	}
	s.version = max(s.version, version(o.GetResourceVersion()))
	if who == judge {
		t.newest = max(t.newest, s.version) // the end of an object has no other way
	}
	switch uid := o.GetUID(); {
	case ended:
		delete(s.there, uid)
	case uid != "":
		s.there[uid] = true
	}
	t.sweep()
}

// listed notes that somebody has got a list, or one more page of it.
func (t *traffic) listed(who watcher, kind string, list runtime.Object, more bool) {
	m, err := meta.ListAccessor(list)
	if err != nil {
		return
	}
	s := &sight{version: version(m.GetResourceVersion()), there: map[types.UID]bool{}}
	_ = meta.EachListItem(list, func(o runtime.Object) error { // which only fails where this does
		if m, err := meta.Accessor(o); err == nil {
			s.there[m.GetUID()] = true
		}
		return nil
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over(who) {
		return
	}
	if was := t.seen[who.party][kind]; was != nil && more {
		maps.Copy(s.there, was.there)
	}
	t.seen[who.party][kind] = s
	t.sweep()
}

// crashed notes that the controllers are no more.
func (t *traffic) crashed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.life++
	clear(t.seen[byControllers])
	clear(t.lists)
	t.sweep()
}

// asked notes that controllers have asked for a list of a kind.
func (t *traffic) asked(who watcher, kind string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over(who) {
		t.lists[kind] = true
	}
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
	return len(t.lists) == len(resources), t.delayed > 0
}

// busy tells since when a write is on its way, in real time; zero for none. What
// waits for a list that waits for the clock is not.
func (t *traffic) busy() (since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	for _, w := range t.open {
		if t.delayed > 0 && t.seen[byControllers][w.kind] == nil && w.seenBy(t.seen[byJudge][w.kind]) {
			continue
		}
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
	t.sweep()
	first := t.seq + 1
	for seq, w := range t.open {
		if !w.seenBy(t.seen[byJudge][w.kind]) {
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
	if err != nil {
		r.traffic.lose(seq)
		return nil, err //nolint:wrapcheck // it is a RoundTripper too
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		r.traffic.end(seq, answer{})
		return res, nil
	}
	is, err := peek(res)
	if err != nil {
		r.traffic.lose(seq)
		return nil, err
	}
	r.traffic.end(seq, is)
	return res, nil
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

// peek reads what a write has come to out of a response, which stays as it was.
func peek(res *http.Response) (answer, error) {
	data, err := io.ReadAll(res.Body)
	err = errors.Join(err, res.Body.Close())
	res.Body = io.NopCloser(bytes.NewReader(data))
	var o struct {
		metav1.PartialObjectMetadata `json:",inline"`

		Details metav1.StatusDetails `json:"details"`
	}
	if err != nil || json.Unmarshal(data, &o) != nil {
		return answer{}, err
	}
	if o.Kind == "Status" { // the object had no finalizer
		return answer{uid: o.Details.UID, ended: o.Details.UID != ""}, nil
	}
	gone := o.DeletionTimestamp != nil && len(o.Finalizers) == 0 // it has lost the last one
	return answer{uid: o.UID, version: version(o.ResourceVersion), ended: gone}, nil
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

package live

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// A write is on its way until the judge and the controllers' reader, where
// there is one, have seen it.
func TestTraffic(t *testing.T) {
	t.Parallel()
	tr := newTraffic()
	busy := func(want bool, when string) {
		t.Helper()
		if got := !tr.busy().IsZero(); got != want {
			t.Errorf("%s busy is %t", when, got)
		}
	}
	settled := func(want int, when string) {
		t.Helper()
		if got := tr.settled(); got != want {
			t.Errorf("%s all up to %d is settled, want %d", when, got, want)
		}
	}
	tr.listed(judge, "members", listOf(1))
	first := tr.begin("members")
	busy(true, "while it is sent")
	tr.end(first, answer{version: 7})
	busy(true, "before it is seen")
	settled(0, "before it is seen")
	tr.saw(judge, "pools", memberOf("b", 9), false)
	settled(0, "after another kind was seen")
	tr.saw(judge, "members", memberOf("a", 7), false)
	busy(false, "without a reader")

	tr.listed(controllers, "members", listOf(7, memberOf("a", 7)))
	second, refused := tr.begin("members"), tr.begin("claims")
	tr.end(second, answer{version: 8})
	tr.saw(judge, "members", memberOf("a", 8), false)
	settled(2, "while a third one is sent")
	tr.end(refused, answer{})
	settled(3, "after it was refused")
	busy(true, "before the reader has it")
	tr.saw(controllers, "members", memberOf("a", 8), false)
	busy(false, "when all have it")

	third := tr.begin("members")
	tr.end(third, answer{version: 10})
	tr.saw(judge, "members", memberOf("a", 10), false)
	busy(true, "before the reader has it")
	tr.unread()
	busy(false, "after the reader has gone")
	if v, barrier := tr.place(); v != 10 || barrier != third || tr.writes() != 3 {
		t.Errorf("the place is %d, %d after %d writes", v, barrier, tr.writes())
	}
}

func listOf(v int, members ...*v1alpha1.Member) *v1alpha1.MemberList {
	list := &v1alpha1.MemberList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(v)}}
	for _, m := range members {
		list.Items = append(list.Items, *m)
	}
	return list
}

// The end of an object, whose version nobody is told, is on its way until all
// have seen that it is gone, however they learn it, and in whatever order.
func TestTraffic_Ended(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason        string
		before, after func(tr *traffic)
		busy          bool
	}{
		"only the judge":       {"the controllers do not know yet", nil, func(tr *traffic) { tr.saw(judge, "members", memberOf("a", 9), true) }, true},
		"only the controllers": {"the judge does not know yet", nil, func(tr *traffic) { tr.saw(controllers, "members", memberOf("a", 9), true) }, true},
		"something newer": {"which is no end of this one", nil, func(tr *traffic) {
			for who := range parties {
				tr.saw(who, "members", memberOf("b", 9), false)
			}
		}, true},
		"both": {"all know", nil, func(tr *traffic) {
			for who := range parties {
				tr.saw(who, "members", memberOf("a", 9), true)
			}
		}, false},
		"the end comes before the answer": {"all know already", func(tr *traffic) {
			for who := range parties {
				tr.saw(who, "members", memberOf("a", 9), true)
			}
		}, nil, false},
		"a list without it": {"tells it, too", nil, func(tr *traffic) {
			tr.saw(judge, "members", memberOf("a", 9), true)
			tr.listed(controllers, "members", listOf(9))
		}, false},
		"a list from before": {"it is still to be told", nil, func(tr *traffic) {
			tr.saw(judge, "members", memberOf("a", 9), true)
			tr.listed(controllers, "members", listOf(7, memberOf("a", 7)))
		}, true},
		"nobody reads": {"only the judge has to know", nil, func(tr *traffic) {
			tr.unread()
			tr.saw(judge, "members", memberOf("a", 9), true)
		}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTraffic()
			for who := range parties {
				tr.listed(who, "members", listOf(7, memberOf("a", 7)))
			}
			w := tr.begin("members")
			if tt.before != nil {
				tt.before(tr)
			}
			if tr.busy().IsZero() {
				t.Error("it is not on its way before there is an answer")
			}
			tr.end(w, answer{ended: "a"})
			if tt.after != nil {
				tt.after(tr)
			}
			if got := !tr.busy().IsZero(); got != tt.busy {
				t.Errorf("%s: busy is %t", tt.reason, got)
			}
		})
	}
}

// What a write has come to is read out of the answer.
func TestPeek(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body string
		want answer
	}{
		"stored":                     {`{"kind": "Member", "metadata": {"uid": "a", "resourceVersion": "7"}}`, answer{version: 7}},
		"deleted, with a finalizer":  {`{"kind": "Member", "metadata": {"uid": "a", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"]}}`, answer{version: 7}},
		"without its last finalizer": {`{"kind": "Member", "metadata": {"uid": "a", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z"}}`, answer{ended: "a"}},
		"deleted":                    {`{"kind": "Status", "status": "Success", "details": {"name": "x", "uid": "a"}}`, answer{ended: "a"}},
		"no JSON":                    {`<html>`, answer{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is, err := peek(&http.Response{Body: io.NopCloser(strings.NewReader(tt.body))})
			if err != nil || is != tt.want {
				t.Errorf("it has come to %+v, %v, want %+v", is, err, tt.want)
			}
		})
	}
}

// server is an API server that answers everything alike.
type server struct {
	status int
	body   string
	asked  []string
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	return &http.Response{StatusCode: s.status, Body: io.NopCloser(strings.NewReader(s.body)), Request: r}, nil
}

func TestRoad(t *testing.T) {
	t.Parallel()
	const path = "/apis/pawl.dev/v1alpha1/namespaces/ns/"
	stored := `{"metadata": {"resourceVersion": "42"}}`
	tests := map[string]struct {
		reason, method, path string
		status, dead         int
		newest               uint64
		asked                bool
	}{
		"write":   {"its version is noted", "PUT", path + "members/a/status", 200, 0, 42, true},
		"refused": {"it has changed nothing", "PUT", path + "members/a", 409, 0, 0, true},
		"read":    {"it is no write", "GET", path + "members/a", 200, 0, 0, true},
		"other":   {"stories are not told by it", "POST", path + "secrets", 201, 0, 0, true},
		"event":   {"nobody reads it", "POST", "/apis/events.k8s.io/v1/namespaces/ns/events", 201, 0, 0, false},
		"dead":    {"the dead write nothing", "PUT", path + "members/a", 200, 1, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, tr, dead := &server{status: tt.status, body: stored}, newTraffic(), &atomic.Bool{}
			dead.Store(tt.dead == 1)
			req, err := http.NewRequestWithContext(t.Context(), tt.method, "https://server"+tt.path, strings.NewReader("sent"))
			if err != nil {
				t.Fatal(err)
			}
			res, err := (&road{s, tr, dead}).RoundTrip(req)
			if dead.Load() {
				if !errors.Is(err, errDead) || len(s.asked) > 0 {
					t.Errorf("%s: %v, and the server is asked %q", tt.reason, err, s.asked)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if v, _ := tr.place(); v != tt.newest || len(s.asked) > 0 != tt.asked {
				t.Errorf("%s: version %d is noted, and the server is asked %q", tt.reason, v, s.asked)
			}
			if want := map[bool]string{true: stored, false: "sent"}[tt.asked]; string(body) != want {
				t.Errorf("the answer is %q, want %q", body, want)
			}
			if !tr.busy().IsZero() != (tt.newest > 0) {
				t.Errorf("%s: busy since %s", tt.reason, tr.busy())
			}
		})
	}
}

// What nobody ever sees holds nobody up for ever.
func TestTraffic_Lost(t *testing.T) {
	t.Parallel()
	tr := newTraffic()
	tr.end(tr.begin("claims"), answer{version: 5})
	tr.open[1].began = time.Now().Add(-lostAfter - time.Second)
	if !tr.busy().IsZero() || tr.settled() != 1 {
		t.Error("it is waited for")
	}
}

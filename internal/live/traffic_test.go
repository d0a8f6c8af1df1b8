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
	tr.listed(judge, "members", listOf(1), false)
	first := tr.begin("members")
	busy(true, "while it is sent")
	tr.end(first, answer{version: 7})
	busy(true, "before it is seen")
	settled(0, "before it is seen")
	tr.saw(judge, "pools", memberOf("b", 9), false)
	settled(0, "after another kind was seen")
	tr.saw(judge, "members", memberOf("a", 7), false)
	busy(false, "without a reader")

	reads := tr.controllers()
	tr.listed(reads, "members", listOf(7, memberOf("a", 7)), false)
	second, refused := tr.begin("members"), tr.begin("claims")
	tr.end(second, answer{version: 8})
	tr.saw(judge, "members", memberOf("a", 8), false)
	settled(2, "while a third one is sent")
	tr.end(refused, answer{})
	settled(3, "after it was refused")
	busy(true, "before the reader has it")
	tr.saw(reads, "members", memberOf("a", 8), false)
	busy(false, "when all have it")

	third := tr.begin("members")
	tr.end(third, answer{version: 10})
	tr.saw(judge, "members", memberOf("a", 10), false)
	busy(true, "before the reader has it")
	tr.crashed()
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

// watchers are all that there are.
func (t *traffic) watchers() []watcher { return []watcher{judge, t.controllers()} }

// The end of an object, whose version nobody is told, is on its way until all
// have seen that it is gone, however they learn it, and in whatever order.
func TestTraffic_Ended(t *testing.T) {
	t.Parallel()
	saw := func(who watcher, m *v1alpha1.Member, ended bool) func(*traffic) {
		return func(tr *traffic) { tr.saw(who, "members", m, ended) }
	}
	both := func(m *v1alpha1.Member, ended bool) func(*traffic) {
		return func(tr *traffic) {
			for _, who := range tr.watchers() {
				tr.saw(who, "members", m, ended)
			}
		}
	}
	reads := watcher{party: byControllers}
	list := func(m *v1alpha1.MemberList) func(*traffic) {
		return func(tr *traffic) { tr.listed(reads, "members", m, false) }
	}
	tests := map[string]struct {
		reason        string
		before, after []func(*traffic)
		busy          bool
	}{
		"only the judge":       {"the controllers do not know yet", nil, []func(*traffic){saw(judge, memberOf("a", 9), true)}, true},
		"only the controllers": {"the judge does not know yet", nil, []func(*traffic){saw(reads, memberOf("a", 9), true)}, true},
		"something newer":      {"which is no end of this one", nil, []func(*traffic){both(memberOf("b", 9), false)}, true},
		"both":                 {"all know", nil, []func(*traffic){both(memberOf("a", 9), true)}, false},
		"before the answer":    {"all know already", []func(*traffic){both(memberOf("a", 9), true)}, nil, false},
		"a list without it":    {"tells it, too", nil, []func(*traffic){saw(judge, memberOf("a", 9), true), list(listOf(9))}, false},
		"a list from before": {
			"it is still to be told", nil, []func(*traffic){saw(judge, memberOf("a", 9), true), list(listOf(7, memberOf("a", 7)))}, true,
		},
		"nobody reads": {"only the judge has to know", nil, []func(*traffic){(*traffic).crashed, saw(judge, memberOf("a", 9), true)}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTraffic()
			for _, who := range tr.watchers() {
				tr.listed(who, "members", listOf(7, memberOf("a", 7)), false)
			}
			w := tr.begin("members")
			for _, do := range tt.before {
				do(tr)
			}
			if tr.busy().IsZero() {
				t.Error("it is not on its way before there is an answer")
			}
			tr.end(w, answer{uid: "a", ended: true})
			for _, do := range tt.after {
				do(tr)
			}
			if got := !tr.busy().IsZero(); got != tt.busy {
				t.Errorf("%s: busy is %t", tt.reason, got)
			}
		})
	}
}

// Who has not seen the beginning of an object has not seen its end.
func TestTraffic_EndedAtOnce(t *testing.T) {
	t.Parallel()
	tr := newTraffic()
	for _, who := range tr.watchers() {
		tr.listed(who, "members", listOf(7), false)
	}
	tr.end(tr.begin("members"), answer{uid: "a", version: 8})
	tr.end(tr.begin("members"), answer{uid: "a", ended: true})
	for _, ended := range []bool{false, true} {
		for _, who := range tr.watchers() {
			if tr.busy().IsZero() || tr.settled() == 2 && !ended {
				t.Errorf("all is over before all have seen it: ended %t", ended)
			}
			tr.saw(who, "members", memberOf("a", 8), ended)
		}
	}
	if !tr.busy().IsZero() || tr.settled() != 2 {
		t.Error("it is not over in the end")
	}
	if v, _ := tr.place(); v != 8 {
		t.Errorf("what happens now is placed at %d", v)
	}
	tr.saw(judge, "members", memberOf("b", 12), false)
	if v, _ := tr.place(); v != 12 {
		t.Errorf("what happens now is placed at %d, before what was seen", v)
	}
}

// A write of after a list is on its way to whoever has asked for the list, though
// it waits for the clock itself.
func TestTraffic_Delayed(t *testing.T) {
	t.Parallel()
	tr := newTraffic()
	reads := tr.controllers()
	tr.listed(judge, "members", listOf(7), false)
	tr.asked(reads, "members")
	tr.delay(1)
	tr.end(tr.begin("members"), answer{uid: "a", version: 8})
	if tr.busy().IsZero() {
		t.Error("it is over before the judge has seen it")
	}
	tr.saw(judge, "members", memberOf("a", 8), false)
	if !tr.busy().IsZero() {
		t.Error("the list waits for the clock, and the clock for what comes after the list")
	}
	tr.listed(reads, "members", listOf(7), false)
	tr.delay(-1)
	if tr.busy().IsZero() {
		t.Error("it is over before the controllers have seen it")
	}
	tr.saw(reads, "members", memberOf("a", 8), false)
	if !tr.busy().IsZero() {
		t.Error("it is not over in the end")
	}
}

// What controllers read that are no more is not seen by those that follow.
func TestTraffic_Crashed(t *testing.T) {
	t.Parallel()
	tr := newTraffic()
	tr.listed(judge, "members", listOf(7), false)
	dead := tr.controllers()
	tr.crashed()
	tr.asked(dead, "members")
	tr.listed(dead, "members", listOf(7), false)
	tr.end(tr.begin("members"), answer{uid: "a", version: 8})
	tr.saw(judge, "members", memberOf("a", 8), false)
	if !tr.busy().IsZero() {
		t.Error("the dead are waited for")
	}
	reads := tr.controllers()
	tr.listed(reads, "members", listOf(8, memberOf("a", 8)), false)
	tr.end(tr.begin("members"), answer{uid: "a", version: 9})
	tr.saw(judge, "members", memberOf("a", 9), false)
	tr.saw(dead, "members", memberOf("a", 9), false)
	if tr.busy().IsZero() {
		t.Error("what the dead have seen the living need not see")
	}
}

// A list may come in pages.
func TestTraffic_Pages(t *testing.T) {
	t.Parallel()
	tr := newTraffic()
	tr.listed(judge, "members", listOf(7, memberOf("a", 7)), false)
	tr.listed(judge, "members", listOf(7, memberOf("b", 7)), true)
	tr.end(tr.begin("members"), answer{uid: "a", ended: true})
	if tr.busy().IsZero() {
		t.Error("what stands on another page is gone")
	}
}

// What a write has come to is read out of the answer.
func TestPeek(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body string
		want answer
	}{
		"stored":                     {`{"kind": "Member", "metadata": {"uid": "a", "resourceVersion": "7"}}`, answer{uid: "a", version: 7}},
		"deleted, with a finalizer":  {`{"kind": "Member", "metadata": {"uid": "a", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"]}}`, answer{uid: "a", version: 7}},
		"without its last finalizer": {`{"kind": "Member", "metadata": {"uid": "a", "resourceVersion": "7", "deletionTimestamp": "2026-01-01T00:00:00Z"}}`, answer{uid: "a", version: 7, ended: true}},
		"deleted":                    {`{"kind": "Status", "status": "Success", "details": {"name": "x", "uid": "a"}}`, answer{uid: "a", ended: true}},
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

	// Of one that was cut off the server may still make something, soon.
	cut := tr.begin("claims")
	tr.lose(cut)
	if tr.busy().IsZero() {
		t.Error("what was cut off is over at once")
	}
	tr.open[cut].lost = time.Now().Add(-failedAfter - time.Second)
	if !tr.busy().IsZero() || tr.settled() != cut {
		t.Error("what was cut off is waited for")
	}
}

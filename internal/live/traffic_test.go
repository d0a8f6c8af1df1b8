package live

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
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
	first := tr.begin("members")
	busy(true, "while it is sent")
	tr.end(first, 7)
	busy(true, "before it is seen")
	settled(0, "before it is seen")
	tr.saw("pools", 9)
	settled(0, "after another kind was seen")
	tr.saw("members", 7)
	busy(false, "without a reader")

	tr.reads("members", 7)
	second, refused := tr.begin("members"), tr.begin("claims")
	tr.end(second, 8)
	tr.saw("members", 8)
	settled(2, "while a third one is sent")
	tr.end(refused, 0)
	settled(3, "after it was refused")
	busy(true, "before the reader has it")
	tr.reads("members", 8)
	busy(false, "when all have it")

	third := tr.begin("members")
	tr.end(third, 10)
	tr.saw("members", 10)
	busy(true, "before the reader has it")
	tr.unread()
	busy(false, "after the reader has gone")
	if v, barrier := tr.place(); v != 10 || barrier != third || tr.writes() != 3 {
		t.Errorf("the place is %d, %d after %d writes", v, barrier, tr.writes())
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
	tr.end(tr.begin("claims"), 5)
	tr.open[1].began = time.Now().Add(-lostAfter - time.Second)
	if !tr.busy().IsZero() || tr.settled() != 1 {
		t.Error("it is waited for")
	}
}

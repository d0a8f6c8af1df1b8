package main

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/snapshot"
)

// memberOf reads a member of the terminal's server.
func memberOf(t *testing.T, term *terminal, name string) *v1alpha1.Member {
	t.Helper()
	var m v1alpha1.Member
	if err := term.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &m); err != nil {
		t.Fatal(err)
	}
	return &m
}

func TestHold(t *testing.T) {
	t.Parallel()
	_, objects := world(t)
	for name, tt := range map[string]struct {
		reason string
		args   []string
		value  string
		says   string
	}{
		"forever": {
			"a hold needs neither a reason nor an end", []string{"web/1"}, `{}`, "web-1 is held\n",
		},
		"for a while": {
			"a duration counts from now", []string{"web/1", "--reason", "debugging \"it\"", "--until", "4h"},
			`{"reason":"debugging \"it\"","until":"2031-05-01T16:00:00Z"}`,
			"web-1 is held until 2031-05-01T16:00:00Z (for 4h): debugging \"it\"\n",
		},
		"until then": {
			"a time is kept in UTC", []string{"web/1", "--until", "2031-05-01T18:00:00+02:00"},
			`{"until":"2031-05-01T16:00:00Z"}`, "web-1 is held until 2031-05-01T16:00:00Z (for 4h)\n",
		},
		"too late": {
			"a body that goes is not brought back", []string{"web/2"}, `{}`,
			"web-2 is held\n  it comes too late for this body, which is Terminating (Drift); the next one is held\n",
		},
		"claimed": {
			"a claimed member may be held too", []string{"web/0"}, `{}`, "web-0 is held\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), append([]string{"hold"}, tt.args...)...); got != 0 {
				t.Fatalf("%s: exit status %d: %s", tt.reason, got, &term.err)
			}
			if got := term.out.String(); got != tt.says {
				t.Errorf("%s: it says %q, want %q", tt.reason, got, tt.says)
			}
			m := memberOf(t, term, strings.Replace(tt.args[0], "/", "-", 1))
			if got := m.Annotations[v1alpha1.AnnotationHold]; got != tt.value {
				t.Errorf("%s: the annotation is %s, want %s", tt.reason, got, tt.value)
			}
			if !snapshot.Held(m, noon) {
				t.Errorf("%s: the engine does not take it for held", tt.reason)
			}
		})
	}
}

func TestHold_calledOff(t *testing.T) {
	t.Parallel()
	_, objects := world(t)
	moving := objects[5].(*v1alpha1.Member)
	moving.Status.Phase = v1alpha1.PhaseDraining
	term := newTerminal(t, objects...)
	if got := term.do(t.Context(), "hold", "web/2"); got != 0 {
		t.Fatalf("exit status %d: %s", got, &term.err)
	}
	if want := "web-2 is held\n  its replacement (Drift) is called off, unless its body is gone by then\n"; term.out.String() != want {
		t.Errorf("it says %q, want %q", &term.out, want)
	}
}

func TestUnhold(t *testing.T) {
	t.Parallel()
	_, objects := world(t)
	objects[4].SetAnnotations(map[string]string{v1alpha1.AnnotationHold: "please", "other": "stays"})
	term := newTerminal(t, objects...)
	if got := term.do(t.Context(), "unhold", "web/1"); got != 0 {
		t.Fatalf("exit status %d: %s", got, &term.err)
	}
	want := "member web-1 is no longer held\n  member 1 is on revision s66lgtrnbk28 instead of 9pddxxgw7rvz: as many members are out of service as maxUnavailable allows: member 2 is on its way out\n"
	if got := term.out.String(); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if got := memberOf(t, term, "web-1").Annotations; len(got) != 1 || got["other"] != "stays" {
		t.Errorf("annotations %v", got)
	}
	if got := term.do(t.Context(), "unhold", "web/1"); got != 0 || term.out.String() != "member web-1 is not held\n" {
		t.Errorf("exit status %d: it says %q, %s", got, &term.out, &term.err)
	}
}

func TestParseEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason, text string
		want         time.Duration // after noon
		says         string
	}{
		"nothing":    {"no end is no end", "", -1, ""},
		"a duration": {"it counts from now", "90m", 90 * time.Minute, ""},
		"a time":     {"in any zone", "2031-05-01T13:00:00-01:00", 2 * time.Hour, ""},
		"fraction":   {"to the second", "2031-05-01T12:00:01.9Z", time.Second, ""},
		"now":        {"an end that has come holds nothing", "2031-05-01T12:00:00Z", 0, "2031-05-01T12:00:00Z: a hold must end in the future, and now it is 2031-05-01T12:00:00Z"},
		"no time":    {"nor does no time at all", "0s", 0, "0s: a hold must end in the future"},
		"the past":   {"or one of the past", "-1h", 0, "-1h: a hold must end in the future"},
		"a date":     {"a date is no instant", "2031-05-02", 0, `"2031-05-02": must be a time such as 2031-05-01T16:00:00Z, or a duration such as 4h`},
		"a word":     {"nor is a word", "tomorrow", 0, `"tomorrow": must be a time such as`},
		"a number":   {"nor a number without a unit", "4", 0, `"4": must be a time such as`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseEnd(tt.text, noon)
			switch {
			case tt.says != "":
				if err == nil || !strings.HasPrefix(err.Error(), tt.says) {
					t.Errorf("%s: %v, want %q", tt.reason, err, tt.says)
				}
			case err != nil:
				t.Errorf("%s: %v", tt.reason, err)
			case tt.want < 0:
				if !got.IsZero() {
					t.Errorf("%s: %s", tt.reason, got)
				}
			case !got.Equal(noon.Add(tt.want)):
				t.Errorf("%s: %s, want %s", tt.reason, got, noon.Add(tt.want))
			}
		})
	}
}

// TestParseEnd_anything: an end is in the future, and can be kept as JSON,
// whatever is written.
func TestParseEnd_anything(t *testing.T) {
	t.Parallel()
	digits := rapid.StringMatching(`-?[0-9]{1,9}(\.[0-9]{1,10})?(ns|ms|s|m|h|d)?|[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(digits, rapid.String()).Draw(t, "text")
		end, err := parseEnd(text, noon)
		if err != nil || end.IsZero() {
			return
		}
		if end.Before(noon) {
			t.Fatalf("%q: %s is past", text, end)
		}
		if _, err := end.MarshalJSON(); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

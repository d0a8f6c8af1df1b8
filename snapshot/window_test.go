package snapshot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// win returns a window, in a time zone unless that is empty.
func win(schedule, zone string, d time.Duration) v1alpha1.Window {
	w := v1alpha1.Window{Schedule: schedule, Duration: &metav1.Duration{Duration: d}}
	if zone != "" {
		w.TimeZone = &zone
	}
	return w
}

func TestWindows_At(t *testing.T) {
	t.Parallel()
	const berlin = "Europe/Berlin"
	weekend := win("0 2 * * 6", "", 2*time.Hour)
	night := win("30 2 * * *", berlin, time.Hour)
	cases := map[string]struct {
		reason  string
		windows []v1alpha1.Window
		at      string
		open    bool
		until   string
	}{
		"none":                {"no windows are no limit", nil, "2026-06-01T00:00:00Z", true, ""},
		"before":              {"the next one is on Saturday", []v1alpha1.Window{weekend}, "2026-06-01T00:00:00Z", false, "2026-06-06T02:00:00Z"},
		"almost":              {"it is shut until the exact instant", []v1alpha1.Window{weekend}, "2026-06-06T01:59:59.999999999Z", false, "2026-06-06T02:00:00Z"},
		"opens":               {"it opens at the exact instant", []v1alpha1.Window{weekend}, "2026-06-06T02:00:00Z", true, "2026-06-06T04:00:00Z"},
		"within":              {"it stays open until its duration has passed", []v1alpha1.Window{weekend}, "2026-06-06T03:59:59.999999999Z", true, "2026-06-06T04:00:00Z"},
		"closes":              {"it is shut at the exact instant", []v1alpha1.Window{weekend}, "2026-06-06T04:00:00Z", false, "2026-06-13T02:00:00Z"},
		"another zone's time": {"the zone of the given time makes no difference", []v1alpha1.Window{weekend}, "2026-06-06T04:30:00+02:00", true, "2026-06-06T04:00:00Z"},
		"summer":              {"02:30 is local time", []v1alpha1.Window{night}, "2026-07-01T00:29:00Z", false, "2026-07-01T00:30:00Z"},
		"winter":              {"02:30 is local time", []v1alpha1.Window{night}, "2026-01-01T01:29:00Z", false, "2026-01-01T01:30:00Z"},
		"far ahead":           {"the search passes 31 December 2040, where ZoneBounds is wrong", []v1alpha1.Window{win("0 3 1 1 *", berlin, time.Hour)}, "2040-12-31T12:00:00Z", false, "2041-01-01T02:00:00Z"},
		"skipped":             {"the clocks go from 2 to 3, and the nightly window opens then", []v1alpha1.Window{night}, "2026-03-29T00:59:59Z", false, "2026-03-29T01:00:00Z"},
		"skipped, open":       {"it stays open for its whole duration", []v1alpha1.Window{night}, "2026-03-29T01:00:00Z", true, "2026-03-29T02:00:00Z"},
		"skipped, every hour": {"an hourly window waits for its next time", []v1alpha1.Window{win("30 * * * *", berlin, time.Minute)}, "2026-03-29T00:45:00Z", false, "2026-03-29T01:30:00Z"},
		"skipped midnight":    {"Cairo goes from 0 to 1", []v1alpha1.Window{win("@daily", "Africa/Cairo", time.Hour)}, "2026-04-23T20:00:00Z", false, "2026-04-23T22:00:00Z"},
		"later that night":    {"the clocks skip no time of this schedule", []v1alpha1.Window{win("0 5 * * *", berlin, time.Hour)}, "2026-03-29T00:59:59Z", false, "2026-03-29T03:00:00Z"},
		"on the change":       {"2 o'clock comes twice, and the second is the change", []v1alpha1.Window{win("0 2 * * *", berlin, 15*time.Minute)}, "2026-10-25T00:15:00Z", false, "2026-10-25T01:00:00Z"},
		"not skipped":         {"3 is the first hour after the change", []v1alpha1.Window{win("0 3 * * *", berlin, time.Hour)}, "2026-03-28T12:00:00Z", false, "2026-03-29T01:00:00Z"},
		"repeated":            {"it opens at the first 02:30", []v1alpha1.Window{win("30 2 * * *", berlin, 15*time.Minute)}, "2026-10-25T00:00:00Z", false, "2026-10-25T00:30:00Z"},
		"repeated again":      {"it opens again at the second 02:30", []v1alpha1.Window{win("30 2 * * *", berlin, 15*time.Minute)}, "2026-10-25T00:45:00Z", false, "2026-10-25T01:30:00Z"},
		"repeated, joined":    {"both windows touch, from the first 02:30 to 03:30", []v1alpha1.Window{night}, "2026-10-25T00:30:00Z", true, "2026-10-25T02:30:00Z"},
		"overlap":             {"until is the end of the later one", []v1alpha1.Window{win("0 1 * * *", "", 2*time.Hour), win("0 2 * * *", "", 3*time.Hour)}, "2026-06-06T01:30:00Z", true, "2026-06-06T05:00:00Z"},
		"within another":      {"the end of the short one does not shut the long one", []v1alpha1.Window{win("0 1 * * *", "", 5*time.Hour), win("0 2 * * *", "", time.Hour)}, "2026-06-06T02:30:00Z", true, "2026-06-06T06:00:00Z"},
		"touching":            {"there is no gap between them", []v1alpha1.Window{win("0 1 * * *", "", time.Hour), win("0 2 * * *", "", time.Hour)}, "2026-06-06T01:30:00Z", true, "2026-06-06T03:00:00Z"},
		"first of two":        {"the one that opens first", []v1alpha1.Window{win("0 5 * * *", "", time.Hour), win("0 4 * * *", "", time.Hour)}, "2026-06-06T01:30:00Z", false, "2026-06-06T04:00:00Z"},
		"longer than period":  {"always open: until is only bounded", []v1alpha1.Window{win("0 0 * * *", "", 36*time.Hour)}, "2026-06-01T06:00:00Z", true, "2026-06-25T12:00:00Z"},
		"not on the minute":   {"a duration is not rounded", []v1alpha1.Window{win("0 0 * * *", "", 1500*time.Millisecond)}, "2026-06-01T00:00:01.4Z", true, "2026-06-01T00:00:01.5Z"},
		"leap day":            {"29 February is found", []v1alpha1.Window{win("0 0 29 2 *", "", time.Hour)}, "2026-06-01T00:00:00Z", false, "2028-02-29T00:00:00Z"},
		"no leap day":         {"2100 has no 29 February, so the next one is eight years away", []v1alpha1.Window{win("0 0 29 2 *", "", time.Hour)}, "2097-06-01T00:00:00Z", false, "2104-02-29T00:00:00Z"},
		"one is bad":          {"the valid window still opens", []v1alpha1.Window{win("nonsense", "", time.Hour), weekend}, "2026-06-06T02:00:00Z", true, "2026-06-06T04:00:00Z"},
		"all are bad":         {"an invalid window never opens", []v1alpha1.Window{win("nonsense", "", time.Hour)}, "2026-06-06T02:00:00Z", false, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339Nano, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			open, until := ParseWindows("f", tc.windows).At(at)
			got := fmt.Sprint(open, " ")
			if !until.IsZero() {
				got += until.Format(time.RFC3339Nano)
			}
			if want := fmt.Sprint(tc.open, " ", tc.until); got != want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, want)
			}
		})
	}
}

func TestWindows_Problem(t *testing.T) {
	t.Parallel()
	const fields = `; write five fields (minute, hour, day, month, weekday), such as "0 2 * * 6"`
	const zones = ` is not in the IANA time zone database; write one such as Europe/Berlin, or leave it out for UTC`
	cases := map[string]struct {
		reason  string
		windows []v1alpha1.Window
		want    string
	}{
		"good":         {"no problem", []v1alpha1.Window{win("0 2 * * sat", "Asia/Kolkata", time.Hour), win("@weekly", "", time.Hour)}, ""},
		"nonsense":     {"the message names the field", []v1alpha1.Window{win("x", "", time.Hour)}, `f[0].schedule: "x" cannot be parsed (expected exactly 5 fields, found 1: [x])` + fields},
		"seconds":      {"a schedule has no field for seconds", []v1alpha1.Window{win("0 0 2 * * 6", "", time.Hour)}, `f[0].schedule: "0 0 2 * * 6" cannot be parsed (expected exactly 5 fields, found 6: [0 0 2 * * 6])` + fields},
		"out of range": {"the message names the range", []v1alpha1.Window{win("0 24 * * *", "", time.Hour)}, `f[0].schedule: "0 24 * * *" cannot be parsed (end of range (24) above maximum (23): 24)` + fields},
		"every":        {"@every would start again at each call", []v1alpha1.Window{win("@every 1h", "", time.Hour)}, `f[0].schedule: "@every 1h" has no fixed start` + fields},
		"empty field":  {"cron accepts an empty field, which matches no time", []v1alpha1.Window{win("0 , * * *", "", time.Hour)}, `f[0].schedule: "0 , * * *" has an empty field` + fields},
		"no such day":  {"the window would never open", []v1alpha1.Window{win("0 0 31 2 *", "", time.Hour)}, `f[0].schedule: "0 0 31 2 *" names no day that there is` + fields},
		"zone inside":  {"time zones have a field of their own", []v1alpha1.Window{win("TZ=Asia/Tokyo 0 0 * * *", "", time.Hour)}, `f[0].schedule: "TZ=Asia/Tokyo 0 0 * * *" names a time zone; write it into timeZone instead`},
		"zone alone":   {"cron panics at a zone without fields", []v1alpha1.Window{win("CRON_TZ=UTC", "", time.Hour)}, `f[0].schedule: "CRON_TZ=UTC" names a time zone; write it into timeZone instead`},
		"unknown zone": {"the message names the index", []v1alpha1.Window{win("@daily", "", time.Hour), win("@daily", "Europe/Atlantis", time.Hour)}, `f[1].timeZone: "Europe/Atlantis"` + zones},
		"local zone":   {"Local depends on the machine", []v1alpha1.Window{win("@daily", "Local", time.Hour)}, `f[0].timeZone: "Local"` + zones},
		"no duration":  {"the window would close at once", []v1alpha1.Window{{Schedule: "@daily"}}, "f[0].duration: must be more than 0s; write one such as 2h"},
		"two":          {"the message names both", []v1alpha1.Window{win("@daily", "", 0), win("@daily", "Mars", time.Hour)}, `f[0].duration: must be more than 0s; write one such as 2h; f[1].timeZone: "Mars"` + zones},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ParseWindows("f", tc.windows).Problem()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUpdateWindows(t *testing.T) {
	t.Parallel()
	if open, _ := UpdateWindows(&v1alpha1.PoolSpec{}).At(time.Unix(0, 0)); !open {
		t.Error("the windows of a pool without a policy are shut")
	}
	w := UpdateWindows(&v1alpha1.PoolSpec{Update: &v1alpha1.Update{Windows: []v1alpha1.Window{win("x", "", time.Hour)}}})
	if !strings.HasPrefix(w.Problem(), "spec.update.windows[0].schedule: ") {
		t.Errorf("the message does not name the field: %s", w.Problem())
	}
}

// TestWindows_byTheMinute: At agrees with a search that tries every minute.
func TestWindows_byTheMinute(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns"}
	field := func(lowest, highest int) *rapid.Generator[string] {
		n := rapid.IntRange(lowest, highest)
		return rapid.OneOf(rapid.Just("*"), rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(n.Draw(t, "n")) }),
			rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("*/%d", rapid.IntRange(1, 9).Draw(t, "step")) }))
	}
	rapid.Check(t, func(t *rapid.T) {
		var list []v1alpha1.Window
		for range rapid.IntRange(1, 3).Draw(t, "windows") {
			text := field(0, 59).Draw(t, "minute") + " " + field(0, 4).Draw(t, "hour") + " * * " + field(0, 6).Draw(t, "day")
			minutes := rapid.OneOf(rapid.IntRange(1, 200), rapid.IntRange(1, 1500)).Draw(t, "duration")
			list = append(list, win(text, rapid.SampledFrom(zones).Draw(t, "zone"), time.Duration(minutes)*time.Minute))
		}
		w := ParseWindows("f", list)
		if w.Problem() != "" {
			t.Fatal(w.Problem())
		}
		day := rapid.SampledFrom([]string{"2026-03-08", "2026-03-29", "2026-04-05", "2026-04-24", "2026-10-04", "2026-10-25", "2026-10-30", "2026-11-01", "2026-06-01"}).Draw(t, "day")
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Duration(rapid.IntRange(-24*60, 48*60).Draw(t, "minute")) * time.Minute)
		open, until := w.At(at)
		if want := openByMinute(w, at); want != open {
			t.Fatalf("open at %s: got %t, want %t", at, open, want)
		}
		end := at.Add(3 * time.Hour)
		for now := at; now.Before(end) && (until.IsZero() || now.Before(until)); now = now.Add(time.Minute) {
			if openByMinute(w, now) != open {
				t.Fatalf("open changes at %s, but until is %s", now, until)
			}
		}
		if !open && until.Before(end) && !openByMinute(w, until) {
			t.Fatalf("no window opens at %s, which is until", until)
		}
	})
}

// openByMinute reports whether a window is open: it tries every minute at which
// one could have opened.
func openByMinute(w Windows, at time.Time) bool {
	for _, v := range w.valid {
		for opens := at; opens.After(at.Add(-v.duration)); opens = opens.Add(-time.Minute) {
			if opensAt(&v, opens) {
				return true
			}
		}
	}
	return false
}

// opensAt reports whether the window opens in that minute: the local time is one
// of the schedule, or the clocks have just skipped one and the hour is not *.
func opensAt(w *window, at time.Time) bool {
	match := func(c time.Time) bool {
		return w.schedule.Minute>>c.Minute()&1 == 1 && w.schedule.Hour>>c.Hour()&1 == 1 && w.schedule.Dow>>int(c.Weekday())&1 == 1
	}
	clock := func(t time.Time) time.Time {
		t = t.In(w.zone)
		return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
	}
	now := clock(at)
	if match(now) {
		return true
	}
	for skipped := clock(at.Add(-time.Minute)).Add(time.Minute); skipped.Before(now); skipped = skipped.Add(time.Minute) {
		if match(skipped) && w.schedule.Hour>>63 == 0 {
			return true
		}
	}
	return false
}

// FuzzWindow: no text makes the parser panic or hang, and an accepted window opens.
func FuzzWindow(f *testing.F) {
	for _, text := range []string{"0 2 * * 6", "@daily", "@every 1s", "TZ=UTC", "*/5 0-4,6 ? jan-mar/2 sun", "0 0 29 2 *", "0 0 31 2 *", ", , , , ,", "59/99999999999 * * * *"} {
		f.Add(text, "Europe/Berlin", int64(time.Hour), int64(1_780_000_000))
		f.Add(text, "America/New_York", int64(40_000*time.Hour), int64(2_240_000_000))
	}
	f.Fuzz(func(t *testing.T, text, zone string, duration, unix int64) {
		at := time.Unix(unix%(1<<33), 0) // 1697 to 2242
		w := ParseWindows("f", []v1alpha1.Window{win(text, zone, time.Duration(duration))})
		open, until := w.At(at)
		if w.Problem() != "" {
			if open || !until.IsZero() {
				t.Fatalf("open %t until %s, but it is invalid: %s", open, until, w.Problem())
			}
			return
		}
		if !until.After(at) {
			t.Fatalf("%q: open %t at %s until %s", text, open, at, until)
		}
		if !open {
			if now, _ := w.At(until); !now {
				t.Fatalf("%q does not open at %s", text, until)
			}
		}
	})
}

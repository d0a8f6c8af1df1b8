package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// Windows are recurring times. Windows is open while at least one of them is.
// The zero value has no windows and is always open.
type Windows struct {
	valid    []window
	problems []string
}

// UpdateWindows returns the windows in which a pool's disruptions for drift may
// start.
func UpdateWindows(spec *v1alpha1.PoolSpec) Windows {
	if spec.Update == nil {
		return Windows{}
	}
	return ParseWindows("spec.update.windows", spec.Update.Windows)
}

// ParseWindows reads the windows of a field. A window that is invalid stays
// closed, and Problem names it.
func ParseWindows(field string, list []v1alpha1.Window) Windows {
	var w Windows
	for i := range list {
		v, err := parseWindow(&list[i])
		if err != nil {
			w.problems = append(w.problems, fmt.Sprintf("%s[%d].%v", field, i, err))
			continue
		}
		w.valid = append(w.valid, v)
	}
	return w
}

// Problem names each invalid window by its field, with the reason and the cure;
// it is empty if all windows are valid.
func (w Windows) Problem() string { return strings.Join(w.problems, "; ") }

// openSteps bounds how far ahead At follows windows that touch one another.
const openSteps = 24

// At reports whether any window is open at the time, and until when that holds;
// until is zero for ever. A window that opens at t with duration d is open in
// [t, t+d). If all windows are shut, until is exactly when the next one opens.
// If one is open, until is when the last of the windows that overlap or touch
// closes. For a long series of windows it is earlier: call At again then.
func (w Windows) At(now time.Time) (open bool, until time.Time) {
	if len(w.valid) == 0 {
		return len(w.problems) == 0, time.Time{}
	}
	until = now.UTC()
	for range openSteps {
		end := w.end(until)
		if !end.After(until) {
			break
		}
		open, until = true, end
	}
	if open {
		return true, until
	}
	return false, w.next(until)
}

// end returns when the last of the windows that are open at the time closes;
// zero if none is open.
func (w Windows) end(at time.Time) time.Time {
	var end time.Time
	for i := range w.valid {
		v := &w.valid[i]
		if opened := v.last(at); !opened.IsZero() && opened.Add(v.duration).After(end) {
			end = opened.Add(v.duration)
		}
	}
	return end
}

// next returns when the next window opens after the time; zero for never.
func (w Windows) next(at time.Time) time.Time {
	var first time.Time
	for i := range w.valid {
		if next := w.valid[i].next(at); !next.IsZero() && (first.IsZero() || next.Before(first)) {
			first = next
		}
	}
	return first
}

// window is a valid window.
type window struct {
	// schedule takes and returns local time written as UTC; see wall.
	schedule *cron.SpecSchedule
	duration time.Duration
	zone     *time.Location
}

// next returns when the window opens after the time; zero for never.
//
// The schedule is in local time. If the clocks go back, a time in the repeated
// hour opens the window twice. If they go forward over a time of the schedule,
// the window opens at the change, so that a nightly window is not lost; a
// schedule with * for the hour waits for its next time instead.
func (w *window) next(at time.Time) time.Time {
	at = at.In(w.zone)
	_, offset := at.Zone()
	since := wall(at, offset)
	shows := w.after(since)
	for !shows.IsZero() {
		opens := shows.Add(-seconds(offset)).UTC()
		_, change := at.ZoneBounds()
		if !change.IsZero() && !change.After(at) {
			// Beyond its table of zones, Go gives a wrong ZoneBounds for the last day
			// of a leap year: the end of the day before. Nothing changes on that day.
			change = at.Add(24 * time.Hour)
		}
		if change.IsZero() || opens.Before(change) {
			return opens
		}
		_, changed := change.Zone()
		jump := wall(change, changed)
		switch {
		case shows.Before(jump) && w.schedule.Hour&star == 0:
			return change.UTC() // the clocks skip it
		case shows.Before(jump), jump.Before(since):
			shows = w.after(jump.Add(-1)) // the instant of the change has the new offset
		}
		at, offset, since = change, changed, jump
	}
	return time.Time{}
}

// last returns the latest time at which the window opened, if it is still open
// at the time; zero if it is not.
func (w *window) last(at time.Time) time.Time {
	next := func(since time.Time) (time.Time, bool) {
		next := w.next(since)
		return next, !next.IsZero() && !next.After(at)
	}
	opened, ok := next(at.Add(-w.duration))
	if !ok {
		return time.Time{}
	}
	for late := at; ; { // bisect: the window does not open after late
		later, ok := next(opened)
		if !ok {
			return opened
		}
		half := later.Add(late.Sub(later) / 2)
		if opened, ok = next(half); !ok {
			opened, late = later, half
		}
	}
}

// searched is how many years ahead cron looks for a time. The next 29 February
// may be eight years away, so after looks twice.
const searched = 5

// after returns the schedule's next local time; zero for never.
func (w *window) after(since time.Time) time.Time {
	if next := w.schedule.Next(since); !next.IsZero() {
		return next
	}
	return w.schedule.Next(since.AddDate(searched, 0, 0))
}

// wall returns the local time at an offset from UTC in seconds, written as UTC.
func wall(at time.Time, offset int) time.Time { return at.UTC().Add(seconds(offset)) }

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// star is the bit that cron sets for a field that is *.
const star = 1 << 63

const cronFields = `write five fields (minute, hour, day, month, weekday), such as "0 2 * * 6"`

var fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func parseWindow(v *v1alpha1.Window) (window, error) {
	schedule, err := parseSchedule(v.Schedule)
	if err != nil {
		return window{}, fmt.Errorf("schedule: %w", err)
	}
	if v.Duration == nil || v.Duration.Duration <= 0 {
		return window{}, errors.New("duration: must be more than 0s; write one such as 2h")
	}
	name := value(v.TimeZone, "UTC")
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return window{}, fmt.Errorf("timeZone: %q is not in the IANA time zone database; write one such as Europe/Berlin, or leave it out for UTC", name)
	}
	return window{schedule, v.Duration.Duration, zone}, nil
}

func parseSchedule(text string) (*cron.SpecSchedule, error) {
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		return nil, fmt.Errorf("%q names a time zone; write it into timeZone instead", text)
	}
	parsed, err := fiveFields.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q cannot be parsed (%w); %s", text, err, cronFields)
	}
	s, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%q has no fixed start; %s", text, cronFields)
	}
	s.Location = time.UTC
	if slices.Contains([]uint64{s.Minute, s.Hour, s.Dom, s.Month, s.Dow}, 0) {
		return nil, fmt.Errorf("%q has an empty field; %s", text, cronFields)
	}
	if s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%q names no day that there is; %s", text, cronFields)
	}
	return s, nil
}

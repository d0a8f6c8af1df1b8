package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/internal/body"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// second is the time n seconds after the epoch; 0 is never.
func second(n int) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return epoch.Add(time.Duration(n) * time.Second)
}

func TestScript_At(t *testing.T) {
	for name, c := range map[string]struct {
		s    script
		want []body.State // at second 1, 2, …
	}{
		"boots":               {script{ReadyAt: second(3)}, []body.State{body.Booting, body.Booting, body.Ready, body.Ready}},
		"boots for ever":      {script{}, []body.State{body.Booting, body.Booting, body.Booting}},
		"crashes":             {script{ReadyAt: second(2), EndsAt: second(3)}, []body.State{body.Booting, body.Ready, body.Exited}},
		"crashes at once":     {script{ReadyAt: second(2), EndsAt: second(2)}, []body.State{body.Booting, body.Exited}},
		"told":                {script{ReadyAt: second(1), GoneAt: second(3)}, []body.State{body.Stopping, body.Stopping, body.Absent}},
		"told when ended":     {script{ReadyAt: second(1), EndsAt: second(1), GoneAt: second(3)}, []body.State{body.Stopping, body.Stopping, body.Absent}},
		"sick":                {script{ReadyAt: second(1), SickSince: second(2)}, []body.State{body.Down, body.Down}},
		"sick before ready":   {script{ReadyAt: second(3), SickSince: second(2)}, []body.State{body.Booting, body.Booting, body.Booting}},
		"sick and it crashes": {script{ReadyAt: second(1), SickSince: second(2), EndsAt: second(3)}, []body.State{body.Down, body.Down, body.Exited}},
	} {
		for i, want := range c.want {
			if got := c.s.at(second(i + 1)); got != want {
				t.Errorf("%s: at %d it is %s, want %s", name, i+1, got, want)
			}
		}
	}
}

// Between a time and what next says, nothing changes by itself; that is what
// lets one timer tell of everything.
func TestScript_Next(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const end = 12
		moment := rapid.Map(rapid.IntRange(0, end), second)
		s := script{
			ReadyAt: moment.Draw(t, "ready"), EndsAt: moment.Draw(t, "ends"), SickSince: moment.Draw(t, "sick"),
			DrainedAt: moment.Draw(t, "drained"), GoneAt: moment.Draw(t, "gone"),
		}
		if s.SickSince.After(second(1)) {
			s.SickSince = second(1) // it is written when it happens, never before
		}
		next := s.next(second(1))
		for n := 2; n <= end+1; n++ {
			if !next.IsZero() && !second(n).Before(next) {
				return
			}
			if s.at(second(n)) != s.at(second(1)) || s.drained(second(n)) != s.drained(second(1)) {
				t.Fatalf("at %d it is %s, at 1 %s, and next is %v: %+v", n, s.at(second(n)), s.at(second(1)), next, s)
			}
		}
	})
}

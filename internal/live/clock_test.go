package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)

// Timers go off at their times, in their order, and whatever they begin counts
// from there.
func TestClock_Move(t *testing.T) {
	t.Parallel()
	c := NewClock(noon)
	var rang []string
	note := func(name string) func() {
		return func() { rang = append(rang, fmt.Sprint(name, " ", c.Since(noon))) }
	}
	c.AfterFunc(2*time.Second, note("b"))
	c.AfterFunc(time.Second, func() {
		note("a")()
		c.AfterFunc(time.Second, note("begun by a"))
		c.AfterFunc(-time.Hour, note("at once"))
	})
	stopped := c.AfterFunc(time.Second, note("stopped"))
	reset := c.AfterFunc(time.Second, note("reset"))
	if !stopped.Stop() || stopped.Stop() {
		t.Error("a timer stops once")
	}
	if !reset.Reset(3 * time.Second) {
		t.Error("a timer that is reset was on")
	}
	timer := c.NewTimer(3 * time.Second)
	end := noon.Add(time.Minute)
	for c.move(end) {
		continue
	}
	want := []string{"a 1s", "at once 1s", "b 2s", "begun by a 2s", "reset 3s"}
	if diff := cmp.Diff(want, rang); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if at := <-timer.C(); !at.Equal(noon.Add(3 * time.Second)) {
		t.Errorf("the timer's channel says %s", at)
	}
	if !c.Now().Equal(end) || !c.next().IsZero() {
		t.Errorf("it is %s, and something rings at %s", c.Now(), c.next())
	}
	c.move(noon)
	if !c.Now().Equal(end) {
		t.Errorf("the clock went back to %s", c.Now())
	}
}

package live

import (
	"container/heap"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock tells the time of a story. It stands still but where it is moved, by
// whoever plays the story; timers go off in the order of their times, each at
// its own, in the goroutine that moves the clock.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers timers
	seq    int
}

var _ clock.WithDelayedExecution = (*Clock)(nil)

// NewClock gives a clock that shows the time.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Since implements clock.PassiveClock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// AfterFunc implements clock.WithDelayedExecution. A time that is over already
// is over at the next move of the clock.
func (c *Clock) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	t := &timer{clock: c, at: c.now.Add(max(0, d)), seq: c.seq, do: f}
	heap.Push(&c.timers, t)
	return t
}

// NewTimer implements clock.Clock.
func (c *Clock) NewTimer(d time.Duration) clock.Timer {
	rings := make(chan time.Time, 1)
	t, _ := c.AfterFunc(d, func() {
		select {
		case rings <- c.Now():
		default:
		}
	}).(*timer)
	t.rings = rings
	return t
}

// After implements clock.Clock.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Sleep implements clock.Clock.
func (c *Clock) Sleep(d time.Duration) { <-c.After(d) }

// Tick implements clock.Clock. It ticks once: nobody may rely on more.
func (c *Clock) Tick(d time.Duration) <-chan time.Time { return c.After(d) }

// next is when the next timer goes off; zero if there is none.
func (c *Clock) next() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 {
		return time.Time{}
	}
	return later(c.timers[0].at, c.now)
}

// move moves the clock to the time, unless a timer goes off before it: then
// that is how far it moves. It tells whether any did.
func (c *Clock) move(to time.Time) bool {
	c.mu.Lock()
	to = later(to, c.now)
	if len(c.timers) > 0 && !c.timers[0].at.After(to) {
		to = later(c.timers[0].at, c.now)
	}
	c.now = to
	var due []*timer
	for len(c.timers) > 0 && !c.timers[0].at.After(to) {
		t, _ := heap.Pop(&c.timers).(*timer)
		due = append(due, t)
	}
	c.mu.Unlock()
	for _, t := range due {
		t.do()
	}
	return len(due) > 0
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// timer implements clock.Timer.
type timer struct {
	clock *Clock
	at    time.Time
	seq   int
	// place is where it is among the clock's; -1 if it is not.
	place int
	do    func()
	rings chan time.Time
}

func (t *timer) C() <-chan time.Time { return t.rings }

func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.place < 0 {
		return false
	}
	heap.Remove(&t.clock.timers, t.place)
	return true
}

func (t *timer) Reset(d time.Duration) bool {
	was := t.Stop()
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.clock.seq++
	t.at, t.seq = t.clock.now.Add(max(0, d)), t.clock.seq
	heap.Push(&t.clock.timers, t)
	return was
}

// timers implements heap.Interface, the next one first.
type timers []*timer

func (l timers) Len() int { return len(l) }

func (l timers) Less(i, j int) bool {
	if !l[i].at.Equal(l[j].at) {
		return l[i].at.Before(l[j].at)
	}
	return l[i].seq < l[j].seq
}

func (l timers) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].place, l[j].place = i, j
}

func (l *timers) Push(x any) {
	t, _ := x.(*timer)
	t.place = len(*l)
	*l = append(*l, t)
}

func (l *timers) Pop() any {
	last := len(*l) - 1
	t := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	t.place = -1
	return t
}

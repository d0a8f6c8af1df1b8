package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// story is what the demo tells: a line a step, with the time since it began.
type story struct {
	mu    sync.Mutex
	out   io.Writer
	now   func() time.Time
	start time.Time
}

func newStory(out io.Writer, now func() time.Time) *story {
	return &story{out: out, now: now, start: now()}
}

// tell writes a line.
func (s *story) tell(format string, args ...any) { s.write("   ", format, args...) }

// title writes a line that begins a part.
func (s *story) title(format string, args ...any) {
	s.mu.Lock()
	_, _ = fmt.Fprintln(s.out)
	s.mu.Unlock()
	s.write("== ", format, args...)
}

// kept writes a promise that was checked and held.
func (s *story) kept(format string, args ...any) { s.write("ok ", format, args...) }

func (s *story) write(mark, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.out, "%5.1fs %s%s\n", s.now().Sub(s.start).Seconds(), mark, fmt.Sprintf(format, args...))
}

// elapsed is the time since it began.
func (s *story) elapsed() time.Duration { return s.now().Sub(s.start) }

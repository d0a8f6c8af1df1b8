//go:build linux

package process

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// defaultGrace is how long a body may take to end until it is killed.
const defaultGrace = 10 * time.Second

// slot is a durable place for bodies, one after the other.
type slot struct {
	key slotKey
	dir string
	// damage says why the record cannot be read. Nothing is done then, and
	// nothing is told.
	damage error

	mu     sync.Mutex
	record record
	life   *life  // of record.Body; nil without
	note   string // one line about what the body waits for
}

// life is one body from its start, or its adoption, to its end.
type life struct {
	// body is the record's Body. Under slot.mu but for what never changes.
	body   *bodyRecord
	group  group
	output *output
	told   chan struct{} // closed once it is to go
	again  chan struct{} // closed once it is to end and start anew
	next   chan struct{} // closed once it has started anew
	// check is the probe for the body's readiness; retune has it looked up anew.
	check  probe
	retune func()
	failed int  // probes in a row
	rests  bool // it has ended, and is to start anew
}

// observe tells how the slot's body is.
func (s *slot) observe() body.Observation {
	b := s.record.Body
	if b == nil {
		return body.Observation{State: body.Absent}
	}
	o := body.Observation{
		State: body.Booting, Message: s.note, UID: b.UID, Incarnation: b.Incarnation,
		Revision: b.Revision, Address: b.Address, BornAt: b.BornAt,
	}
	switch {
	case b.ToldAt != nil:
		o.State = body.Stopping
	case b.UpdateAt != nil:
		switch {
		case s.life != nil && s.life.rests:
			o.Message = "it has ended, and is to start anew"
		case s.note == "":
			o.Message = "it ends, to start anew"
		default:
			o.Message = "it ends, to start anew: " + s.note
		}
	case b.Exit != "":
		o.State, o.Message = body.Exited, b.Exit
	case b.Ready && b.Down:
		o.State = body.Down
	case b.Ready:
		o.State, o.Message = body.Ready, ""
	}
	o.Message = clip(o.Message, maxMessage)
	return o
}

const maxMessage = 1024

// follow begins to follow the body of the slot; leader is nil when it has
// ended. It takes the leader over unless it returns an error.
func (k *Kind) follow(s *slot, leader *handle) error {
	b := s.record.Body
	l := &life{
		body: b, told: make(chan struct{}), again: make(chan struct{}), next: make(chan struct{}), retune: func() {},
		output: newOutput(s.dir, k.options.LogSize, k.options.LogKeep),
		group:  group{leader: b.Leader, handle: leader, body: b.UID},
	}
	if b.ToldAt != nil {
		close(l.told)
	}
	if b.UpdateAt != nil {
		close(l.again)
	}
	if err := k.tune(s, l); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return errClosed
	}
	if before := s.life; before != nil {
		close(before.next)
	}
	s.life, s.note = l, ""
	k.lives.Go(func() { k.live(s, l) })
	return nil
}

// tune has the body judged by its readiness as it is now.
func (k *Kind) tune(s *slot, l *life) error {
	b := l.body
	check, err := newProbe(b.Readiness, s.record.Ports, b.Env, s.work(b), l.output)
	if err != nil {
		return err
	}
	l.check = check
	l.output.watch(nil, nil)
	if r := b.Readiness; r != nil && r.Output != nil && !b.Ready {
		l.output.watch(regexp.MustCompile(r.Output.Match).Match, func() { k.probed(s, l, r, nil) })
	}
	l.retune()
	return nil
}

// live follows a body: it serves until it ends by itself, is told to go or to
// start anew; then everything that is left of it is ended; once it was told to
// go, it is cleared away, or rests until it has started anew. When the kind is
// closed, live returns wherever it is, and the next one takes up at the same
// place.
func (k *Kind) live(s *slot, l *life) {
	if h := l.group.handle; h != nil {
		defer h.close()
	}
	rotating, stop := context.WithCancel(k.ctx)
	var logs sync.WaitGroup
	logs.Go(func() { l.output.rotate(rotating, k.options.LogCheck) })
	defer logs.Wait()
	defer stop()

	k.serve(s, l)
	if k.ctx.Err() != nil || k.end(s, l) != nil {
		return
	}
	select {
	case <-k.ctx.Done():
		return
	case <-l.told:
	case <-l.again:
	}
	stop()
	logs.Wait()
	if !k.rest(s, l) {
		return
	}
	k.clear(s, l)
}

// rest waits until the body, which has ended, is told to go. It returns false
// once it has started anew, or the kind is closed.
func (k *Kind) rest(s *slot, l *life) bool {
	select {
	case <-l.told:
		return true
	default:
	}
	k.reached("rests")
	s.mu.Lock()
	l.rests, s.note = true, ""
	s.mu.Unlock()
	k.notify(s.key.namespace, s.key.member)
	select {
	case <-k.ctx.Done():
		return false
	case <-l.next:
		if h := l.group.handle; h != nil {
			h.reap()
		}
		return false
	case <-l.told:
		return true
	}
}

// serve returns when the leader has ended, the body is told to go or to start
// anew, or the kind is closed.
func (k *Kind) serve(s *slot, l *life) {
	h := l.group.handle
	if h == nil || h.ended() {
		k.exited(s, l)
		return
	}
	ctx, cancel := context.WithCancel(k.ctx)
	var both sync.WaitGroup
	gone := make(chan struct{})
	both.Go(func() {
		if h.wait() == nil {
			close(gone)
		}
	})
	both.Go(func() { k.probe(ctx, s, l) })
	select {
	case <-gone:
		k.exited(s, l)
	case <-l.told:
	case <-l.again:
	case <-ctx.Done():
	}
	cancel()
	h.stopWaiting()
	both.Wait()
}

// probe judges the body until ctx ends, each time anew that it is retuned.
func (k *Kind) probe(ctx context.Context, s *slot, l *life) {
	for ctx.Err() == nil {
		tuned, cancel := context.WithCancel(ctx)
		s.mu.Lock()
		r, check, done := l.body.Readiness, l.check, l.body.Ready
		l.retune = cancel
		s.mu.Unlock()
		if r != nil && (r.Output == nil || !done) {
			k.probeBy(tuned, s, l, r, check)
		}
		<-tuned.Done()
		cancel()
	}
}

// probeBy judges the body until ctx ends, or its output has told.
func (k *Kind) probeBy(ctx context.Context, s *slot, l *life, r *v1alpha1.Readiness, check probe) {
	every := period(r)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		once, cancel := context.WithTimeout(ctx, probeTimeout(every))
		err := check(once)
		cancel()
		if ctx.Err() != nil {
			return
		}
		k.probed(s, l, r, err)
		if r.Output != nil && err == nil {
			return // it stays ready as long as it runs
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// probed notes the outcome of a probe by the readiness, unless the body is judged
// by another one by now.
func (k *Kind) probed(s *slot, l *life, by *v1alpha1.Readiness, err error) {
	said := ""
	if err != nil {
		said = l.output.lastLine()
	}
	s.mu.Lock()
	before := s.observe().State
	b := l.body
	if b.Readiness != by {
		s.mu.Unlock()
		return
	}
	if err == nil {
		l.failed = 0
		s.note = ""
	} else {
		l.failed++
		s.note = "not ready: " + printable(err.Error())
		if said != "" {
			s.note += "; last line of its output: " + said
		}
	}
	ready, down := b.Ready, b.Down
	b.Ready = b.Ready || err == nil
	b.Down = b.Ready && err != nil && (b.Down || l.failed >= failuresUntilDown)
	if ready != b.Ready || down != b.Down {
		// If it cannot be recorded, the next one probes anew.
		_ = s.record.save(s.dir)
	}
	after := s.observe().State
	s.mu.Unlock()
	if before != after {
		k.notify(s.key.namespace, s.key.member)
	}
}

// exited notes that the leader has ended, unless it was told to.
func (k *Kind) exited(s *slot, l *life) {
	var text string
	if h := l.group.handle; h != nil {
		text = "ended with " + describe(h.status())
	} else {
		text = "ended while nobody watched"
		if l.body.Leader.World != k.world {
			text = "ended when the machine went down"
		}
	}
	if line := l.output.lastLine(); line != "" {
		text += ": " + line
	}
	never := !s.ran()
	s.mu.Lock()
	b := l.body
	switch {
	case b.ToldAt != nil || b.UpdateAt != nil || b.Exit != "":
	case never:
		// It waited at the gate for somebody who died. There was no body.
		now := time.Now()
		b.ToldAt = &now
		close(l.told)
	default:
		b.Exit = text
		_ = s.record.save(s.dir)
	}
	s.mu.Unlock()
	k.notify(s.key.namespace, s.key.member)
}

// ran tells whether the program of the slot's last body was let go.
func (s *slot) ran() bool {
	info, err := os.Stat(filepath.Join(s.dir, markFile))
	return err != nil || info.Size() > 0
}

// end ends what is left of the body: as the template has it, the whole of it
// is told and then killed. It returns an error if the kind is closed meanwhile.
func (k *Kind) end(s *slot, l *life) error {
	s.mu.Lock()
	stop, since := l.body.Stop, time.Now()
	for _, told := range []*time.Time{l.body.ToldAt, l.body.UpdateAt} {
		if told != nil && told.Before(since) {
			since = *told
		}
	}
	s.mu.Unlock()
	first, err := stopSignal(stop)
	if err != nil {
		first = unix.SIGTERM
	}
	return l.group.end(k.ctx, first, since.Add(grace(stop)), func(note string) {
		k.reached("signalled")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.note = note
	})
}

func grace(s *v1alpha1.Stop) time.Duration {
	if s == nil || s.Grace == nil {
		return defaultGrace
	}
	return s.Grace.Duration
}

// clear takes away what is left of a body whose processes have all ended. Its
// log stays until the next one.
func (k *Kind) clear(s *slot, l *life) {
	k.reached("ended")
	if h := l.group.handle; h != nil {
		h.reap()
	}
	// What cannot be removed now is when the next body is made.
	_ = s.removeBodyDirs()
	k.reached("removed")
	s.mu.Lock()
	s.record.Body, s.life, s.note = nil, nil, ""
	_ = s.record.save(s.dir)
	k.reached("cleared")
	s.mu.Unlock()
	k.notify(s.key.namespace, s.key.member)
}

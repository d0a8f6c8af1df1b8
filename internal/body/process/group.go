//go:build linux

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// markVariable is the environment variable that a body's processes inherit;
// its value is the body's UID.
const markVariable = "PAWL_BODY"

// group is all processes of one body: the leader, its session and process
// group, and whatever else carries the body's mark in its environment, such as
// a daemon that made itself a session of its own.
type group struct {
	leader identity
	// handle holds the leader; nil when it had ended before anybody held it.
	handle *handle
	body   string
}

// members gives a hold on each process of the body that has not ended. The
// caller closes them. An error means that they could not be told.
//
// A process belongs to the body when its environment carries the body's UID,
// or when its session or process group has the leader's number and that number
// still stands for the leader. Where it may have come to stand for somebody
// else, a number proves nothing: rather a process is left over than a foreign
// one killed.
func (g *group) members() ([]*handle, error) {
	pids, err := listPIDs()
	if err != nil {
		return nil, err
	}
	var found []*handle
	for _, pid := range pids {
		s, err := readStat(pid)
		if gone(err) || errors.Is(err, os.ErrPermission) || err == nil && !g.candidate(pid, s) {
			// Where others' processes are hidden, they are not ours either.
			continue
		}
		if err == nil {
			var h *handle
			if h, err = g.member(pid); h != nil {
				found = append(found, h)
			}
		}
		if err != nil && !gone(err) {
			closeAll(found)
			return nil, fmt.Errorf("look for the processes of body %s: %w", g.body, err)
		}
	}
	return found, nil
}

// candidate tells at little cost whether the process may belong to the body.
// What is older than the leader need not be looked at.
func (g *group) candidate(pid int, s stat) bool {
	return s.start >= g.leader.Start && pid != os.Getpid() && (g.numbered(s) || g.marked(pid))
}

// member gives a hold on the process that has the pid, or nil if it does not
// belong to the body or has ended. All that is looked at, is looked at while
// the hold is good, and so concerns one process.
func (g *group) member(pid int) (*handle, error) {
	h, s, err := openPID(pid)
	if err != nil {
		return nil, err
	}
	mine := g.marked(pid) || g.numbered(s) && g.handle != nil && g.handle.pinsNumber()
	if mine && h.unreaped() && !h.ended() {
		return h, nil
	}
	if mine && pid != g.leader.PID {
		// Where this process is the one that orphans are handed to.
		h.reap()
	}
	h.close()
	return nil, nil
}

func (g *group) numbered(s stat) bool {
	return s.session == g.leader.PID || s.pgrp == g.leader.PID
}

// marked tells whether the environment that the process was started with
// carries the body's UID. One that cannot be read does not.
func (g *group) marked(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	mark := []byte(markVariable + "=" + g.body + "\x00")
	return bytes.HasPrefix(b, mark) || bytes.Contains(b, append([]byte{0}, mark...))
}

// end ends every process of the body: first is sent at once, and SIGKILL from
// the deadline on to what is left. It returns nil once nothing is left, or the
// error of ctx; say is told what keeps it.
func (g *group) end(ctx context.Context, first unix.Signal, deadline time.Time, say func(string)) error {
	told := map[identity]bool{}
	sure := false
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		sig := first
		if !time.Now().Before(deadline) {
			sig = unix.SIGKILL
		}
		left, err := g.members()
		if err == nil && len(left) == 0 {
			if sure {
				return nil
			}
			// What forks and ends faster than it can be looked up is caught
			// in one step; then look again.
			sure = true
			g.kill()
			continue
		}
		sure = false
		if err == nil {
			err = g.signal(left, sig, told)
		}
		say(remaining(len(left), err))
		g.pause(ctx, left, min(wait, max(time.Until(deadline), 5*time.Millisecond)))
		closeAll(left)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// signal sends sig to each process: SIGKILL always, anything else once.
func (g *group) signal(left []*handle, sig unix.Signal, told map[identity]bool) error {
	if sig == unix.SIGKILL {
		g.kill()
	}
	var failed error
	for _, h := range left {
		if sig != unix.SIGKILL && told[h.identity] {
			continue
		}
		told[h.identity] = true
		if err := h.signal(sig); err != nil && !gone(err) {
			failed = errors.Join(failed, fmt.Errorf("signal process %d: %w", h.PID, err))
		}
	}
	return failed
}

// kill kills the leader's process group in one step, so that no fork escapes.
// What is not in that group, or where the kernel cannot, comes one by one.
func (g *group) kill() {
	if g.handle != nil {
		_ = g.handle.signalGroup(unix.SIGKILL)
	}
}

// pause waits for the first of the processes to end, at most d.
func (g *group) pause(ctx context.Context, left []*handle, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if len(left) > 0 {
		// All have to end, so it does not matter which one is waited for.
		stop := context.AfterFunc(ctx, left[0].close)
		defer stop()
		if left[0].wait() == nil {
			return
		}
	}
	<-ctx.Done()
}

// remaining is one line about what keeps a body from being gone.
func remaining(n int, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("waiting for %d of its processes to end", n)
}

func closeAll(hs []*handle) {
	for _, h := range hs {
		h.close()
	}
}

// listPIDs gives the pids of all processes.
func listPIDs() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	pids := make([]int, 0, len(names))
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

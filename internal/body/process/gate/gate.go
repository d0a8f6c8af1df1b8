//go:build linux

package gate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Command is what Start starts.
type Command struct {
	// Path is the program's absolute path; Args its arguments, the name first.
	// No string holds a NUL byte.
	Path string
	Args []string
	Env  []string
	// Dir is the working directory.
	Dir string
	// Stdin, Stdout and Stderr become the program's.
	Stdin, Stdout, Stderr *os.File
	// Mark gets one byte written just before the program takes over: the
	// evidence, for whoever comes later, that it was let go.
	Mark *os.File
}

// Held is a process that waits at the gate, the leader of a session of its
// own. End it with Go or Drop.
type Held struct {
	// PID is the pid that the program will have.
	PID int
	// PIDFD refers to it. It is the caller's to close.
	PIDFD int

	command        Command
	order, verdict *os.File
}

// The process at the gate is recognised by its only argument, and finds its
// files at these numbers.
const (
	name      = "pawl-gate"
	orderFD   = 3
	verdictFD = 4
	markFD    = 5
)

// Start makes a process wait at the gate. It returns an error of the system,
// such as EAGAIN, when there can be none.
func Start(c Command) (*Held, error) {
	orderR, orderW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = orderR.Close() }()
	verdictR, verdictW, err := os.Pipe()
	if err != nil {
		_ = orderW.Close()
		return nil, err
	}
	defer func() { _ = verdictW.Close() }()

	h := &Held{PIDFD: -1, command: c, order: orderW, verdict: verdictR}
	h.PID, err = syscall.ForkExec("/proc/self/exe", []string{name}, &syscall.ProcAttr{
		Dir:   c.Dir,
		Files: []uintptr{c.Stdin.Fd(), c.Stdout.Fd(), c.Stderr.Fd(), orderR.Fd(), verdictW.Fd(), c.Mark.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, PidFD: &h.PIDFD},
	})
	runtime.KeepAlive(c)
	if err != nil {
		h.Drop()
		return nil, fmt.Errorf("fork: %w", err)
	}
	return h, nil
}

// Drop ends the waiting process without running the program. The caller reaps
// it.
func (h *Held) Drop() {
	_ = h.order.Close()
	_ = h.verdict.Close()
}

// Go lets the program run, and returns once it has taken the place of the
// waiting process, or the error for which the system does not run it. In the
// latter case the process has ended, and the caller reaps it.
func (h *Held) Go() error {
	defer h.Drop()
	if _, err := h.order.Write(encode(h.command)); err != nil {
		return fmt.Errorf("let go: %w", err)
	}
	var errno [4]byte
	switch _, err := io.ReadFull(h.verdict, errno[:]); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("let go: %w", err)
	}
	return syscall.Errno(binary.LittleEndian.Uint32(errno[:]))
}

// encode gives the order: its length, then NUL-terminated strings: the path,
// then an argument each with "a" before it, a variable each with "e" before it.
func encode(c Command) []byte {
	b := make([]byte, 8, 4096)
	b = append(append(b, c.Path...), 0)
	for _, s := range c.Args {
		b = append(append(append(b, 'a'), s...), 0)
	}
	for _, s := range c.Env {
		b = append(append(append(b, 'e'), s...), 0)
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	return b
}

// decode reads an order. Only a whole one counts: its writer may have died.
func decode(r io.Reader) (c Command, err error) {
	var size [8]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return c, err
	}
	// Read what is there rather than allocate what a torn length asks for.
	n := binary.LittleEndian.Uint64(size[:])
	b, err := io.ReadAll(io.LimitReader(r, int64(min(n, 1<<30))))
	if err != nil {
		return c, err
	}
	if uint64(len(b)) != n || n == 0 || b[n-1] != 0 {
		return c, io.ErrUnexpectedEOF
	}
	fields := strings.Split(string(b[:n-1]), "\x00")
	c.Path = fields[0]
	for _, s := range fields[1:] {
		switch {
		case strings.HasPrefix(s, "a"):
			c.Args = append(c.Args, s[1:])
		case strings.HasPrefix(s, "e"):
			c.Env = append(c.Env, s[1:])
		default:
			return c, errors.New("malformed order")
		}
	}
	return c, nil
}

// init is the process at the gate. Its environment is empty, which no process
// started by a person has.
func init() {
	if len(os.Args) != 1 || os.Args[0] != name || len(os.Environ()) != 0 {
		return
	}
	c, err := decode(os.NewFile(orderFD, "order"))
	if err != nil {
		unix.Exit(0)
	}
	// Nothing that is not the program's reaches it: no files of whoever
	// started us, no signal ignored or blocked because a shell ran us in the
	// background.
	_ = unix.CloseRange(orderFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	for _, fd := range []int{orderFD, verdictFD, markFD} {
		unix.CloseOnExec(fd)
	}
	_, _ = unix.Write(markFD, []byte{'1'})
	resetSignals()
	err = syscall.Exec(c.Path, c.Args, c.Env)
	_, _ = fmt.Fprintf(os.Stderr, "exec %s: %v\n", c.Path, err)
	var errno [4]byte
	if n, ok := errors.AsType[syscall.Errno](err); ok {
		binary.LittleEndian.PutUint32(errno[:], uint32(n))
	}
	_, _ = unix.Write(verdictFD, errno[:])
	unix.Exit(127)
}

//go:build linux

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// identity says which process is meant, for as long as the disk keeps it. A
// pid alone is used again; a pid together with its start time, counted in
// ticks since the machine started, is not, on that machine since that start
// and among the pids of that namespace.
type identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
	World string `json:"world"`
}

// world names this start of this machine and this namespace of pids.
func world() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "", err
	}
	return string(bytes.TrimSpace(boot)) + " " + ns, nil
}

// stat is what is needed of /proc/PID/stat.
type stat struct {
	pgrp, session int
	start         uint64
}

// readStat reads /proc/PID/stat; see proc_pid_stat(5). The error is
// os.ErrNotExist or ESRCH where there is no such process.
func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// parseStat parses a line of /proc/PID/stat. The name of the program, its
// second field, may hold anything, also blanks and parentheses.
func parseStat(b []byte) (s stat, err error) {
	malformed := fmt.Errorf("malformed stat %q", b)
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return s, malformed
	}
	const first, pgrp, session, start = 3, 5, 6, 22 // numbers of fields
	f := bytes.Fields(b[i+1:])
	if len(f) <= start-first {
		return s, malformed
	}
	var err1, err2, err3 error
	s.pgrp, err1 = strconv.Atoi(string(f[pgrp-first]))
	s.session, err2 = strconv.Atoi(string(f[session-first]))
	s.start, err3 = strconv.ParseUint(string(f[start-first]), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return stat{}, malformed
	}
	return s, nil
}

// errGone says that a process is not there any more.
var errGone = errors.New("process is gone")

// gone tells whether err, of the system or of a read below /proc, says that
// the process is not there.
func gone(err error) bool {
	return errors.Is(err, errGone) || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// handle is a hold on one process that never comes to mean another: a pidfd.
// Signals go through it, so a pid that was used again is never hit.
type handle struct {
	identity
	file *os.File
	raw  syscall.RawConn
}

// newHandle takes over pidfd, which refers to the process id. It waits without
// a thread: pidfds can be polled.
func newHandle(id identity, pidfd int) (*handle, error) {
	if err := unix.SetNonblock(pidfd, true); err != nil {
		_ = unix.Close(pidfd)
		return nil, err
	}
	h := &handle{identity: id, file: os.NewFile(uintptr(pidfd), "pidfd")}
	// An error here says that the poller has not taken it.
	err := h.file.SetReadDeadline(time.Time{})
	if err == nil {
		h.raw, err = h.file.SyscallConn()
	}
	if err != nil {
		h.close()
		return nil, fmt.Errorf("watch process %d: %w", id.PID, err)
	}
	return h, nil
}

// openPID gives a hold on the process that has the pid now, with what stat
// says of it, or errGone. Both are of one process: the hold is taken first and
// was still good after stat was read, so the pid was its own all the while.
func openPID(pid int) (*handle, stat, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		// EINVAL and ENOENT: there is a thread of that number, but no process.
		return nil, stat{}, errGone
	case err != nil:
		return nil, stat{}, fmt.Errorf("pidfd of %d: %w", pid, err)
	}
	h, err := newHandle(identity{PID: pid}, fd)
	if err != nil {
		return nil, stat{}, err
	}
	s, err := readStat(pid)
	if err == nil && !h.unreaped() {
		err = errGone
	}
	if err != nil {
		h.close()
		if gone(err) {
			err = errGone
		}
		return nil, stat{}, err
	}
	h.Start = s.start
	return h, s, nil
}

// openIdentity gives a hold on the process id, or errGone. What has only its
// pid is another process, and left alone.
func openIdentity(id identity) (*handle, error) {
	w, err := world()
	if err != nil {
		return nil, err
	}
	if id.World != w {
		return nil, errGone
	}
	h, s, err := openPID(id.PID)
	if err != nil {
		return nil, err
	}
	if s.start != id.Start {
		h.close()
		return nil, errGone
	}
	h.identity = id
	return h, nil
}

// close lets go of the process, which stays as it is; a wait under way ends.
func (h *handle) close() { _ = h.file.Close() }

// control runs f on the pidfd while it cannot be closed.
func (h *handle) control(f func(fd int) error) error {
	var err error
	if e := h.raw.Control(func(fd uintptr) { err = f(int(fd)) }); e != nil {
		return e
	}
	return err
}

// wait returns nil once the process, with all its threads, has ended, or an
// error once h is closed or stopWaiting called. It works for processes that are not our children.
func (h *handle) wait() error {
	return h.raw.Read(func(fd uintptr) bool { return ended(int(fd)) })
}

// stopWaiting makes every wait, under way and to come, return an error unless
// the process has ended.
func (h *handle) stopWaiting() { _ = h.file.SetReadDeadline(time.Unix(1, 0)) }

// ended tells whether the process has ended, reaped or not.
func (h *handle) ended() bool {
	var yes bool
	_ = h.control(func(fd int) error { yes = ended(fd); return nil })
	return yes
}

func ended(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return err == nil && n == 1
}

// unreaped tells whether the process still has its pid, be it running or
// waiting to be reaped.
func (h *handle) unreaped() bool {
	err := h.signal(0)
	return err == nil || errors.Is(err, unix.EPERM)
}

// signal sends sig to the process and to nothing else.
func (h *handle) signal(sig unix.Signal) error {
	return h.control(func(fd int) error { return unix.PidfdSendSignal(fd, sig, nil, 0) })
}

// signalGroup sends sig to the process group that the process leads or led, in
// one step with regard to forks. The kernel finds the group by the process and
// not by a number, so that it works, and is safe, after the leader has gone.
// EINVAL before Linux 6.9.
func (h *handle) signalGroup(sig unix.Signal) error {
	const processGroup = 1 << 2 // PIDFD_SIGNAL_PROCESS_GROUP
	return h.control(func(fd int) error { return unix.PidfdSendSignal(fd, sig, nil, processGroup) })
}

// pinsNumber tells whether the number of the process still stands for it, as a
// pid or as its process group: the kernel gives a number away only when no
// process has it as pid, group or session.
func (h *handle) pinsNumber() bool {
	if h.unreaped() {
		return true
	}
	err := h.signalGroup(0)
	return err == nil || errors.Is(err, unix.EPERM)
}

// reap lets the system forget the process if it has ended and is our child.
func (h *handle) reap() {
	_ = h.control(func(fd int) error {
		return unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG, nil)
	})
}

// status is how the process ended, without reaping it. Not ok where that
// cannot be known: it was not our child, and the kernel is before Linux 6.15
// or nobody has reaped it.
func (h *handle) status() (s unix.WaitStatus, ok bool) {
	if s, err := h.childStatus(); err == nil {
		return s, true
	}
	// Whose child it was reaps it, and only then the kernel tells others.
	for range 20 {
		switch s, err := h.exitInfo(); {
		case err == nil:
			return s, true
		case !errors.Is(err, unix.EAGAIN):
			return 0, false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0, false
}

// childStatus is the status of a child that has ended.
func (h *handle) childStatus() (unix.WaitStatus, error) {
	var info unix.Siginfo
	err := h.control(func(fd int) error {
		return unix.Waitid(unix.P_PIDFD, fd, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	})
	if err != nil {
		return 0, err
	}
	if info.Signo == 0 {
		return 0, unix.EAGAIN
	}
	// siginfo_t: three ints, aligned to a pointer, then pid, uid, status.
	const word = unsafe.Sizeof(uintptr(0))
	const at = (12+word-1)&^(word-1) + 8
	status := *(*int32)(unsafe.Add(unsafe.Pointer(&info), at))
	const exited, dumped = 1, 3 // CLD_EXITED, CLD_DUMPED
	switch info.Code {
	case exited:
		return unix.WaitStatus(status << 8), nil
	case dumped:
		return unix.WaitStatus(status | 0x80), nil
	}
	return unix.WaitStatus(status), nil
}

// exitInfo asks the kernel for the status of a process that somebody else has
// reaped; EAGAIN while nobody has. See PIDFD_GET_INFO in linux/pidfd.h.
func (h *handle) exitInfo() (unix.WaitStatus, error) {
	const exit = 1 << 3 // PIDFD_INFO_EXIT
	info := struct {
		mask, cgroup uint64
		ids          [11]uint32
		status       int32
	}{mask: exit}
	const request = 0xc0000000 | unsafe.Sizeof(info)<<16 | 0xff<<8 | 11 // PIDFD_GET_INFO
	err := h.control(func(fd int) error {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&info)))
		if errno != 0 {
			return errno
		}
		return nil
	})
	switch {
	case errors.Is(err, unix.ESRCH):
		return 0, unix.EAGAIN
	case err != nil:
		return 0, err
	case info.mask&exit == 0:
		return 0, unix.EAGAIN
	}
	return unix.WaitStatus(info.status), nil
}

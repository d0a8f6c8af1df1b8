package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"gopkg.in/natefinch/lumberjack.v2"
	"k8s.io/klog/v2"
)

// terminal is the standard error that a person sees. Once the log is open,
// everything else that writes to standard error, Kubernetes and etcd above
// all, ends up in the log.
var terminal io.Writer = os.Stderr

// logFile is the log of one run.
type logFile struct {
	path  string
	flush func()
	// cause is why pawld is stopping already, if that is an error: what then
	// ends the process in the course of it is not.
	cause atomic.Pointer[error]
}

// openLog sends the process's standard error and structured logs to path,
// which is rotated at 10 MiB and kept three times. What it returns is flushed
// before the process ends.
func openLog(path string) (*logFile, error) {
	// The file is opened here once, so that a path that cannot be written is
	// an error rather than a silence.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	sink := &lumberjack.Logger{Filename: path, MaxSize: 10, MaxBackups: 2}
	flush, err := captureStderr(sink)
	if err != nil {
		return nil, fmt.Errorf("send standard error to %s: %w", path, err)
	}
	l := &logFile{path: path, flush: flush}
	klog.SetSlogLogger(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	klog.OsExit = func(int) { l.die(errors.New("the API server stopped on an error")) }
	return l, nil
}

// die ends the process where no error can be returned.
func (l *logFile) die(err error) {
	l.flush()
	if cause := l.cause.Load(); cause != nil {
		err = *cause
	}
	cure := "see the end of " + l.path
	if errors.Is(err, unix.ENOSPC) {
		cure = "free some space in " + filepath.Dir(l.path) + " and start pawld again; what it has acknowledged is there"
	}
	_, _ = fmt.Fprintf(terminal, "pawld: %v; %s\n", err, cure)
	os.Exit(1)
}

// captureStderr copies what is written to standard error to w instead. A crash
// of the Go runtime is shown on the terminal as well. The function that it
// returns puts standard error back and waits, for at most a second, until what
// was written before has been copied.
func captureStderr(w io.Writer) (restore func(), err error) {
	fd, err := unix.FcntlInt(os.Stderr.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	saved := os.NewFile(uintptr(fd), "terminal")
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if err := unix.Dup3(int(write.Fd()), int(os.Stderr.Fd()), 0); err != nil {
		return nil, err
	}
	if err := write.Close(); err != nil {
		return nil, err
	}
	if err := debug.SetCrashOutput(saved, debug.CrashOptions{}); err != nil {
		return nil, err
	}
	terminal = saved
	done := make(chan struct{})
	go func() {
		defer close(done)
		// A full disk must not stop whoever logs.
		_, _ = io.Copy(lossy{w}, read)
	}()
	return func() {
		_ = unix.Dup3(int(saved.Fd()), int(os.Stderr.Fd()), 0)
		select {
		case <-done:
		case <-time.After(time.Second):
		}
	}, nil
}

// lossy drops what cannot be written.
type lossy struct{ io.Writer }

func (l lossy) Write(b []byte) (int, error) {
	_, _ = l.Writer.Write(b)
	return len(b), nil
}

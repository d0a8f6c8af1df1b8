//go:build linux

package process

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	const after = "S 1 42 43 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 777 1 1"
	for name, c := range map[string]struct {
		line string
		want stat
		ok   bool
	}{
		"plain":       {"41 (sh) " + after, stat{pgrp: 42, session: 43, start: 777}, true},
		"odd name":    {"41 (a) R 9 9 (b) " + after, stat{pgrp: 42, session: 43, start: 777}, true},
		"empty":       {"", stat{}, false},
		"short":       {"41 (sh) S 1 2", stat{}, false},
		"not numbers": {"41 (sh) " + strings.Replace(after, "777", "x", 1), stat{}, false},
	} {
		got, err := parseStat([]byte(c.line))
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("41 (sh) S 1 42 43 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 777 1 1"))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = parseStat(b) })
}

func TestHandle_Status(t *testing.T) {
	for script, want := range map[string]string{
		"exit 0":           "exit code 0",
		"exit 200":         "exit code 200",
		"kill -TERM $$":    "signal SIGTERM",
		"kill -KILL $$":    "signal SIGKILL",
		"exec sleep 0.001": "exit code 0",
	} {
		cmd := exec.Command("sh", "-c", script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		h, _, err := openPID(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.wait(); err != nil {
			t.Error(err)
		}
		if !h.ended() || !h.unreaped() {
			t.Errorf("%s: ended %t, unreaped %t; want both", script, h.ended(), h.unreaped())
		}
		// Twice: to look does not reap.
		for range 2 {
			if got := describe(h.status()); got != want {
				t.Errorf("%s: %s, want %s", script, got, want)
			}
		}
		h.reap()
		if h.unreaped() || h.signal(0) == nil {
			t.Errorf("%s: it is not reaped", script)
		}
		// Somebody else has reaped it, and newer kernels tell all the same.
		if got := describe(h.status()); got != want && got != "an exit status that is not known" {
			t.Errorf("%s, reaped: %s, want %s", script, got, want)
		}
		h.close()
		_ = cmd.Wait()
	}
}

func TestHandle_StopWaiting(t *testing.T) {
	h, _, err := openPID(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	done := make(chan error)
	go func() { done <- h.wait() }()
	h.stopWaiting()
	if err := <-done; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("wait: %v", err)
	}
	h.close()
	if err := h.wait(); err == nil {
		t.Error("wait on what is closed gives no error")
	}
}

func TestOpenIdentity(t *testing.T) {
	h, _, err := openPID(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	if h.World, err = world(); err != nil {
		t.Fatal(err)
	}
	if same, err := openIdentity(h.identity); err != nil {
		t.Errorf("this process: %v", err)
	} else {
		same.close()
	}
	for name, id := range map[string]identity{
		"another start": {h.PID, h.Start + 1, h.World},
		"another world": {h.PID, h.Start, "x"},
		"no process":    {1 << 22, h.Start, h.World},
		"zero":          {},
	} {
		if _, err := openIdentity(id); !gone(err) {
			t.Errorf("%s: %v, want it gone", name, err)
		}
	}
}

// The group of a leader is found by the leader, also after it has gone.
func TestHandle_SignalGroup(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo $!; exit")
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h, s, err := openPID(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	if s.pgrp != h.PID || s.session != h.PID {
		t.Errorf("stat is %+v, want it to lead group and session", s)
	}
	if err := h.wait(); err != nil {
		t.Fatal(err)
	}
	h.reap()
	switch err := h.signalGroup(0); {
	case errors.Is(err, unix.EINVAL):
		t.Skip("needs Linux 6.9")
	case err != nil || !h.pinsNumber():
		t.Errorf("the group of a leader that has gone: %v, pinned %t", err, h.pinsNumber())
	}
	if err := h.signalGroup(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	_, _ = out.Read(make([]byte, 100))
	_ = cmd.Wait()
}

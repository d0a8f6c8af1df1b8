//go:build linux

package process

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/body"
)

// family waits until all processes of a helperTree are there and gives their
// pids by name.
func (r *rig) family(slot body.Slot, names ...string) map[string]int {
	r.Helper()
	pids := map[string]int{}
	for _, name := range names {
		eventually(r.T, "process "+name, func() error {
			b, err := os.ReadFile(filepath.Join(r.work(slot), "pid-"+name))
			if err == nil {
				pids[name], err = strconv.Atoi(string(b))
			}
			return err
		})
	}
	return pids
}

// toldAll finds out whether each had the stop signal before it was killed.
func (r *rig) toldAll(slot body.Slot, pids map[string]int) {
	r.Helper()
	for name := range pids {
		if name != "leader" && !strings.Contains(r.log(slot, stdoutFile), "told "+name+"\n") {
			r.Errorf("process %s was not told", name)
		}
	}
}

func (r *rig) goneAll(pids map[string]int) {
	r.Helper()
	for name, pid := range pids {
		// One that exits has no environment any more, and may take a moment.
		eventually(r.T, "the end of process "+name, func() error {
			if alive(pid) {
				return errors.New("it is left over")
			}
			return nil
		})
	}
}

func TestKind_DeleteEndsAllProcesses(t *testing.T) {
	for name, adopted := range map[string]bool{"its own": false, "adopted": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			slot := slotNamed("web-0")
			o := r.create(slot, helperProcess("tree", "stay"))
			pids := r.family(slot, "leader", "child", "bare", "own-group", "orphan", "daemon")
			if adopted {
				r.restart()
			}
			r.delete(slot, o.UID)
			r.wait(slot, body.Absent)
			r.goneAll(pids)
			r.toldAll(slot, pids)
		})
	}
}

func TestKind_ExitEndsWhatIsLeft(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	r.create(slot, helperProcess("tree", "exit"))
	if o := r.wait(slot, body.Exited); !strings.Contains(o.Message, "exit code 3") {
		t.Errorf("message %q", o.Message)
	}
	pids := r.family(slot, "leader", "child", "bare", "own-group", "orphan", "daemon")
	eventually(t, "the end of all", func() error {
		for name, pid := range pids {
			if alive(pid) {
				return errors.New(name + " is left over")
			}
		}
		return nil
	})
	r.toldAll(slot, pids)
	if o := r.observe(slot); o.State != body.Exited {
		t.Errorf("afterwards it is %s, want Exited until it is deleted", o.State)
	}
}

// What is left of a body that nobody watched when its leader ended is ended by
// the next one, as far as it is sure whose it is.
func TestKind_EndsWhatWasLeftUnwatched(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	o := r.create(slot, helperProcess("tree", "stay"))
	pids := r.family(slot, "leader", "child", "bare", "own-group", "orphan", "daemon")
	r.kind.Close()
	_ = unix.Kill(pids["leader"], unix.SIGKILL)
	_, _ = unix.Wait4(pids["leader"], nil, 0, nil)

	r.open()
	r.wait(slot, body.Exited)
	r.delete(slot, o.UID)
	r.wait(slot, body.Absent)
	for _, name := range []string{"bare", "own-group"} {
		// These carry no mark, and the number of their session proves nothing
		// once its leader has gone unseen.
		if !alive(pids[name]) {
			t.Errorf("process %s was killed, though nobody could know whose it is", name)
		}
		_ = unix.Kill(pids[name], unix.SIGKILL)
		delete(pids, name)
	}
	r.goneAll(pids)
}

func TestKind_GraceThenKill(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := helperProcess("stubborn")
	p.Stop = stop("TERM", 0.3)
	o := r.create(slot, p)
	pids := r.family(slot, "stubborn")
	start := time.Now()
	r.delete(slot, o.UID)
	stopping := r.observe(slot)
	if stopping.State != body.Stopping || stopping.UID != o.UID {
		t.Errorf("once told it is %+v, want Stopping", stopping)
	}
	eventually(t, "a word on what it waits for", func() error {
		o := r.observe(slot)
		if o.State == body.Stopping && strings.Contains(o.Message, "waiting for 1 of its processes") {
			return nil
		}
		return fmt.Errorf("%+v", o)
	})
	r.wait(slot, body.Absent)
	if took := time.Since(start); took < 300*time.Millisecond {
		t.Errorf("killed after %s, want a grace of 0.3s", took)
	}
	r.goneAll(pids)
}

func TestKind_StopSignal(t *testing.T) {
	for _, signal := range []string{"TERM", "INT", "QUIT", "HUP", "USR1", "USR2"} {
		t.Run(signal, func(t *testing.T) {
			r := newRig(t)
			slot := slotNamed("web-0")
			p := shell("trap 'echo got " + signal + "; exit 0' " + signal + "; echo set; while :; do sleep 0.05; done")
			p.Stop = stop(signal, 30)
			o := r.create(slot, p)
			eventually(t, "its trap", func() error {
				if !strings.Contains(r.log(slot, stdoutFile), "set") {
					return errors.New("not set")
				}
				return nil
			})
			start := time.Now()
			r.delete(slot, o.UID)
			r.wait(slot, body.Absent)
			if time.Since(start) > 20*time.Second || !strings.Contains(r.log(slot, stdoutFile), "got "+signal) {
				t.Errorf("it took %s and wrote %q", time.Since(start), r.log(slot, stdoutFile))
			}
		})
	}
}

// A shell that starts pawld in the background has it ignore SIGINT, and may
// leave it files that it does not know of, such as a pipe whose reader waits.
func TestKind_NothingIsInherited(t *testing.T) {
	signal.Ignore(unix.SIGINT, unix.SIGHUP)
	defer signal.Reset(unix.SIGINT, unix.SIGHUP)
	fd, err := unix.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	r := newRig(t)
	slot := slotNamed("web-0")
	r.create(slot, shell("grep -E '^Sig(Ign|Blk)' /proc/self/status; echo files; ls /proc/$$/fd; echo done; exec sleep 1000"))
	eventually(t, "its output", func() error {
		out := r.log(slot, stdoutFile)
		signals, files, _ := strings.Cut(out, "files\n")
		if strings.Count(signals, "\t0000000000000000\n") != 2 || files != "0\n1\n2\ndone\n" {
			return errors.New(out)
		}
		return nil
	})
}

// The grace began when the body was told, not when the next one took over.
func TestKind_RestartDuringGrace(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := helperProcess("stubborn")
	p.Stop = stop("TERM", 0.5)
	o := r.create(slot, p)
	pids := r.family(slot, "stubborn")
	start := time.Now()
	r.delete(slot, o.UID)
	for range 3 {
		r.restart()
		if o := r.observe(slot); o.State != body.Stopping {
			t.Errorf("after a restart it is %s, want Stopping", o.State)
		}
	}
	r.wait(slot, body.Absent)
	if took := time.Since(start); took < 500*time.Millisecond {
		t.Errorf("killed after %s, want a grace of 0.5s", took)
	}
	r.goneAll(pids)
}

// A process that has forked and ended before it can be looked up, and its
// child likewise, is ended too.
func TestKind_ForkingBody(t *testing.T) {
	for name, signal := range map[string]string{"told": "TERM", "killed": "KILL"} {
		t.Run(name, func(t *testing.T) {
			if h, _, err := openPID(os.Getpid()); err != nil || errors.Is(h.signalGroup(0), unix.EINVAL) {
				t.Skip("needs Linux 6.9")
			} else {
				h.close()
			}
			r := newRig(t)
			slot := slotNamed("web-0")
			beat := filepath.Join(r.dir, "beat")
			beats := func() int64 {
				info, err := os.Stat(beat)
				if err != nil {
					return 0
				}
				return info.Size()
			}
			p := shell("f() { trap '' TERM; echo >> " + beat + "; f & }; f & exec sleep 1000")
			p.Stop = stop(signal, 10)
			o := r.create(slot, p)
			eventually(t, "its start", func() error {
				if n := beats(); n < 100 {
					return fmt.Errorf("%d beats", n)
				}
				return nil
			})
			r.delete(slot, o.UID)
			r.wait(slot, body.Absent)
			last := beats()
			time.Sleep(100 * time.Millisecond)
			if n := beats(); n != last {
				t.Errorf("it goes on: %d beats, then %d", last, n)
				_ = os.Remove(beat)
			}
		})
	}
}

func TestKind_UnwritableDirectory(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	o := r.create(slot, shell("mkdir -p d/e; touch d/e/f; chmod 000 d/e d; exec sleep 1000"))
	r.delete(slot, o.UID)
	r.wait(slot, body.Absent)
	if _, err := os.Stat(r.work(slot)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the working directory is still there: %v", err)
	}
}

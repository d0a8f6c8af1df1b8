//go:build linux

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

func TestKind_LifeOfABody(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell("echo hello; cat conf/app; env; exec sleep 1000")
	p.Ports = []string{"web", "admin"}
	p.Files = []v1alpha1.File{
		{Path: "conf/app", Content: new("I am ${member.name} of ${pool.name}, number ${member.index}.${member.incarnation}\n")},
		{Path: "run", Mode: new("750")},
	}
	p.Env["PORT"] = "${ports.web}"

	if o := r.observe(slot); o.State != body.Absent || o.UID != "" {
		t.Errorf("before its birth: %+v, want Absent", o)
	}
	born := time.Now()
	o := r.create(slot, p)
	if o.State != body.Ready || o.UID == "" || o.Incarnation != 1 || o.Revision != "web-1" {
		t.Errorf("after its birth: %+v", o)
	}
	if o.BornAt.Before(born.Add(-time.Second)) || o.BornAt.After(time.Now()) {
		t.Errorf("born at %v, want about %v", o.BornAt, born)
	}
	if again := r.create(slot, p); !cmp.Equal(again, o) {
		t.Errorf("created twice: %s", cmp.Diff(o, again))
	}
	port, ok := strings.CutPrefix(o.Address, "127.0.0.1:")
	eventually(t, "its output", func() error {
		if out := r.log(slot, stdoutFile); !strings.Contains(out, "PORT="+port+"\n") ||
			!strings.Contains(out, "hello\nI am web-0 of web, number 3.1\n") ||
			!strings.Contains(out, "HOME="+r.work(slot)+"\n") {
			return errors.New(out)
		}
		return nil
	})
	if !ok {
		t.Errorf("address is %q, want 127.0.0.1 and its first port", o.Address)
	}
	info, err := os.Stat(filepath.Join(r.work(slot), "run"))
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("file run: %v, %v; want mode 750", info, err)
	}
	if done, err := r.kind.Drain(t.Context(), slot, nil); !done || err != nil {
		t.Errorf("drain: %t, %v; want done at once", done, err)
	}
	if err := r.kind.Undrain(t.Context(), slot, nil); err != nil {
		t.Errorf("undrain: %v", err)
	}

	pid := r.leader(slot)
	r.delete(slot, "another uid")
	if o := r.observe(slot); o.State != body.Ready || !alive(pid) {
		t.Errorf("after deleting another body: %+v", o)
	}
	r.delete(slot, o.UID)
	r.delete(slot, o.UID)
	gone := r.wait(slot, body.Absent)
	if alive(pid) || gone.UID != "" {
		t.Errorf("after its end: %+v, process alive: %t", gone, alive(pid))
	}
	if _, err := os.Stat(r.work(slot)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its working directory is still there: %v", err)
	}
	if !strings.Contains(r.log(slot, stdoutFile), "hello") {
		t.Error("its log is gone, want it kept until the next body")
	}
	r.delete(slot, o.UID)

	slot.Incarnation = 2
	next := r.create(slot, shell("exec sleep 1000"))
	if next.UID == o.UID || strings.Contains(r.log(slot, stdoutFile), "hello") {
		t.Errorf("the next body has the uid or the log of the last one")
	}
	r.delete(slot, o.UID)
	if o := r.observe(slot); o.State != body.Ready {
		t.Errorf("after deleting the last body once more: %+v", o)
	}
}

func TestKind_CreateOccupied(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	first := r.create(slot, shell("exec sleep 1000"))

	for name, other := range map[string]body.Slot{
		"another incarnation": {Namespace: "default", Member: "web-0", UID: slot.UID, Incarnation: 2, Revision: slot.Revision},
		"another revision":    {Namespace: "default", Member: "web-0", UID: slot.UID, Incarnation: 1, Revision: "web-2"},
		"an earlier Member":   {Namespace: "default", Member: "web-0", UID: "later", Incarnation: 1, Revision: slot.Revision},
	} {
		_, err := r.kind.Create(t.Context(), other, &v1alpha1.Template{Process: shell("exit")})
		if !errors.Is(err, body.ErrOccupied) {
			t.Errorf("%s: create gives %v, want ErrOccupied", name, err)
		}
		if o := r.observe(other); o.UID != first.UID || o.Incarnation != 1 {
			t.Errorf("%s: observed %+v, want the body as it is", name, o)
		}
	}
	// Told by its UID, it makes room for the other Member.
	other := slot
	other.UID = "later"
	r.delete(other, first.UID)
	r.wait(other, body.Absent)
	if o := r.create(other, shell("exec sleep 1000")); o.UID == first.UID {
		t.Error("the other Member got the same body")
	}
}

func TestKind_Exited(t *testing.T) {
	for name, c := range map[string]struct {
		script, want, reason string
	}{
		"code":      {"echo out; sleep 0.01; echo no database >&2; exit 3", "ended with exit code 3: no database", "the last line says why"},
		"success":   {"exit 0", "ended with exit code 0", "a body does not end by itself, not even with success"},
		"signal":    {"kill -KILL $$", "ended with signal SIGKILL", "that is not an exit code"},
		"long line": {"head -c 100000 /dev/zero | tr '\\0' x; exit 1", "exit code 1: xxx", "the message is bounded"},
		"binary":    {"printf 'a\\001\\377b\\n'; exit 1", "exit code 1: a  b", "the message is text"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			slot := slotNamed("web-0")
			o := r.create(slot, shell(c.script))
			got := r.wait(slot, body.Exited)
			if !strings.Contains(got.Message, c.want) || len(got.Message) > 1024 || got.UID != o.UID {
				t.Errorf("observed %+v, want message with %q: %s", got, c.want, c.reason)
			}
			r.waitNotified(slot)
			if again := r.create(slot, shell(c.script)); again.State != body.Exited {
				t.Errorf("create after the exit gives %+v, want the body as it is", again)
			}
			r.restart()
			if again := r.observe(slot); !cmp.Equal(got, again) {
				t.Errorf("a restart changes what is told: %s", cmp.Diff(got, again))
			}
			r.delete(slot, o.UID)
			r.wait(slot, body.Absent)
		})
	}
}

func TestKind_AdoptsAfterRestart(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := helperProcess("serve", "${ports.web}")
	p.Ports = []string{"web"}
	p.Readiness = &v1alpha1.Readiness{Period: seconds(0.05), HTTP: &v1alpha1.HTTPProbe{Port: "web", Path: new("/healthz")}}
	r.create(slot, p)
	before := r.wait(slot, body.Ready)
	pid := r.leader(slot)

	r.restart()
	if after := r.observe(slot); !cmp.Equal(before, after) || r.leader(slot) != pid {
		t.Errorf("a restart changes what is told: %s", cmp.Diff(before, after))
	}
	if again := r.create(slot, p); !cmp.Equal(before, again) {
		t.Errorf("created twice: %s", cmp.Diff(before, again))
	}
	// It is still followed: probes, its end, its port.
	if err := os.WriteFile(filepath.Join(r.work(slot), "sick"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.wait(slot, body.Down)
	r.restart()
	if o := r.observe(slot); o.State != body.Down {
		t.Errorf("a restart makes what is down %s", o.State)
	}
	if err := os.Remove(filepath.Join(r.work(slot), "sick")); err != nil {
		t.Fatal(err)
	}
	r.wait(slot, body.Ready)
	other := slotNamed("web-1")
	if o := r.create(other, p); o.Address == before.Address {
		t.Errorf("two slots have %s", o.Address)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if o := r.wait(slot, body.Exited); !strings.Contains(o.Message, "signal SIGKILL: serving on") {
		t.Errorf("message %q, want the signal and the last line", o.Message)
	}
}

func TestKind_EndsWhileNobodyWatches(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	r.create(slot, shell("echo bye; exec sleep 1000"))
	pid := r.leader(slot)
	eventually(t, "its output", func() error {
		if r.log(slot, stdoutFile) != "bye\n" {
			return errors.New("none")
		}
		return nil
	})
	r.kind.Close()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	r.open()
	if o := r.wait(slot, body.Exited); o.Message != "ended while nobody watched: bye" {
		t.Errorf("message %q", o.Message)
	}
}

func TestKind_NeverKillsAForeignProcess(t *testing.T) {
	for name, c := range map[string]struct {
		record func(ours, foreign identity) identity
		reason string
		found  bool // the body's own process, by its mark
	}{
		"pid used again": {
			record: func(ours, foreign identity) identity { foreign.Start = ours.Start - 1; return foreign },
			reason: "the start time is another", found: true,
		},
		"another boot": {
			record: func(_, foreign identity) identity { foreign.World = "earlier"; return foreign },
			reason: "pid and start time are the same by chance",
		},
		"in the future": {
			record: func(_, foreign identity) identity { foreign.Start += 1000; return foreign },
			reason: "it is older than the leader",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			slot := slotNamed("web-0")
			o := r.create(slot, shell("exec sleep 1000"))
			r.kind.Close()
			foreign := startForeign(t)
			dir := filepath.Join(r.dir, "default", "web-0")
			rec, err := load(dir)
			if err != nil {
				t.Fatal(err)
			}
			ours := rec.Body.Leader
			rec.Body.Leader = c.record(ours, foreign)
			if err := rec.save(dir); err != nil {
				t.Fatal(err)
			}

			r.open()
			r.wait(slot, body.Exited)
			r.delete(slot, o.UID)
			r.wait(slot, body.Absent)
			if !alive(foreign.PID) {
				t.Errorf("a foreign process was killed: %s", c.reason)
			}
			if c.found && alive(ours.PID) {
				t.Error("the body's process is left over")
			}
			_ = unix.Kill(ours.PID, unix.SIGKILL)
			_, _ = unix.Wait4(ours.PID, nil, 0, nil)
		})
	}
}

func TestNew_OneAtATime(t *testing.T) {
	r := newRig(t)
	if _, err := New(r.dir, testRender, r.notified, Options{}); err == nil || !strings.Contains(err.Error(), "another process uses it") {
		t.Errorf("a second one on the directory: %v, want it refused", err)
	}
}

func TestKind_DamagedRecord(t *testing.T) {
	r := newRig(t)
	slot, other := slotNamed("web-0"), slotNamed("web-1")
	o := r.create(slot, shell("exec sleep 1000"))
	r.create(other, shell("exec sleep 1000"))
	pid := r.leader(slot)
	r.kind.Close()
	path := filepath.Join(r.dir, "default", "web-0", slotFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, good[:len(good)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	r.open()
	// Unknown is not absent: nothing is told, and nothing is made.
	if _, err := r.kind.Observe(t.Context(), slot, nil); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("observe: %v, want an error that names the file", err)
	}
	if _, err := r.kind.Create(t.Context(), slot, &v1alpha1.Template{Process: shell("exit")}); err == nil {
		t.Error("create: no error")
	}
	if err := r.kind.Delete(t.Context(), slot, o.UID); err == nil {
		t.Error("delete: no error")
	}
	if err := r.kind.Forget(t.Context(), slot); err == nil {
		t.Error("forget: no error")
	}
	if o := r.observe(other); o.State != body.Ready || !alive(pid) {
		t.Errorf("the other slot is %s, the process alive: %t", o.State, alive(pid))
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	r.restart()
	r.wait(slot, body.Ready)
}

func TestKind_Forget(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell("exec sleep 1000")
	p.Ports = []string{"web"}
	o := r.create(slot, p)
	if err := r.kind.Forget(t.Context(), slot); !errors.Is(err, body.ErrOccupied) {
		t.Errorf("forget a slot with a body: %v, want ErrOccupied", err)
	}
	r.delete(slot, o.UID)
	r.wait(slot, body.Absent)
	for range 2 {
		if err := r.kind.Forget(t.Context(), slot); err != nil {
			t.Errorf("forget: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, "default", "web-0")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory is still there: %v", err)
	}
	if n := len(r.kind.ports.taken); n != 0 {
		t.Errorf("%d ports are still taken", n)
	}
	r.create(slot, p)
}

func TestKind_Closed(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	o := r.create(slot, shell("exec sleep 1000"))
	pid := r.leader(slot)
	r.kind.Close()
	if _, err := r.kind.Create(context.Background(), slotNamed("web-1"), &v1alpha1.Template{Process: shell("exit")}); !errors.Is(err, errClosed) {
		t.Errorf("create: %v", err)
	}
	if err := r.kind.Delete(context.Background(), slot, o.UID); !errors.Is(err, errClosed) {
		t.Errorf("delete: %v", err)
	}
	if !alive(pid) {
		t.Error("closing touched the process")
	}
	r.open()
}

func TestKind_ConcurrentSlots(t *testing.T) {
	r := newRig(t)
	const n = 16
	addresses := make(chan string, n)
	for i := range n {
		go func() {
			p := shell("exec sleep 1000")
			p.Ports = []string{"a", "b"}
			o, err := r.kind.Create(context.Background(), slotNamed("web-"+strconv.Itoa(i)), &v1alpha1.Template{Process: p})
			if err != nil {
				t.Error(err)
			}
			addresses <- o.Address
		}()
	}
	seen := map[string]bool{}
	for range n {
		a := <-addresses
		if seen[a] {
			t.Errorf("two slots have %s", a)
		}
		seen[a] = true
	}
	if len(r.kind.ports.taken) != 2*n {
		t.Errorf("%d ports are taken, want %d", len(r.kind.ports.taken), 2*n)
	}
}

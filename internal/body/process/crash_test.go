//go:build linux

package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// crashing has a slot in a directory that helpers crash on.
type crashing struct {
	*rig
	slot body.Slot
	// life is the variable that all processes of the slot's bodies carry.
	life string
	p    *v1alpha1.Process
}

func newCrashing(t *testing.T) *crashing {
	t.Helper()
	c := &crashing{rig: newRig(t), slot: slotNamed("web-0")}
	c.life = fmt.Sprintf("PAWL_TEST_LIFE=%d.%d", os.Getpid(), rand.Uint64())
	// The leader has a child, so that there is more than one to be lost.
	c.p = shell("trap 'exit 0' TERM; echo run >> " + filepath.Join(c.dir, "runs") + "; sleep 1000 & wait")
	name, value, _ := strings.Cut(c.life, "=")
	c.p.Env[name] = value
	c.p.Ports = []string{"web"}
	// A shell that forks as it is told loses what it is told.
	c.p.Stop = stop("TERM", 1)
	return c
}

// crash does the errand in another process, which is killed at the point or,
// with none, after d.
func (c *crashing) crash(point string, d time.Duration, e errand) {
	c.Helper()
	c.kind.Close()
	e.Slot, e.Process = c.slot, c.p
	order, err := json.Marshal(e)
	if err != nil {
		c.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		c.Fatal(err)
	}
	cmd := exec.Command(exe, "helper", "kind", c.dir, point, string(order))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	if point == "" {
		time.Sleep(d)
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		c.Fatalf("the helper was not killed at %q: %v\n%s", point, err, stderr.String())
	}
	c.open()
}

// processes are those of all bodies of the slot, and what waits at a gate.
func (c *crashing) processes() (args []string) {
	pids, err := listPIDs()
	if err != nil {
		c.Fatal(err)
	}
	for _, pid := range pids {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.Contains(env, []byte(c.life+"\x00")) && alive(pid) {
			args = append(args, string(cmdline))
		}
	}
	return args
}

func (c *crashing) runs() int {
	b, _ := os.ReadFile(filepath.Join(c.dir, "runs"))
	return bytes.Count(b, []byte("run\n"))
}

func TestKind_CrashWhileCreating(t *testing.T) {
	for point, ran := range map[string]bool{
		"prepared": false, "held": false, "recorded": false, "running": true, "done": true,
	} {
		t.Run(point, func(t *testing.T) {
			c := newCrashing(t)
			c.crash(point, 0, errand{Create: true})
			want := body.Absent
			if ran {
				want = body.Ready
			}
			c.wait(c.slot, want)
			if !ran && (c.runs() != 0 || len(c.processes()) != 0) {
				t.Errorf("of a body that is Absent, %q are left and %d have run", c.processes(), c.runs())
			}
			first := c.create(c.slot, c.p)
			if first.State != body.Ready {
				t.Errorf("created again, it is %+v", first)
			}
			eventually(t, "both processes", func() error {
				if p := c.processes(); len(p) != 2 {
					return fmt.Errorf("%q", p)
				}
				return nil
			})
			if c.runs() != 1 {
				t.Errorf("%d have run, want one", c.runs())
			}
			c.delete(c.slot, first.UID)
			c.wait(c.slot, body.Absent)
			if p := c.processes(); len(p) != 0 {
				t.Errorf("left over: %q", p)
			}
		})
	}
}

func TestKind_CrashWhileEnding(t *testing.T) {
	for _, point := range []string{"told", "signalled", "ended", "removed", "cleared"} {
		t.Run(point, func(t *testing.T) {
			c := newCrashing(t)
			c.crash(point, 0, errand{Create: true, Delete: true})
			// Nobody asks again: what was told to go goes.
			c.wait(c.slot, body.Absent)
			if p := c.processes(); len(p) != 0 {
				t.Errorf("left over: %q", p)
			}
			if _, err := os.Stat(c.work(c.slot)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the working directory is still there: %v", err)
			}
		})
	}
}

// An adopted body is nobody's child here. Its end is seen all the same, and
// what it leaves is ended.
func TestKind_AdoptedFromTheDead(t *testing.T) {
	c := newCrashing(t)
	c.p.Args = leaves().Args
	c.p.Readiness = &v1alpha1.Readiness{Exec: &v1alpha1.ExecProbe{Command: []string{"true"}}}
	c.crash("done", 0, errand{Create: true, ReadyNow: true})
	c.wait(c.slot, body.Ready)
	c.endsWithWhatIsLeft(c.slot)
}

// As soon as the leader of a body has ended it is reaped, here by its parent,
// so that nothing but the group that is left has its number.
func TestKind_LeaderReapedByOthers(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	r.create(slot, leaves())
	reaped := make(chan error)
	pid := r.leader(slot)
	go func() {
		_, err := unix.Wait4(pid, nil, 0, nil)
		reaped <- err
	}()
	r.endsWithWhatIsLeft(slot)
	if err := <-reaped; err != nil {
		t.Errorf("reap: %v", err)
	}
}

// leaves is a body whose leader, once there is a file "exit", ends and leaves
// others behind, one of which has only its group to tell whose it is.
func leaves() *v1alpha1.Process {
	tree := helperProcess("tree", "exit-grouped")
	script := `"$@" & while ! test -e exit; do sleep 0.01; done; exit 7`
	return process("sh", append([]string{"-c", script, "sh", tree.Command}, tree.Args...)...)
}

func (r *rig) endsWithWhatIsLeft(slot body.Slot) {
	r.Helper()
	pids := r.family(slot, "leader", "child", "bare", "orphan", "daemon")
	r.touch(slot, "exit", true)
	o := r.wait(slot, body.Exited)
	if !strings.Contains(o.Message, "exit code 7") && !strings.Contains(o.Message, "not known") {
		r.Errorf("message %q", o.Message)
	}
	r.delete(slot, o.UID)
	r.wait(slot, body.Absent)
	r.goneAll(pids)
	r.toldAll(slot, pids)
}

// Killed at any instant, there is never more than one body, and none is left
// over. The seed is printed for who wants to see it again.
func TestKind_CrashAnywhere(t *testing.T) {
	c := newCrashing(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	for round := range rounds {
		c.crash("", time.Duration(random.Int64N(int64(150*time.Millisecond))), errand{Create: true, Delete: round%2 == 1})
		eventually(t, "a body that is there or not", func() error {
			o, err := c.kind.Observe(context.Background(), c.slot, nil)
			if err != nil || o.State != body.Ready && o.State != body.Absent {
				return fmt.Errorf("%+v %w", o, err)
			}
			if n := len(c.processes()); n > 2 || o.State == body.Absent && n > 0 {
				return fmt.Errorf("it is %s, and there are %q", o.State, c.processes())
			}
			return nil
		})
	}
	if o := c.observe(c.slot); o.State == body.Ready {
		c.delete(c.slot, o.UID)
	}
	c.wait(c.slot, body.Absent)
	if p := c.processes(); len(p) != 0 {
		t.Errorf("left over: %q", p)
	}
}

// The record is there whole, or the one before it.
func TestRecord_SaveIsAtomic(t *testing.T) {
	dir := t.TempDir()
	want := record{Ports: map[string]int{"web": 20001}, Body: &bodyRecord{UID: "a", Leader: identity{PID: 1, Start: 2, World: "w"}}}
	if err := want.save(dir); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkdir(filepath.Join(dir, slotFile+".new"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (record{}).save(dir); err == nil {
		t.Fatal("a save that cannot be done gives no error")
	}
	got, err := load(dir)
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("after a save that failed: %v, %s", err, cmp.Diff(want, got))
	}
}

//go:build linux

package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// A body that is down stays so until the probe of now has seen it well, also
// over a restart.
func TestKind_ApplyLive_StaysDown(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell("exec sleep 1000")
	exec := func(every float64, command ...string) *v1alpha1.Process {
		q := p.DeepCopy()
		q.Readiness = &v1alpha1.Readiness{Period: seconds(every), Exec: &v1alpha1.ExecProbe{Command: command}}
		return q
	}
	r.create(slot, p)
	r.live(slot, exec(0.02, "false"), "process.readiness")
	r.wait(slot, body.Down)
	r.live(slot, exec(3600, "test", "-e", "up"), "process.readiness")
	for range 2 {
		if o := r.observe(slot); o.State != body.Down {
			t.Errorf("nobody has seen it well, and it is %s", o.State)
		}
		r.restart()
	}
	r.write(slot, "up", "")
	r.live(slot, exec(3500, "test", "-e", "up"), "process.readiness")
	r.wait(slot, body.Ready)
}

// What a probe says that the body is not judged by any more does not count.
func TestKind_probed_Late(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell("exec sleep 1000")
	p.Readiness = &v1alpha1.Readiness{Period: seconds(3600), Exec: &v1alpha1.ExecProbe{Command: []string{"false"}}}
	r.create(slot, p)
	s := r.kind.find(slot)
	r.kind.probed(s, s.life, p.Readiness.DeepCopy(), nil)
	if o := r.observe(slot); o.State != body.Booting {
		t.Errorf("it is %s", o.State)
	}
}

// record is what the disk keeps of the slot now.
func (r *rig) record(slot body.Slot) []byte {
	r.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, slot.Namespace, slot.Member, slotFile))
	if err != nil {
		r.Fatal(err)
	}
	return b
}

// An edit of live files that came to no end leaves nothing behind once it is
// taken back.
func TestKind_ApplyLive_TakenBack(t *testing.T) {
	t.Run("failed", func(t *testing.T) {
		r, slot, p, q := newEdited(t)
		if err := os.Mkdir(filepath.Join(r.work(slot), "taken"), 0o700); err != nil {
			t.Fatal(err)
		}
		q.Files = append(q.Files, files("taken", "2")...)
		if err := r.kind.ApplyLive(context.Background(), slot, liveFiles(q)); !errors.Is(err, body.ErrRefused) {
			t.Errorf("error %v", err)
		}
		r.takeBack(slot, p)
	})
	for _, point := range []string{"unsettled", "changed"} {
		t.Run("killed when "+point, func(t *testing.T) {
			r, slot, p, q := newEdited(t)
			var then []byte
			r.kind.reached = func(at string) {
				if at == point {
					then = r.record(slot)
				}
			}
			r.live(slot, q, "process.files")
			r.has("a file is as it says", slot, "a", "2")
			r.kind.Close()
			// The disk as it was at that moment, at the worst.
			if err := os.WriteFile(filepath.Join(r.dir, slot.Namespace, slot.Member, slotFile), then, 0o600); err != nil {
				t.Fatal(err)
			}
			r.open()
			r.takeBack(slot, p)
		})
	}
	for _, point := range []string{"", "unsettled", "changed"} {
		t.Run("not recorded when "+point, func(t *testing.T) {
			r, slot, p, q := newEdited(t)
			// A directory where the record would be stands for a disk that takes none.
			full := filepath.Join(r.dir, slot.Namespace, slot.Member, slotFile+".new")
			fill := func(at string) {
				if at == point {
					_ = os.Mkdir(full, 0o700)
				}
			}
			r.kind.reached = fill
			fill("")
			if err := r.kind.ApplyLive(context.Background(), slot, liveFiles(q)); err == nil {
				t.Errorf("error %v", err)
			}
			if err := os.Remove(full); err != nil {
				t.Fatal(err)
			}
			r.kind.reached = func(string) {}
			r.takeBack(slot, p)
		})
	}
}

// newEdited has a body with three files, and an edit of them: one changes, one
// goes, one stays, one comes.
func newEdited(t *testing.T) (r *rig, slot body.Slot, p, q *v1alpha1.Process) {
	t.Helper()
	r = newRig(t)
	slot, p = slotNamed("web-0"), shell("exec sleep 1000")
	p.Files = files("a", "1", "b", "1", "c", "1")
	r.create(slot, p)
	q = p.DeepCopy()
	q.Files = files("a", "2", "c", "1", "d", "2")
	return r, slot, p, q
}

func liveFiles(p *v1alpha1.Process) *v1alpha1.Template {
	return &v1alpha1.Template{Process: p, LiveFields: []string{"process.files"}}
}

// takeBack applies the first files again, and checks that there is nothing else.
func (r *rig) takeBack(slot body.Slot, p *v1alpha1.Process) {
	r.Helper()
	r.live(slot, p, "process.files")
	for _, name := range []string{"a", "b", "c"} {
		r.has("as it was", slot, name, "1")
	}
	r.has("one that was not there before", slot, "d", "")
	was := r.record(slot)
	r.live(slot, p, "process.files")
	if !bytes.Equal(was, r.record(slot)) || bytes.Contains(was, []byte("strays")) {
		r.Errorf("that is no end of it: %s", was)
	}
}

// Files of an update that failed, or was cut short, are not there for the
// revision that comes instead.
func TestKind_Update_Instead(t *testing.T) {
	t.Run("failed", func(t *testing.T) {
		r := newRig(t)
		slot, p := slotNamed("web-0"), shell("exec sleep 1000")
		p.Files = files("a", "1")
		r.create(slot, p)
		r.write(slot, "data", "precious")
		q := p.DeepCopy()
		q.Files = files("a", "2", "new", "2", "data/inside", "2")
		if _, err := updateTo(r.kind, nextOf(slot), q); !errors.Is(err, body.ErrRefused) {
			t.Fatalf("error %v", err)
		}
		r.has("it came so far", slot, "new", "2")
		r.restart()
		r.update(nextOf(nextOf(slot)), p)
		r.has("a file of the update that failed", slot, "new", "")
		r.has("a file of both", slot, "a", "1")
		r.has("its data", slot, "data", "precious")
	})
	for _, point := range []string{"prepared", "held", "recorded"} {
		t.Run(point, func(t *testing.T) {
			c := newCrashing(t)
			c.p.Files = files("a", "1")
			c.create(c.slot, c.p)
			q := c.p.DeepCopy()
			q.Files = files("a", "2", "new", "2")
			c.crash(point, 0, errand{Update: q})
			c.has("it came so far", c.slot, "new", "2")
			c.update(nextOf(nextOf(c.slot)), c.p)
			c.has("a file of the update that was cut short", c.slot, "new", "")
			c.has("a file of both", c.slot, "a", "1")
		})
	}
}

// Who is told of a line may look for another one, and holds no lock up; no line
// that is waited for is moved out of sight before it is told.
func TestOutput_FoundWatches(t *testing.T) {
	dir := t.TempDir()
	o := newOutput(dir, 1024, 2)
	appender(t, filepath.Join(dir, stdoutFile))(1000)
	has := func(text string) func([]byte) bool {
		return func(line []byte) bool { return bytes.HasSuffix(line, []byte(text)) }
	}
	var told []string
	o.watch(has("0001"), func() {
		told = append(told, "first")
		o.watch(has("0002"), func() { told = append(told, "second") })
	})
	done := make(chan error)
	go func() { done <- o.files[1].rotate(o.size, o.keep) }()
	select {
	case err := <-done:
		if err != nil || len(told) != 2 {
			t.Errorf("told %q, error %v", told, err)
		}
	case <-time.After(patience):
		t.Fatal("it waits for itself")
	}
	if info, err := os.Stat(o.files[1].path); err != nil || info.Size() > 4096 {
		t.Errorf("it is not rotated: %v, %v", info, err)
	}
}

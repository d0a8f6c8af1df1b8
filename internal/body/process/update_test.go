//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// nextOf is the slot as its update finds it.
func nextOf(slot body.Slot) body.Slot {
	slot.Incarnation++
	slot.Revision = "web-" + strconv.FormatInt(slot.Incarnation, 10)
	return slot
}

// updateTo updates until that is done, as the controller does.
func updateTo(k *Kind, slot body.Slot, p *v1alpha1.Process) (o body.Observation, err error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		o, err = k.Update(context.Background(), slot, &v1alpha1.Template{Process: p})
		if err != nil || o.Incarnation == slot.Incarnation {
			return o, err
		}
		if o.State != body.Booting {
			return o, fmt.Errorf("while it is updated it is %s", o.State)
		}
	}
	return o, fmt.Errorf("it is still being updated: %+v", o)
}

func (r *rig) update(slot body.Slot, p *v1alpha1.Process) body.Observation {
	r.Helper()
	o, err := updateTo(r.kind, slot, p)
	if err != nil {
		r.Fatalf("update %s: %v", slot.Member, err)
	}
	return o
}

func files(list ...string) []v1alpha1.File {
	var out []v1alpha1.File
	for i := 0; i < len(list); i += 2 {
		out = append(out, v1alpha1.File{Path: list[i], Content: &list[i+1]})
	}
	return out
}

// write writes into the first incarnation's directory, as the body would.
func (r *rig) write(slot body.Slot, name, content string) {
	r.Helper()
	slot.Incarnation = 1
	if err := os.WriteFile(filepath.Join(r.work(slot), name), []byte(content), 0o600); err != nil {
		r.Fatal(err)
	}
}

// has checks a file of the first incarnation's directory; "" for none.
func (r *rig) has(reason string, slot body.Slot, name, want string) {
	r.Helper()
	slot.Incarnation = 1
	b, err := os.ReadFile(filepath.Join(r.work(slot), name))
	if want == "" && !errors.Is(err, os.ErrNotExist) || want != "" && string(b) != want {
		r.Errorf("%s: %s holds %q, %v; want %q", reason, name, b, err, want)
	}
}

func TestKind_Update(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell(`echo "$0 ${ports.web}"; exec sleep 1000`)
	p.Args = append(p.Args, "one")
	p.Ports = []string{"web"}
	p.Files = files("config", "1", "old/a", "1", "same", "1")
	first := r.create(slot, p)
	r.write(slot, "data", "precious")
	r.write(slot, "same", "changed")
	pid := r.leader(slot)

	q := p.DeepCopy()
	q.Args[len(q.Args)-1] = "two"
	q.Ports = []string{"web", "admin"}
	q.Files = files("config", "2", "same", "1", "new/b", "2")
	later := nextOf(slot)
	o := r.update(later, q)
	if o.State != body.Ready || o.Revision != "web-2" || o.UID == first.UID || o.Address != first.Address {
		t.Errorf("it is %+v, was %+v", o, first)
	}
	if alive(pid) {
		t.Error("its process of before runs on")
	}
	r.has("data stays", slot, "data", "precious")
	r.has("a file of the template is as it says", slot, "config", "2")
	r.has("whoever has changed it", slot, "same", "1")
	r.has("a new one is made", slot, "new/b", "2")
	r.has("one that it names no more is gone", slot, "old/a", "")
	eventually(t, "the output of the new process alone", func() error {
		if log, want := r.log(slot, stdoutFile), "two "+o.Address[strings.LastIndex(o.Address, ":")+1:]+"\n"; log != want {
			return fmt.Errorf("it is %q, want %q", log, want)
		}
		return nil
	})

	if again := r.update(later, q); again.UID != o.UID {
		t.Error("what it is already it does not become again")
	}
	r.restart()
	if o := r.observe(slot); o.Incarnation != 2 || o.State != body.Ready {
		t.Errorf("after a restart it is %+v", o)
	}
	r.update(nextOf(later), p)
	r.has("data stays for ever", slot, "data", "precious")
	r.delete(slot, r.observe(slot).UID)
	r.wait(slot, body.Absent)
	r.has("until the body goes", slot, "data", "")
	r.create(nextOf(nextOf(later)), p)
	r.has("and the next one begins with nothing", slot, "data", "")
}

// Killed at whatever moment, a body that is being updated is either what it was
// and ends, or what it is to be; its data is never lost, and there are never two.
func TestKind_CrashWhileUpdating(t *testing.T) {
	for _, point := range []string{"updating", "signalled", "rests", "prepared", "held", "recorded", "running", "done"} {
		t.Run(point, func(t *testing.T) {
			c := newCrashing(t)
			c.create(c.slot, c.p)
			c.write(c.slot, "data", "precious")
			eventually(t, "the first run", func() error {
				if c.runs() != 1 {
					return errors.New("not yet")
				}
				return nil
			})
			c.crash(point, 0, errand{Update: c.p})
			later := nextOf(c.slot)
			o := c.observe(c.slot)
			if done := point == "running" || point == "done"; done != (o.Incarnation == 2) || o.State == body.Absent {
				t.Errorf("it is %+v", o)
			}
			if o = c.update(later, c.p); o.State != body.Ready {
				t.Errorf("updated again it is %+v", o)
			}
			c.has("its data is there", c.slot, "data", "precious")
			eventually(t, "one body", func() error {
				if p := c.processes(); len(p) != 2 || c.runs() != 2 {
					return fmt.Errorf("%q, of %d runs", p, c.runs())
				}
				return nil
			})
			c.delete(later, o.UID)
			c.wait(later, body.Absent)
			if p := c.processes(); len(p) != 0 {
				t.Errorf("left over: %q", p)
			}
		})
	}
}

// What cannot become the next revision is not touched, as far as that can be
// known before; else it has ended, with its data, and becomes another one.
func TestKind_Update_Refused(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell("exec sleep 1000")
	p.Files = files("config", "1")
	first := r.create(slot, p)
	r.write(slot, "data", "precious")
	later := nextOf(slot)
	for name, bad := range map[string]func(q *v1alpha1.Process){
		"command": func(q *v1alpha1.Process) { q.Command = "no-such-program" },
		"args":    func(q *v1alpha1.Process) { q.Args = append(q.Args, "${nothing.at.all}") },
	} {
		q := p.DeepCopy()
		bad(q)
		if _, err := updateTo(r.kind, later, q); !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), "template.process."+name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if o := r.observe(slot); o != first {
		t.Errorf("it is %+v, was %+v", o, first)
	}

	q := p.DeepCopy()
	q.Files = files("config", "2", "data/inside", "2")
	_, err := updateTo(r.kind, later, q)
	if !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), "template.process.files[1].path") {
		t.Errorf("a file where there is data: error %v", err)
	}
	if o := r.observe(slot); o.Incarnation != 1 || o.State != body.Booting || !strings.Contains(o.Message, "has ended, and is to start anew") {
		t.Errorf("it is %+v", o)
	}
	r.restart()
	if o := r.update(nextOf(later), p); o.State != body.Ready {
		t.Errorf("it is %+v", o)
	}
	r.has("its data is there", slot, "data", "precious")
	r.has("and the template's file as that one says", slot, "config", "1")
}

// Newest wins, also while a body ends to start anew.
func TestKind_Update_ToAnother(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell(`trap '' TERM; echo up > ready; while :; do sleep 0.01; done`)
	p.Stop = stop("TERM", 0.3)
	p.Readiness = &v1alpha1.Readiness{Period: seconds(0.02), Exec: &v1alpha1.ExecProbe{Command: []string{"test", "-e", "ready"}}}
	r.create(slot, p)
	r.wait(slot, body.Ready)
	later := nextOf(slot)
	o, err := r.kind.Update(context.Background(), later, &v1alpha1.Template{Process: p})
	if err != nil || o.Incarnation != 1 || o.State != body.Booting || o.Message == "" {
		t.Fatalf("it is %+v, %v", o, err)
	}
	q := p.DeepCopy()
	q.Args[1] = "exec sleep 1000"
	later.Revision = "web-3"
	if o := r.update(later, q); o.Revision != "web-3" {
		t.Errorf("it is %+v", o)
	}
	r.wait(later, body.Ready)
}

// Told to go, a body goes, wherever in its update it is.
func TestKind_Update_Deleted(t *testing.T) {
	for name, wait := range map[string]bool{"ending": false, "ended": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			slot := slotNamed("web-0")
			r.create(slot, shell("exec sleep 1000"))
			later := nextOf(slot)
			o, err := r.kind.Update(context.Background(), later, &v1alpha1.Template{Process: shell("exec sleep 1000")})
			if err != nil {
				t.Fatal(err)
			}
			if wait {
				eventually(t, "its end", func() error {
					if o = r.observe(slot); !strings.Contains(o.Message, "has ended") {
						return errors.New(o.Message)
					}
					return nil
				})
			}
			r.delete(slot, o.UID)
			if _, err := r.kind.Update(context.Background(), later, &v1alpha1.Template{Process: shell("exec sleep 1000")}); !errors.Is(err, body.ErrOccupied) {
				t.Errorf("told to go, it cannot be updated: error %v", err)
			}
			r.wait(slot, body.Absent)
			if _, err := r.kind.Update(context.Background(), later, &v1alpha1.Template{Process: shell("exec sleep 1000")}); !errors.Is(err, body.ErrOccupied) {
				t.Errorf("where there is none, none can be updated: error %v", err)
			}
		})
	}
}

// A body that has ended by itself is updated as well.
func TestKind_Update_Exited(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	r.create(slot, shell("echo x > data; exit 3"))
	r.wait(slot, body.Exited)
	if o := r.update(nextOf(slot), shell("exec sleep 1000")); o.State != body.Ready {
		t.Errorf("it is %+v", o)
	}
	r.has("with its data", slot, "data", "x\n")
}

func TestKind_CheckLive(t *testing.T) {
	k := &Kind{}
	p := shell("exit")
	p.Files = files("a", "b")
	with := func(paths ...string) *v1alpha1.Template {
		return &v1alpha1.Template{Process: p, LiveFields: paths}
	}
	if err := k.CheckLive(with("process.files[0].content", "process.files", "process.stop.grace", "process.readiness", "process.readiness.http.path")); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{
		"process":                  "cannot take process: only files, readiness and stop",
		"process.args[0]":          "cannot take process.args[0]: only files, readiness and stop",
		"process.env.HOME":         "cannot take process.env.HOME",
		"process.command":          "cannot take process.command",
		"process.ports":            "cannot take process.ports",
		"process.args[7]":          "template.process.args has 2 elements",
		"process.files[1].content": "template.process.files has 1 elements",
		"process.files[0].size":    "template.process.files[0] has no field size",
		"process.stop.grace.hours": "template.process.stop.grace has no field hours",
		"process.stoop":            "template.process has no field stoop",
		"objects[0].spec":          "it is not in the template, which has process",
	} {
		err := k.CheckLive(with("process.stop", path))
		if !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `template.liveFields[1]: "`+path+`"`) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

func (r *rig) live(slot body.Slot, p *v1alpha1.Process, paths ...string) {
	r.Helper()
	if err := r.kind.ApplyLive(context.Background(), slot, &v1alpha1.Template{Process: p, LiveFields: paths}); err != nil {
		r.Fatalf("apply live fields to %s: %v", slot.Member, err)
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		t.Fatal(err)
	}
	return s.Ino
}

func TestKind_ApplyLive_Files(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell("exec sleep 1000")
	p.Files = files("a", "1", "b", "1", "c", "${member.name}")
	first := r.create(slot, p)
	paths := []string{"process.files[0]", "process.files[2].content"}
	a, c := inode(t, filepath.Join(r.work(slot), "a")), inode(t, filepath.Join(r.work(slot), "c"))

	q := p.DeepCopy()
	q.Files = files("a", "2", "b", "2", "c", "${member.name}")
	q.Args = []string{"-c", "exit"}
	r.live(slot, q, paths...)
	r.has("a live file is as it says now", slot, "a", "2")
	r.has("others are as they were", slot, "b", "1")
	if a == inode(t, filepath.Join(r.work(slot), "a")) || c != inode(t, filepath.Join(r.work(slot), "c")) {
		t.Error("what differs is replaced at once, what does not is not touched")
	}
	r.write(slot, "a", "by the body")
	r.restart()
	r.live(slot, q, paths...)
	r.has("nothing is written when nothing changes", slot, "a", "by the body")

	q.Files = files("d", "3", "b", "2", "c", "${member.name}")
	r.live(slot, q, paths...)
	r.has("a file that moves", slot, "d", "3")
	r.has("is not where it was", slot, "a", "")
	q.Files = files("b", "4")
	r.live(slot, q, "process.files")
	r.has("all of them live: another", slot, "b", "4")
	r.has("and none that is not named", slot, "c", "")

	other := slot
	other.Revision = "web-9"
	q.Files = files("b", "5")
	r.live(other, q, "process.files")
	r.live(slotNamed("web-1"), q, "process.files")
	r.has("another body is left alone", slot, "b", "4")
	if o := r.observe(slot); o != first {
		t.Errorf("it is %+v, was %+v", o, first)
	}

	q.Files = files("b", "${nothing.at.all}")
	err := r.kind.ApplyLive(context.Background(), slot, &v1alpha1.Template{Process: q, LiveFields: []string{"process.files"}})
	if !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), "template.process.files[0].content") {
		t.Errorf("error %v", err)
	}
}

func TestKind_ApplyLive_Readiness(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell("echo serving; exec sleep 1000")
	r.create(slot, p)
	r.wait(slot, body.Ready)
	steps := []struct {
		reason string
		r      *v1alpha1.Readiness
		want   body.State
	}{
		{"a probe that fails, three times", &v1alpha1.Readiness{Period: seconds(0.02), Exec: &v1alpha1.ExecProbe{Command: []string{"false"}}}, body.Down},
		{"one that does not", &v1alpha1.Readiness{Period: seconds(0.02), Exec: &v1alpha1.ExecProbe{Command: []string{"true"}}}, body.Ready},
		{"again one that fails", &v1alpha1.Readiness{Period: seconds(0.02), Exec: &v1alpha1.ExecProbe{Command: []string{"false"}}}, body.Down},
		{"what has been ready stays so as long as it runs", &v1alpha1.Readiness{Period: seconds(0.02), Output: &v1alpha1.OutputProbe{Match: "never"}}, body.Ready},
		{"none at all", nil, body.Ready},
	}
	for _, step := range steps {
		q := p.DeepCopy()
		q.Readiness = step.r
		r.live(slot, q, "process.readiness")
		r.wait(slot, step.want)
		if step.want == body.Down {
			r.restart()
			r.wait(slot, body.Down)
			continue
		}
		r.probeThrice()
		r.wait(slot, step.want)
	}
	if r.observe(slot).Incarnation != 1 {
		t.Error("nothing is rolled")
	}
}

// probeThrice passes as much time as three probes that fail take.
func (r *rig) probeThrice() {
	r.Helper()
	clock := slotNamed("clock-" + strconv.FormatInt(time.Now().UnixNano(), 36))
	p := shell("exec sleep 1000")
	r.create(clock, p)
	p.Readiness = &v1alpha1.Readiness{Period: seconds(0.03), Exec: &v1alpha1.ExecProbe{Command: []string{"false"}}}
	r.live(clock, p, "process.readiness")
	o := r.wait(clock, body.Down)
	r.delete(clock, o.UID)
	r.wait(clock, body.Absent)
}

// A body that never was ready boots on, and is judged by what counts now.
func TestKind_ApplyLive_WhileItBoots(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell("echo serving; exec sleep 1000")
	p.Readiness = &v1alpha1.Readiness{Period: seconds(3600), Exec: &v1alpha1.ExecProbe{Command: []string{"false"}}}
	r.create(slot, p)
	eventually(t, "the first probe", func() error {
		if o := r.observe(slot); !strings.Contains(o.Message, "exit code 1") {
			return errors.New(o.Message)
		}
		return nil
	})
	q := p.DeepCopy()
	q.Readiness = &v1alpha1.Readiness{Period: seconds(0.02), Output: &v1alpha1.OutputProbe{Match: "^serving$"}}
	r.live(slot, q, "process.readiness")
	r.wait(slot, body.Ready) // the line was written before anybody waited for it
}

func TestKind_ApplyLive_Stop(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell(`trap 'echo told > "$HOME/../told"; exit' USR1; trap '' TERM; touch up; while :; do sleep 0.01; done`)
	p.Stop = stop("TERM", 3600)
	p.Readiness = &v1alpha1.Readiness{Period: seconds(0.02), Exec: &v1alpha1.ExecProbe{Command: []string{"test", "-e", "up"}}}
	o := r.create(slot, p)
	r.wait(slot, body.Ready)
	q := p.DeepCopy()
	q.Stop = stop("USR1", 3600)
	r.live(slot, q, "process.stop")
	r.restart()
	r.delete(slot, o.UID)
	r.wait(slot, body.Absent)
	if r.log(slot, "told") != "told\n" {
		t.Error("it was not told as its template says now")
	}
}

// A body that does not get ready says what it wrote last.
func TestKind_NotReadySays(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell("echo no database at db:5432 >&2; exec sleep 1000")
	p.Readiness = &v1alpha1.Readiness{Period: seconds(0.02), Exec: &v1alpha1.ExecProbe{Command: []string{"sh", "-c", "exit 4"}}}
	r.create(slot, p)
	eventually(t, "its words", func() error {
		const want = "not ready: the command ended with exit code 4; last line of its output: no database at db:5432"
		if o := r.observe(slot); o.State != body.Booting || o.Message != want {
			return fmt.Errorf("%s: %q", o.State, o.Message)
		}
		return nil
	})
}

// A file that cannot be written yet is told, and written once it can be.
func TestKind_ApplyLive_InTheWay(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell("exec sleep 1000")
	p.Files = files("config", "1")
	r.create(slot, p)
	if err := os.Mkdir(filepath.Join(r.work(slot), "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	q := p.DeepCopy()
	q.Files = files("taken", "2")
	err := r.kind.ApplyLive(context.Background(), slot, &v1alpha1.Template{Process: q, LiveFields: []string{"process.files[0]"}})
	if !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), "template.process.files[0].path") {
		t.Errorf("error %v", err)
	}
	r.has("until then all is as it was", slot, "config", "1")
	if err := os.Remove(filepath.Join(r.work(slot), "taken")); err != nil {
		t.Fatal(err)
	}
	r.live(slot, q, "process.files[0]")
	r.has("now it is as it should be", slot, "taken", "2")
	r.has("all of it", slot, "config", "")
}

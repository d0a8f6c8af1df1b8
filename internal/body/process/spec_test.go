//go:build linux

package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

func TestKind_Refused(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	readiness := func(r v1alpha1.Readiness) func(*v1alpha1.Process) {
		return func(p *v1alpha1.Process) { p.Readiness = &r }
	}
	for name, c := range map[string]struct {
		edit func(*v1alpha1.Process)
		want string
	}{
		"no such command":  {func(p *v1alpha1.Process) { p.Command = "no-such-thing" }, `template.process.command: "no-such-thing" is not found in PATH`},
		"no such path":     {func(p *v1alpha1.Process) { p.Command = "/no/such" }, "template.process.command: stat /no/such"},
		"relative command": {func(p *v1alpha1.Process) { p.Command = "./run" }, `template.process.command: "./run" must be an absolute path`},
		"no program":       {func(p *v1alpha1.Process) { p.Command = plain }, "template.process.command: " + plain + " is not executable"},
		"directory":        {func(p *v1alpha1.Process) { p.Command = dir }, "template.process.command: " + dir + " is not a file"},
		"own PATH":         {func(p *v1alpha1.Process) { p.Env["PATH"] = dir }, `template.process.command: "sh" is not found in PATH (` + dir + ")"},
		"render command":   {func(p *v1alpha1.Process) { p.Command = "${member.nam}" }, "template.process.command: undeclared reference to member.nam"},
		"render arg":       {func(p *v1alpha1.Process) { p.Args = []string{"a", "${ports.web}"} }, "template.process.args[1]: undeclared reference to ports.web"},
		"render env":       {func(p *v1alpha1.Process) { p.Env["A"] = "${x.y}" }, "template.process.env.A: undeclared"},
		"NUL in arg":       {func(p *v1alpha1.Process) { p.Args = []string{"a\x00b"} }, "template.process.args[0]: holds a NUL byte"},
		"NUL in env":       {func(p *v1alpha1.Process) { p.Env["A\x00"] = "" }, "template.process.env: \"A\\x00\" cannot be set"},
		"the mark":         {func(p *v1alpha1.Process) { p.Env["PAWL_BODY"] = "x" }, `template.process.env: "PAWL_BODY" cannot be set`},
		"file outside":     {func(p *v1alpha1.Process) { p.Files = []v1alpha1.File{{Path: "a"}, {Path: "../b"}} }, "template.process.files[1].path:"},
		"file absolute":    {func(p *v1alpha1.Process) { p.Files = []v1alpha1.File{{Path: "/b"}} }, "template.process.files[0].path:"},
		"file mode":        {func(p *v1alpha1.Process) { p.Files = []v1alpha1.File{{Path: "b", Mode: new("789")}} }, "template.process.files[0].mode:"},
		"render file":      {func(p *v1alpha1.Process) { p.Files = []v1alpha1.File{{Path: "b", Content: new("${a.b}")}} }, "template.process.files[0].content: undeclared"},
		"stop signal":      {func(p *v1alpha1.Process) { p.Stop = stop("STOP", 1) }, `template.process.stop.signal: "STOP"`},
		"no probe":         {readiness(v1alpha1.Readiness{}), "template.process.readiness: exactly one"},
		"two probes": {readiness(v1alpha1.Readiness{
			Exec: &v1alpha1.ExecProbe{Command: []string{"true"}}, Output: &v1alpha1.OutputProbe{Match: "x"},
		}), "template.process.readiness: exactly one"},
		"tcp port":      {readiness(v1alpha1.Readiness{TCP: &v1alpha1.TCPProbe{Port: "web"}}), `template.process.readiness.tcp.port: the process has no port "web"; template.process.ports has none`},
		"http port":     {readiness(v1alpha1.Readiness{HTTP: &v1alpha1.HTTPProbe{Port: "web"}}), "template.process.readiness.http.port:"},
		"regexp":        {readiness(v1alpha1.Readiness{Output: &v1alpha1.OutputProbe{Match: "a("}}), "template.process.readiness.output.match: error parsing regexp"},
		"exec command":  {readiness(v1alpha1.Readiness{Exec: &v1alpha1.ExecProbe{Command: []string{"no-such-probe"}}}), "template.process.readiness.exec.command[0]:"},
		"empty command": {readiness(v1alpha1.Readiness{Exec: &v1alpha1.ExecProbe{}}), "template.process.readiness.exec.command: is empty"},
		"http path": {func(p *v1alpha1.Process) {
			p.Ports = []string{"web"}
			p.Readiness = &v1alpha1.Readiness{HTTP: &v1alpha1.HTTPProbe{Port: "web", Path: new("@elsewhere/")}}
		}, "template.process.readiness.http.path:"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			slot := slotNamed("web-0")
			p := shell("exec sleep 1000")
			c.edit(p)
			template := &v1alpha1.Template{Process: p}
			for what, err := range map[string]error{
				"Validate": r.kind.Validate(slot, template),
				"Create":   func() error { _, err := r.kind.Create(t.Context(), slot, template); return err }(),
			} {
				if !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v, want ErrRefused with %q", what, err, c.want)
				}
			}
			if o := r.observe(slot); o.State != body.Absent {
				t.Errorf("observed %+v", o)
			}
			if _, err := os.Stat(filepath.Join(r.dir, "default")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("something was made: %v", err)
			}
			if len(r.kind.ports.taken) != 0 {
				t.Error("ports are still taken")
			}
		})
	}
}

// These can be seen only when they are tried; nothing of it is left.
func TestKind_RefusedBySystem(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("echo no interpreter is named"), 0o700); err != nil {
		t.Fatal(err)
	}
	long := process("true")
	for range 200 {
		long.Args = append(long.Args, strings.Repeat("x", 60000))
	}
	twice := shell("exit")
	twice.Files = []v1alpha1.File{{Path: "a"}, {Path: "a/b"}}
	for name, c := range map[string]struct {
		p    *v1alpha1.Process
		want string
	}{
		"no format":     {process(script), "template.process.command: exec format error"},
		"too long":      {long, "args and env are too long for this system"},
		"file and path": {twice, "template.process.files[1].path:"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			slot := slotNamed("web-0")
			_, err := r.kind.Create(t.Context(), slot, &v1alpha1.Template{Process: c.p})
			if !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("create: %v, want ErrRefused with %q", err, c.want)
			}
			for range 2 {
				if o := r.observe(slot); o.State != body.Absent {
					t.Errorf("observed %+v, want Absent", o)
				}
				r.restart()
			}
			if _, err := os.Stat(r.work(slot)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("its working directory is left over: %v", err)
			}
			r.create(slot, shell("exec sleep 1000"))
		})
	}
}

func TestKind_BadNames(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{"", ".", "..", ".lock", "a/b", "a\x00"} {
		slot := slotNamed(name)
		if _, err := r.kind.Create(t.Context(), slot, &v1alpha1.Template{Process: shell("exit")}); !errors.Is(err, body.ErrRefused) {
			t.Errorf("member %q: %v, want ErrRefused", name, err)
		}
	}
	for _, template := range []*v1alpha1.Template{nil, {}} {
		_, err := r.kind.Create(t.Context(), slotNamed("web-0"), template)
		if !errors.Is(err, body.ErrRefused) || !strings.Contains(err.Error(), "template.process: is missing") {
			t.Errorf("no process: %v", err)
		}
	}
}

func TestClassify(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EAGAIN, unix.ENOMEM, unix.ENOSPC, unix.EMFILE} {
		err := notRun(&os.PathError{Op: "write", Path: "x", Err: errno})
		if !errors.Is(err, body.ErrNoRoom) || errors.Is(err, body.ErrRefused) {
			t.Errorf("%v: %v, want ErrNoRoom", errno, err)
		}
	}
	if err := notRun(unix.EIO); errors.Is(err, body.ErrNoRoom) || errors.Is(err, body.ErrRefused) {
		t.Errorf("EIO: %v, want neither", err)
	}
}

// Without files to open there is no room, and nothing is lost.
func TestKind_NoRoom(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	for limit := uint64(4); limit < 40; limit++ {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: old.Max}); err != nil {
			t.Fatal(err)
		}
		o, err := r.kind.Create(t.Context(), slot, &v1alpha1.Template{Process: shell("exec sleep 1000")})
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			r.delete(slot, o.UID)
			r.wait(slot, body.Absent)
			continue
		}
		if !errors.Is(err, body.ErrNoRoom) {
			t.Errorf("with %d files: %v, want ErrNoRoom", limit, err)
		}
		if o := r.observe(slot); o.State != body.Absent {
			t.Errorf("with %d files: observed %+v", limit, o)
		}
	}
	r.create(slot, shell("exec sleep 1000"))
}

func TestPeriod(t *testing.T) {
	for name, c := range map[string]struct {
		in            *v1alpha1.Readiness
		every, atMost time.Duration
	}{
		"absent": {&v1alpha1.Readiness{}, time.Second, time.Second},
		"short":  {&v1alpha1.Readiness{Period: seconds(0.02)}, 20 * time.Millisecond, time.Second},
		"zero":   {&v1alpha1.Readiness{Period: seconds(0)}, 10 * time.Millisecond, time.Second},
		"long":   {&v1alpha1.Readiness{Period: seconds(60)}, time.Minute, 10 * time.Second},
	} {
		if every := period(c.in); every != c.every || probeTimeout(every) != c.atMost {
			t.Errorf("%s: every %s at most %s, want %s and %s", name, every, probeTimeout(every), c.every, c.atMost)
		}
	}
}

func TestSpec_Environ(t *testing.T) {
	t.Setenv("PATH", "/usr/bin:/bin")
	t.Setenv("SECRET", "of the operator")
	p := shell("exit")
	p.Env = map[string]string{"LANG": "de_DE.UTF-8", "Z": "1"}
	s, err := newSpec(slotNamed("web-0"), &v1alpha1.Template{Process: p}, nil, testRender)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"HOME=/home/body", "LANG=de_DE.UTF-8", "PATH=/usr/bin:/bin", "PAWL_BODY=u", "TMPDIR=/tmp", "Z=1",
	}
	if diff := cmp.Diff(want, s.environ("u", "/home/body", "/tmp")); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

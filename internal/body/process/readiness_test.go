//go:build linux

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// touch makes or removes a file in the body's working directory.
func (r *rig) touch(slot body.Slot, name string, there bool) {
	r.Helper()
	path := filepath.Join(r.work(slot), name)
	var err error
	if there {
		err = os.WriteFile(path, nil, 0o600)
	} else {
		err = os.Remove(path)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// probes is a body with a probe that succeeds while there is a file "open".
func probes() map[string]*v1alpha1.Process {
	tcp := helperProcess("listen", "${ports.web}")
	tcp.Ports = []string{"web"}
	tcp.Readiness = &v1alpha1.Readiness{TCP: &v1alpha1.TCPProbe{Port: "web"}}
	http := helperProcess("serve", "${ports.web}")
	http.Ports = []string{"admin", "web"}
	http.Readiness = &v1alpha1.Readiness{HTTP: &v1alpha1.HTTPProbe{Port: "web", Path: new("/open?member=${member.name}")}}
	exec := shell("exec sleep 1000")
	exec.Env["WHAT"] = "open"
	exec.Readiness = &v1alpha1.Readiness{Exec: &v1alpha1.ExecProbe{Command: []string{"sh", "-c", `test -e "$WHAT"`}}}
	return map[string]*v1alpha1.Process{"tcp": tcp, "http": http, "exec": exec}
}

func TestKind_Readiness(t *testing.T) {
	for name, p := range probes() {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			slot := slotNamed("web-0")
			p.Readiness.Period = seconds(0.02)
			if o := r.create(slot, p); o.State != body.Booting {
				t.Errorf("at its birth it is %s, want Booting", o.State)
			}
			eventually(t, "a word on why it is not ready", func() error {
				if o := r.observe(slot); !strings.HasPrefix(o.Message, "not ready: ") {
					return fmt.Errorf("%+v", o)
				}
				return nil
			})
			for range 2 {
				r.touch(slot, "open", true)
				if o := r.wait(slot, body.Ready); o.Message != "" {
					t.Errorf("ready, it says %q", o.Message)
				}
				r.waitNotified(slot)
				r.touch(slot, "open", false)
				if o := r.wait(slot, body.Down); !strings.HasPrefix(o.Message, "not ready: ") {
					t.Errorf("down, it says %q", o.Message)
				}
				r.waitNotified(slot)
			}
		})
	}
}

func TestKind_ReadinessOutput(t *testing.T) {
	for name, to := range map[string]string{"stdout": "", "stderr": ">&2"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			slot := slotNamed("web-0")
			// Far more than a log file holds comes before the line and after it.
			flood := "i=0; while test $i -lt 20; do head -c 20000 /dev/zero | tr '\\0' x; echo; i=$((i+1)); done " + to
			p := shell(flood + "; printf serv " + to + "; while ! test -e open; do sleep 0.01; done; echo 'ing on 80' " + to + "; " +
				flood + "; exec sleep 1000")
			p.Readiness = &v1alpha1.Readiness{Period: seconds(0.02), Output: &v1alpha1.OutputProbe{Match: "^serving on [0-9]+$"}}
			r.create(slot, p)
			eventually(t, "a word on why it is not ready", func() error {
				if o := r.observe(slot); o.State != body.Booting || !strings.Contains(o.Message, "no line of output matches yet") {
					return fmt.Errorf("%+v", o)
				}
				return nil
			})
			r.restart() // what was written before is looked at again
			r.touch(slot, "open", true)
			r.wait(slot, body.Ready)
			r.restart()
			if o := r.observe(slot); o.State != body.Ready {
				t.Errorf("after a restart it is %s, want Ready as long as it runs", o.State)
			}
		})
	}
}

func TestKind_ReadinessNone(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	if o := r.create(slot, shell("exec sleep 1000")); o.State != body.Ready {
		t.Errorf("it is %s, want Ready as soon as it runs", o.State)
	}
}

// One slow answer condemns nobody.
func TestKind_DownAfterThreeFailures(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	// Of each four probes, one succeeds. They are counted in a file.
	p := shell("exec sleep 1000")
	p.Readiness = &v1alpha1.Readiness{Period: seconds(0.02), Exec: &v1alpha1.ExecProbe{Command: []string{
		"sh", "-c", "echo >> n; test $(($(wc -l < n) % " + fmt.Sprint(failuresUntilDown) + ")) = 1",
	}}}
	r.create(slot, p)
	r.wait(slot, body.Ready)
	eventually(t, "twenty probes", func() error {
		if o := r.observe(slot); o.State != body.Ready {
			t.Fatalf("it is %s after two failures, want Ready", o.State)
		}
		if b, _ := os.ReadFile(filepath.Join(r.work(slot), "n")); len(b) < 20 {
			return errors.New("not yet")
		}
		return nil
	})
}

func TestHTTPProbe_Redirect(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := helperProcess("serve", "${ports.web}")
	p.Ports = []string{"web"}
	// It leads where nobody answers: to follow it would fail.
	p.Readiness = &v1alpha1.Readiness{Period: seconds(0.02), HTTP: &v1alpha1.HTTPProbe{Port: "web", Path: new("/moved")}}
	r.create(slot, p)
	r.wait(slot, body.Ready)
}

// Whatever a probe leaves behind is ended with it.
func TestExecProbe_LeavesNothing(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell("exec sleep 1000")
	p.Readiness = &v1alpha1.Readiness{Period: seconds(0.05), Exec: &v1alpha1.ExecProbe{Command: []string{
		"sh", "-c", "sleep 1000 & echo $! >> pids",
	}}}
	r.create(slot, p)
	r.wait(slot, body.Ready)
	b, err := os.ReadFile(filepath.Join(r.work(slot), "pids"))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of what a probe left", func() error {
		if alive(pid) {
			return errors.New("it is alive")
		}
		return nil
	})
}

// A probe that hangs is ended with all its processes, and those of a body that
// goes do not outlive it.
func TestExecProbe_Hangs(t *testing.T) {
	r := newRig(t)
	slot := slotNamed("web-0")
	p := shell("exec sleep 1000")
	p.Readiness = &v1alpha1.Readiness{Period: seconds(0.01), Exec: &v1alpha1.ExecProbe{Command: []string{
		"sh", "-c", "echo $$ >> pids; sleep 1000 & echo $! >> pids; wait",
	}}}
	o := r.create(slot, p)
	eventually(t, "a second probe", func() error {
		b, _ := os.ReadFile(filepath.Join(r.work(slot), "pids"))
		if strings.Count(string(b), "\n") < 4 {
			return errors.New("not yet")
		}
		for _, pid := range strings.Fields(string(b))[:2] {
			var n int
			if _, err := fmt.Sscan(pid, &n); err != nil || alive(n) {
				return fmt.Errorf("process %s of the first probe is left over, %w", pid, err)
			}
		}
		return nil
	})
	if o := r.observe(slot); o.State != body.Booting || !strings.Contains(o.Message, "took too long") {
		t.Errorf("it is %+v, want Booting because the probe took too long", o)
	}
	start := time.Now()
	r.delete(slot, o.UID)
	r.wait(slot, body.Absent)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("a probe held up its end for %s", took)
	}
}

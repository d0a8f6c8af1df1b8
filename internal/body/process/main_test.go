//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// runVariable marks every process of this run of the tests, whose pid is its
// value, so that none is left over unseen.
const runVariable = "PAWL_TEST_RUN"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		helper(os.Args[2], os.Args[3:])
		return
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	run := runVariable + "=" + strconv.Itoa(os.Getpid())
	pids, _ := listPIDs()
	for _, pid := range pids {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if slices.Contains(strings.Split(string(b), "\x00"), run) {
			args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			fmt.Fprintf(os.Stderr, "process %d is left over: %q\n", pid, args)
			_ = unix.Kill(pid, unix.SIGKILL)
			code = 1
		}
	}
	os.Exit(code)
}

// world under test: a kind on a directory, told to start anew at will.
type rig struct {
	*testing.T
	dir  string
	kind *Kind

	mu    sync.Mutex
	calls map[string]int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, dir: t.TempDir(), calls: map[string]int{}}
	r.open()
	t.Cleanup(func() {
		r.deleteAll()
		r.kind.Close()
	})
	return r
}

func (r *rig) open() {
	r.Helper()
	k, err := New(r.dir, testRender, r.notified, Options{LogSize: 64 << 10, LogKeep: 2, LogCheck: 20 * time.Millisecond})
	if err != nil {
		r.Fatal(err)
	}
	r.kind = k
}

// restart is what a restart of pawld in good order is.
func (r *rig) restart() {
	r.Helper()
	r.kind.Close()
	r.open()
}

func (r *rig) notified(_, member string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[member]++
}

// waitNotified waits for a notification of the slot since the last call.
func (r *rig) waitNotified(slot body.Slot) {
	r.Helper()
	eventually(r.T, "a notification of "+slot.Member, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.calls[slot.Member] == 0 {
			return errors.New("none")
		}
		r.calls[slot.Member] = 0
		return nil
	})
}

// deleteAll ends all bodies, whatever they wait for.
func (r *rig) deleteAll() {
	r.Helper()
	for _, s := range r.kind.slots {
		slot := body.Slot{Namespace: s.key.namespace, Member: s.key.member}
		o, err := r.kind.Observe(context.Background(), slot, nil)
		if err != nil || o.State == body.Absent {
			continue
		}
		if err := r.kind.Delete(context.Background(), slot, o.UID); err != nil {
			r.Error(err)
		}
		r.wait(slot, body.Absent)
	}
}

func (r *rig) create(slot body.Slot, p *v1alpha1.Process) body.Observation {
	r.Helper()
	o, err := r.kind.Create(context.Background(), slot, &v1alpha1.Template{Process: p})
	if err != nil {
		r.Fatalf("create %s: %v", slot.Member, err)
	}
	return o
}

func (r *rig) observe(slot body.Slot) body.Observation {
	r.Helper()
	o, err := r.kind.Observe(context.Background(), slot, nil)
	if err != nil {
		r.Fatalf("observe %s: %v", slot.Member, err)
	}
	return o
}

func (r *rig) delete(slot body.Slot, uid string) {
	r.Helper()
	if err := r.kind.Delete(context.Background(), slot, uid); err != nil {
		r.Fatalf("delete %s: %v", slot.Member, err)
	}
}

// wait waits until the slot's body is in the state.
func (r *rig) wait(slot body.Slot, want body.State) (o body.Observation) {
	r.Helper()
	eventually(r.T, fmt.Sprintf("%s to be %s", slot.Member, want), func() error {
		if o = r.observe(slot); o.State != want {
			return fmt.Errorf("it is %s: %s", o.State, o.Message)
		}
		return nil
	})
	return o
}

// work is the working directory of an incarnation.
func (r *rig) work(slot body.Slot) string {
	return filepath.Join(r.dir, slot.Namespace, slot.Member, workPrefix+strconv.FormatInt(slot.Incarnation, 10))
}

func (r *rig) log(slot body.Slot, name string) string {
	b, _ := os.ReadFile(filepath.Join(r.dir, slot.Namespace, slot.Member, name))
	return string(b)
}

// leader is the pid of the slot's body.
func (r *rig) leader(slot body.Slot) int {
	r.Helper()
	rec, err := load(filepath.Join(r.dir, slot.Namespace, slot.Member))
	if err != nil || rec.Body == nil {
		r.Fatalf("there is no record of a body: %v", err)
	}
	return rec.Body.Leader.PID
}

const patience = 30 * time.Second

// eventually waits until f returns nil.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatalf("waited in vain for %s: %v", what, err)
}

// alive tells whether the process runs.
func alive(pid int) bool {
	h, _, err := openPID(pid)
	if err != nil {
		return false
	}
	defer h.close()
	return !h.ended()
}

func slotNamed(member string) body.Slot {
	return body.Slot{
		Namespace: "default", Pool: "web", Member: member, Index: 3,
		UID: "uid-of-" + member, Incarnation: 1, Revision: "web-1",
	}
}

// helperProcess is a template for a helper; see helper.
func helperProcess(role string, args ...string) *v1alpha1.Process {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return process(exe, append([]string{"helper", role}, args...)...)
}

func shell(script string) *v1alpha1.Process { return process("sh", "-c", script) }

func process(command string, args ...string) *v1alpha1.Process {
	return &v1alpha1.Process{
		Command: command, Args: args,
		Env: map[string]string{
			runVariable: strconv.Itoa(os.Getpid()),
			"GORACE":    "atexit_sleep_ms=0", // helpers end at once
		},
	}
}

func stop(signal string, grace float64) *v1alpha1.Stop {
	return &v1alpha1.Stop{Signal: &signal, Grace: seconds(grace)}
}

func seconds(n float64) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n * float64(time.Second))}
}

var reference = regexp.MustCompile(`\$\{([^}]*)\}`)

// testRender stands for CEL: ${a.b} is a member of a variable.
func testRender(s string, vars map[string]any) (string, error) {
	var failed error
	out := reference.ReplaceAllStringFunc(s, func(ref string) string {
		expr := reference.FindStringSubmatch(ref)[1]
		variable, field, _ := strings.Cut(expr, ".")
		m, _ := vars[variable].(map[string]any)
		v, ok := m[field]
		if !ok {
			failed = errors.New("undeclared reference to " + expr)
		}
		return fmt.Sprint(v)
	})
	return out, failed
}

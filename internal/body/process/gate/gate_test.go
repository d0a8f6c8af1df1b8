//go:build linux

package gate

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// start makes a shell wait at the gate; files are what it writes and the mark.
func start(t *testing.T, path string, args ...string) (h *Held, out, mark string) {
	t.Helper()
	dir := t.TempDir()
	out, mark = filepath.Join(dir, "out"), filepath.Join(dir, "mark")
	var files []*os.File
	for _, name := range []string{os.DevNull, out, mark} {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		files = append(files, f)
	}
	h, err := Start(Command{
		Path: path, Args: args, Env: []string{"A=b", "C="}, Dir: dir,
		Stdin: files[0], Stdout: files[1], Stderr: files[1], Mark: files[2],
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(h.PIDFD) })
	return h, out, mark
}

func wait(t *testing.T, h *Held) syscall.WaitStatus {
	t.Helper()
	var s syscall.WaitStatus
	if _, err := syscall.Wait4(h.PID, &s, 0, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestHeld_Go(t *testing.T) {
	h, out, mark := start(t, "/bin/sh", "name", "-c", "echo $0 $1 $A $$; pwd; cat /proc/self/environ; exit 7", "name", "arg")
	if got := content(t, mark); got != "" {
		t.Errorf("the mark is %q before it goes", got)
	}
	if err := h.Go(); err != nil {
		t.Fatal(err)
	}
	if s := wait(t, h); s.ExitStatus() != 7 {
		t.Errorf("status %v", s)
	}
	if got := content(t, mark); got != "1" {
		t.Errorf("the mark is %q", got)
	}
	got := content(t, out)
	if !strings.HasPrefix(got, "name arg b "+strconv.Itoa(h.PID)+"\n"+filepath.Dir(out)+"\n") || !strings.Contains(got, "A=b\x00") || !strings.Contains(got, "C=\x00") {
		t.Errorf("it wrote %q", got)
	}
}

func TestHeld_Drop(t *testing.T) {
	h, out, mark := start(t, "/bin/sh", "sh", "-c", "echo run")
	h.Drop()
	if s := wait(t, h); s.ExitStatus() != 0 {
		t.Errorf("status %v", s)
	}
	if content(t, out) != "" || content(t, mark) != "" {
		t.Errorf("it wrote %q, the mark is %q; want nothing run", content(t, out), content(t, mark))
	}
}

// Whoever holds it may die at any byte of the order.
func TestHeld_TornOrder(t *testing.T) {
	whole := encode(Command{Path: "/bin/sh", Args: []string{"sh", "-c", "echo run"}})
	for _, n := range []int{1, 8, 9, len(whole) - 1} {
		h, out, mark := start(t, "/bin/sh")
		if _, err := h.order.Write(whole[:n]); err != nil {
			t.Fatal(err)
		}
		h.Drop()
		wait(t, h)
		if content(t, out) != "" || content(t, mark) != "" {
			t.Errorf("with %d bytes of %d it ran", n, len(whole))
		}
	}
}

// It waits as long as it has to.
func TestHeld_Waits(t *testing.T) {
	h, out, _ := start(t, "/bin/sh", "sh", "-c", "echo run")
	var s syscall.WaitStatus
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if pid, err := syscall.Wait4(h.PID, &s, syscall.WNOHANG, nil); pid != 0 || err != nil {
			t.Fatalf("it ended by itself: %v, %v", s, err)
		}
	}
	if content(t, out) != "" {
		t.Error("it ran")
	}
	h.Drop()
	wait(t, h)
}

func TestHeld_GoFails(t *testing.T) {
	for path, want := range map[string]syscall.Errno{
		"/no/such": syscall.ENOENT,
		"/":        syscall.EACCES,
	} {
		h, out, _ := start(t, path, "x")
		if err := h.Go(); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		wait(t, h)
		if got := content(t, out); !strings.Contains(got, "exec "+path) {
			t.Errorf("%s: it wrote %q", path, got)
		}
	}
}

// The waiting process initialises what this package imports and no more than
// what comes before that, so that it is small and quick in any program.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		if path != "golang.org/x/sys/unix" && !strings.HasSuffix(path, "/process/gate") {
			t.Errorf("imports %s", path)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(Command{Path: "/bin/sh", Args: []string{"sh", ""}, Env: []string{"A=b"}}))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 0})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decode(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := decode(bytes.NewReader(encode(c)))
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || again.Path != c.Path || len(again.Args) != len(c.Args) {
			t.Errorf("%+v came back as %+v, %v", c, again, err)
		}
	})
}

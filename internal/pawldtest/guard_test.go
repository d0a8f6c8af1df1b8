//go:build integration

package pawldtest

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childEnv makes TestMain a test that is killed in the middle.
const childEnv = "PAWLDTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
	}
	os.Exit(m.Run())
}

// child starts pawld, and beside it what a pool's process would be, tells
// standard output where and who they are, and waits to be killed.
func child() {
	s, err := start([]Option{WithoutControllers()})
	if err != nil {
		panic(err)
	}
	body := exec.Command("sleep", "1000")
	body.Dir = filepath.Join(s.Dir, "processes")
	body.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := os.MkdirAll(body.Dir, 0o700); err != nil {
		panic(err)
	}
	if err := body.Start(); err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, s.Dir, s.PID(), body.Process.Pid)
	select {}
}

// A test that is killed leaves nothing behind.
func TestServer_TestKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), childEnv+"=1")
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	var dir string
	var pawld, body int
	if _, err := fmt.Sscan(line, &dir, &pawld, &body); err != nil {
		t.Fatalf("%v: %q", err, line)
	}
	for limit := time.Now().Add(stopTimeout); ; time.Sleep(10 * time.Millisecond) {
		left := remains(dir, pawld, body)
		if left == "" {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("left behind: %s", left)
		}
	}
}

// remains tells what there still is.
func remains(dir string, pids ...int) string {
	var left []string
	if _, err := os.Stat(dir); err == nil {
		left = append(left, dir)
	}
	for _, pid := range pids {
		if syscall.Kill(pid, 0) == nil && !zombie(pid) {
			left = append(left, fmt.Sprintf("process %d", pid))
		}
	}
	return strings.Join(left, ", ")
}

// zombie tells whether a process has ended and nobody has asked how.
func zombie(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(data), ") Z ")
}

// Killed at random instants of its start, pawld starts the next time.
func TestPawld_KilledWhileStarting(t *testing.T) {
	s := Start(t, WithoutControllers(), In(filepath.Join(t.TempDir(), "d")))
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	for round := range 8 {
		// As new, every other time.
		if round%2 == 0 {
			for _, name := range []string{"etcd", "pki", "port"} {
				if err := os.RemoveAll(filepath.Join(s.Dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		c := exec.Command(s.program, "--data-dir", s.Dir, "--controllers=false")
		c.Dir = s.Dir
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		instant := time.Duration(rand.Int64N(int64(3 * time.Second)))
		<-time.After(instant)
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		t.Logf("killed after %s", instant)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
}

//go:build integration

package pawldtest

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// refuse runs pawld and returns what it says when it does not start.
func refuse(t *testing.T, args ...string) string {
	t.Helper()
	program, err := findProgram()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	c := exec.Command(program, args...)
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer timer.Stop()
	var exit *exec.ExitError
	if err := c.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("pawld %v: %v, want exit code 1", args, err)
	}
	if stdout.Len() > 0 {
		t.Errorf("pawld %v wrote %q to standard output", args, stdout.String())
	}
	return stderr.String()
}

// TestPawld_Refuses is bad input: one line that names the flag and the cure.
func TestPawld_Refuses(t *testing.T) {
	temp := t.TempDir()
	foreign := filepath.Join(temp, "foreign")
	file := filepath.Join(foreign, "precious")
	others := filepath.Join(temp, "config")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		file:   "precious",
		others: "apiVersion: v1\nkind: Config\ncontexts: [{name: production, context: {cluster: c, user: u}}]\n",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	free := filepath.Join(temp, "free")

	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"unknown flag":   {"a flag that is not there is not ignored", []string{"--data-dirr=x"}, []string{"unknown flag: --data-dirr"}},
		"argument":       {"nor is an argument", []string{"up"}, []string{`unknown command "up"`}},
		"directory file": {"a file is no directory", []string{"--data-dir", file}, []string{"--data-dir", file, "choose a directory"}},
		"directory gone": {"a directory can be made", []string{"--data-dir", "/proc/pawl"}, []string{"--data-dir", "/proc/pawl", "choose a directory that you may write to"}},
		"foreign":        {"a directory of something else is left alone", []string{"--data-dir", foreign}, []string{"--data-dir", foreign, "precious", "choose an empty directory"}},
		"long path":      {"a socket fits in", []string{"--data-dir", filepath.Join(temp, strings.Repeat("x", 100))}, []string{"--data-dir", "choose a shorter one"}},
		"port in use":    {"a port is one program's", []string{"--data-dir", free, "--port", port}, []string{"--port " + port, "in use", "choose another"}},
		"no port":        {"a port has 16 bits", []string{"--data-dir", free, "--port", "70000"}, []string{"--port 70000", "choose another"}},
		"negative port":  {"and is not negative", []string{"--data-dir", free, "--port", "-2"}, []string{"--port -2", "choose another"}},
		"no such path":   {"a kubeconfig is written somewhere", []string{"--data-dir", free, "--kubeconfig", filepath.Join(temp, "no", "config")}, []string{"--kubeconfig", "no such file or directory", "choose a path"}},
		"directory":      {"to a file", []string{"--data-dir", free, "--kubeconfig", temp}, []string{"--kubeconfig " + temp, "choose another path"}},
		"not ours":       {"that is nothing else", []string{"--data-dir", free, "--kubeconfig", file}, []string{"--kubeconfig " + file, "choose another path"}},
		"other clusters": {"and leads nowhere else", []string{"--data-dir", free, "--kubeconfig", others}, []string{"--kubeconfig " + others, `"production"`, "choose another path"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			said := refuse(t, c.args...)
			if strings.Count(said, "\n") != 1 {
				t.Errorf("%s: more than a line: %q", c.reason, said)
			}
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("%s: %q does not say %q", c.reason, said, want)
				}
			}
		})
	}
	if entries, err := os.ReadDir(foreign); err != nil || len(entries) != 1 {
		t.Errorf("the foreign directory was touched: %v %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(free, "etcd")); err == nil {
		t.Error("a refused pawld has begun to keep something")
	}
}

func TestPawld_Second(t *testing.T) {
	s := Start(t, WithoutControllers())
	said := refuse(t, "--data-dir", s.Dir)
	for _, want := range []string{"--data-dir: " + s.Dir, "in use by another pawld (process " + strconv.Itoa(s.PID()) + ")"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
	if err := syscall.Kill(s.PID(), 0); err != nil {
		t.Errorf("the first pawld has not survived: %v", err)
	}
}

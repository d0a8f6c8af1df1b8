//go:build linux

package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// startForeign starts a process that belongs to no body and leads a session,
// as the first process of a body does.
func startForeign(t *testing.T) identity {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{fmt.Sprintf("%s=%d", runVariable, os.Getpid())}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	h, _, err := openPID(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	w, err := world()
	if err != nil {
		t.Fatal(err)
	}
	h.World = w
	return h.identity
}

package pawldtest

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// guard is a process that outlives the test and cleans up after it. It waits
// for the end of a pipe that only the test holds open; then it kills every
// process whose working directory is in the data directory (pawld, and what
// it started), and removes that.
type guard struct {
	process *exec.Cmd
	pipe    io.Closer
}

const guardScript = `
read -r _
inside() {
	for p in /proc/[0-9]*; do
		case $(readlink "$p/cwd" 2>/dev/null) in "$1"|"$1"/*) echo "${p#/proc/}" ;; esac
	done
}
for _ in 1 2 3 4 5 6 7 8 9 10; do
	pids=$(inside "$1")
	[ -z "$pids" ] && break
	kill -9 $pids 2>/dev/null
done
rm -rf "$1"
`

// watch starts a guard over dir.
func watch(dir string) (*guard, error) {
	g := &guard{process: exec.Command("sh", "-c", guardScript, "guard", dir)}
	g.process.Dir = "/"
	// An interrupt from the terminal is for the test, not for the guard.
	g.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if g.pipe, err = g.process.StdinPipe(); err != nil {
		return nil, err
	}
	if err := g.process.Start(); err != nil {
		return nil, fmt.Errorf("start the guard over %s: %w", dir, err)
	}
	return g, nil
}

// end makes the guard do its work, and waits until it has.
func (g *guard) end() error {
	if err := g.pipe.Close(); err != nil {
		return err
	}
	if err := g.process.Wait(); err != nil {
		return fmt.Errorf("clean up after pawld: %w", err)
	}
	return nil
}

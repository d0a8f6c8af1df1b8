package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
	// serving begins the line that pawld prints once it serves.
	serving = "pawld is serving; kubeconfig: "
)

// server is a pawld on a directory of its own.
type server struct {
	dir        string
	kubeconfig string
	process    *exec.Cmd
	stderr     bytes.Buffer
	ended      chan error
}

// start starts pawld and waits until it serves. Members find their programs in
// pawld's own directory.
func start(ctx context.Context, program string) (*server, error) {
	dir, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, ended: make(chan error, 1)}
	// Not bound to ctx: an interrupt has it stopped in order.
	s.process = exec.Command(program, "--data-dir", dir) //nolint:noctx // see above
	s.process.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	s.process.Stderr = &s.stderr
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's interrupt is for us alone
	lines, err := s.process.StdoutPipe()
	if err == nil {
		err = s.process.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	first := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(lines).ReadString('\n')
		first <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, lines)
		s.ended <- s.process.Wait()
	}()
	select {
	case line := <-first:
		if path, ok := strings.CutPrefix(line, serving); ok {
			s.kubeconfig = path
			return s, nil
		}
		err = fmt.Errorf("pawld did not start: %s%s", line, s.stderr.String())
	case <-time.After(startTimeout):
		err = fmt.Errorf("pawld does not serve after %s", startTimeout)
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(err, s.stop(), os.RemoveAll(dir))
}

// stop stops pawld in order.
func (s *server) stop() error {
	_ = s.process.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case err := <-s.ended:
		if err != nil {
			return fmt.Errorf("pawld: %w: %s", err, s.stderr.String())
		}
		return nil
	case <-time.After(stopTimeout):
		_ = s.process.Process.Kill()
		return fmt.Errorf("pawld still ran %s after SIGTERM: %w", stopTimeout, <-s.ended)
	}
}

// leftovers are the processes that have to do with the data directory: pawld
// by its command line, members by their environment.
func (s *server) leftovers() []int {
	found, _ := filepath.Glob("/proc/[0-9]*")
	var pids []int
	for _, p := range found {
		environ, _ := os.ReadFile(filepath.Join(p, "environ"))
		command, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		if pid, err := strconv.Atoi(filepath.Base(p)); err == nil && bytes.Contains(append(environ, command...), []byte(s.dir)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill ends what is left over.
func (s *server) kill(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// log is the end of pawld's log.
func (s *server) log() string {
	const most = 4 << 10
	data, err := os.ReadFile(filepath.Join(s.dir, "pawld.log"))
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-most):])
}

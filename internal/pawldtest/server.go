// Package pawldtest starts pawld for tests: a real API server, of their own,
// with Pawl's definitions and policies in force.
//
// It runs the program at $PAWLD, or bin/pawld in the repository, which `make
// build` makes. Tests that use it carry the build tag "integration". Whatever
// ends the test, even kill -9, pawld, the processes of its pools and its data
// directory go with it.
package pawldtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// startTimeout is generous: the machine may be busy with other tests.
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
	// logTail is how much of the log a failed test shows, in bytes.
	logTail = 8 << 10
	// serving begins the line that pawld prints once it serves.
	serving = "pawld is serving; kubeconfig: "
)

// Option changes how pawld runs.
type Option func(*Server)

// WithoutControllers leaves out Pawl's controllers: nothing but the test
// writes.
func WithoutControllers() Option { return WithFlags("--controllers=false") }

// WithControllerManager runs Kubernetes' own controllers too.
func WithControllerManager() Option { return WithFlags("--controller-manager") }

// WithSim allows pools of simulated bodies.
func WithSim() Option { return WithFlags("--sim") }

// WithFlags adds flags of pawld.
func WithFlags(flags ...string) Option {
	return func(s *Server) { s.flags = append(s.flags, flags...) }
}

// In puts the data directory at path, which must not exist yet, instead of in a
// directory for temporary files.
func In(path string) Option { return func(s *Server) { s.Dir = path } }

// Server is a pawld on a data directory of its own. Its methods are for one
// goroutine at a time.
type Server struct {
	// Dir is the data directory.
	Dir string
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Config is the administrator's access, without a limit on requests. It
	// stays valid over Restart.
	Config *rest.Config

	program string
	flags   []string
	guard   *guard
	run     *run
}

// run is one process of pawld.
type run struct {
	process *exec.Cmd
	stderr  bytes.Buffer
	// done is closed when it has ended; err is how.
	done chan struct{}
	err  error
}

// Start starts pawld and waits until it serves. It is stopped when the test
// ends, and the end of its log is shown if the test failed.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	s, err := start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of pawld's log:\n%s", s.tail())
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if err := s.guard.end(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// start is Start without a test.
func start(options []Option) (*Server, error) {
	program, err := findProgram()
	if err != nil {
		return nil, err
	}
	s := &Server{program: program}
	for _, o := range options {
		o(s)
	}
	if s.Dir == "" {
		// Short: there is a unix socket in it.
		if s.Dir, err = os.MkdirTemp("", "pawld-"); err != nil {
			return nil, err
		}
	} else if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return nil, err
	}
	if s.guard, err = watch(s.Dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.Dir))
	}
	if err := s.Restart(); err != nil {
		return nil, errors.Join(err, s.guard.end())
	}
	return s, nil
}

// Restart starts pawld again on the same data directory and port, and waits
// until it serves. One that still runs is stopped first.
func (s *Server) Restart() error {
	if err := s.Stop(); err != nil {
		return err
	}
	r := &run{done: make(chan struct{})}
	r.process = exec.Command(s.program, append([]string{"--data-dir", s.Dir}, s.flags...)...)
	r.process.Dir = s.Dir // by this the guard knows it
	r.process.Stderr = &r.stderr
	stdout, err := r.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := r.process.Start(); err != nil {
		return err
	}
	s.run = r
	lines := make(chan string, 1)
	go func() {
		defer close(r.done)
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		lines <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, stdout)
		r.err = r.process.Wait()
	}()
	select {
	case line := <-lines:
		path, ok := strings.CutPrefix(line, serving)
		if !ok {
			_ = s.Stop()
			return fmt.Errorf("pawld did not start: %s%s\n%s", line, r.stderr.String(), s.tail())
		}
		s.Kubeconfig = path
	case <-time.After(startTimeout):
		s.Kill()
		return fmt.Errorf("pawld does not serve after %s\n%s", startTimeout, s.tail())
	}
	if s.Config, err = clientcmd.BuildConfigFromFlags("", s.Kubeconfig); err != nil {
		return err
	}
	s.Config.QPS = -1
	return nil
}

// Stop stops pawld in order and waits for its end. Members' processes stay.
// It does nothing if pawld does not run.
func (s *Server) Stop() error {
	if s.run == nil {
		return nil
	}
	defer func() { s.run = nil }()
	_ = s.run.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.run.done:
	case <-time.After(stopTimeout):
		s.Kill()
		return fmt.Errorf("pawld still ran %s after SIGTERM\n%s", stopTimeout, s.tail())
	}
	if s.run.err != nil {
		return fmt.Errorf("pawld: %w: %s", s.run.err, s.run.stderr.String())
	}
	return nil
}

// Kill ends pawld as a crash would, and waits for its end.
func (s *Server) Kill() {
	if s.run == nil {
		return
	}
	_ = s.run.process.Process.Kill()
	<-s.run.done
	s.run = nil
}

// wait waits until pawld ends by itself, and returns what it said and how it
// ended.
func (s *Server) wait() (said string, err error) {
	r := s.run
	select {
	case <-r.done:
		s.run = nil
		return r.stderr.String(), r.err
	case <-time.After(stopTimeout):
		return "", fmt.Errorf("pawld still runs after %s", stopTimeout)
	}
}

// PID is the process id of pawld; 0 if it does not run.
func (s *Server) PID() int {
	if s.run == nil {
		return 0
	}
	return s.run.process.Process.Pid
}

// tail is the end of the log.
func (s *Server) tail() string {
	data, err := os.ReadFile(filepath.Join(s.Dir, "pawld.log"))
	if err != nil {
		return err.Error()
	}
	if len(data) > logTail {
		data = data[len(data)-logTail:]
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	return string(data)
}

// findProgram finds pawld.
func findProgram() (string, error) {
	path := os.Getenv("PAWLD")
	if path == "" {
		root, err := repository()
		if err != nil {
			return "", err
		}
		path = filepath.Join(root, "bin", "pawld")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("pawld is not built: run make build (%w)", err)
	}
	return path, nil
}

// repository is the directory above the working directory that has pawld's
// sources in it.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "standalone", "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("find pawld: not in its repository; set PAWLD to the program")
		}
		dir = up
	}
}

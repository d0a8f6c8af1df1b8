package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Server is an API server without controllers, for the time of a call.
type Server struct {
	// Config is an administrator's access.
	Config *rest.Config

	dir     string
	process *exec.Cmd
	done    chan struct{}
	// guard cleans up after this process, unless a word on guarded tells it that
	// there is nothing left to do.
	guard   *exec.Cmd
	guarded io.WriteCloser
}

// serving begins the line that pawld prints once it serves.
const serving = "pawld is serving; kubeconfig: "

// How long pawld may take; the machine may be busy.
const (
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// FindPawld finds the program: at path if that is not empty, else at $PAWLD,
// next to the program that runs, or in $PATH.
func FindPawld(path string) (string, error) {
	if path == "" {
		path = os.Getenv("PAWLD")
	}
	if path != "" {
		if _, err := os.Stat(path); err != nil { //nolint:gosec // the user's own path
			return "", fmt.Errorf("pawld: %w", err)
		}
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "pawld")
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath("pawld")
	if err != nil {
		return "", fmt.Errorf("pawld is needed for a real API server, and is not beside this program or in PATH; say --pawld or --kubeconfig (%w)", err)
	}
	return path, nil
}

// guardScript waits until nobody holds its input open any more. Unless it was
// told that all is done, it ends the process whose id is given and removes the
// directory.
const guardScript = `read -r word; [ "$word" = done ] && exit; kill -9 "$1"; rm -rf "$2"`

// StartServer starts pawld on a directory of its own, without controllers, and
// waits until it serves. It is to be stopped; should this program be killed,
// pawld and its directory go all the same.
func StartServer(ctx context.Context, pawld string) (*Server, error) {
	dir, err := os.MkdirTemp("", "pawld-") // short: there is a unix socket in it
	if err != nil {
		return nil, fmt.Errorf("make a directory for pawld: %w", err)
	}
	s := &Server{dir: dir, done: make(chan struct{})}
	data := filepath.Join(dir, "data")
	s.process = exec.Command(pawld, "--data-dir", data, "--controllers=false", "--sim") //nolint:noctx // it is stopped by Stop
	var said strings.Builder
	s.process.Stderr = &said
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for this program
	stdout, err := s.process.StdoutPipe()
	if err == nil {
		err = s.process.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start pawld: %w", err), os.RemoveAll(dir))
	}
	lines := make(chan string, 1)
	go func() {
		defer close(s.done)
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		lines <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, stdout)
		_ = s.process.Wait()
	}()
	if err := s.startGuard(); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	select {
	case line := <-lines:
		path, ok := strings.CutPrefix(line, serving)
		if !ok {
			return nil, errors.Join(fmt.Errorf("pawld did not start: %s%s", line, said.String()), s.Stop())
		}
		s.Config, err = clientcmd.BuildConfigFromFlags("", path)
	case <-time.After(startTimeout):
		err = fmt.Errorf("pawld does not serve after %s", startTimeout)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// startGuard starts a process that cleans up after this one, however it ends.
func (s *Server) startGuard() error {
	g := exec.Command("sh", "-c", guardScript, "guard", fmt.Sprint(s.process.Process.Pid), s.dir) //nolint:noctx // it ends with this process
	g.Dir = "/"
	g.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := g.StdinPipe()
	if err == nil {
		err = g.Start()
	}
	if err != nil {
		return fmt.Errorf("start the guard over pawld: %w", err)
	}
	s.guard, s.guarded = g, in
	return nil
}

// Stop ends pawld and removes its directory.
func (s *Server) Stop() error {
	_ = s.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(stopTimeout):
		_ = s.process.Process.Kill()
		<-s.done
	}
	err := os.RemoveAll(s.dir)
	if s.guard == nil {
		return err
	}
	// A guard that was killed has nothing left to be told.
	_, _ = io.WriteString(s.guarded, "done\n")
	_ = s.guarded.Close()
	_ = s.guard.Wait()
	return err
}

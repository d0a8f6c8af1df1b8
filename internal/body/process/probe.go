//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

const (
	defaultPeriod = time.Second
	shortestWait  = 10 * time.Millisecond
	// A body that has been ready is down once so many probes in a row have
	// failed: one slow answer condemns nobody.
	failuresUntilDown = 3
)

// probe says, by nil, that a body is ready. It returns when ctx ends.
type probe func(ctx context.Context) error

// period is the time between two probes.
func period(r *v1alpha1.Readiness) time.Duration {
	if r == nil || r.Period == nil {
		return defaultPeriod
	}
	return max(r.Period.Duration, shortestWait)
}

// probeTimeout is how long one probe may take: its period, but at least a
// second and at most ten.
func probeTimeout(period time.Duration) time.Duration {
	return min(max(period, time.Second), 10*time.Second)
}

// newProbe gives the probe for a readiness that newSpec has let pass. The
// ports are the body's; work is its directory.
func newProbe(r *v1alpha1.Readiness, ports map[string]int, env []string, work string, out *output) (probe, error) {
	switch {
	case r == nil:
		return func(context.Context) error { return nil }, nil
	case r.TCP != nil:
		return tcpProbe(loopback(ports[r.TCP.Port])), nil
	case r.HTTP != nil:
		u, err := probeURL(ports[r.HTTP.Port], *r.HTTP.Path)
		return httpProbe(u), err
	case r.Exec != nil:
		return execProbe(r.Exec.Command, env, work), nil
	}
	_, err := regexp.Compile(r.Output.Match)
	return outputProbe(out), err
}

func tcpProbe(address string) probe {
	return func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp4", address)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

func probeURL(port int, path string) (string, error) {
	u, err := url.Parse("http://" + loopback(port) + path)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(path, "/") || u.Host != loopback(port) {
		return "", fmt.Errorf("path %q does not begin with /", path)
	}
	return u.String(), nil
}

// httpProbe asks the body itself and nobody else: no proxy, and a redirect is
// an answer, not followed.
func httpProbe(u string) probe {
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		// Some servers complain about answers that are not read; none is read
		// for ever.
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
		_ = resp.Body.Close()
		if resp.StatusCode < 200 || resp.StatusCode > 399 {
			return fmt.Errorf("GET %s: %s", u, resp.Status)
		}
		return nil
	}
}

func outputProbe(out *output) probe {
	return func(context.Context) error {
		switch found, err := out.look(); {
		case err != nil:
			return err
		case !found:
			return errors.New("no line of output matches yet")
		}
		return nil
	}
}

// execProbe runs a command in a session of its own and ends whatever is left
// of it afterwards.
func execProbe(command, env []string, work string) probe {
	return func(ctx context.Context) error {
		path, err := lookPath(command[0], pathOf(env))
		if err != nil {
			return err
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer func() { _ = null.Close() }()
		pidfd := -1
		pid, err := syscall.ForkExec(path, command, &syscall.ProcAttr{
			Dir: work, Env: env,
			Files: []uintptr{null.Fd(), null.Fd(), null.Fd()},
			Sys:   &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd},
		})
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		return execResult(ctx, pid, pidfd)
	}
}

// execResult waits for a probe's process, ends what is left of its group and
// reaps it.
func execResult(ctx context.Context, pid, pidfd int) error {
	h, err := newHandle(identity{PID: pid}, pidfd)
	if err != nil {
		// Its pid is its own as long as nobody has reaped it.
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
		return err
	}
	defer h.close()
	stop := context.AfterFunc(ctx, func() { killGroup(h) })
	err = h.wait()
	late := !stop()
	status, ok := h.status()
	killGroup(h)
	h.reap()
	switch {
	case err != nil:
		return err
	case late:
		return fmt.Errorf("the command took too long: %w", context.Cause(ctx))
	case !ok || status != 0:
		return errors.New("the command ended with " + describe(status, ok))
	}
	return nil
}

// killGroup ends the group that h leads; before Linux 6.9, only h.
func killGroup(h *handle) {
	if h.signalGroup(unix.SIGKILL) != nil {
		_ = h.signal(unix.SIGKILL)
	}
}

func pathOf(env []string) string {
	i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, "PATH=") })
	if i < 0 {
		return ""
	}
	return strings.TrimPrefix(env[i], "PATH=")
}

// describe says how a process ended.
func describe(s unix.WaitStatus, ok bool) string {
	switch {
	case !ok:
		return "an exit status that is not known"
	case s.Signaled():
		text := "signal " + unix.SignalName(s.Signal())
		if s.CoreDump() {
			text += " (core dumped)"
		}
		return text
	}
	return fmt.Sprintf("exit code %d", s.ExitStatus())
}

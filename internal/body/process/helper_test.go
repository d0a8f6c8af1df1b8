//go:build linux

package process

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// helper is what this binary is when it is started as a body, or as something
// that has bodies.
func helper(role string, args []string) {
	switch role {
	case "serve":
		helperServe(args[0])
	case "listen":
		helperListen(args[0])
	case "tree":
		helperTree(args[0])
	case "start":
		helperStart(args[0], args[1:])
	case "sleep":
		helperSleep(args[0])
	case "stubborn":
		signal.Ignore(unix.SIGTERM)
		note("pid-stubborn", strconv.Itoa(os.Getpid()))
		for {
			time.Sleep(time.Hour)
		}
	case "kind":
		helperKind(args[0], args[1], args[2])
	default:
		fmt.Fprintln(os.Stderr, "no such role:", role)
		os.Exit(2)
	}
}

// helperServe serves HTTP until it is told to go; sick while there is a file
// of that name.
func helperServe(port string) {
	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat("sick"); err == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	http.HandleFunc("/open", func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat("open"); err != nil || r.URL.Query().Get("member") == "" {
			http.NotFound(w, r)
		}
	})
	http.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/nowhere", http.StatusFound)
	})
	_, _ = fmt.Fprintln(os.Stdout, "serving on", port)
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+port, nil))
	os.Exit(1)
}

// helperListen listens while there is a file named "open".
func helperListen(port string) {
	var l net.Listener
	for ; ; time.Sleep(5 * time.Millisecond) {
		_, err := os.Stat("open")
		switch {
		case err == nil && l == nil:
			l, err = net.Listen("tcp4", "127.0.0.1:"+port)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		case err != nil && l != nil:
			_ = l.Close()
			l = nil
		}
	}
}

// helperSleep notes its pid, sleeps until it is told to go and says so.
func helperSleep(name string) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, unix.SIGTERM)
	note("pid-"+name, strconv.Itoa(os.Getpid()))
	<-told
	_, _ = fmt.Fprintln(os.Stdout, "told", name)
}

// helperTree is a leader with every kind of descendant; then it stays, or
// exits.
func helperTree(then string) {
	start := func(attr *syscall.SysProcAttr, env []string, args ...string) *exec.Cmd {
		exe, _ := os.Executable()
		c := exec.Command(exe, append([]string{"helper"}, args...)...)
		c.SysProcAttr, c.Env, c.Stdout = attr, env, os.Stdout
		if err := c.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return c
	}
	env := os.Environ()
	start(nil, env, "sleep", "child")
	// Without the mark: only its session, or its group, tells whose it is.
	bare := []string{runVariable + "=" + os.Getenv(runVariable)}
	start(nil, bare, "sleep", "bare")
	if then != "exit-grouped" {
		start(&syscall.SysProcAttr{Setpgid: true}, bare, "sleep", "own-group")
	}
	// Double-forked: nobody's child, in this session and in one of its own.
	_ = start(nil, env, "start", "same", "sleep", "orphan").Wait()
	_ = start(nil, env, "start", "new", "sleep", "daemon").Wait()
	note("pid-leader", strconv.Itoa(os.Getpid()))
	if then != "stay" {
		for _, name := range []string{"child", "bare", "orphan", "daemon"} {
			for {
				if _, err := os.Stat("pid-" + name); err == nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
		os.Exit(3)
	}
	for {
		time.Sleep(time.Hour)
	}
}

// helperStart starts a helper and exits.
func helperStart(session string, args []string) {
	exe, _ := os.Executable()
	c := exec.Command(exe, append([]string{"helper"}, args...)...)
	c.SysProcAttr, c.Stdout = &syscall.SysProcAttr{Setsid: session == "new"}, os.Stdout
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// note writes a file so that it is there whole or not at all.
func note(name, content string) {
	if err := os.WriteFile(name+".part", []byte(content), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	_ = os.Rename(name+".part", name)
}

// errand is what helperKind does.
type errand struct {
	Slot     body.Slot
	Process  *v1alpha1.Process
	Create   bool
	Delete   bool
	ReadyNow bool // wait until it is ready
	// Update makes it the next incarnation, as this says.
	Update *v1alpha1.Process
}

// helperKind does an errand with a kind of its own and is killed, as by kill
// -9, at the point; "done" is once the errand is done. Without a point it is
// killed by somebody else.
func helperKind(dir, point, order string) {
	var e errand
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	check(json.Unmarshal([]byte(order), &e))
	reached := func(p string) {
		if p == point {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	k, err := New(dir, testRender, func(string, string) {}, Options{})
	check(err)
	k.reached = reached
	ctx := context.Background()
	if e.Create {
		_, err = k.Create(ctx, e.Slot, &v1alpha1.Template{Process: e.Process})
		check(err)
	}
	for e.ReadyNow {
		o, err := k.Observe(ctx, e.Slot, nil)
		check(err)
		e.ReadyNow = o.State != body.Ready
		time.Sleep(time.Millisecond)
	}
	if e.Update != nil {
		_, err := updateTo(k, nextOf(e.Slot), e.Update)
		check(err)
	}
	if e.Delete {
		o, err := k.Observe(ctx, e.Slot, nil)
		check(err)
		check(k.Delete(ctx, e.Slot, o.UID))
		for o.State != body.Absent {
			o, err = k.Observe(ctx, e.Slot, nil)
			check(err)
			time.Sleep(time.Millisecond)
		}
	}
	reached("done")
	for point == "" {
		time.Sleep(time.Hour)
	}
	fmt.Fprintln(os.Stderr, "the point was not reached:", point)
	os.Exit(2)
}

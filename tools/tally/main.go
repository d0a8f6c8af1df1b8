// Command tally runs go test -json, shows what a person wants to see of it
// (one line a package, everything about a failure) and ends with one line:
//
//	test-unit: 213 tests passed in 41 s
//
// Usage: tally NAME COMMAND [ARG…]. It exits as the command does.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: tally NAME COMMAND [ARG…]")
		os.Exit(2)
	}
	code, err := run(os.Args[1], os.Args[2:], os.Stdout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "tally: %v\n", err)
	}
	os.Exit(code)
}

// run runs the command and returns its exit code.
func run(name string, command []string, out io.Writer) (int, error) {
	// An interrupt reaches the command, too; its last words are worth waiting
	// for. It is caught rather than ignored: that would be inherited.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	start := time.Now()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	t := tally{out: out, output: map[string][]string{}, parents: map[string]bool{}, results: map[string]string{}}
	readErr := t.read(events)
	err = cmd.Wait()
	passed, failed, skipped := t.count()
	fmt.Fprintf(out, "%s: %s in %s\n", name, summary(passed, failed, skipped), elapsed(time.Since(start)))

	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1), nil
	case err != nil || readErr != nil:
		return 1, errors.Join(err, readErr)
	case failed > 0:
		return 1, nil
	case passed == 0:
		return 1, errors.New("no test ran")
	}
	return 0, nil
}

// event is one line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

// tally is what has been heard so far, by package and test.
type tally struct {
	out     io.Writer
	output  map[string][]string // of tests that run
	parents map[string]bool     // tests that have subtests: they are no tests of their own
	results map[string]string   // the last action of each
}

func (t *tally) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			t.line(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// line takes one line in. What is no event is shown.
func (t *tally) line(line string) {
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil || e.Action == "" {
		fmt.Fprint(t.out, line)
		return
	}
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "output":
		t.say(key, e)
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "run":
		if i := strings.LastIndex(e.Test, "/"); i >= 0 {
			t.parents[e.Package+"\x00"+e.Test[:i]] = true
		}
	case "pass", "skip", "fail":
		if e.Test == "" {
			return
		}
		t.results[key] = e.Action
		if e.Action == "fail" {
			fmt.Fprint(t.out, strings.Join(t.output[key], ""))
		}
		delete(t.output, key)
	}
}

// say keeps what a test prints until it is known how it ends, and shows what a
// package prints: its result, or why it died.
func (t *tally) say(key string, e event) {
	if e.Test != "" {
		if !strings.HasPrefix(e.Output, "=== ") { // who runs when tells little
			t.output[key] = append(t.output[key], e.Output)
		}
		return
	}
	if e.Output == "PASS\n" || strings.HasSuffix(e.Output, "[no test files]\n") {
		return
	}
	fmt.Fprint(t.out, e.Output)
}

// count counts the tests that have no subtests, and shows the last words of
// those that never ended.
func (t *tally) count() (passed, failed, skipped int) {
	for _, lines := range t.output {
		fmt.Fprint(t.out, strings.Join(lines, ""))
	}
	for key, result := range t.results {
		switch {
		case t.parents[key] && result != "fail":
		case result == "pass":
			passed++
		case result == "skip":
			skipped++
		default:
			failed++
		}
	}
	return passed, failed, skipped
}

func summary(passed, failed, skipped int) string {
	s := fmt.Sprintf("%d tests passed", passed)
	if skipped > 0 {
		s += fmt.Sprintf(", %d skipped", skipped)
	}
	if failed > 0 {
		s += fmt.Sprintf(", %d failed", failed)
	}
	return s
}

// elapsed is a duration as people say it: 41 s, 2 min 3 s.
func elapsed(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	if s < 60 {
		return fmt.Sprintf("%d s", s)
	}
	return fmt.Sprintf("%d min %d s", s/60, s%60)
}

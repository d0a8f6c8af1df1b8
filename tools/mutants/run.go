package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// How much is tried for each mutant. All of it together takes about five seconds
// where nothing notices.
const (
	checks    = "3000" // snapshots for each property
	fewChecks = "100"  // for what is random in unit tests
	seeds     = "2"    // seeds for each scenario
	worlds    = "2000" // random worlds
	seed      = "1"    // of everything random
	timeout   = "2m"   // for what hangs
	// skipped plans everything twice, and notices only what is random.
	skipped = "^TestNew_pure$"
)

// laboratory builds mutants and runs tests on them.
type laboratory struct {
	dir        string // for files that are thrown away
	all        bool   // everything is run, although enough has noticed
	properties []string
}

// findings are the names of what failed, by kind.
type findings map[string][]string

func (f findings) String() string {
	const most = 4
	var words []string
	for _, kind := range []string{scenario, property, unitTest, world} {
		names := f[kind]
		if len(names) == 0 {
			continue
		}
		s := kind + " " + strings.Join(names[:min(most, len(names))], ", ")
		if n := len(names) - most; n > 0 {
			s += fmt.Sprintf(" and %d more", n)
		}
		words = append(words, s)
	}
	if len(words) == 0 {
		return "nothing failed"
	}
	return strings.Join(words, "; ")
}

// any reports whether anything failed.
func (f findings) any() bool {
	for _, names := range f {
		if len(names) > 0 {
			return true
		}
	}
	return false
}

// missing are the kinds that have to notice the mutant and did not.
func (m *mutant) missing(f findings) []string {
	if len(m.needs) == 0 && !f.any() {
		return []string{"everything"}
	}
	return slices.DeleteFunc(slices.Clone(m.needs), func(kind string) bool { return len(f[kind]) > 0 })
}

// enough reports whether everything has noticed the mutant that has to.
func (m *mutant) enough(f findings) bool { return len(m.missing(f)) == 0 }

// baseline sees to it that nothing fails while nothing is broken.
func (l *laboratory) baseline(ctx context.Context, out io.Writer) error {
	found, err := l.run(ctx, &mutant{name: "nothing", needs: []string{unitTest, property, scenario, world}})
	if err != nil {
		return err
	}
	if found.any() {
		fmt.Fprintf(out, "mutants: tests fail although nothing is broken: %s\n", found)
		return errMissed
	}
	return nil
}

// run builds the mutant, and runs what could notice it: the cheap first, and no
// more than is needed.
func (l *laboratory) run(ctx context.Context, m *mutant) (findings, error) {
	dir := filepath.Join(l.dir, m.name)
	overlay, err := m.overlay(dir)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	found := findings{}
	engine, err := build(ctx, overlay, dir, "rollout")
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{unitTest, property} {
		if !l.all && kind == property && m.enough(found) {
			break
		}
		if found[kind], err = l.engineTests(ctx, engine, kind); err != nil {
			return nil, err
		}
	}
	if !l.all && m.enough(found) {
		return found, nil
	}
	simulator, err := build(ctx, overlay, dir, "simulate")
	if err != nil {
		return nil, err
	}
	failed, err := simulator.run(ctx, "-test.run", "^TestScenarios$", "-seeds", seeds)
	if err != nil {
		return nil, err
	}
	for _, name := range failed {
		if _, file, ok := strings.Cut(name, "/"); ok {
			found[scenario] = append(found[scenario], file)
		}
	}
	if !l.all && m.enough(found) {
		return found, nil
	}
	found[world], err = simulator.run(ctx, "-test.run", "^TestRandomWorlds$", "-worlds", worlds)
	found[world] = slices.DeleteFunc(found[world], func(name string) bool { return strings.Contains(name, "/") })
	return found, err
}

// engineTests runs the unit tests or the properties of the engine, and returns
// which of them failed.
func (l *laboratory) engineTests(ctx context.Context, engine *binary, kind string) ([]string, error) {
	properties := "^(" + strings.Join(l.properties, "|") + ")$"
	args := []string{"-test.skip", properties, "-rapid.checks", fewChecks}
	if kind == property {
		args = []string{"-test.run", properties, "-test.skip", skipped, "-rapid.checks", checks}
	}
	failed, err := engine.run(ctx, args...)
	for i := range failed {
		failed[i], _, _ = strings.Cut(failed[i], "/")
	}
	slices.Sort(failed)
	return slices.Compact(failed), err
}

// overlay writes the changed files into the directory, and the file that tells
// the go command of them, whose name it returns.
func (m *mutant) overlay(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	changed, err := m.apply()
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range changed {
		from, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[from] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, b, 0o600)
}

// binary is the test binary of a package.
type binary struct{ file, dir string }

func build(ctx context.Context, overlay, dir, pkg string) (*binary, error) {
	b := &binary{file: filepath.Join(dir, pkg+".test"), dir: pkg}
	out, err := command(ctx, "go", "test", "-c", "-overlay", overlay, "-ldflags=-s -w", "-o", b.file, "./"+pkg).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("cannot be built: %w\n%s", err, begin(string(out)))
	}
	return b, nil
}

// Lines of a test binary that name a test which failed, or did not end.
var (
	failedLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	hungLine   = regexp.MustCompile(`(?m)^\trunning tests:\n\t\t(\S+)`)
)

// run runs tests and returns the names of those that failed, subtests included.
// The binary has one processor: that decides which worlds are drawn.
func (b *binary) run(ctx context.Context, args ...string) ([]string, error) {
	args = append([]string{"-test.timeout", timeout, "-rapid.seed", seed, "-rapid.nofailfile", "-rapid.shrinktime", "0s"}, args...)
	c := command(ctx, b.file, args...)
	c.Dir = b.dir
	c.Env = append(os.Environ(), "GOMAXPROCS=1")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	var failed []string
	for _, re := range []*regexp.Regexp{failedLine, hungLine} {
		for _, match := range re.FindAllStringSubmatch(out.String(), -1) {
			failed = append(failed, match[1])
		}
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && !errors.As(err, &exit), err != nil && len(failed) == 0:
		return nil, fmt.Errorf("the tests of %s end without a result: %w\n%s", b.dir, err, begin(out.String()))
	}
	return failed, nil
}

// begin is the beginning of what was printed: it says what the rest follows
// from.
func begin(out string) string { return out[:min(len(out), 2000)] }

// command is one that ends with this program.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return c
}

// testsIn are the names of the tests in a file.
func testsIn(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, match[1])
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no tests", file)
	}
	return names, nil
}

// Command mutants breaks the engine, one fault at a time, and reports which
// tests and scenarios notice. A fault that nothing notices is a missing test.
//
// The faults are the *.txt files of the directory that it is given; see [parse]
// for their format. Each is built through Go's build overlay, so that no file of
// the repository changes. Random tests run with a fixed seed: a fault is
// noticed each time or never.
//
// Usage, from the root of the repository: mutants [flags] DIRECTORY. The exit
// status is 0 if every fault was noticed, 1 if one was not or if something fails
// although nothing is broken, 2 if a fault cannot be put in.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// errMissed: the mutants were run, and not all of them were noticed.
var errMissed = errors.New("not every mutant was noticed")

func main() {
	var o options
	flag.BoolVar(&o.check, "check", false, "only check that every mutant can be put into its file, and compiled")
	flag.BoolVar(&o.all, "all", false, "run everything for each mutant, although enough has noticed it")
	flag.StringVar(&o.run, "run", "", "only the mutants whose name matches this regular expression")
	flag.StringVar(&o.states, "states", "", "rather than run tests, explore every state of small pools within these bounds")
	flag.IntVar(&o.parallel, "parallel", 2, "how many mutants are run at a time")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: mutants [flags] DIRECTORY")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.main(ctx, flag.Arg(0), os.Stdout)
	stop()
	switch {
	case errors.Is(err, errMissed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		os.Exit(2)
	}
}

// options are those of one call of the program.
type options struct {
	check, all bool
	run        string
	states     string
	parallel   int
}

func (o *options) main(ctx context.Context, dir string, out io.Writer) error {
	list, err := load(dir)
	if err != nil {
		return err
	}
	if err := checkAll(list); err != nil {
		return err
	}
	if o.check {
		fmt.Fprintf(out, "mutants: all %d can be put in and compiled\n", len(list))
		return nil
	}
	chosen, err := choose(list, o.run)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if o.states != "" {
		return o.bite(ctx, tmp, chosen, out)
	}
	l := &laboratory{dir: tmp, all: o.all}
	if l.properties, err = testsIn("rollout/property_test.go"); err != nil {
		return err
	}
	start := time.Now()
	if err := l.baseline(ctx, out); err != nil {
		return err
	}
	noticed, err := o.runAll(ctx, l, chosen, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "mutants: %d of %d noticed, in %.0f s\n", noticed, len(chosen), time.Since(start).Seconds())
	if noticed < len(chosen) {
		return errMissed
	}
	return nil
}

// runAll runs the mutants, several at a time, prints one line for each in their
// order, and returns how many were noticed.
func (o *options) runAll(ctx context.Context, l *laboratory, list []*mutant, out io.Writer) (noticed int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		found findings
		err   error
	}
	outcomes := make([]chan outcome, len(list))
	for i := range outcomes {
		outcomes[i] = make(chan outcome, 1)
	}
	free := make(chan struct{}, max(1, o.parallel))
	go func() {
		for i, m := range list {
			free <- struct{}{}
			go func() {
				found, err := l.run(ctx, m)
				outcomes[i] <- outcome{found, err}
				<-free
			}()
		}
	}()
	for i, m := range list {
		got := <-outcomes[i]
		if ctx.Err() != nil {
			return noticed, ctx.Err()
		}
		if got.err != nil {
			err = errors.Join(err, fmt.Errorf("%s: %s: %w", m.source, m.name, got.err))
			continue
		}
		missing := m.missing(got.found)
		if len(missing) == 0 {
			noticed++
			fmt.Fprintf(out, "%s: %s\n", m.name, got.found)
			continue
		}
		fmt.Fprintf(out, "%s: MISSED by %s (%s): %s\n", m.name, strings.Join(missing, " and "), m.breaks, got.found)
	}
	return noticed, err
}

// choose returns the mutants whose name matches.
func choose(list []*mutant, pattern string) ([]*mutant, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	var chosen []*mutant
	for _, m := range list {
		if re.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutant has a name that matches %q", pattern)
	}
	return chosen, nil
}

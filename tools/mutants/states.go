package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// statesCommand is the program that explores every state of small pools.
const statesCommand = "./internal/states/cmd/states"

// bite explores every state of small pools with each mutant put in, within the bounds,
// and says which of them break a promise. One that cannot is to say so in its line
// states:, with what it would need. What is found although nothing is broken is known,
// and counts for none.
func (o *options) bite(ctx context.Context, dir string, list []*mutant, out io.Writer) error {
	start := time.Now()
	found, beyond, missed := 0, 0, 0
	known := filepath.Join(dir, "known")
	all, err := o.explore(ctx, filepath.Join(dir, "nothing"), &mutant{})
	if err == nil {
		err = os.WriteFile(known, []byte(strings.Join(all, "\n")), 0o600)
	}
	if err != nil {
		return fmt.Errorf("with nothing broken: %w", err)
	}
	for _, m := range list {
		list, err := o.explore(ctx, filepath.Join(dir, m.name), m, "-first", "-known", known)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("%s: %s: %w", m.source, m.name, err)
		case len(list) > 0:
			found++
			fmt.Fprintf(out, "%s: %s\n", m.name, list[0])
		case m.beyond != "":
			beyond++
			fmt.Fprintf(out, "%s: beyond these bounds, it needs %s\n", m.name, m.beyond)
		default:
			missed++
			fmt.Fprintf(out, "%s: MISSED (%s)\n", m.name, m.breaks)
		}
	}
	fmt.Fprintf(out, "states-bite: of %d mutants %d found in bounds %s, %d beyond them, %d missed, in %.0f s\n",
		len(list), found, o.states, beyond, missed, time.Since(start).Seconds())
	if missed > 0 {
		return errMissed
	}
	return nil
}

// explore is what is found with the mutant put in.
func (o *options) explore(ctx context.Context, dir string, m *mutant, args ...string) (found []string, err error) {
	overlay, err := m.overlay(dir)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "states")
	text, err := command(ctx, "go", "build", "-overlay", overlay, "-ldflags=-s -w", "-o", file, statesCommand).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("cannot be built: %w\n%s", err, begin(string(text)))
	}
	text, err = command(ctx, file, append(args, "-bounds", o.states, "-quiet")...).CombinedOutput()
	for line := range strings.Lines(string(text)) {
		if what, ok := strings.CutPrefix(line, "FOUND "); ok {
			found = append(found, strings.TrimSpace(what))
		}
	}
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || len(found) == 0) {
		return nil, fmt.Errorf("the states end without a result: %w\n%s", err, begin(string(text)))
	}
	return found, nil
}

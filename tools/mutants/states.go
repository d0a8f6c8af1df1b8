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
// states:, with what it would need.
func (o *options) bite(ctx context.Context, dir string, list []*mutant, out io.Writer) error {
	start := time.Now()
	found, beyond, missed := 0, 0, 0
	for _, m := range list {
		what, err := o.explore(ctx, filepath.Join(dir, m.name), m)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("%s: %s: %w", m.source, m.name, err)
		case what != "":
			found++
			fmt.Fprintf(out, "%s: %s\n", m.name, what)
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

// explore is what is found first with the mutant put in; empty for nothing.
func (o *options) explore(ctx context.Context, dir string, m *mutant) (string, error) {
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "states")
	if text, err := command(ctx, "go", "build", "-overlay", overlay, "-ldflags=-s -w", "-o", file, statesCommand).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot be built: %w\n%s", err, begin(string(text)))
	}
	text, err := command(ctx, file, "-bounds", o.states, "-first", "-quiet").CombinedOutput()
	var exit *exec.ExitError
	if err == nil {
		return "", nil
	}
	for line := range strings.Lines(string(text)) {
		if what, ok := strings.CutPrefix(line, "FOUND "); ok && errors.As(err, &exit) {
			return strings.TrimSpace(what), nil
		}
	}
	return "", fmt.Errorf("the states end without a result: %w\n%s", err, begin(string(text)))
}

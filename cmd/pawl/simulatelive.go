package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	liveplay "github.com/pawl-dev/pawl/internal/live"
	"github.com/pawl-dev/pawl/simulate"
)

// liveSimulation is what pawl simulate --live is told.
type liveSimulation struct {
	on bool
	liveplay.Options

	pawld string
}

func (l *liveSimulation) flags(f *pflag.FlagSet) {
	f.BoolVar(&l.on, "live", false, "play on a real API server, with the real controllers and simulated bodies")
	f.Float64Var(&l.Speed, "speed", 0, "with --live: how many seconds of a story pass in a real one while something happens; 0 is what suits the file")
	f.IntVar(&l.Workers, "parallel", 0, "with --live: how many files are played at once; 0 is as many as do well on two processors")
	f.StringVar(&l.pawld, "pawld", "", "with --live: the pawld to start; it is looked for in $PAWLD, beside this program and in PATH")
}

// run plays the files and prints how each fared, as soon as it is known.
func (l *liveSimulation) run(c *cobra.Command, args []string, output string, allowWaiting bool) (err error) {
	if output != "text" && output != "json" {
		return fmt.Errorf("--output must be text or json, not %q", output)
	}
	if err := l.Check(); err != nil {
		return err //nolint:wrapcheck // it names the flag
	}
	files, err := expand(args)
	if err != nil {
		return err
	}
	quiet()
	start := time.Now()
	config, stop, err := l.server(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	out := c.OutOrStdout()
	n := map[simulate.Verdict]int{}
	var printing error
	reports := liveplay.Play(c.Context(), config, files, l.Options, func(r *liveplay.Report) {
		n[r.Verdict()]++
		if output == "text" {
			printing = errors.Join(printing, printLive(out, c.ErrOrStderr(), r))
		}
	})
	if err := errors.Join(printing, c.Context().Err()); err != nil {
		return err
	}
	took := time.Since(start).Round(time.Second)
	if output == "json" {
		err = printLiveJSON(out, reports, n)
	} else {
		_, err = fmt.Fprintf(out, "scenarios-live: %d passed, %d failed, %d waiting, %d left out, in %s\n",
			n[simulate.Passed], n[simulate.Failed], n[simulate.Waiting], n[liveplay.LeftOut], took)
	}
	return cmp.Or(err, outcomeOf(n, allowWaiting))
}

// server is the API server to play on: the one of --kubeconfig, if that was
// said, or a pawld of its own.
func (l *liveSimulation) server(c *cobra.Command) (config *rest.Config, stop func() error, err error) {
	if f := c.Flag("kubeconfig"); f != nil && f.Changed {
		l.Clean = true
		config, err = clientcmd.BuildConfigFromFlags("", f.Value.String())
		if err != nil {
			return nil, nil, fmt.Errorf("--kubeconfig %s: %w", f.Value, err)
		}
		return config, func() error { return nil }, nil
	}
	path, err := liveplay.FindPawld(l.pawld)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // it names the flag
	}
	s, err := liveplay.StartServer(context.WithoutCancel(c.Context()), path)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // it names the program
	}
	return s.Config, s.Stop, nil
}

// printLive prints how a file fared, in one line if it fared well.
func printLive(out, problems io.Writer, r *liveplay.Report) error {
	var b strings.Builder
	switch r.Verdict() {
	case simulate.Wrong:
		_, err := fmt.Fprintln(problems, r.Err)
		return err //nolint:wrapcheck // it is the output's own
	case simulate.Waiting:
		fmt.Fprintf(&b, "wait  %s: needs %s\n", r.Scenario.Name, strings.Join(r.Scenario.Needs, ", "))
	case liveplay.LeftOut:
		fmt.Fprintf(&b, "skip  %s: %s\n", r.Scenario.Name, r.Scenario.Unlive())
	case simulate.Passed:
		fmt.Fprintf(&b, "ok    %s, %s in %s\n", r.Scenario.Name, r.Result.End, r.Result.Took.Round(100*time.Millisecond))
	default:
		fmt.Fprintf(&b, "FAIL  %s\n", r.Scenario.Name)
		if r.Err != nil {
			fmt.Fprintf(&b, "      %v\n", r.Err)
			break
		}
		for _, f := range r.Result.Failures {
			fmt.Fprintf(&b, "      %v: %s\n", f.At, f.Words(r.File))
			fmt.Fprintf(&b, "        %s\n", strings.ReplaceAll(f.State, "\n", "\n        "))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err //nolint:wrapcheck // it is the output's own
}

// toldLive is one file's report in JSON.
type toldLive struct {
	File    string           `json:"file"`
	Name    string           `json:"name,omitempty"`
	Verdict simulate.Verdict `json:"verdict"`
	Needs   []string         `json:"needs,omitempty"`
	Error   string           `json:"error,omitempty"`
	Result  *liveplay.Result `json:"result,omitempty"`
}

func printLiveJSON(out io.Writer, reports []liveplay.Report, n map[simulate.Verdict]int) error {
	doc := struct {
		Scenarios []toldLive `json:"scenarios"`
		Passed    int        `json:"passed"`
		Failed    int        `json:"failed"`
		Waiting   int        `json:"waiting"`
		LeftOut   int        `json:"leftOut"`
		Wrong     int        `json:"wrong"`
	}{[]toldLive{}, n[simulate.Passed], n[simulate.Failed], n[simulate.Waiting], n[liveplay.LeftOut], n[simulate.Wrong]}
	for i := range reports {
		r := &reports[i]
		t := toldLive{File: r.File, Verdict: r.Verdict(), Result: r.Result}
		if r.Err != nil {
			t.Error = r.Err.Error()
		}
		if r.Scenario != nil {
			t.Name, t.Needs = r.Scenario.Name, r.Scenario.Needs
		}
		doc.Scenarios = append(doc.Scenarios, t)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(doc) //nolint:wrapcheck // it is the output's own
}

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/simulate"
)

// exitError is an error that has been told already; what is left to do is to
// exit with it.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// The exit statuses of pawl simulate.
const (
	errSomeFailed exitError = 1
	errSomeWrong  exitError = 2
	errSomeWait   exitError = 3
)

func newSimulateCommand() *cobra.Command {
	s := &simulation{}
	c := &cobra.Command{
		Use:   "simulate FILE...",
		Short: "Play scenario files in virtual time, or on a real API server",
		Long: `Play scenario files in virtual time, around the engine that the controllers use.

A directory stands for the .yaml files in it. The format is described in scenarios/FORMAT.md.
The same file and seed always print the same bytes.

With --live they are played on a real API server, by the real controllers, with simulated bodies and
time that passes faster. Nothing else may run Pawl's controllers there: with --kubeconfig it is the
server that is named; without, a pawld is started for it.

Exit status: 0 if all expectations hold, 1 if some do not, 2 if a file is wrong, 3 if none failed and
some wait for what is not built yet; with --allow-waiting that is 0.`,
		Example: `  pawl simulate scenarios/*.yaml
  pawl simulate scenarios/claim-beats-rollout.yaml --seeds 20
  pawl simulate scenarios/bad-template-no-surge.yaml --narrate
  pawl simulate scenarios --live`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if s.live.on {
				return s.live.run(c, args, s.output, s.allowWaiting)
			}
			return s.run(args, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.Int64Var(&s.seed, "seed", 1, "the first seed; 1 takes every time as the file says it")
	f.IntVar(&s.seeds, "seeds", 1, "how many seeds to play each file under")
	f.BoolVar(&s.narrate, "narrate", false, "tell in plain English what happens")
	f.BoolVar(&s.allowWaiting, "allow-waiting", false, "exit with 0 although some files wait for what is not built yet")
	f.StringVarP(&s.output, "output", "o", "text", "text or json")
	s.live.flags(f)
	return c
}

// simulation is one call of the command.
type simulation struct {
	seed    int64
	seeds   int
	narrate bool
	output  string
	// allowWaiting: files that wait for what is not built are no reason to fail.
	allowWaiting bool
	live         liveSimulation
}

func (s *simulation) run(args []string, out, problems io.Writer) error {
	if s.output != "text" && s.output != "json" {
		return fmt.Errorf("--output must be text or json, not %q", s.output)
	}
	if s.seeds < 1 {
		return fmt.Errorf("--seeds must be 1 or more, not %d", s.seeds)
	}
	files, err := expand(args)
	if err != nil {
		return err
	}
	o := simulate.Options{Narrate: s.narrate}
	for i := range s.seeds {
		o.Seeds = append(o.Seeds, s.seed+int64(i))
	}
	reports := simulate.Play(files, o)
	n := map[simulate.Verdict]int{}
	for i := range reports {
		n[reports[i].Verdict()]++
	}
	if s.output == "json" {
		err = printJSON(out, reports, n)
	} else {
		err = s.print(out, problems, reports, n)
	}
	return cmp.Or(err, outcomeOf(n, s.allowWaiting))
}

// outcomeOf is the error with which so many verdicts end the program.
func outcomeOf(n map[simulate.Verdict]int, allowWaiting bool) error {
	switch {
	case n[simulate.Wrong] > 0:
		return errSomeWrong
	case n[simulate.Failed] > 0:
		return errSomeFailed
	case n[simulate.Waiting] > 0 && !allowWaiting:
		return errSomeWait
	}
	return nil
}

// expand replaces directories by the scenario files in them.
func expand(args []string) ([]string, error) {
	var files []string
	for _, a := range args {
		if i, err := os.Stat(a); err != nil || !i.IsDir() {
			files = append(files, a) // what cannot be read is said when it is
			continue
		}
		list, err := filepath.Glob(filepath.Join(a, "*.yaml"))
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", a, err)
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("there is no .yaml file in %s", a)
		}
		files = append(files, list...)
	}
	return files, nil
}

// print tells how each file fared, one line each if it fared well.
func (s *simulation) print(out, problems io.Writer, reports []simulate.Report, n map[simulate.Verdict]int) error {
	var b strings.Builder
	for i := range reports {
		r := &reports[i]
		switch r.Verdict() {
		case simulate.Wrong:
			if _, err := fmt.Fprintln(problems, r.Err); err != nil {
				return err
			}
		case simulate.Waiting:
			fmt.Fprintf(&b, "wait  %s: needs %s\n", r.Scenario.Name, strings.Join(r.Scenario.Needs, ", "))
		default:
			s.printRuns(&b, r)
		}
	}
	fmt.Fprintf(&b, "scenarios: %d passed, %d failed, %d waiting", n[simulate.Passed], n[simulate.Failed], n[simulate.Waiting])
	if wrong := n[simulate.Wrong]; wrong > 0 {
		fmt.Fprintf(&b, ", %d wrong", wrong)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(out, b.String())
	return err
}

func (s *simulation) printRuns(b *strings.Builder, r *simulate.Report) {
	if s.narrate {
		for _, run := range r.Results {
			fmt.Fprintf(b, "%s\n", run)
		}
	}
	if r.Verdict() == simulate.Passed {
		fmt.Fprintf(b, "ok    %s\n", r.Scenario.Name)
		return
	}
	fmt.Fprintf(b, "FAIL  %s\n", r.Scenario.Name)
	var others []string
	for _, run := range r.Results {
		switch {
		case run.Passed():
			continue
		case others != nil:
			others = append(others, fmt.Sprint(run.Seed))
			continue
		}
		others = []string{}
		for _, f := range run.Failures {
			fmt.Fprintf(b, "      seed %d, %v: %s\n", run.Seed, f.At, f.Words(r.File))
			fmt.Fprintf(b, "        %s\n", strings.ReplaceAll(f.State, "\n", "\n        "))
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(b, "      and under %d more of %d seeds: %s\n", len(others), len(r.Results), strings.Join(others, " "))
	}
}

// told is one file's report in JSON.
type told struct {
	File    string             `json:"file"`
	Name    string             `json:"name,omitempty"`
	Verdict simulate.Verdict   `json:"verdict"`
	Needs   []string           `json:"needs,omitempty"`
	Errors  []string           `json:"errors,omitempty"`
	Results []*simulate.Result `json:"results,omitempty"`
}

func printJSON(out io.Writer, reports []simulate.Report, n map[simulate.Verdict]int) error {
	doc := struct {
		Scenarios []told `json:"scenarios"`
		Passed    int    `json:"passed"`
		Failed    int    `json:"failed"`
		Waiting   int    `json:"waiting"`
		Wrong     int    `json:"wrong"`
	}{[]told{}, n[simulate.Passed], n[simulate.Failed], n[simulate.Waiting], n[simulate.Wrong]}
	for i := range reports {
		r := &reports[i]
		t := told{File: r.File, Verdict: r.Verdict(), Errors: lines(r.Err), Results: r.Results}
		if r.Scenario != nil {
			t.Name, t.Needs = r.Scenario.Name, r.Scenario.Needs
		}
		doc.Scenarios = append(doc.Scenarios, t)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}

// lines are the errors that were joined, one string each.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []string{err.Error()}
	}
	var list []string
	for _, e := range joined.Unwrap() {
		list = append(list, e.Error())
	}
	return list
}

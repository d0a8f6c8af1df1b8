// Command states explores every state that small pools can come to, within bounds, and
// checks the engine's promises in each. See package states.
//
// A finding is printed and written as a scenario file of a shortest path to it, which
// pawl simulate plays. The last line says the bounds, how many states and edges there
// are, whether that is all, and what was found. The exit status is 0 if nothing was
// found, 1 if something was, and 2 for wrong flags.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/states"
)

func main() {
	c := &command{out: os.Stdout}
	bounds := flag.String("bounds", "2/1/1", "slots/users/faults of pools in service, or with fresh: before it of new ones; several with commas between")
	known := flag.String("known", "", "a file of messages of findings that are known; lines that begin with # are comments")
	flag.StringVar(&c.dir, "dir", "", "the directory to which scenario files of findings are written")
	flag.IntVar(&c.most, "most", 0, "how many states of one start are explored, at most; 0 for all")
	flag.IntVar(&c.workers, "workers", 2, "how many starts are explored at a time")
	flag.IntVar(&c.policy, "policy", -1, "only the policy of this number")
	flag.BoolVar(&c.first, "first", false, "end with the first finding")
	flag.BoolVar(&c.quiet, "quiet", false, "print no line for each start")
	flag.Parse()
	err := c.parse(*bounds, *known)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "states:", err)
		os.Exit(2)
	}
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, "states:", err)
		os.Exit(1)
	}
	if len(c.found) > 0 {
		os.Exit(1)
	}
}

// command is one call of the program.
type command struct {
	out                   io.Writer
	dir                   string
	bounds                []states.Bounds
	known                 []string
	most, workers, policy int
	first, quiet          bool

	mu            sync.Mutex
	states, edges int
	incomplete    bool
	// found are messages, with the number of starts from which each was found.
	found []string
	err   error
}

func (c *command) parse(bounds, known string) error {
	for s := range strings.SplitSeq(bounds, ",") {
		b, err := states.ParseBounds(s)
		if err != nil {
			return err
		}
		c.bounds = append(c.bounds, b)
	}
	if known == "" {
		return nil
	}
	text, err := os.ReadFile(known)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			c.known = append(c.known, line)
		}
	}
	return nil
}

// run explores every start under every policy, several at a time.
func (c *command) run() error {
	began := time.Now()
	var wg sync.WaitGroup
	work := make(chan *states.Exploration)
	for range c.workers {
		wg.Go(func() {
			for x := range work {
				c.explore(x)
			}
		})
	}
	policies := states.Policies()
	for _, b := range c.bounds {
		for i, p := range policies {
			if c.policy < 0 || c.policy == i {
				work <- &states.Exploration{Policy: p, Bounds: b, Most: c.most, Known: c.known, Findings: 5}
			}
		}
	}
	close(work)
	wg.Wait()
	complete, found := "complete", "nothing found"
	if c.incomplete {
		complete = "not complete"
	}
	if n := len(c.found); n > 0 {
		found = fmt.Sprintf("%d found", n)
	}
	fmt.Fprintf(c.out, "states: %d policies in bounds %s: %d states, %d edges, %s, %s, in %.0f s\n",
		len(policies), strings.Join(names(c.bounds), " "), c.states, c.edges, complete, found, time.Since(began).Seconds())
	return c.err
}

func names(list []states.Bounds) (out []string) {
	for _, b := range list {
		out = append(out, b.String())
	}
	return out
}

// explore explores one start and says what came of it.
func (c *command) explore(x *states.Exploration) {
	c.mu.Lock()
	over := c.first && len(c.found) > 0
	x.Known = append(slices.Clip(x.Known), c.found...)
	c.mu.Unlock()
	if c.first {
		x.Findings = 1
	}
	if over {
		return
	}
	began := time.Now()
	r := x.Run()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states += r.States
	c.edges += r.Edges
	c.incomplete = c.incomplete || !r.Complete
	if !c.quiet {
		fmt.Fprintf(c.out, "%s %s: %d states, %d edges, complete %t, in %.1f s\n", x.Bounds, x.Policy, r.States, r.Edges, r.Complete, time.Since(began).Seconds())
	}
	for i := range r.Findings {
		c.report(&r.Findings[i])
	}
}

// report prints a finding, and writes its scenario.
func (c *command) report(f *states.Finding) {
	c.found = append(c.found, f.Message)
	fmt.Fprintf(c.out, "FOUND %s\n", f)
	if c.dir == "" {
		return
	}
	name := fmt.Sprintf("found-%d", len(c.found))
	file := filepath.Join(c.dir, name+".yaml")
	err := os.MkdirAll(c.dir, 0o750)
	if err == nil {
		err = os.WriteFile(file, []byte(f.Scenario(name)), 0o600)
	}
	if err != nil {
		c.err = err
		return
	}
	fmt.Fprintln(c.out, "   pawl simulate", file)
}

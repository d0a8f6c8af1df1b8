package simulate

import (
	"runtime"
	"sync"
)

// Options are the options of Play.
type Options struct {
	// Seeds are those under which each file is played, in this order; only 1 if
	// empty.
	Seeds []int64
	// Narrate adds narratives to the results.
	Narrate bool
	// Workers is the number of parallel runs; 0 for one per processor.
	Workers int
}

// Report is the outcome of one file.
type Report struct {
	File string
	// Err has the errors in the file, of type [Error], joined; nil for none.
	Err error
	// Scenario is the parsed file, if Err is nil.
	Scenario *Scenario
	// Results are in the order of the seeds; none if the scenario waits.
	Results []*Result
}

// Verdict sums up a Report in one word.
type Verdict string

// The verdicts.
const (
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
	Waiting Verdict = "waiting"
	Wrong   Verdict = "wrong"
)

// Verdict sums up the report. A scenario waits if it needs features that the
// simulator does not have yet.
func (r *Report) Verdict() Verdict {
	switch {
	case r.Err != nil:
		return Wrong
	case len(r.Scenario.Needs) > 0:
		return Waiting
	}
	for _, run := range r.Results {
		if !run.Passed() {
			return Failed
		}
	}
	return Passed
}

// Play loads the files and plays each under every seed, several at once. The
// reports are in the order of the files.
func Play(files []string, o Options) []Report {
	if len(o.Seeds) == 0 {
		o.Seeds = []int64{1}
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	reports := make([]Report, len(files))
	var wg sync.WaitGroup
	work := make(chan func())
	for range o.Workers {
		wg.Go(func() {
			for do := range work {
				do()
			}
		})
	}
	for i, file := range files {
		r := &reports[i]
		r.File = file
		r.Scenario, r.Err = Load(file)
		if r.Err != nil || len(r.Scenario.Needs) > 0 {
			continue
		}
		r.Results = make([]*Result, len(o.Seeds))
		for k, seed := range o.Seeds {
			work <- func() { r.Results[k] = r.Scenario.Run(seed, o.Narrate) }
		}
	}
	close(work)
	wg.Wait()
	return reports
}

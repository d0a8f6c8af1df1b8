package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/simulate"
)

// Options say how scenarios are played.
type Options struct {
	// Speed is how many seconds of a story pass in a real one while something
	// happens; 0 for what suits the file.
	Speed float64
	// Workers is how many files are played at once; 0 for as many as do well on
	// two processors.
	Workers int
	// Clean removes from the API server what a story leaves there.
	Clean bool
}

// Check says what is wrong with the options.
func (o *Options) Check() error {
	if o.Speed < 0 || math.IsNaN(o.Speed) || math.IsInf(o.Speed, 0) {
		return fmt.Errorf("--speed must be more than 0, not %v", o.Speed)
	}
	return nil
}

// workers is how many files are played at once by default.
const workers = 10

// Result is how a performance went.
type Result struct {
	Scenario string `json:"scenario"`
	// Failures in the order in which they broke; none if all held.
	Failures []simulate.Failure `json:"failures,omitempty"`
	// Pools are what each has come to, by name.
	Pools map[string]Counts `json:"pools"`
	// End is when the story ended, Speed how fast it went while something
	// happened, Took how long it took in all, and Writes how many writes there
	// were.
	End    simulate.Time `json:"end"`
	Speed  float64       `json:"speed"`
	Took   time.Duration `json:"took"`
	Writes int           `json:"writes"`
}

// Report is how one file fared.
type Report struct {
	File string
	// Err is what is wrong with the file, or why it could not be played.
	Err      error
	Scenario *simulate.Scenario
	// Result is nil if it was not played.
	Result *Result
}

// LeftOut is the verdict on a file that cannot be played on a real API server.
const LeftOut simulate.Verdict = "left out"

// Verdict sums the report up.
func (r *Report) Verdict() simulate.Verdict {
	switch {
	case r.Scenario == nil:
		return simulate.Wrong
	case len(r.Scenario.Needs) > 0:
		return simulate.Waiting
	case r.Scenario.Unlive() != "":
		return LeftOut
	case r.Err != nil || r.Result == nil || len(r.Result.Failures) > 0:
		return simulate.Failed
	}
	return simulate.Passed
}

// Play plays the files on the API server, several at once, and tells of each as
// it ends, until ctx ends. The reports are in the order of the files.
func Play(ctx context.Context, config *rest.Config, files []string, o Options, told func(*Report)) []Report {
	if o.Workers <= 0 {
		o.Workers = workers
	}
	reports := make([]Report, len(files))
	var wg sync.WaitGroup
	var telling sync.Mutex
	work := make(chan *Report)
	for range o.Workers {
		wg.Go(func() {
			for r := range work {
				if ctx.Err() != nil {
					continue
				}
				r.play(ctx, config, o)
				telling.Lock()
				told(r)
				telling.Unlock()
			}
		})
	}
	for i, file := range files {
		reports[i].File = file
		reports[i].Scenario, reports[i].Err = simulate.Load(file)
	}
	for _, i := range longest(reports) {
		work <- &reports[i]
	}
	close(work)
	wg.Wait()
	return reports
}

// longest is the order in which reports are begun: those first that take the
// longest.
func longest(reports []Report) []int {
	order := make([]int, len(reports))
	work := make([]int, len(reports))
	for i := range reports {
		order[i] = i
		if reports[i].toPlay() {
			work[i] = effort(reports[i].Scenario.Stage())
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(work[b], work[a]) })
	return order
}

// effort is about how much there is to do in a story.
func effort(s *simulate.Stage) (n int) {
	for i := range s.Pools {
		n += len(s.Pools[i].Members)
	}
	for i := range s.Timeline {
		n += len(s.Timeline[i].Edits)
	}
	return n
}

// toPlay tells whether the file can be played.
func (r *Report) toPlay() bool {
	return r.Err == nil && r.Scenario != nil && len(r.Scenario.Needs) == 0 && r.Scenario.Unlive() == ""
}

func (r *Report) play(ctx context.Context, config *rest.Config, o Options) {
	if r.toPlay() {
		r.Result, r.Err = Run(ctx, config, r.Scenario, o)
	}
}

// Run plays a scenario, which must have no needs, on the API server. The
// controllers of Pawl must not run there.
func Run(ctx context.Context, config *rest.Config, s *simulate.Scenario, o Options) (*Result, error) {
	start := time.Now()
	r, err := newRun(s, o, config)
	if err != nil {
		return nil, err
	}
	err = r.play(ctx)
	if o.Clean {
		err = errors.Join(err, r.clean(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return nil, err
	}
	res := &Result{
		Scenario: s.Name, Pools: map[string]Counts{}, End: simulate.Time(r.now()), Speed: r.speed, Writes: r.traffic.writes(),
	}
	creates, deletes := 0, 0
	var order []int
	for name, p := range r.book.pools {
		p.counts.LowestFree = r.free[name]
		res.Pools[name] = p.counts
		creates += p.counts.Creates
		deletes += p.counts.Deletes
		order = p.counts.Order
	}
	res.Failures = r.judge.Finish(r.now(), creates, deletes, order)
	res.Took = time.Since(start)
	return res, nil
}

// newUser is the access of those who tell the story.
func (r *run) newUser() (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	config := rest.CopyConfig(r.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &road{next, r.traffic, &atomic.Bool{}} })
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	return c, nil
}

// namespaceOf is a new name for a namespace, which tells the story's.
func namespaceOf(story string) string {
	const most, random = 63, 6
	name := "live-" + story
	if len(name) > most-random-1 {
		name = name[:most-random-1]
	}
	return name + "-" + strings.ToLower(rand.Text()[:random])
}

// nature has bodies behave as the story says.
func (r *run) nature(t *v1alpha1.Sim) *v1alpha1.Sim {
	if t.Version == nil {
		return t
	}
	b := r.stage.Nature.Of(*t.Version)
	if b.Outcome == simulate.FlapOutcome {
		b.Outcome = "Ready" // what else becomes of it is done by whoever plays the story
	}
	span := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	return &v1alpha1.Sim{
		Version: t.Version, Boot: span(b.Boot), Stop: span(b.Stop), Drain: span(b.Drain), After: span(b.After), Outcome: &b.Outcome,
	}
}

//go:build integration

package live

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/internal/pawldtest"
	"github.com/pawl-dev/pawl/simulate"
)

func TestMain(m *testing.M) {
	os.Exit(pawldtest.Main(m, pawldtest.WithoutControllers(), pawldtest.WithSim()))
}

// Files that between them have late reads, crashes, claims and several pools.
func TestPlay(t *testing.T) {
	t.Parallel()
	var files []string
	for _, name := range []string{"claim-beats-rollout", "restart-after-last-delete", "percent-rounding", "no-synced-replica-defers"} {
		files = append(files, "../../scenarios/"+name+".yaml")
	}
	var told []string
	reports := Play(t.Context(), pawldtest.Shared(t).Config, files, Options{}, func(r *Report) { told = append(told, r.File) })
	slices.Sort(told)
	if want := slices.Sorted(slices.Values(files)); !slices.Equal(told, want) {
		t.Errorf("it is told of %q", told)
	}
	for i := range reports {
		r := &reports[i]
		want := simulate.Passed
		if len(r.Scenario.Needs) > 0 {
			want = simulate.Waiting
		}
		if r.Verdict() == want {
			continue
		}
		t.Errorf("%s: %s, %v", r.File, r.Verdict(), r.Err)
		if r.Result != nil {
			for _, f := range r.Result.Failures {
				t.Errorf("%v: %s\n%s", f.At, f.Words(r.File), f.State)
			}
		}
	}
}

// What does not hold is told with the time, the expression and the state, and
// what came of the run is counted.
func TestRun_Failure(t *testing.T) {
	t.Parallel()
	s, err := simulate.Parse("", []byte(`
name: it-fails
pool: {replicas: 3, update: {type: RollingUpdate, maxUnavailable: 1}}
timeline:
  - {at: 10s, revise: B}
  - {at: 5m, member: 1, health: Down}
  - {at: 6m, member: 1, health: Up}
run: 10m
expect:
  always: ["free >= 2"]
  never: ["rolling > 0"]
  at: {1m: ["updated == 3"]}
  finally: ["updated == 3 && conditions.Updated.reason == 'AllMembersCurrent'"]
  creates: 2
  deletes: 3
  order: [0, 2]
`))
	if err != nil {
		t.Fatal(err)
	}
	config := pawldtest.Shared(t).Config
	got, err := Run(t.Context(), config, s, Options{Clean: true})
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, f := range got.Failures {
		words = append(words, f.Words("f"))
		if !strings.Contains(f.State, "pool: target B, current") {
			t.Errorf("the state is %q", f.State)
		}
	}
	want := []string{
		"never: rolling > 0 (f:11)", "at 1m0s: updated == 3 (f:12)", "creates: 2: there were 3 (f:14)",
		"order: [0 2]: it was [0 1 2] (f:16)",
	}
	if diff := cmp.Diff(want, words); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
	if first := time.Duration(got.Failures[0].At); first < 10*time.Second || first > 15*time.Second {
		t.Errorf("the first is of %s, want soon after 10s", first)
	}
	counts := map[string]Counts{"pool": {Creates: 3, Deletes: 3, Order: []int{0, 1, 2}, LowestFree: 2}}
	if diff := cmp.Diff(counts, got.Pools); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if took := time.Duration(got.End); took != 10*time.Minute {
		t.Errorf("it ended at %s", took)
	}
	left(t, "live-it-fails-")
}

// left makes sure that nothing holds a namespace any more whose story is over.
func left(t *testing.T, prefix string) {
	t.Helper()
	r := &run{config: pawldtest.Shared(t).Config, traffic: newTraffic()}
	c, err := r.newUser()
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.NamespaceList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		ns := &list.Items[i]
		if !strings.HasPrefix(ns.Name, prefix) {
			continue
		}
		if ns.DeletionTimestamp.IsZero() {
			t.Errorf("namespace %s is left", ns.Name)
		}
		for _, kind := range kinds() {
			if err := c.List(t.Context(), kind, client.InNamespace(ns.Name)); err != nil {
				t.Fatal(err)
			}
			if n := meta.LenList(kind); n > 0 {
				t.Errorf("%d of %T are left in namespace %s", n, kind, ns.Name)
			}
		}
	}
}

//go:build integration

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// kills is how often pawld is killed, at random instants of rolling updates.
const kills = 20

// TestKill kills pawld with SIGKILL again and again while it rolls six
// processes, one of which is claimed. Whatever the instant: the claim stands
// and its process lives on, each other member is replaced exactly once for
// each new template, never two are out of service at once, and in the end no
// process is left over.
func TestKill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	server := pawldtest.Start(t)
	w := newWorld(t, server.Config)
	const n = 6
	pool := w.processPool("fleet", n, "1")
	w.create(pool)
	w.updated("fleet", n)
	c := w.claim("mine", "fleet")
	held, err := ask(t.Context(), c.Status.Address)
	if err != nil {
		t.Fatal(err)
	}
	others := newSampler(w.members("fleet"), c.Status.Member)
	ctx, stop := context.WithCancel(t.Context())
	sampled := make(chan struct{})
	go func() { defer close(sampled); others.run(ctx) }()

	version, killed := 1, 0
	for killed < kills {
		version++
		w.edit("fleet", func(p *v1alpha1.Pool) {
			p.Spec.Template.Process.Env[envVersion] = fmt.Sprint(version)
		})
		for killed < kills && !w.rolled("fleet", int64(version)) {
			// The instant is what the test varies; nothing waits for it.
			time.Sleep(time.Duration(random.Int64N(int64(1200 * time.Millisecond))))
			server.Kill()
			killed++
			if err := server.Restart(); err != nil {
				t.Fatalf("after kill %d: %v", killed, err)
			}
		}
		w.eventually("rolled", func() error {
			if !w.rolled("fleet", int64(version)) {
				return errors.New(describe(w.pool("fleet")))
			}
			return nil
		})
	}
	stop()
	<-sampled

	t.Logf("%d kills in %d rollouts; at most %d of 5 out of service at once, in %d samples", killed, version-1, others.worst, others.samples)
	if others.worst > 1 {
		t.Errorf("%d members were out of service at once", others.worst)
	}
	if a, err := ask(t.Context(), c.Status.Address); err != nil || a != held {
		t.Errorf("the claimed process was %+v and is %+v (%v)", held, a, err)
	}
	w.eventually("the claim stands", func() error {
		if now := w.claimed(c); now.Status.Phase != v1alpha1.ClaimBound || now.Status.Member != c.Status.Member {
			return fmt.Errorf("claim %+v", now.Status)
		}
		return nil
	})
	for _, m := range w.members("fleet") {
		want := int64(version)
		if m.Name == c.Status.Member {
			want = 1
		}
		if m.Status.Incarnation != want {
			t.Errorf("member %s is in incarnation %d instead of %d", m.Name, m.Status.Incarnation, want)
		}
	}
	if pids := w.processes(); len(pids) != n {
		t.Errorf("%d processes instead of %d: %v", len(pids), n, pids)
	}
	if err := errors.Join(w.c.Delete(t.Context(), c), w.c.Delete(t.Context(), pool)); err != nil {
		t.Fatal(err)
	}
	w.gone(pool)
	if pids := w.processes(); len(pids) != 0 {
		t.Errorf("processes left over: %v", pids)
	}
}

// rolled tells whether all but the claimed member stand in the incarnation,
// and nothing moves.
func (w *world) rolled(pool string, incarnation int64) bool {
	w.t.Helper()
	p := w.pool(pool)
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionUpdated)
	if c == nil || c.Reason != "UpdateBlocked" || p.Status.ObservedGeneration != p.Generation {
		return false
	}
	for _, m := range w.members(pool) {
		if m.Spec.Claim == nil && (m.Status.Incarnation != incarnation || m.Status.Phase != v1alpha1.PhaseAvailable) {
			return false
		}
	}
	return true
}

func (w *world) claimed(c *v1alpha1.Claim) *v1alpha1.Claim {
	w.t.Helper()
	var now v1alpha1.Claim
	if err := w.c.Get(w.t.Context(), client.ObjectKeyFromObject(c), &now); err != nil {
		w.t.Fatal(err)
	}
	return &now
}

// sampler asks the unclaimed members over and over whether they serve.
type sampler struct {
	addresses      []string
	worst, samples int
}

func newSampler(members []v1alpha1.Member, but string) *sampler {
	s := &sampler{}
	for _, m := range members {
		if m.Name != but {
			s.addresses = append(s.addresses, m.Status.Address)
		}
	}
	return s
}

// run samples until ctx ends. A sample asks all at once, so that it is of one
// instant as far as that goes.
func (s *sampler) run(ctx context.Context) {
	for ctx.Err() == nil {
		down := s.down(ctx)
		if ctx.Err() != nil {
			return
		}
		s.samples++
		s.worst = max(s.worst, down)
		select {
		case <-ctx.Done():
		case <-time.After(15 * time.Millisecond):
		}
	}
}

func (s *sampler) down(ctx context.Context) int {
	var mu sync.Mutex
	var wg sync.WaitGroup
	down := 0
	for _, a := range s.addresses {
		wg.Go(func() {
			if _, err := ask(ctx, a); err != nil {
				mu.Lock()
				defer mu.Unlock()
				down++
			}
		})
	}
	wg.Wait()
	return down
}

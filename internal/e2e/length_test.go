//go:build integration

package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// BenchmarkRolloutLength says how much longer a rollout takes on a real API
// server than it has to: n members in ⌈n/b⌉ waves of one replacement each, from
// the edit of the template until a watch shows every member free on the target.
// Design section 6 allows 1.15 on an idle machine.
func BenchmarkRolloutLength(b *testing.B) {
	const n, budget, boot, stop = 200, 20, 4 * time.Second, time.Second
	w := newWorld(b, pawldtest.Start(b, pawldtest.WithSim()).Config)
	p := &v1alpha1.Pool{
		ObjectMeta: metav1.ObjectMeta{Name: "long", Namespace: w.namespace},
		Spec: v1alpha1.PoolSpec{
			Replicas: new(int32(n)),
			Update:   &v1alpha1.Update{Type: new(v1alpha1.UpdateRollingUpdate), MaxUnavailable: intOrString(budget)},
			Template: v1alpha1.Template{Sim: &v1alpha1.Sim{
				Version: new("1"), Boot: &metav1.Duration{Duration: boot}, Stop: &metav1.Duration{Duration: stop},
			}},
		},
	}
	w.create(p)
	w.updated(p.Name, n)
	var took time.Duration
	for version := 2; b.Loop(); version++ {
		p = w.pool(p.Name)
		next := p.DeepCopy()
		next.Spec.Template.Sim.Version = new(string(rune('0' + version)))
		begin := time.Now()
		if err := w.c.Patch(b.Context(), next, client.MergeFrom(p)); err != nil {
			b.Fatal(err)
		}
		w.standsAfter(p.Name, n, p.Generation)
		took = time.Since(begin)
	}
	b.ReportMetric(float64(took)/float64(n/budget*(boot+stop)), "x-ideal")
	b.ReportMetric(took.Seconds(), "s/rollout")
}

// standsAfter watches until all n members of the pool are free on a target that came
// after the generation.
func (w *world) standsAfter(pool string, n int32, after int64) {
	w.t.Helper()
	events, err := w.c.Watch(w.t.Context(), &v1alpha1.PoolList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.t.Fatal(err)
	}
	defer events.Stop()
	late := time.NewTimer(5 * deadline)
	defer late.Stop()
	for {
		select {
		case e := <-events.ResultChan():
			p, ok := e.Object.(*v1alpha1.Pool)
			if ok && p.Name == pool && p.Status.ObservedGeneration > after && p.Status.Updated == n && p.Status.Free == n {
				return
			}
		case <-late.C:
			w.t.Fatalf("%s is not rolled: %s", pool, describe(w.pool(pool)))
		}
	}
}

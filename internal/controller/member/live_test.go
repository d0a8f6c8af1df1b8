package member

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// While live fields cannot be applied, what comes by time alone comes in time:
// the end of a boot, a look at what nobody watches; and they are tried again
// within a minute for ever.
func TestReconciler_stuck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		change func(*bench, *v1alpha1.Member)
		want   []time.Duration
	}{
		"serving": {"it is tried again less and less often", func(*bench, *v1alpha1.Member) {}, []time.Duration{
			time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute,
		}},
		"looked at": {"more often, where nobody tells of changes", func(b *bench, _ *v1alpha1.Member) {
			b.all.Recheck = 3 * time.Second
		}, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member) {
				p.Spec.Template.LiveFields = []string{"sim.version"}
				m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "InService"}}
				tt.change(b, m)
			})
			b.failLive = errors.New("no such luck")
			if _, err := b.once(); err != nil { // which says it
				t.Fatal(err)
			}
			b.live.failures = nil
			var got []time.Duration
			for range tt.want {
				r, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r.RequeueAfter)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tt.reason, diff)
			}
			b.failLive = nil
			if _, err := b.once(); err != nil || len(b.live.failures) != 0 {
				t.Errorf("that it ever failed is forgotten in the end: %v, %v", b.live.failures, err)
			}
		})
	}
}

// A body that boots and takes no live fields fails at bootTimeout.
func TestReconciler_stuckBoot(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member) {
		p.Spec.Template.LiveFields = []string{"sim.version"}
		p.Spec.Template.BootTimeout = &metav1.Duration{Duration: 90 * time.Second}
		at := metav1.NewMicroTime(b.now)
		m.Status.Phase, m.Status.BornAt, m.Status.PhaseSince, m.Status.ServedSince = v1alpha1.PhaseProvisioning, &at, &at, nil
		b.all.State = body.Booting
	})
	b.failLive = errors.New("no such luck")
	b.live.failures = map[types.NamespacedName]int{key: 9}
	if m, err := b.once(); err != nil || m.Status.Phase != v1alpha1.PhaseProvisioning {
		t.Fatalf("it is %s, %v", b.stands(m), err)
	}
	r, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil || r.RequeueAfter != 30*time.Second {
		t.Errorf("it is looked at in %s, %v; its boot ends in 30 s", r.RequeueAfter, err)
	}
}

package snapshot

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

var noon = time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)

func claimOf(name string, phase v1alpha1.ClaimPhase, member string) *v1alpha1.Claim {
	return &v1alpha1.Claim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("u-" + name)},
		Spec:       v1alpha1.ClaimSpec{Pool: "web"}, Status: v1alpha1.ClaimStatus{Phase: phase, Member: member},
	}
}

// TestBound: a member counts as taken while a claim names it as Bound. It stops
// counting when the claim ends or is being deleted; both are written before the
// member is released.
func TestBound(t *testing.T) {
	t.Parallel()
	released := claimOf("released", v1alpha1.ClaimBound, "web-3")
	released.DeletionTimestamp = &metav1.Time{Time: noon}
	got := Bound([]*v1alpha1.Claim{
		claimOf("new", "", ""), claimOf("waits", v1alpha1.ClaimPending, ""), claimOf("has", v1alpha1.ClaimBound, "web-1"),
		claimOf("over", v1alpha1.ClaimExpired, "web-2"), released, claimOf("lost", v1alpha1.ClaimFailed, "web-4"), claimOf("given back", v1alpha1.ClaimReleased, "web-5"),
	})
	if diff := cmp.Diff([]string{"web-1"}, slices.Collect(maps.Keys(got))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	type edit = func(p *v1alpha1.Pool, m *v1alpha1.Member)
	blocked := func(reason rollout.Reason) edit {
		return func(_ *v1alpha1.Pool, m *v1alpha1.Member) {
			m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionUpdated, Status: metav1.ConditionFalse, Reason: string(reason)}}
		}
	}
	for name, tt := range map[string]struct {
		reason  string
		edits   []edit
		waiting int
		want    v1alpha1.DisruptionAction // empty: the body stays and the member is free
	}{
		"current": {"the body is on the target, so the next holder can have it", nil, 1, ""},
		"replace": {"a used body gets no second holder", []edit{func(p *v1alpha1.Pool, _ *v1alpha1.Member) { p.Spec.Claims = nil }}, 0, v1alpha1.ActionReplace},
		"stale":   {"a waiting claim gets no stale body", []edit{blocked(rollout.Claimed)}, 1, v1alpha1.ActionReplace},
		"in place": {"method InPlace updates instead of replacing", []edit{blocked(rollout.Claimed), func(p *v1alpha1.Pool, _ *v1alpha1.Member) {
			p.Spec.Update.Method = new(v1alpha1.MethodInPlace)
		}}, 1, v1alpha1.ActionUpdate},
		"no claim waits": {"the rollout takes it in its turn", []edit{blocked(rollout.Claimed)}, 0, ""},
		"paused":         {"a paused rollout disrupts no member", []edit{blocked(rollout.PausedRollout)}, 1, ""},
		"held": {"a hold keeps the body", []edit{blocked(rollout.Claimed), func(_ *v1alpha1.Pool, m *v1alpha1.Member) {
			m.Annotations = map[string]string{v1alpha1.AnnotationHold: "{}"}
		}}, 1, ""},
		"skipped": {"a skipped slot stays off the target", []edit{blocked(rollout.Claimed), func(_ *v1alpha1.Pool, m *v1alpha1.Member) {
			m.Annotations = map[string]string{v1alpha1.AnnotationSkip: "b"}
		}}, 1, ""},
		"partitioned": {"partition keeps it off the target", []edit{blocked(rollout.Claimed), func(p *v1alpha1.Pool, _ *v1alpha1.Member) {
			p.Spec.Update.Partition = new(int32(2))
		}}, 1, ""},
		"window shut": {"no disruption starts outside a window", []edit{blocked(rollout.Claimed), func(p *v1alpha1.Pool, _ *v1alpha1.Member) {
			p.Spec.Update.Windows = []v1alpha1.Window{{Schedule: "0 22 * * *", Duration: &metav1.Duration{Duration: time.Hour}}}
		}}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &v1alpha1.Pool{
				Spec:   v1alpha1.PoolSpec{Claims: &v1alpha1.Claims{OnRelease: new(v1alpha1.ReleaseReuse)}, Update: &v1alpha1.Update{}},
				Status: v1alpha1.PoolStatus{TargetRevision: "b", Stale: 2},
			}
			m := &v1alpha1.Member{Status: v1alpha1.MemberStatus{Phase: v1alpha1.PhaseClaimed, Incarnation: 3}}
			for _, edit := range tt.edits {
				edit(p, m)
			}
			r := Release(p, m, noon)
			r.Waiting = tt.waiting
			var got v1alpha1.DisruptionAction
			if d := Disruption((rollout.Member{Incarnation: 3}).Release(&r, noon).Disruption); d != nil {
				got = d.Action
			}
			if got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
			}
		})
	}
	if r := Release(nil, &v1alpha1.Member{}, noon); Disruption((rollout.Member{}).Release(&r, noon).Disruption).Action != v1alpha1.ActionReplace {
		t.Errorf("the pool is gone, but the member is not replaced: %+v", r)
	}
}

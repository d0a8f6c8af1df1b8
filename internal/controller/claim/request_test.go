package claim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// TestReconciler_request: the condition UpdateRequested as the member's condition
// Updated changes from one reason to the next.
func TestReconciler_request(t *testing.T) {
	notify, wait := v1alpha1.ClaimedNotify, v1alpha1.ClaimedWait
	cases := map[string]struct {
		reason    string
		onClaimed *v1alpha1.OnClaimed
		updated   []string
		told      []string
	}{
		"not stale":          {"there is nothing to say", &notify, []string{"", "True"}, []string{"", ""}},
		"stale":              {"it is asked until the member is updated", &notify, []string{"True", "Claimed", "True"}, []string{"", "True Stale", "False NotStale"}},
		"asked again":        {"another template is another request", &notify, []string{"Claimed", "True", "Claimed"}, []string{"True Stale", "False NotStale", "True Stale"}},
		"not asked to":       {"the pool waits", &wait, []string{"Claimed"}, []string{""}},
		"default":            {"the pool waits", nil, []string{"Claimed"}, []string{""}},
		"something else":     {"not only the claim blocks the update", &notify, []string{"Halted"}, []string{""}},
		"something else too": {"the request does not flap", &notify, []string{"Claimed", "Halted", "FailedReplacement", "Claimed"}, []string{"True Stale", "True Stale", "True Stale", "True Stale"}},
		"cannot be told":     {"unknown changes nothing", &notify, []string{"Claimed", "Unknown", ""}, []string{"True Stale", "True Stale", "True Stale"}},
		"paused":             {"a paused pool rolls nothing", &notify, []string{"Claimed", "Paused", "Claimed"}, []string{"True Stale", "False NotAsked", "True Stale"}},
		"manual":             {"a Manual pool rolls nothing", &notify, []string{"ManualPolicy", "Claimed", "ManualPolicy"}, []string{"", "True Stale", "False NotAsked"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := requestWorld(t, tc.onClaimed)
			var told []string
			for _, updated := range tc.updated {
				r.setUpdated(t, updated)
				if _, err := pass(t, r); err != nil {
					t.Fatal(err)
				}
				told = append(told, toldOf(status(t, r)))
			}
			if diff := cmp.Diff(tc.told, told); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReconciler_request_ends(t *testing.T) {
	notify := v1alpha1.ClaimedNotify
	for name, tc := range map[string]struct {
		reason string
		do     func(*Reconciler)
		told   string
	}{
		"the claim ends":        {"the member is released", func(r *Reconciler) { r.at(time.Hour) }, "False Ended"},
		"the pool asks no more": {"the edit ends the request", func(r *Reconciler) { r.edit(t, func(p *v1alpha1.Pool) { p.Spec.Update = nil }) }, "False NotAsked"},
	} {
		t.Run(name, func(t *testing.T) {
			r := requestWorld(t, &notify)
			r.setUpdated(t, "Claimed")
			if _, err := pass(t, r); err != nil {
				t.Fatal(err)
			}
			tc.do(r)
			if _, err := pass(t, r); err != nil {
				t.Fatal(err)
			}
			if told := toldOf(status(t, r)); told != tc.told {
				t.Errorf("%s: %q instead of %q", tc.reason, told, tc.told)
			}
		})
	}
}

// requestWorld is a claim that holds a member of a pool with such a policy.
func requestWorld(t *testing.T, onClaimed *v1alpha1.OnClaimed) *Reconciler {
	t.Helper()
	r := newReconciler(t, interceptor.Funcs{}, newClaim(v1alpha1.ClaimStatus{ObservedGeneration: 1, Phase: v1alpha1.ClaimBound, Member: "web-0"}), newMember(0, "u"))
	r.edit(t, func(p *v1alpha1.Pool) { p.Spec.Update = &v1alpha1.Update{OnClaimed: onClaimed} })
	return r
}

// setUpdated sets the member's condition Updated: True, Unknown, False with a reason, or none.
func (r *Reconciler) setUpdated(t *testing.T, is string) {
	t.Helper()
	var m v1alpha1.Member
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "web-0"}, &m); err != nil {
		t.Fatal(err)
	}
	c := metav1.Condition{Type: v1alpha1.ConditionUpdated, Status: metav1.ConditionFalse, Reason: is}
	switch is {
	case "":
		meta.RemoveStatusCondition(&m.Status.Conditions, c.Type)
	case "True", "Unknown":
		c.Status = metav1.ConditionStatus(is)
		fallthrough
	default:
		meta.SetStatusCondition(&m.Status.Conditions, c)
	}
	if err := r.Client.Update(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
}

func toldOf(st v1alpha1.ClaimStatus) string {
	c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionUpdateRequested)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

package claim

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// request says in the status whether the pool would like to have the member
// back, which it does if the claim is all that keeps it from being updated.
//
// Once that is said it stays so until the member is updated or nobody wants it
// to be, and not only while nothing else happens to be in its way as well.
func request(st *v1alpha1.ClaimStatus, m *v1alpha1.Member, p *v1alpha1.Pool) {
	updated := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdated)
	switch {
	case !notifies(p):
		noRequest(st, "NotAsked", "the pool waits, and asks for nothing (spec.update.onClaimed)")
	case updated == nil || updated.Status == metav1.ConditionUnknown:
	case updated.Status == metav1.ConditionTrue:
		noRequest(st, "NotStale", fmt.Sprintf("member %s is on the pool's target", m.Name))
	case updated.Reason == string(rollout.ManualPolicy), updated.Reason == string(rollout.PausedRollout):
		noRequest(st, "NotAsked", fmt.Sprintf("the pool rolls nothing now (%s)", updated.Reason))
	case updated.Reason == string(rollout.Claimed):
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionUpdateRequested, Status: metav1.ConditionTrue, Reason: "Stale",
			Message: fmt.Sprintf("member %s is stale, and only this claim keeps it from being updated: release it when its work allows", m.Name),
		})
	}
}

// requested tells whether the holder is asked to let its member go.
func requested(st *v1alpha1.ClaimStatus) bool {
	return meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionUpdateRequested)
}

// noRequest takes back what was asked for; what never was is not mentioned.
func noRequest(st *v1alpha1.ClaimStatus, reason, message string) {
	if requested(st) {
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionUpdateRequested, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		})
	}
}

func notifies(p *v1alpha1.Pool) bool {
	return p != nil && p.Spec.Update != nil && p.Spec.Update.OnClaimed != nil && *p.Spec.Update.OnClaimed == v1alpha1.ClaimedNotify
}

package claim

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// sight returns what the claim's member shows of itself.
func sight(m *v1alpha1.Member) rollout.ClaimSight {
	seen := rollout.ClaimSight{Held: true}
	switch is := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdated); {
	case is == nil || is.Status == metav1.ConditionUnknown:
		seen.Unsure = true
	case is.Status == metav1.ConditionFalse:
		seen.Blocker = rollout.Reason(is.Reason)
	}
	return seen
}

// request sets the condition UpdateRequested, or ends it with the reason given in over.
func request(st *v1alpha1.ClaimStatus, m *v1alpha1.Member, asked bool, over why) {
	if !asked {
		noRequest(st, over.reason, over.message)
		return
	}
	if requested(st) {
		return
	}
	meta.SetStatusCondition(&st.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionUpdateRequested, Status: metav1.ConditionTrue, Reason: "Stale",
		Message: fmt.Sprintf("member %s is stale, and only this claim keeps it from being updated: release it when its work allows", m.Name),
	})
}

// notAsked returns why the holder is not asked to release the member.
func notAsked(m *v1alpha1.Member, p *v1alpha1.Pool) why {
	switch seen := sight(m); {
	case !notifies(p):
		return why{"NotAsked", "the pool waits, and asks for nothing (spec.update.onClaimed)"}
	case seen.Blocker == "":
		return why{"NotStale", fmt.Sprintf("member %s is on the pool's target", m.Name)}
	default:
		return why{"NotAsked", fmt.Sprintf("the pool rolls nothing now (%s)", seen.Blocker)}
	}
}

// requested reports whether the holder is asked to release its member.
func requested(st *v1alpha1.ClaimStatus) bool {
	return meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionUpdateRequested)
}

// noRequest ends a request; without an earlier one it sets no condition.
func noRequest(st *v1alpha1.ClaimStatus, reason, message string) {
	if requested(st) {
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionUpdateRequested, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		})
	}
}

func notifies(p *v1alpha1.Pool) bool { return snapshot.ClaimRules(p, time.Time{}).Notify }

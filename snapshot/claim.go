package snapshot

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// Pending tells whether the claim has got no member yet, and may.
func Pending(c *v1alpha1.Claim) bool {
	return c.DeletionTimestamp.IsZero() && (c.Status.Phase == "" || c.Status.Phase == v1alpha1.ClaimPending)
}

// Waiting counts the claims that wait for a member. One that a member carries
// already has what it waited for, though its own status may say so later.
func Waiting(claims []*v1alpha1.Claim, members []*v1alpha1.Member) int {
	waiting := map[types.UID]bool{}
	for _, c := range claims {
		if Pending(c) {
			waiting[c.UID] = true
		}
	}
	if len(waiting) == 0 {
		return 0
	}
	for _, m := range members {
		if m.Spec.Claim != nil {
			delete(waiting, m.Spec.Claim.UID)
		}
	}
	return len(waiting)
}

// Bound are the members that claims say they hold, by name.
func Bound(claims []*v1alpha1.Claim) map[string]bool {
	var names map[string]bool
	for _, c := range claims {
		if c.Status.Phase != v1alpha1.ClaimBound || c.Status.Member == "" || !c.DeletionTimestamp.IsZero() {
			continue
		}
		if names == nil {
			names = map[string]bool{}
		}
		names[c.Status.Member] = true
	}
	return names
}

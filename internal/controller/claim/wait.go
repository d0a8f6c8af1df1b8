package claim

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// wait says that the claim waits, and why. It ends the claim if that has waited
// for as long as it may, and else comes back when it has.
func (r *Reconciler) wait(ctx context.Context, c *v1alpha1.Claim, reason, why string) (time.Duration, error) {
	st := *c.Status.DeepCopy()
	left := patience(c, r.Now())
	if c.Spec.Wait != nil && left <= 0 {
		return 0, r.end(ctx, c, st, impatient(c, why))
	}
	st.Phase = v1alpha1.ClaimPending
	return left, r.setStatus(ctx, c, st, says{metav1.ConditionFalse, reason, why + "; it gets one as soon as it can"})
}

// missed tells that the claim had waited for as long as it may before the
// controllers started. Its owner has given up, whatever is free by now.
func (r *Reconciler) missed(c *v1alpha1.Claim) bool {
	return c.Spec.Wait != nil && gaveUp(c).Before(r.begin())
}

// patience is how long the claim still waits. One that is not to wait at all
// has none from the beginning, and one without a limit 0.
func patience(c *v1alpha1.Claim, now time.Time) time.Duration {
	if c.Spec.Wait == nil || c.Spec.Wait.Duration == 0 {
		return 0
	}
	return gaveUp(c).Sub(now)
}

// gaveUp is when a claim whose wait is limited has waited for long enough, at
// the earliest. When it was made the API knows to the second only, rounded
// down.
func gaveUp(c *v1alpha1.Claim) time.Time {
	return c.CreationTimestamp.Add(time.Second + c.Spec.Wait.Duration)
}

// impatient is how a claim ends that has waited for as long as it may.
func impatient(c *v1alpha1.Claim, why string) ending {
	did := fmt.Sprintf("it waited for %s", c.Spec.Wait.Duration)
	if c.Spec.Wait.Duration == 0 {
		did = "it does not wait (spec.wait)"
	}
	return ending{v1alpha1.ClaimFailed, "WaitOver", fmt.Sprintf("%s, and %s; make another claim", why, did)}
}

package claim

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// reasonRefused: a member is free, and the API server rejects the binding.
const reasonRefused = "BindingRefused"

// why is the reason and message of the condition Bound.
type why struct{ reason, message string }

// waitReason returns why the claim has no member.
func waitReason(c *v1alpha1.Claim, reason rollout.ClaimReason) why {
	switch reason {
	case rollout.PoolNotFound:
		return why{string(reason), fmt.Sprintf("there is no Pool %s in namespace %s", c.Spec.Pool, c.Namespace)}
	case rollout.NotServed:
		return why{string(reason), "no controller was running meanwhile"}
	}
	return why{string(rollout.NoFreeMember), fmt.Sprintf("no member of Pool %s is free", c.Spec.Pool)}
}

// recordWait records the step of a claim that no member carries: it waits or has ended. It
// returns the time until its wait is over.
func (r *Reconciler) recordWait(ctx context.Context, c *v1alpha1.Claim, p *v1alpha1.Pool, tr rollout.ClaimTransition, w why) (time.Duration, error) {
	st := *c.Status.DeepCopy()
	switch {
	case !tr.Claim.Ended():
		st.Phase = v1alpha1.ClaimPending
		return r.after(tr.Wake), r.setStatus(ctx, c, st, boundCondition{metav1.ConditionFalse, w.reason, w.message + "; it gets one as soon as it can"})
	case tr.Why == rollout.WaitOver && p == nil:
		w = waitReason(c, rollout.PoolNotFound)
	}
	return 0, r.end(ctx, c, st, endingOf(c, p, tr, w))
}

// endingOf returns how a claim ends.
func endingOf(c *v1alpha1.Claim, p *v1alpha1.Pool, tr rollout.ClaimTransition, w why) ending {
	e := ending{phase: v1alpha1.ClaimPhase(tr.Claim.Phase), reason: string(tr.Why)}
	switch tr.Why {
	case rollout.ClaimTimeUp:
		e.message = "its time is up"
	case rollout.ClaimBodyGone:
		e.message = fmt.Sprintf("the body of member %s is gone", c.Status.Member)
	case rollout.NotRenewed:
		e.message = fmt.Sprintf("it was not renewed for %s, as Pool %s asks (spec.claims.heartbeat)", heartbeat(p), c.Spec.Pool)
	default:
		e.reason = string(rollout.WaitOver)
		did := fmt.Sprintf("it waited for %s", c.Spec.Wait.Duration)
		if c.Spec.Wait.Duration == 0 {
			did = "it does not wait (spec.wait)"
		}
		e.message = w.message + ", and " + did
	}
	e.message += "; make another claim"
	return e
}

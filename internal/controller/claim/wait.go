package claim

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// reasonRefused is why a claim gets no member although one is free.
const reasonRefused = "BindingRefused"

// why is why a claim has no member, for its condition Bound.
type why struct{ reason, message string }

// waits says why the claim has no member.
func waits(c *v1alpha1.Claim, reason rollout.ClaimReason) why {
	switch reason {
	case rollout.PoolNotFound:
		return why{string(reason), fmt.Sprintf("there is no Pool %s in namespace %s", c.Spec.Pool, c.Namespace)}
	case rollout.NotServed:
		return why{string(reason), "no controller was running meanwhile"}
	}
	return why{string(rollout.NoFreeMember), fmt.Sprintf("no member of Pool %s is free", c.Spec.Pool)}
}

// rest records what a step came to for a claim that no member carries: it waits, and
// is looked at again when it has waited for long enough, or it has ended.
func (r *Reconciler) rest(ctx context.Context, c *v1alpha1.Claim, p *v1alpha1.Pool, tr rollout.ClaimTransition, w why) (time.Duration, error) {
	st := *c.Status.DeepCopy()
	switch {
	case !tr.Claim.Ended():
		st.Phase = v1alpha1.ClaimPending
		return r.after(tr.Wake), r.setStatus(ctx, c, st, says{metav1.ConditionFalse, w.reason, w.message + "; it gets one as soon as it can"})
	case tr.Why == rollout.WaitOver && p == nil:
		w = waits(c, rollout.PoolNotFound)
	}
	return 0, r.end(ctx, c, st, ends(c, p, tr, w))
}

// ends says how a claim ends.
func ends(c *v1alpha1.Claim, p *v1alpha1.Pool, tr rollout.ClaimTransition, w why) ending {
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

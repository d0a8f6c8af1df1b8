package claim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// beats store when claims were last renewed, by the controller's own monotonic clock. The
// holder's time only matters in that it is new, so a wrong or changed clock ends no claim
// early. After a start each claim has one whole heartbeat again.
type beats struct {
	mu   sync.Mutex
	last map[types.NamespacedName]beat
}

// beat is when a renewal was first seen, with the time that the holder wrote and the
// interval.
type beat struct {
	uid     types.UID
	renewed time.Time
	every   time.Duration
	at      time.Time
}

// heard returns when the claim was last renewed. A new or changed heartbeat begins anew.
func (b *beats) heard(c *v1alpha1.Claim, every time.Duration, now time.Time) time.Time {
	is := beat{uid: c.UID, every: every, at: now}
	if c.Spec.RenewTime != nil {
		is.renewed = c.Spec.RenewTime.UTC()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	key := client.ObjectKeyFromObject(c)
	if was, ok := b.last[key]; ok {
		if at := was.at; was == (beat{is.uid, is.renewed, is.every, at}) {
			return at
		}
	}
	if b.last == nil {
		b.last = map[types.NamespacedName]beat{}
	}
	b.last[key] = is
	return now
}

func (b *beats) forget(claim types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, claim)
}

// shortest returns the claim with the shortest heartbeat, and that heartbeat; 0 if none has
// one.
func (b *beats) shortest() (claim types.NamespacedName, every time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, is := range b.last {
		if every == 0 || is.every < every {
			claim, every = name, is.every
		}
	}
	return claim, every
}

// silence returns the time since the last renewal; 0 if the claim need not be renewed.
func (r *Reconciler) silence(c *v1alpha1.Claim, p *v1alpha1.Pool) time.Duration {
	every := heartbeat(p)
	if every == 0 {
		r.beats.forget(client.ObjectKeyFromObject(c))
		return 0
	}
	now := r.steady()
	r.startProbes(every)
	return now.Sub(r.heard(c, every, now))
}

// steady returns the time of the monotonic clock.
func (r *Reconciler) steady() time.Time {
	if r.Steady == nil {
		return r.Now()
	}
	return r.Steady()
}

// heard returns when the claim was last renewed. After an outage of the API server every
// holder has one whole heartbeat.
func (r *Reconciler) heard(c *v1alpha1.Claim, every time.Duration, now time.Time) time.Time {
	at := r.beats.heard(c, every, now)
	if r.Reach == nil {
		return at
	}
	if back := r.Reach.Back(); back.After(at) {
		return back
	}
	return at
}

// heartbeat returns how often the pool's claims have to be renewed; 0 for never.
func heartbeat(p *v1alpha1.Pool) time.Duration {
	if p == nil || p.Spec.Claims == nil || p.Spec.Claims.Heartbeat == nil {
		return 0
	}
	return p.Spec.Claims.Heartbeat.Duration
}

package claim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// beats remember when claims were last heard of. They go by the controllers'
// own clock alone, which in one process does not jump: what the holder wrote
// only matters in that it is new. So neither a clock that is wrong nor one
// that is set ends a claim early, and after a start each claim has one whole
// heartbeat again.
type beats struct {
	mu   sync.Mutex
	last map[types.NamespacedName]beat
}

// beat is the first sight of a claim that holds a member, with what its holder
// last wrote and how often that is to be.
type beat struct {
	uid     types.UID
	renewed time.Time
	every   time.Duration
	at      time.Time
}

// heard is when the claim was last heard of. A heartbeat that is asked for
// newly, or changed, begins anew.
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

// shortest is the claim whose heartbeat is the shortest, and that heartbeat; 0 if
// no claim has one.
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

// silence is how long the claim was not heard of; 0 where it need not be renewed.
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

// steady is the time by the monotonic clock.
func (r *Reconciler) steady() time.Time {
	if r.Steady == nil {
		return r.Now()
	}
	return r.Steady()
}

// heard is when the claim was last heard of. After a time in which the API server
// could not be reached every holder has one whole heartbeat.
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

// heartbeat is how often the pool's claims have to be renewed; 0 for never.
func heartbeat(p *v1alpha1.Pool) time.Duration {
	if p == nil || p.Spec.Claims == nil || p.Spec.Claims.Heartbeat == nil {
		return 0
	}
	return p.Spec.Claims.Heartbeat.Duration
}

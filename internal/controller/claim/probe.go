package claim

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// probe asks whether the API server can be reached. It goes through the queue of
// claims, and so by the controller's own clock.
var probe = reconcile.Request{}

// Probes are made so many times in a heartbeat, within these bounds.
const (
	probesPerHeartbeat = 12
	quickestProbe      = 250 * time.Millisecond
	slowestProbe       = 5 * time.Second
	// missedProbes is how many intervals may pass without an answer.
	missedProbes = 2
)

// probes are made while claims have a heartbeat. An outage that no other request
// meets would otherwise count as the holders' silence.
type probes struct {
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	on    bool
}

// open is a source.Func.
func (p *probes) open(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	p.queue = queue
	return nil
}

// probeInterval is how often is asked for claims with the heartbeat.
func probeInterval(heartbeat time.Duration) time.Duration {
	return min(max(heartbeat/probesPerHeartbeat, quickestProbe), slowestProbe)
}

// startProbes begins to probe, in a pass over a claim with the heartbeat. Such a
// pass has just read from the API server itself.
func (r *Reconciler) startProbes(heartbeat time.Duration) {
	if r.probes.on || r.probes.queue == nil || r.Reach == nil {
		return
	}
	r.probes.on = true
	interval := probeInterval(heartbeat)
	r.Reach.Expect(missedProbes * interval)
	r.probes.queue.AddAfter(probe, interval)
}

// probe reads a claim, from where holders write theirs, and returns when the next
// probe is due; 0 for none. The transport sees what comes of it.
func (r *Reconciler) probe(ctx context.Context) time.Duration {
	claim, heartbeat := r.beats.shortest()
	if heartbeat == 0 || r.Reach == nil {
		if r.probes.on = false; r.Reach != nil {
			r.Reach.Expect(0)
		}
		return 0
	}
	interval := probeInterval(heartbeat)
	r.Reach.Expect(missedProbes * interval)
	ctx, cancel := context.WithTimeout(ctx, missedProbes*interval)
	defer cancel()
	_ = r.Reader.Get(ctx, claim, &v1alpha1.Claim{}) // whatever it says
	return interval
}

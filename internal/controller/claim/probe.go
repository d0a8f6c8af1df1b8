package claim

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// probe is the request for a probe of the API server. It uses the queue of claims and
// therefore the controller's own clock.
var probe = reconcile.Request{}

// The number of probes in a heartbeat, and the range of their interval.
const (
	probesPerHeartbeat = 12
	quickestProbe      = 250 * time.Millisecond
	slowestProbe       = 5 * time.Second
	// missedProbes is how many intervals may pass without an answer.
	missedProbes = 2
)

// probes run while claims have a heartbeat. Otherwise an outage that no other request meets
// would count as the holders' silence.
type probes struct {
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	on    bool
}

// open is a source.Func.
func (p *probes) open(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	p.queue = queue
	return nil
}

// probeInterval returns the interval of probes for the heartbeat.
func probeInterval(heartbeat time.Duration) time.Duration {
	return min(max(heartbeat/probesPerHeartbeat, quickestProbe), slowestProbe)
}

// startProbes starts the probes, in a pass over a claim with the heartbeat. That pass has
// just read from the API server.
func (r *Reconciler) startProbes(heartbeat time.Duration) {
	if r.probes.on || r.probes.queue == nil || r.Reach == nil {
		return
	}
	r.probes.on = true
	interval := probeInterval(heartbeat)
	r.Reach.Expect(missedProbes * interval)
	r.probes.queue.AddAfter(probe, interval)
}

// probe reads a claim from the API server, as holders do, and returns when the next probe
// is due; 0 for none. The transport records whether there was an answer.
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
	_ = r.Reader.Get(ctx, claim, &v1alpha1.Claim{}) // any answer will do
	return interval
}

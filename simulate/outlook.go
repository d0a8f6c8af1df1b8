package simulate

import (
	"time"

	"github.com/pawl-dev/pawl/preview"
	"github.com/pawl-dev/pawl/rollout"
)

// Outlook returns the scenario's only pool at the start, as input of a forecast.
// The forecast ignores the timeline and the behaviour of single revisions.
func (s *Scenario) Outlook() *preview.Outlook {
	p := newWorld(s, 1).pools[0]
	o := &preview.Outlook{
		Snapshot: &rollout.Snapshot{
			Pool: p.name, Policy: p.spec.policy,
			Target: p.state.record(p.spec.target), Current: p.state.record(p.state.current),
		},
		Now: s.date, Life: p.spec.life, Boot: s.world.boot, Stop: s.world.drain + s.world.stop, Reuse: p.reuses(),
		HoldEnds: map[int]time.Time{}, ClaimEnds: map[int]time.Time{}, Window: p.spec.windows.At,
	}
	for _, m := range p.slots {
		o.Snapshot.Members = append(o.Snapshot.Members, p.readMember(m))
		if m.holdUntil < longest {
			o.HoldEnds[m.Index] = s.date.Add(m.holdUntil)
		}
	}
	return o
}

package live

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/simulate"
	"github.com/pawl-dev/pawl/snapshot"
)

// What follows is what must hold at every write, whatever a file expects. What
// stands in one object is judged as it is written: a write that goes by an
// older version of that object is refused by the API server. What adds up over
// several objects is judged by what there was in the last moments, for as long
// as readers may be late: a decision has to have been right at some time of
// that, with all that was decided since.

// promises looks at a member that is stored, in place of the old version of it;
// nil for none. It returns what is broken.
func (b *book) promises(p *poolBook, old, is *v1alpha1.Member, now time.Time, late time.Duration) []string {
	var broken []string
	add := func(text string) {
		if text != "" {
			broken = append(broken, is.Name+" "+text)
		}
	}
	m := stored(is)
	if m.Claimed && simulate.Disrupted(&m) {
		add(fmt.Sprintf("holds claim %s and a live disruption", is.Spec.Claim.Name))
	}
	if m.Claimed && m.Phase == rollout.Terminating {
		add(fmt.Sprintf("terminates although %s holds it", is.Spec.Claim.Name))
	}
	if old == nil {
		return broken
	}
	was := stored(old)
	if m.Claimed && !was.Claimed {
		add(b.claimed(&was, is))
	}
	if decided(&was, &m) {
		p.disrupted(m.Index, m.Disruption.Cause)
		add(spares(old, &m))
		if m.Disruption.Cause == rollout.Drift && simulate.Serving(&was) {
			add(p.spared(&m, now, late))
		}
	}
	return broken
}

// decided tells whether a disruption is new.
func decided(was, is *rollout.Member) bool {
	return simulate.Disrupted(is) && (!simulate.Disrupted(was) || was.Disruption.Cause != is.Disruption.Cause)
}

// disrupted notes who was disrupted, in order.
func (p *poolBook) disrupted(index int, cause rollout.Cause) {
	if cause != rollout.ClaimEnded && !slices.Contains(p.counts.Order, index) {
		p.counts.Order = append(p.counts.Order, index)
	}
}

// claimed checks a member that has just been given to a claim.
func (b *book) claimed(was *rollout.Member, is *v1alpha1.Member) string {
	c := is.Spec.Claim
	if !simulate.Serving(was) {
		return fmt.Sprintf("was claimed by %s although it was not free", c.Name)
	}
	for _, p := range b.pools {
		for _, o := range p.members {
			if o.UID != is.UID && o.Spec.Claim != nil && o.Spec.Claim.UID == c.UID {
				return fmt.Sprintf("was given to %s, which holds %s already", c.Name, o.Name)
			}
		}
	}
	return ""
}

// spares checks that nobody loses what they use: for drift no member that is
// claimed, busy or held, and for anything else none that is claimed or busy,
// unless its body is gone.
func spares(old *v1alpha1.Member, is *rollout.Member) string {
	was := stored(old)
	cause, drift := is.Disruption.Cause, is.Disruption.Cause == rollout.Drift
	if !drift && (was.Gone || !was.Body) {
		return ""
	}
	since := is.Disruption.Since
	switch {
	case was.Claimed && cause != rollout.ClaimEnded:
		return fmt.Sprintf("is disrupted for %s although %s holds it", cause, old.Spec.Claim.Name)
	case was.Occupancy != rollout.Idle && !was.ServedSince.IsZero() && cause != rollout.ClaimEnded:
		return fmt.Sprintf("is disrupted for %s although it is not idle", cause)
	case drift && snapshot.Held(old, since):
		return "is disrupted for drift although it is held"
	}
	return ""
}

// removed checks a member that is not there any more.
func (p *poolBook) removed(m *v1alpha1.Member) (broken []string) {
	if c := m.Spec.Claim; c != nil {
		broken = append(broken, fmt.Sprintf("%s went while %s held it", m.Name, c.Name))
	}
	if is, ok := p.bodies[int(m.Spec.Index)]; ok {
		broken = append(broken, fmt.Sprintf("%s went and left its body %s behind", m.Name, is.UID))
	}
	return broken
}

// ledger is what the engine counts, as it was at a time: the members by index.
type ledger struct {
	at      time.Time
	policy  rollout.Policy
	members map[int]entry
}

// entry is one member of a ledger.
type entry struct{ serves, claimed, leaves, rolling bool }

// account notes the ledger as it is now, and forgets those from before since.
func (p *poolBook) account(now, since time.Time) {
	if p.pool == nil {
		return
	}
	policy, err := snapshot.Policy(&p.pool.Spec)
	if err != nil {
		return
	}
	l := ledger{at: now, policy: policy, members: make(map[int]entry, len(p.members))}
	for i, o := range p.members {
		m := stored(o)
		l.members[i] = entry{
			serves: p.serves(&m), claimed: m.Claimed, rolling: m.Rolling(),
			leaves: m.Deleting || simulate.Disrupted(&m) && m.Disruption.Remove,
		}
	}
	// One from before is needed: it was in force at that time.
	for len(p.past) > 1 && p.past[1].at.Before(since) {
		p.past = p.past[1:]
	}
	p.past = append(p.past, l)
}

// spared checks that a member in service could be spared when it was taken for
// drift, which is not accounted for yet.
func (p *poolBook) spared(m *rollout.Member, now time.Time, late time.Duration) string {
	why := ""
	for _, l := range slices.Backward(p.past) {
		if why = p.objection(&l, m.Index); why == "" {
			return ""
		}
		if l.at.Before(now.Add(-late)) {
			break // what was before that everybody knew
		}
	}
	return why
}

// objection is why the member must not be taken with such a ledger, given
// everything else that is disrupted by now.
func (p *poolBook) objection(l *ledger, taken int) string {
	up, free, slots, all, rolling := 0, 0, 0, len(l.members), 1
	for _, i := range slices.Sorted(maps.Keys(l.members)) {
		e := l.members[i]
		if !e.leaves && (!l.policy.Warm || !e.claimed) {
			slots++
		}
		if i == taken {
			continue
		}
		now, down := p.members[i], false
		if now != nil {
			is := stored(now)
			down = simulate.Disrupted(&is) && is.Disruption.Cause == rollout.Drift
			if down && is.Rolling() {
				e.rolling = true
			}
		}
		if e.rolling {
			rolling++
		}
		if !e.serves || down {
			continue
		}
		if !e.claimed {
			free++
		}
		if !l.policy.Warm || !e.claimed {
			up++
		}
	}
	switch q := &l.policy; {
	case rolling > q.MaxInFlight:
		return fmt.Sprintf("is taken as number %d although %d may roll at once", rolling, q.MaxInFlight)
	case up < q.Desired-q.MaxUnavailable:
		return fmt.Sprintf("is taken although it cannot be spared: %d of %d remain in service", up, q.Desired)
	case free < q.MinAvailable && q.HasFloor:
		return fmt.Sprintf("is taken although it cannot be spared: %d remain free, and %d must", free, q.MinAvailable)
	case slots < q.Desired && !q.Warm && q.RefillBelow == 0 && (!q.HasCeiling || all < q.MaxMembers):
		return fmt.Sprintf("is taken although the size asks for %d and there are %d", q.Desired, slots)
	}
	return ""
}

// made checks a slot that has just been made.
func (p *poolBook) made(is *v1alpha1.Member) string {
	if len(p.past) == 0 {
		return ""
	}
	for _, l := range p.past {
		if !l.policy.HasCeiling || len(p.members) <= l.policy.MaxMembers {
			return ""
		}
	}
	return fmt.Sprintf("%s is made as number %d, and there may be %d", is.Name, len(p.members), p.past[len(p.past)-1].policy.MaxMembers)
}

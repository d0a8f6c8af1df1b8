package rollout

import (
	"errors"
	"fmt"
)

// CheckInvariants checks a plan against the promises of the design and returns all
// violations, joined. It counts for itself and trusts nothing that the plan says about
// itself. It checks actions only: a state can break a limit that was lowered.
func CheckInvariants(s *Snapshot, p *Plan) error {
	s = s.usual()
	c := &checker{s: s, target: s.Target, byIndex: map[int]*Member{}, acted: map[int]bool{}}
	for i := range s.Members {
		c.count(&s.Members[i])
	}
	for i := range p.Actions {
		c.check(&p.Actions[i])
	}
	c.total()
	return errors.Join(c.errs...)
}

// checker holds the counts before and after a plan.
type checker struct {
	s       *Snapshot
	byIndex map[int]*Member
	acted   map[int]bool
	errs    []error

	up, free, rolling, stay int
	taken, rolled           int
	down, probation         int
	made, filled, surge     int
	work, onTop, kept       int
	sized, unsure           int
	// stood: the plan makes the target the current revision, so its unsettled bodies hold
	// nothing up.
	unsettled, serving, stood bool
	target                    Record
}

func (c *checker) failf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

func (c *checker) count(m *Member) {
	c.byIndex[m.Index] = m
	onTop := c.s.Policy.Warm && m.Claimed && !m.lost()
	if onTop && !m.leaving() && m.Phase != Quarantined {
		c.onTop++
	}
	if m.InService() && !onTop {
		c.up++
	}
	switch {
	case m.Free() && !m.busy():
		c.free++
	case m.Free() && m.Occupancy == OccupancyUnsure:
		c.unsure++
	}
	if m.Rolling() {
		c.rolling++
	}
	if m.Runs == c.s.Target.ID && m.Body {
		c.unsettled = c.unsettled || m.Phase == Unready && !m.UnsettledSince.IsZero() && !m.recovered() && !m.Disrupted()
		c.serving = c.serving || m.InService()
	}
	if m.Free() && m.Occupancy == Idle && !m.Held && (c.stale(m) || m.Asked) {
		c.work++
	}
	if !m.leaving() && m.Phase != Quarantined && !onTop {
		c.stay++
		if m.ForClaim && !m.Disrupted() {
			c.kept++ // no excess for a while
		}
	}
}

func (c *checker) check(a *Action) {
	if c.s.Unreadable != "" || c.s.WritesUnseen {
		c.failf("rule 2: %s of %d although the pool could not be read", a.Kind, a.Index)
	}
	switch a.Kind {
	case RecordFailure, Recover, Halt, Stand:
		if a.Record.ID == c.target.ID {
			c.target = *a.Record
		}
		c.stood = c.stood || a.Kind == Stand && a.Revision == c.target.ID
		return
	case CreateSlot:
		if c.byIndex[a.Index] != nil {
			c.failf("rule 11: slot %d is made although it exists", a.Index)
		}
		c.byIndex[a.Index] = &Member{Index: a.Index, Phase: Pending}
		if c.made++; c.s.Policy.HasCeiling && len(c.s.Members)+c.made > c.s.Policy.MaxMembers {
			c.failf("slot %d is made above maxMembers", a.Index)
		}
		if a.Surge {
			c.surge++
		} else {
			c.filled++
		}
		c.birth(a)
		c.stay++
		return
	}
	m := c.byIndex[a.Index]
	if m == nil {
		c.failf("%s of slot %d, which does not exist", a.Kind, a.Index)
		return
	}
	if c.acted[a.Index] {
		c.failf("two actions on slot %d", a.Index)
	}
	c.acted[a.Index] = true
	switch a.Kind {
	case Disrupt:
		c.disrupt(a, m)
	case Undo:
		if m.Phase == Terminating || m.Phase == Updating || !m.Disrupted() {
			c.failf("rule 9: member %d is taken back, which has begun to end or is not disrupted", a.Index)
		}
		if m.Rolling() && !m.served() && (!a.Disruption.Rolling || a.Disruption.Incarnation >= m.Incarnation) {
			c.failf("rule 4: member %d loses the mark Rolling", a.Index)
		}
		if m.leaving() {
			c.stay++
		}
	case Grant:
		if m.unborn() {
			c.birth(a)
		}
	}
}

func (c *checker) disrupt(a *Action, m *Member) {
	gone := m.lost()
	if m.Claimed && (!gone || !a.DropClaim) {
		c.failf("rule 1: claimed member %d is disrupted", a.Index)
	}
	if m.busy() && !m.doomed() {
		c.failf("rule 1: member %d is disrupted although work may run on it", a.Index)
	}
	if m.Held && a.Disruption.Cause == Drift {
		c.failf("rule 1: held member %d is disrupted for drift", a.Index)
	}
	if a.Disruption.Update && (!m.Body || m.Claimed || a.Disruption.Remove || !c.s.Policy.InPlace) {
		c.failf("member %d cannot be updated in place", a.Index)
	}
	if m.Phase == Quarantined || m.Deleting || m.Stuck {
		c.failf("member %d is disrupted although it is quarantined, stuck or being deleted", a.Index)
	}
	if a.Disruption.Incarnation != m.Incarnation {
		c.failf("member %d: disruption of incarnation %d instead of %d", a.Index, a.Disruption.Incarnation, m.Incarnation)
	}
	if m.Rolling() && !a.Disruption.Rolling {
		c.failf("rule 4: member %d loses the mark Rolling", a.Index)
	}
	if a.Disruption.Remove {
		if !m.leaving() {
			c.stay--
		}
		if a.Disruption.Cause == ScaleDown && m.InService() {
			c.sized++
			c.up--
		}
	} else {
		c.birth(a)
	}
	if a.Disruption.Cause == BodyFailed && m.served() && m.Body && !gone && a.Revision != m.Runs {
		c.down++
	}
	switch a.Disruption.Cause {
	case Drift:
		c.drift(a, m)
	case Requested:
		c.requested(a, m)
	}
}

// requested checks that a recycle passes the same gates as a rollout.
func (c *checker) requested(a *Action, m *Member) {
	switch {
	case !m.Asked && !m.Skipped:
		c.failf("member %d is replaced on request, without a request", a.Index)
	case m.Held:
		c.failf("rule 1: held member %d is replaced on request", a.Index)
	case m.InService():
		c.take(m)
	}
}

// take counts a member in service that is taken.
func (c *checker) take(m *Member) {
	c.taken++
	c.up--
	c.free--
	c.rolling++
	if c.stale(m) || m.Asked {
		c.work--
	}
	if c.s.WindowShut {
		c.failf("member %d is taken outside the windows", m.Index)
	}
}

func (c *checker) drift(a *Action, m *Member) {
	p := &c.s.Policy
	if p.Manual && m.served() {
		c.failf("member %d is disrupted for drift although the policy is Manual", a.Index)
	}
	if p.Paused || p.Zero {
		c.failf("member %d is disrupted for drift although the rollout is paused", a.Index)
	}
	if m.Runs == a.Revision && !a.Disruption.Remove {
		c.failf("member %d is disrupted for drift although it runs that revision", a.Index)
	}
	if !m.InService() {
		if m.served() {
			c.down++
		}
		return
	}
	c.take(m)
	c.rolled++
	if m.Skipped {
		c.failf("skipped member %d is taken for drift", a.Index)
	}
	if m.Runs == c.s.Target.ID {
		c.failf("member %d is taken for drift although it is on the target", a.Index)
	}
	if c.target.Halted && c.target.ID != c.s.Current.ID {
		c.failf("rule 5: member %d is taken although the rollout is halted", a.Index)
	}
}

// birth checks rule 5 for a grant: a failed revision is tried by the one slot on probation
// only.
func (c *checker) birth(a *Action) {
	if a.Revision == "" || a.Revision != c.target.ID || c.s.Current.ID == "" || c.s.Current.ID == c.target.ID {
		return
	}
	if c.target.Halted {
		c.failf("rule 5: slot %d gets the halted target", a.Index)
	}
	if !c.target.open() {
		return
	}
	if c.probation++; c.probation > 1 {
		c.failf("rule 5: slot %d gets the failed target, although another slot is on probation", a.Index)
	}
}

// total checks the sums of the whole plan.
func (c *checker) total() {
	p := &c.s.Policy
	if c.rolled > 0 && c.unsettled && !c.serving && !c.stood && c.target.ID != c.s.Current.ID {
		c.failf("rule 5: %d members are taken although a body of the target is unsettled and none is in service", c.rolled)
	}
	if c.taken > 0 {
		alone := p.Warm && p.HasFloor && c.rolling == 1 // a floor lets one roll whatever the room is
		if room := c.up - (p.Desired - p.MaxUnavailable); room < 0 && !alone {
			c.failf("rule 4: %d members are taken, which leaves room %d", c.taken, room)
		}
		if p.HasFloor && c.free < p.MinAvailable {
			c.failf("rule 4: %d members are taken, which leaves %d free, below the floor of %d", c.taken, c.free, p.MinAvailable)
		}
		if c.rolling > p.MaxInFlight {
			c.failf("rule 4: %d members are taken, which leaves %d rolling", c.taken, c.rolling)
		}
		if c.s.Budgeted && c.rolled > c.s.BudgetRoom {
			c.failf("rule 4: %d members are taken with room for %d in the budgets", c.rolled, c.s.BudgetRoom)
		}
		if c.stay < p.Desired && !p.Warm && !p.HasCeiling && p.RefillBelow == 0 {
			c.failf("rule 6: members are taken while %d slots stay of %d", c.stay, p.Desired)
		}
	}
	c.size()
	if c.down > p.MaxInFlight {
		c.failf("rule 3: %d members that served and are down are replaced at once", c.down)
	}
}

// size checks how many slots a plan leaves.
func (c *checker) size() {
	p := &c.s.Policy
	d := p.Desired
	if p.Warm {
		d += max(0, c.s.Waiting-c.unsure)
	}
	if p.HasCeiling {
		d = max(0, min(d, p.MaxMembers-c.onTop))
	}
	if c.sized > 0 && c.up < d && !c.s.Deleting {
		c.failf("rule 10: %d members in service are removed for the size, which leaves %d of %d in service", c.sized, c.up, d)
	}
	if c.filled > 0 && c.stay-c.surge > d {
		c.failf("rule 11: %d slots are made to fill the size, which leaves %d of %d", c.filled, c.stay-c.surge, d)
	}
	if c.surge == 0 {
		return
	}
	switch n := c.stay - max(d, p.Desired+c.kept); {
	case p.InPlace:
		c.failf("rule 7: %d surge slots are made although members are updated in place", c.surge)
	case n > p.MaxSurge:
		c.failf("rule 7: %d surge slots are made, which leaves %d of %d", c.surge, n, p.MaxSurge)
	case n > c.work || c.s.WindowShut:
		c.failf("rule 7: %d surge slots are made, which leaves %d, for %d members that could be rolled", c.surge, n, c.work)
	}
}

// stale reports whether the member's body is on another revision than the target.
func (c *checker) stale(m *Member) bool {
	switch {
	case !m.Body || m.Runs == c.s.Target.ID:
		return false
	case m.Runs != "" || c.s.Policy.ReplaceUnknown:
		return true
	default:
		return m.Wants != "" && m.Wants != c.s.Target.ID
	}
}

package simulate

import (
	"container/heap"
	"slices"

	"github.com/pawl-dev/pawl/rollout"
)

// near is the part of the pool of which something can be decided now: what is
// not simply in service, and those that a rollout takes next. The engine is
// asked about these; the others, the rest, it counts. That makes a plan of a
// large pool as fast as one of a small pool, and gives the same plan.
type near struct {
	off bool // every unit is always listed
	// list are the units in it, by index, once it is tidy; added those that are
	// to be put in their places. next is how many of them are candidates, and
	// want how many there should be.
	list, added []*unit
	untidy      bool
	next, want  int
	rest        rollout.Rest
	// far are the candidates among the rest.
	far     candidates
	members []rollout.Member
}

// fewest is how many candidates are listed at least.
const fewest = 4

// decide plans; nil if the whole pool has to be asked.
func (n *near) decide(f *forecaster) *rollout.Plan {
	s := &f.snap
	if n.off || s.Deleting || troubled(&s.Target) || troubled(&s.Current) || n.mayStand(s) {
		return nil
	}
	for {
		n.fill(f)
		n.tidy()
		n.members = n.members[:0]
		for _, u := range n.list {
			n.members = append(n.members, u.Member)
		}
		s.Members, s.Rest = n.members, n.rest
		p := rollout.Decide(s, f.now)
		switch {
		case !p.Whole():
			return nil
		case !p.Short() && n.inOrder(f, p):
			n.relax(f, len(p.Actions))
			return p
		}
		n.want *= 2
	}
}

// troubled tells whether the revision has failed.
func troubled(r *rollout.Record) bool { return r.Halted || r.RolledBack || len(r.Failures) > 0 }

// mayStand reports whether something may be decided that depends on how long
// members of the rest have served or took to boot: whether the target becomes
// the current revision, or is given up on because it never comes up.
func (n *near) mayStand(s *rollout.Snapshot) bool {
	if s.Target.ID == s.Current.ID {
		return false
	}
	behind, served := n.rest.Work > 0, n.rest.Free+n.rest.Claimed > n.rest.Stale
	for _, list := range [][]*unit{n.list, n.added} {
		for _, u := range list {
			if !u.listed {
				continue
			}
			behind = behind || u.candidate
			served = served || u.Runs == s.Target.ID && !u.ServedSince.IsZero()
		}
	}
	return !behind || !served
}

// inOrder tells whether the plan takes no member before one of the rest that
// comes first.
func (n *near) inOrder(f *forecaster, p *rollout.Plan) bool {
	if len(n.far.list) == 0 {
		return true
	}
	first := &n.far.list[0].Member
	return !slices.ContainsFunc(p.Actions, func(a rollout.Action) bool {
		return a.Why == rollout.WhyStale && f.snap.Policy.Before(first, &f.unit(a.Index).Member)
	})
}

// relax lists fewer candidates where far fewer were taken than are listed.
func (n *near) relax(f *forecaster, taken int) {
	n.want = max(fewest, min(n.want, 2*taken))
	if n.next <= 4*n.want {
		return
	}
	for _, u := range n.list {
		if u.listed && u.candidate {
			n.leave(u)
			n.enterRest(f, u)
		}
	}
}

// fill lists candidates until there are enough, the next ones in order.
func (n *near) fill(f *forecaster) {
	n.want = max(n.want, fewest)
	for n.next < n.want && len(n.far.list) > 0 {
		u := n.far.list[0]
		n.remove(f, u)
		n.enter(u)
	}
}

// enter lists the unit.
func (n *near) enter(u *unit) {
	u.listed = true
	if u.candidate {
		n.next++
	}
	if !u.inList {
		u.inList = true
		n.added = append(n.added, u)
	}
}

// leave takes the unit from the list.
func (n *near) leave(u *unit) {
	u.listed = false
	if u.candidate {
		n.next--
	}
	n.untidy = true
}

// tidy puts the list in order.
func (n *near) tidy() {
	if len(n.added) > 0 {
		n.list = append(n.list, n.added...)
		n.added = n.added[:0]
		slices.SortFunc(n.list, func(a, b *unit) int { return a.Index - b.Index })
	}
	if !n.untidy {
		return
	}
	n.untidy = false
	n.list = slices.DeleteFunc(n.list, func(u *unit) bool {
		u.inList = u.listed
		return !u.listed
	})
}

func byIndex(u *unit, index int) int { return u.Index - index }

// enterRest counts the unit among the rest.
func (n *near) enterRest(f *forecaster, u *unit) {
	n.rest.Count(&u.Member, f.snap.Target.ID, 1)
	if u.candidate {
		heap.Push(&n.far, u)
	}
}

// remove takes the unit out, wherever it is.
func (n *near) remove(f *forecaster, u *unit) {
	if u.listed {
		n.leave(u)
		return
	}
	n.rest.Count(&u.Member, f.snap.Target.ID, -1)
	if u.candidate {
		heap.Remove(&n.far, u.far)
	}
}

// change has the unit become the member, and puts it where it belongs then.
func (n *near) change(f *forecaster, u *unit, m rollout.Member) {
	if u.listed && !m.Simple() {
		if u.candidate {
			n.next--
		}
		u.Member, u.candidate = m, false
		return
	}
	n.remove(f, u)
	u.Member = m
	n.place(f, u)
}

// place puts the unit where it belongs.
func (n *near) place(f *forecaster, u *unit) {
	u.candidate = u.Candidate(f.snap.Target.ID)
	if u.Simple() {
		n.enterRest(f, u)
		return
	}
	n.enter(u)
}

// sort places every unit anew, after the target has changed.
func (n *near) sort(f *forecaster) {
	n.list, n.added, n.next, n.rest = nil, nil, 0, rollout.Rest{}
	n.far = candidates{policy: &f.snap.Policy}
	for _, u := range f.units {
		u.candidate, u.listed, u.inList = u.Candidate(f.snap.Target.ID), false, false
		switch {
		case !u.Simple():
			n.enter(u)
		default:
			n.enterRest(f, u)
		}
	}
}

// candidates is a heap with the one that is taken first on top.
type candidates struct {
	policy *rollout.Policy
	list   []*unit
}

func (c *candidates) Len() int { return len(c.list) }

func (c *candidates) Less(i, j int) bool {
	return c.policy.Before(&c.list[i].Member, &c.list[j].Member)
}

func (c *candidates) Swap(i, j int) {
	c.list[i], c.list[j] = c.list[j], c.list[i]
	c.list[i].far, c.list[j].far = i, j
}

// Push adds one.
func (c *candidates) Push(x any) {
	if u, ok := x.(*unit); ok {
		u.far = len(c.list)
		c.list = append(c.list, u)
	}
}

// Pop takes the last one out.
func (c *candidates) Pop() any {
	u := c.list[len(c.list)-1]
	c.list = c.list[:len(c.list)-1]
	return u
}

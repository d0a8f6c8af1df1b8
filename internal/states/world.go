package states

import (
	"slices"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// Bounds of a world. maxSlots is what a pool of maxDesired has with surge and with what
// claims add to a warm pool, until nothing more may be made.
const (
	maxDesired = 3
	maxSlots   = 7
	maxClaims  = 2
	absent     = -1
)

var (
	revisions = [...]rollout.Revision{"A", "B", "C"}
	slotIDs   = [maxSlots]string{"0", "1", "2", "3", "4", "5", "6"}
	// epoch is what time it is in every state.
	epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
)

// deadID is the ID of every slot that is gone: two of them are never compared.
const deadID = "-"

// indexOf is the place of a revision, -1 for none.
func indexOf(r rollout.Revision) int8 { return int8(slices.Index(revisions[:], r)) }

// body is what a slot holds.
type body struct {
	state rollout.BodyState
	// booted: it has come up once. slow: it is unknown how long it takes to boot, drain
	// or stop.
	booted, slow, draining, drained bool
}

// slot is a member with its body.
type slot struct {
	rollout.Member
	body  body
	claim int8 // the claim that it carries, or absent
	// blocked: its last verdict was Claimed, as the pool said.
	blocked bool
}

// claim is one claim; the zero value is none.
type claim struct {
	made, bound, deleted bool
}

// world is one state of everything.
type world struct {
	now      time.Time
	records  [len(revisions)]rollout.Record
	template int8 // the place of the template's revision
	current  int8 // of the current one, or absent
	n        int8 // how many slots there are
	slots    [maxSlots]slot
	claims   [maxClaims]claim

	surge, size, stale int8
	desired, partition int8
	paused             bool
	// users and faults are how many more there may be.
	users, faults int8
	// broken is the first promise that an edge did not keep. outside: it needs more
	// slots than there may be.
	broken  string
	outside bool
}

// rules is what does not change while a world is explored.
type rules struct {
	policy rollout.Policy
	life   rollout.Lifecycle
	reuse  bool
}

func (c Choice) rules(desired int) *rules {
	p := c.policy(desired)
	return &rules{
		policy: p, reuse: c.value("reuse") == 1,
		life: rollout.Lifecycle{BootTimeout: bootTimeout, MinReady: p.MinReady, RecoverAfter: p.RecoverAfter()},
	}
}

// start is how the world starts.
func (r *rules) start(b Bounds) world {
	w := world{now: epoch, current: absent, users: int8(b.Users), faults: int8(b.Faults)}
	w.desired, w.partition = int8(r.policy.Desired), int8(r.policy.Partition)
	for i := range w.records {
		w.records[i].ID = revisions[i]
	}
	if b.Start == Fresh {
		return w
	}
	long := epoch.Add(-time.Hour)
	w.current, w.size, w.n = 0, w.desired, w.desired
	for i := range w.slots[:w.n] {
		w.slots[i] = slot{claim: absent, body: body{state: rollout.Ready, booted: true}, Member: rollout.Member{
			Index: i, ID: slotIDs[i], Wants: "A", Runs: "A", Incarnation: 1, Phase: rollout.Available, Body: true,
			BornAt: long, ServedSince: long.Add(bootTime), PhaseSince: long.Add(bootTime), BootTook: bootTime,
			Recovered: "A", RecoveredAt: long.Add(bootTime + recoverAfter),
		}}
	}
	if b.Start == Drift {
		w.template = 1
		w.renew(1)
	}
	return w
}

// rolledBack reports whether the template was rolled back.
func (w *world) rolledBack() bool { return w.current >= 0 && w.records[w.template].RolledBack }

// target is the place of the revision that members are brought to.
func (w *world) target() int8 {
	if w.rolledBack() {
		return w.current
	}
	return w.template
}

// waiting is how many claims wait for a member.
func (w *world) waiting() (n int) {
	for i := range w.claims {
		if c := &w.claims[i]; c.made && !c.bound && !c.deleted {
			n++
		}
	}
	return n
}

// snapshot is what the pool controller reads. The members are put in the buffer.
func (w *world) snapshot(r *rules, buffer []rollout.Member) *rollout.Snapshot {
	s := &rollout.Snapshot{
		Policy: r.policy, Target: w.records[w.template], Surge: int(w.surge), Size: int(w.size),
		Waiting: w.waiting(), Members: buffer[:0], Pool: "pool",
	}
	s.Policy.Desired, s.Policy.Partition = int(w.desired), int(w.partition)
	s.Policy.Paused = w.paused
	if w.current >= 0 {
		s.Current = w.records[w.current]
	}
	if w.rolledBack() {
		s.RolledBack, s.Target = s.Target, s.Current
	}
	for i := range w.slots[:w.n] {
		m := w.slots[i].Member
		m.Skipped = m.Skipped && !w.rolledBack()
		s.Members = append(s.Members, m)
	}
	return s
}

// find is the position of the slot with the index, or absent.
func (w *world) find(index int) int {
	for i := range w.slots[:w.n] {
		if w.slots[i].Index == index {
			return i
		}
	}
	return absent
}

// carry carries out one action of a plan.
func (w *world) carry(a *rollout.Action) {
	if a.Record != nil {
		w.records[indexOf(a.Record.ID)] = *a.Record
		if a.Kind == rollout.Stand {
			w.current = indexOf(a.Revision)
		}
		return
	}
	i := w.find(a.Index)
	switch {
	case i >= 0 && a.Kind == rollout.CreateSlot, i < 0 && a.Kind != rollout.CreateSlot:
	case i >= 0:
		s := &w.slots[i]
		s.Member = a.Apply(s.Member, w.now)
		if !s.Claimed {
			s.claim = absent
		}
		w.promise(s)
	case w.n == maxSlots || a.Index >= maxSlots:
		w.outside = true
	default:
		m := a.Apply(rollout.Member{}, w.now)
		m.ID = slotIDs[a.Index]
		at := 0
		for at < int(w.n) && w.slots[at].Index < a.Index {
			at++
		}
		copy(w.slots[at+1:w.n+1], w.slots[at:w.n])
		w.slots[at] = slot{Member: m, claim: absent}
		w.n++
	}
}

// drop takes the slot at the position away.
func (w *world) drop(i int) {
	s := &w.slots[i]
	if s.Claimed {
		w.breaks("slot %d goes although a claim holds it", s.Index)
	}
	for k := range w.records {
		r := &w.records[k]
		for f := range r.Failures {
			if r.Failures[f].ID == s.ID {
				r.Failures = slices.Clone(r.Failures)
				r.Failures[f].ID = deadID
			}
		}
	}
	copy(w.slots[i:], w.slots[i+1:w.n])
	w.n--
	w.slots[w.n] = slot{}
}

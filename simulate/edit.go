package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-dev/pawl/rollout"
)

// edit is something that users, or the world, do to a pool or to everything;
// the pool is nil where none is meant.
type edit interface {
	apply(w *world, p *pool)
}

func itoa[T int | int64](i T) string { return strconv.FormatInt(int64(i), 10) }

// reviseEdit: the template says something else.
type reviseEdit struct{ to rollout.Revision }

func (e reviseEdit) apply(w *world, p *pool) {
	to := p.revision(e.to)
	w.say("user", fmt.Sprintf("edits the template of %s: %s, and it was %s", p.name, to, p.spec.target))
	p.template = e.to
	next := *p.spec
	next.target = to
	p.putSpec(&next)
}

// setEdit: the spec is patched.
type setEdit struct {
	patch spec
	said  *yaml.Node
}

func (e setEdit) apply(w *world, p *pool) {
	w.saying("user", func() string { return "sets " + oneLine(e.said) + " on " + p.name })
	next := resolve(merge(p.spec.raw, e.patch), p.spec.target, w.nature.bootTimeout)
	next.deleting, next.retry = p.spec.deleting, p.spec.retry
	if next.err != nil {
		w.judge.broken(next.err)
		return
	}
	p.putSpec(next)
}

// deletePoolEdit: somebody deletes the pool.
type deletePoolEdit struct{}

func (deletePoolEdit) apply(w *world, p *pool) {
	w.say("user", "deletes "+p.name)
	next := *p.spec
	next.deleting = true
	p.putSpec(&next)
}

// claimEdit: somebody claims a member; any, if member is -1.
type claimEdit struct {
	name   string
	member int
	ttl    time.Duration
	wait   *time.Duration
}

// apply makes the claim, unless there is one of that name: whoever asks again
// is told about that.
func (e claimEdit) apply(w *world, p *pool) {
	if _, c := w.claimed(e.name); c != nil {
		w.say("user", "claims again as "+e.name+", which is "+string(c.phase))
		return
	}
	e.make(w, p)
}

func (e claimEdit) make(w *world, p *pool) *claim {
	c := p.newClaim(e.name)
	c.wanted, c.ttl, c.wait = e.member, e.ttl, e.wait
	w.say("user", "claims a member of "+p.name+" as "+e.name)
	p.putClaim(byWorld, nil, c, nil)
	return c
}

// claimsEdit: many claims, one after the other.
type claimsEdit struct {
	count  int
	every  time.Duration
	prefix string
	ttl    time.Duration
	wait   *time.Duration
}

func (e claimsEdit) apply(w *world, p *pool) { e.next(w, p, 0) }

func (e claimsEdit) next(w *world, p *pool, i int) {
	for ; i < e.count; i++ {
		claimEdit{name: e.prefix + itoa(i), member: -1, ttl: e.ttl, wait: e.wait}.apply(w, p)
		if e.every > 0 && i+1 < e.count {
			w.first(w.now+e.every, func() { w.atomic(func() { e.next(w, p, i+1) }) })
			return
		}
	}
}

// churnEdit keeps about so many claims alive, each held about so long.
type churnEdit struct {
	claims      int
	hold, until time.Duration
}

func (e churnEdit) apply(w *world, p *pool) {
	for i := range e.claims {
		w.first(w.now+e.hold*time.Duration(i)/time.Duration(e.claims), func() { e.come(w, p) })
	}
}

// come makes the next claim, and has it released in due time.
func (e churnEdit) come(w *world, p *pool) {
	if w.now >= e.until || p.spec.deleting {
		return
	}
	w.atomic(func() {
		c := claimEdit{name: "churn-" + itoa(w.uid()), member: -1}.make(w, p)
		p.then[c.uid] = func() {
			w.at(w.now+w.about(e.hold), func() {
				w.atomic(func() { releaseEdit{c.name}.apply(w, nil) })
				w.at(w.now, func() { e.come(w, p) })
			})
		}
	})
}

// about is a time around d, from half to one and a half of it.
func (w *world) about(d time.Duration) time.Duration {
	if w.exact {
		return d
	}
	return time.Duration(float64(d) * (0.5 + w.rng.Float64())).Round(time.Millisecond)
}

// releaseEdit: somebody deletes the claim.
type releaseEdit struct{ name string }

func (e releaseEdit) apply(w *world, _ *pool) {
	p, c := w.claimed(e.name)
	if c == nil || c.deleted {
		w.say("user", "releases "+e.name+", which is not there")
		return
	}
	w.say("user", "releases "+e.name)
	next := *c
	next.deleted = true
	p.putClaim(byWorld, c, &next, nil)
}

// renewEdit: its holder says that the claim is still wanted.
type renewEdit struct{ name string }

func (e renewEdit) apply(w *world, _ *pool) {
	p, c := w.claimed(e.name)
	if c == nil {
		w.say("user", "renews "+e.name+", which is not there")
		return
	}
	w.say("user", "renews "+e.name)
	next := *c
	next.renewed = w.now
	p.putClaim(byWorld, c, &next, nil)
}

// crashEdit: the controllers die and start anew.
type crashEdit struct{ long time.Duration }

func (e crashEdit) apply(w *world, _ *pool) {
	w.say("controllers", "die for "+e.long.String())
	w.crash(e.long)
}

// loseEdit: reads fail for a while.
type loseEdit struct {
	what string
	long time.Duration
}

func (e loseEdit) apply(w *world, _ *pool) {
	l := loss(0)
	for lossNames[l] != e.what {
		l++
	}
	w.say("world", e.what+" cannot be read for "+e.long.String())
	w.lost[l] = max(w.lost[l], w.now+e.long)
	until := w.lost[l]
	w.wakeAll()
	w.first(until, func() {
		w.judge.disturb()
		if w.lost[l] == until {
			w.say("world", e.what+" can be read again")
		}
		w.wakeAll()
	})
}

// upgradeEdit: another version of Pawl starts. Revisions are names here and
// hashes nowhere, and what is stored keeps its name, so that a new hash
// algorithm comes to a restart. A renderer that makes something else of the
// same templates makes other revisions of them.
type upgradeEdit struct {
	hashVersion int
	renderer    bool
}

func (e upgradeEdit) apply(w *world, _ *pool) {
	if e.hashVersion > 0 {
		w.say("controllers", "are upgraded to hash version "+itoa(e.hashVersion))
	}
	if e.renderer {
		w.say("controllers", "are upgraded, and make another body of the same template")
		w.renderers++
		for _, p := range w.pools {
			p.retarget()
		}
	}
	w.crash(0)
}

// worldEdit: the world changes.
type worldEdit struct {
	change *change
	said   *yaml.Node
}

func (e worldEdit) apply(w *world, _ *pool) {
	w.saying("world", func() string { return "changes: " + oneLine(e.said) })
	e.change.apply(&w.nature)
	for _, p := range w.pools {
		if p.spec.life.BootTimeout != w.nature.bootTimeout {
			next := *p.spec
			next.life.BootTimeout = w.nature.bootTimeout
			p.putSpec(&next)
		}
	}
}

// memberEdit: something happens to one member.
type memberEdit struct {
	index     int
	health    string
	occupancy *rollout.Occupancy
	role      *string
	hold      *time.Duration
	cost      *int
	revision  *rollout.Revision
	refuse    *time.Duration
	remove    string
	// flap is how it goes up and down where health is Flap, do a command of
	// `pawl`, stop how long its body takes to go from now on, negative for ever.
	flap *flap
	do   string
	stop *time.Duration
}

func (e memberEdit) apply(w *world, p *pool) {
	e.body(w, p)
	e.label(w, p)
	if e.refuse != nil {
		w.say("world", "births in "+p.member(e.index)+" are refused for "+e.refuse.String())
		p.refused[e.index] = w.now + *e.refuse
	}
	if e.remove == "body" {
		if b := p.bodies[e.index]; b != nil {
			w.say("user", "deletes body "+b.name())
			b.vanish()
		}
	}
}

// body is what happens to what the slot holds.
func (e memberEdit) body(w *world, p *pool) {
	b := p.bodies[e.index]
	if b == nil {
		return
	}
	switch {
	case e.flap != nil:
		w.say("world", fmt.Sprintf("body %s goes up for %s and down for %s, in turn", b.name(), e.flap.up, e.flap.down))
		b.health(true)
		b.flap(*e.flap, func(d time.Duration) time.Duration { return d })
	case e.health != "":
		w.say("world", "body "+b.name()+" goes "+e.health)
		b.health(e.health == "Up")
	}
	if e.stop != nil {
		w.say("world", "body "+b.name()+" "+e.stopping())
		b.stopsIn(*e.stop)
	}
	if e.occupancy != nil {
		w.say("world", "body "+b.name()+" is "+occupancyNames[*e.occupancy])
		b.occupancy = *e.occupancy
	}
	if e.revision != nil {
		w.say("world", "body "+b.name()+" says that it runs "+strconv.Quote(string(*e.revision)))
		b.revision = *e.revision
		p.counts.touch(e.index)
	}
}

func (e memberEdit) stopping() string {
	if *e.stop < 0 {
		return "does not stop from now on"
	}
	return "stops within " + e.stop.String() + " from now on"
}

// label is what is written on the slot itself.
func (e memberEdit) label(w *world, p *pool) {
	old := p.slots.get(e.index)
	if old == nil {
		return
	}
	next := *old
	b := p.own(old)
	if e.occupancy != nil && b != nil {
		next.Occupancy = *e.occupancy
	}
	if e.revision != nil && b != nil {
		next.Runs = *e.revision
	}
	set(&next.role, e.role)
	if e.cost != nil {
		next.Cost = int32(*e.cost)
	}
	set(&next.holdUntil, e.hold)
	if e.do != "" {
		w.say("user", e.act(p, &next))
	}
	switch {
	case e.remove != "slot":
	case old.claimUID != 0:
		w.say("user", "cannot delete "+p.member(e.index)+": a claimed member is not deleted, its claim is to be released first")
	default:
		next.Deleting = true
	}
	if next == *old {
		return
	}
	if e.hold != nil || next.Deleting && !old.Deleting || e.cost != nil || e.role != nil {
		w.say("user", e.words(p))
	}
	p.put(byWorld, old, &next, nil)
}

func (e memberEdit) words(p *pool) string {
	name := p.member(e.index)
	switch {
	case e.remove == "slot" && e.hold == nil && e.cost == nil && e.role == nil:
		return "deletes " + name
	case e.hold != nil && *e.hold == 0:
		return "lets go of " + name
	case e.hold != nil && *e.hold >= longest:
		return "holds " + name
	case e.hold != nil:
		return "holds " + name + " until " + e.hold.String()
	case e.cost != nil:
		return "sets the cost of " + name + " to " + itoa(*e.cost)
	default:
		return "sets the role of " + name + " to " + *e.role
	}
}

// oneLine prints a node as one line of YAML.
func oneLine(n *yaml.Node) string {
	flow := *n
	flow.Style |= yaml.FlowStyle
	out, err := yaml.Marshal(&flow)
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

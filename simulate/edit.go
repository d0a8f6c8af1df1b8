package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-dev/pawl/rollout"
)

// edit is a change by users or by the world. The pool is nil for an edit that is
// not about one pool.
type edit interface {
	apply(w *world, p *pool)
}

func itoa[T int | int64](i T) string { return strconv.FormatInt(int64(i), 10) }

// reviseEdit: a user edits the template.
type reviseEdit struct{ to rollout.Revision }

func (e reviseEdit) apply(w *world, p *pool) {
	to := p.revision(e.to)
	w.say("user", fmt.Sprintf("edits the template of %s from %s to %s", p.name, p.spec.target, to))
	p.template = e.to
	next := *p.spec
	next.target = to
	p.putSpec(&next)
}

// setEdit: a user patches the spec.
type setEdit struct {
	patch spec
	node  *yaml.Node
}

func (e setEdit) apply(w *world, p *pool) {
	w.sayLazily("user", func() string { return "sets " + oneLine(e.node) + " on " + p.name })
	next := resolve(merge(p.spec.raw, e.patch), p.spec.target, w.nature.bootTimeout)
	next.deleting, next.retry = p.spec.deleting, p.spec.retry
	if next.err != nil {
		w.judge.abort(next.err)
		return
	}
	p.putSpec(next)
}

// deletePoolEdit: a user deletes the pool.
type deletePoolEdit struct{}

func (deletePoolEdit) apply(w *world, p *pool) {
	w.say("user", "deletes "+p.name)
	next := *p.spec
	next.deleting = true
	p.putSpec(&next)
}

// claimEdit: a user claims a member, or any member if member is -1.
type claimEdit struct {
	name   string
	member int
	ttl    time.Duration
	wait   *time.Duration
}

// apply creates the claim, unless a claim of that name exists.
func (e claimEdit) apply(w *world, p *pool) {
	if _, c := w.findClaim(e.name); c != nil {
		w.say("user", "claims again as "+e.name+", which is "+string(c.Phase))
		return
	}
	e.make(w, p)
}

func (e claimEdit) make(w *world, p *pool) *claim {
	c := p.newClaim(e.name)
	c.wanted, c.ttl = e.member, e.ttl
	if e.wait != nil {
		c.Limited, c.Wait = true, *e.wait
	}
	w.say("user", "claims a member of "+p.name+" as "+e.name)
	p.putClaim(byWorld, nil, c, nil)
	return c
}

// claimsEdit: several claims, one after the other.
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

// churnEdit keeps a number of claims alive, each held for about the given time.
type churnEdit struct {
	claims      int
	hold, until time.Duration
}

func (e churnEdit) apply(w *world, p *pool) {
	for i := range e.claims {
		w.first(w.now+e.hold*time.Duration(i)/time.Duration(e.claims), func() { e.addClaim(w, p) })
	}
}

// addClaim creates the next claim. When it has been held, it is released and
// followed by another.
func (e churnEdit) addClaim(w *world, p *pool) {
	if w.now >= e.until || p.spec.deleting {
		return
	}
	w.atomic(func() {
		c := claimEdit{name: "churn-" + itoa(w.uid()), member: -1}.make(w, p)
		p.onBound[c.uid] = func() {
			w.at(w.now+w.about(e.hold), func() {
				w.atomic(func() { releaseEdit{c.name}.apply(w, nil) })
				w.at(w.now, func() { e.addClaim(w, p) })
			})
		}
	})
}

// about returns a random time from d/2 to 3d/2; d if times are exact.
func (w *world) about(d time.Duration) time.Duration {
	if w.exact {
		return d
	}
	return time.Duration(float64(d) * (0.5 + w.rng.Float64())).Round(time.Millisecond)
}

// releaseEdit: a user deletes the claim.
type releaseEdit struct{ name string }

func (e releaseEdit) apply(w *world, _ *pool) {
	p, c := w.findClaim(e.name)
	if c == nil || c.Deleted {
		w.say("user", "cannot release "+e.name+": there is no such claim")
		return
	}
	w.say("user", "releases "+e.name)
	next := *c
	next.Deleted = true
	p.putClaim(byWorld, c, &next, nil)
}

// renewEdit: the holder renews the claim.
type renewEdit struct{ name string }

func (e renewEdit) apply(w *world, _ *pool) {
	p, c := w.findClaim(e.name)
	if c == nil {
		w.say("user", "cannot renew "+e.name+": there is no such claim")
		return
	}
	w.say("user", "renews "+e.name)
	next := *c
	next.renewed = w.now
	p.putClaim(byWorld, c, &next, nil)
}

// crashEdit: the controllers crash, and start again after some time.
type crashEdit struct{ long time.Duration }

func (e crashEdit) apply(w *world, _ *pool) {
	w.say("controllers", "crash for "+e.long.String())
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
		w.judge.noteDisturbance()
		if w.lost[l] == until {
			w.say("world", e.what+" can be read again")
		}
		w.wakeAll()
	})
}

// upgradeEdit: another version of Pawl starts. Revisions are names here, not
// hashes, and stored names do not change, so that a new hash algorithm is only a
// restart. A changed renderer makes other revisions of the same templates.
type upgradeEdit struct {
	hashVersion int
	renderer    bool
}

func (e upgradeEdit) apply(w *world, _ *pool) {
	if e.hashVersion > 0 {
		w.say("controllers", "are upgraded to hash version "+itoa(e.hashVersion))
	}
	if e.renderer {
		w.say("controllers", "are upgraded, and render the same template to another body")
		w.renderers++
		for _, p := range w.pools {
			p.retarget()
		}
	}
	w.crash(0)
}

// worldEdit: the behaviour of the world changes.
type worldEdit struct {
	change *change
	node   *yaml.Node
}

func (e worldEdit) apply(w *world, _ *pool) {
	w.sayLazily("world", func() string { return "changes: " + oneLine(e.node) })
	e.change.apply(&w.nature)
	for _, p := range w.pools {
		if p.spec.life.BootTimeout != w.nature.bootTimeout {
			next := *p.spec
			next.life.BootTimeout = w.nature.bootTimeout
			p.putSpec(&next)
		}
	}
}

// memberEdit: one or more changes of one member.
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
	// flap belongs to health Flap, do is a command of `pawl`, stop the body's stop
	// time from now on, negative for ever.
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

// body applies the changes of the slot's body.
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
		b.setStopTime(*e.stop)
	}
	if e.occupancy != nil {
		w.say("world", "body "+b.name()+" is "+occupancyNames[*e.occupancy])
		b.occupancy = *e.occupancy
	}
	if e.revision != nil {
		w.say("world", "body "+b.name()+" reports that it runs "+strconv.Quote(string(*e.revision)))
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

// label applies the changes that are written to the slot.
func (e memberEdit) label(w *world, p *pool) {
	old := p.slots.get(e.index)
	if old == nil {
		return
	}
	next := *old
	b := p.bodyOf(old)
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
		w.say("user", "cannot delete "+p.member(e.index)+": it is claimed; release the claim first")
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
		return "ends the hold of " + name
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

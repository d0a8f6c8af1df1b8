package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// What follows is what people do with the commands of `pawl`, and what happens
// to sources, to the clock and to pools under their names. Each command refuses
// what `pawl` refuses, and says so.

// retryEdit: pawl retry.
type retryEdit struct{}

func (retryEdit) apply(w *world, p *pool) {
	id := p.spec.target
	rec := p.state.record(id)
	if !rec.Halted && !rec.RolledBack {
		w.say("user", fmt.Sprintf("asks %s to retry revision %s, which has not halted: nothing is done", p.name, id))
		return
	}
	w.say("user", fmt.Sprintf("asks %s to retry revision %s", p.name, id))
	next := *p.spec
	next.retry = retryRequest{id, w.uid()}
	p.putSpec(&next)
}

// retryRequest asks for one more round of a revision. Two requests are never
// the same.
type retryRequest struct {
	id  rollout.Revision
	uid int64
}

// undoEdit: pawl undo --to.
type undoEdit struct{ to rollout.Revision }

// apply puts the template of a revision back. One that was made of other
// content of sources cannot be had back that way, and then nothing is done.
func (e undoEdit) apply(w *world, p *pool) {
	made, ok := p.revisions[e.to]
	is := p.variants[p.variant()]
	switch {
	case !ok:
		w.say("user", fmt.Sprintf("cannot undo to %s: %s has no such revision", e.to, p.name))
	case e.to == p.spec.target:
		w.say("user", fmt.Sprintf("cannot undo to %s: the template of %s is that already", e.to, p.name))
	case p.variants[made.variant].content != is.content:
		w.say("user", fmt.Sprintf("cannot undo to %s: sources said something else then; nothing is done", e.to))
	default:
		reviseEdit{made.template}.apply(w, p)
	}
}

// sourceEdit: a source says something else under its name.
type sourceEdit struct{ name, content string }

func (e sourceEdit) apply(w *world, p *pool) {
	w.say("user", fmt.Sprintf("changes the content of source %s to %q", e.name, e.content))
	for _, q := range w.reading(e.name, p) {
		q.sources = maps.Clone(q.sources)
		if q.sources == nil {
			q.sources = map[string]string{}
		}
		if e.content == firstContent {
			delete(q.sources, e.name)
		} else {
			q.sources[e.name] = e.content
		}
		q.retarget()
	}
}

// firstContent is what every source says at the start.
const firstContent = "1"

// reading are the pools that read the source: the one that is meant, or else
// those whose spec names it, or else all.
func (w *world) reading(source string, meant *pool) []*pool {
	if meant != nil {
		return []*pool{meant}
	}
	var list []*pool
	for _, p := range w.pools {
		if slices.Contains(p.spec.sources, source) {
			list = append(list, p)
		}
	}
	if list == nil {
		return w.pools
	}
	return list
}

// variant is one combination of a renderer and the content of sources.
type variant struct {
	renderers int
	content   string
}

// made is what a revision was made of: a template, and the combination at that
// place of the pool's variants.
type made struct {
	template rollout.Revision
	variant  int
}

// variant is the place of the combination that holds now.
func (p *pool) variant() int {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.sources)) {
		fmt.Fprintf(&b, "%q=%q ", name, p.sources[name])
	}
	v := variant{p.w.renderers, b.String()}
	i := slices.Index(p.variants, v)
	if i < 0 {
		i = len(p.variants)
		p.variants = append(p.variants, v)
	}
	return i
}

// revision is the one that a template becomes as it is rendered now. The first
// combination of renderer and sources keeps the template's name, and each one
// after it adds an apostrophe.
func (p *pool) revision(template rollout.Revision) rollout.Revision {
	v := p.variant()
	r := template + rollout.Revision(strings.Repeat(rendered, v))
	if _, known := p.revisions[r]; !known {
		p.revisions[r] = made{template, v}
	}
	return r
}

// retarget stores what the template has become, if that is another revision.
func (p *pool) retarget() {
	to := p.revision(p.template)
	if to == p.spec.target {
		return
	}
	next := *p.spec
	next.target = to
	p.putSpec(&next)
}

// clockEdit: the controllers' clock is set. What they have stored stays, and
// so do the timers that they wait for, until they notice.
type clockEdit struct{ jump time.Duration }

// clockNotice is about how long it takes the controllers to notice that their
// clock was set, and to look at everything again.
const clockNotice = 2 * time.Second

func (e clockEdit) apply(w *world, _ *pool) {
	how := "forward by " + e.jump.String()
	if e.jump < 0 {
		how = "back by " + (-e.jump).String()
	}
	w.say("world", "sets the controllers' clock "+how)
	w.skew += e.jump
	if e.jump < 0 {
		for _, p := range w.pools {
			p.rewind()
		}
	}
	w.judge.disturb()
	w.act(w.now+w.vary(clockNotice), w.wakeAll)
}

// createPoolEdit: somebody creates the pool again after it was deleted, as its
// spec was last. As long as the former one is not gone the API server refuses
// that, and so it is tried again.
type createPoolEdit struct{}

func (e createPoolEdit) apply(w *world, p *pool) {
	switch {
	case !p.spec.deleting:
		w.say("user", "cannot create "+p.name+": it is there")
	case !p.gone():
		w.say("user", "cannot create "+p.name+" before the former one is gone, and tries again")
		p.wanted = true
	default:
		p.recreate()
	}
}

// gone reports whether the pool was deleted and nothing is left of it.
func (p *pool) gone() bool { return p.spec.deleting && len(p.slots) == 0 }

// recreateOnceGone creates a pool that somebody wants again, if it is gone now.
func (p *pool) recreateOnceGone() {
	w := p.w
	if !p.wanted || !p.gone() {
		return
	}
	p.wanted = false
	w.first(w.now, func() {
		w.atomic(func() {
			w.judge.begin()
			if p.gone() {
				p.recreate()
			}
		})
	})
}

// recreate makes the pool anew. Nothing is known of the one that had its name.
func (p *pool) recreate() {
	p.w.say("user", "creates "+p.name+" again")
	next := *p.spec
	next.deleting, next.retry = false, retryRequest{}
	p.status, p.said = status{}, nil
	p.reset(&stateRecord{target: next.target})
	p.putSpec(&next)
}

// reset replaces what the pool controller remembers, as a new pool does.
func (p *pool) reset(state *stateRecord) {
	p.state = state
	p.publish(byWorld, stateKey, func(c *cache) { c.state = state })
}

// flap is how a body goes up and down until a time.
type flap struct{ up, down, until time.Duration }

// act does to the slot what a command of pawl does, unless that refuses, and
// returns what is said.
func (e *memberEdit) act(p *pool, next *slot) string {
	name := p.member(e.index)
	cannot := func(why string) string { return fmt.Sprintf("cannot %s %s: %s", e.do, name, why) }
	target := p.target()
	switch e.do {
	case doCordon, doUncordon:
		next.Cordoned = e.do == doCordon
	case doRecycle:
		if next.leaves() {
			return cannot("it is being removed")
		}
		if !next.Body {
			return cannot("it has no body to replace")
		}
		next.recycle = next.Incarnation
	case doSkip:
		switch {
		case p.w.unreadable() != "":
			return cannot("nobody can tell now what the target is")
		case target == p.state.current:
			return cannot(fmt.Sprintf("the target %s is the current revision, and there is nothing to fall back to", target))
		case next.Phase == rollout.Terminating:
			return cannot("its body is terminating already")
		case next.Body && next.Runs == target && next.inService():
			return cannot(fmt.Sprintf("it is in service on the target %s", target))
		}
		next.skip = target
	}
	return cmp.Or(doWords[e.do], e.do+"s") + " " + name
}

var doWords = map[string]string{doRecycle: "asks for another body of", doSkip: "gives up on bringing to the target"}

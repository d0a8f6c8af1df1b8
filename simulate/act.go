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

// This file has the edits that commands of `pawl` make, and edits of sources,
// the clock and whole pools. Each command refuses the same requests as `pawl`,
// with the same reason.

// retryEdit: pawl retry.
type retryEdit struct{}

func (retryEdit) apply(w *world, p *pool) {
	id := p.spec.target
	rec := p.state.record(id)
	if !rec.Halted && !rec.RolledBack {
		w.say("user", fmt.Sprintf("asks %s to retry revision %s, which has not halted: nothing to do", p.name, id))
		return
	}
	w.say("user", fmt.Sprintf("asks %s to retry revision %s", p.name, id))
	next := *p.spec
	next.retry = retryRequest{id, w.uid()}
	p.putSpec(&next)
}

// retryRequest asks for one more round of a revision. uid makes each request
// unique.
type retryRequest struct {
	id  rollout.Revision
	uid int64
}

// undoEdit: pawl undo --to.
type undoEdit struct{ to rollout.Revision }

// apply restores the template of a revision. It refuses a revision that was made
// with other content of sources, because the template alone does not restore it.
func (e undoEdit) apply(w *world, p *pool) {
	made, ok := p.revisions[e.to]
	now := p.variants[p.variant()]
	switch {
	case !ok:
		w.say("user", fmt.Sprintf("cannot undo to %s: %s has no such revision", e.to, p.name))
	case e.to == p.spec.target:
		w.say("user", fmt.Sprintf("cannot undo to %s: %s has this template already", e.to, p.name))
	case p.variants[made.variant].content != now.content:
		w.say("user", fmt.Sprintf("cannot undo to %s: it was made with other content of sources", e.to))
	default:
		reviseEdit{made.template}.apply(w, p)
	}
}

// sourceEdit: the content of a source changes.
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

// firstContent is the content of every source at the start.
const firstContent = "1"

// reading returns the pools that read the source: only the given one if it is not
// nil, else those whose spec names the source, else all.
func (w *world) reading(source string, only *pool) []*pool {
	if only != nil {
		return []*pool{only}
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

// made is the origin of a revision: a template, and an index into the pool's
// variants.
type made struct {
	template rollout.Revision
	variant  int
}

// variant returns the index of the current combination.
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

// revision returns the revision of a template with the current renderer and
// sources. The first combination has the template's name; each further one adds
// an apostrophe.
func (p *pool) revision(template rollout.Revision) rollout.Revision {
	v := p.variant()
	r := template + rollout.Revision(strings.Repeat(rendered, v))
	if _, known := p.revisions[r]; !known {
		p.revisions[r] = made{template, v}
	}
	return r
}

// retarget stores the current revision of the template as target, if it changed.
func (p *pool) retarget() {
	to := p.revision(p.template)
	if to == p.spec.target {
		return
	}
	next := *p.spec
	next.target = to
	p.putSpec(&next)
}

// clockEdit: the controllers' clock is set. Stored times stay as they are, and
// timers run on until the controllers notice.
type clockEdit struct{ jump time.Duration }

// clockNotice is about how long the controllers take to notice that their clock
// was set. Then they reconcile everything.
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
	w.judge.noteDisturbance()
	w.act(w.now+w.vary(clockNotice), w.wakeAll)
}

// createPoolEdit: a user creates the deleted pool again with its last spec. The
// API server refuses this until the former pool is gone, so it is retried.
type createPoolEdit struct{}

func (e createPoolEdit) apply(w *world, p *pool) {
	switch {
	case !p.spec.deleting:
		w.say("user", "cannot create "+p.name+": it exists")
	case !p.gone():
		w.say("user", "cannot create "+p.name+": the former one is not gone yet; tries again")
		p.recreateWanted = true
	default:
		p.recreate()
	}
}

// gone reports whether the pool was deleted and nothing is left of it.
func (p *pool) gone() bool { return p.spec.deleting && len(p.slots) == 0 }

// recreateOnceGone retries the creation of a pool, if the former one is gone.
func (p *pool) recreateOnceGone() {
	w := p.w
	if !p.recreateWanted || !p.gone() {
		return
	}
	p.recreateWanted = false
	w.first(w.now, func() {
		w.atomic(func() {
			w.judge.begin()
			if p.gone() {
				p.recreate()
			}
		})
	})
}

// recreate creates the pool, without any state of the former one.
func (p *pool) recreate() {
	p.w.say("user", "creates "+p.name+" again")
	next := *p.spec
	next.deleting, next.retry = false, retryRequest{}
	p.status, p.statusCache = status{}, nil
	p.reset(&stateRecord{target: next.target})
	p.putSpec(&next)
}

// reset replaces the state that the pool controller has stored.
func (p *pool) reset(state *stateRecord) {
	p.state = state
	p.publish(byWorld, stateKey, func(c *cache) { c.state = state })
}

// flap makes a body ready and unready in turn, until a time.
type flap struct{ up, down, until time.Duration }

// act applies a command of pawl to the slot, unless the command refuses. It
// returns the narrative's sentence.
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
			return cannot("the target is unknown now")
		case target == p.state.current:
			return cannot(fmt.Sprintf("the target %s is the current revision, and there is nothing to fall back to", target))
		case next.Phase == rollout.Terminating:
			return cannot("its body is terminating already")
		case next.Body && next.Runs == target && next.inService():
			return cannot(fmt.Sprintf("it is in service on the target %s", target))
		}
		next.skip = target
	}
	return fmt.Sprintf(cmp.Or(doSentences[e.do], e.do+"s %s"), name)
}

var doSentences = map[string]string{doRecycle: "asks for another body of %s", doSkip: "skips the target in %s"}

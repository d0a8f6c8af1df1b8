package simulate

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// Line is one thing that happened.
type Line struct {
	At Time `json:"at"`
	// Who did it: user, world, controllers, pool, member, claim, or expect for
	// what does not hold.
	Who  string `json:"who"`
	Text string `json:"text"`
}

// log keeps what happened, where somebody wants to know.
type log struct{ lines []Line }

func (w *world) say(who, text string) {
	if w.log != nil {
		w.log.lines = append(w.log.lines, Line{Time(w.now), who, text})
	}
}

// saying says what is only worth putting into words if somebody listens.
func (w *world) saying(who string, text func() string) {
	if w.log != nil {
		w.say(who, text())
	}
}

func (w *world) sayFailure(f *Failure) { w.saying("expect", f.short) }

// sentence says what an action does, and why.
func (p *pool) sentence(a *rollout.Action, s *slot) string {
	what := ""
	name := p.member(a.Index)
	switch a.Kind {
	case rollout.RecordFailure:
		what = fmt.Sprintf("counts that %s failed on %s, number %d", name, a.Revision, a.Record.Failed)
	case rollout.Recover:
		what = fmt.Sprintf("forgives the failures on %s", a.Revision)
	case rollout.Halt:
		what = fmt.Sprintf("halts the rollout of %s", a.Revision)
	case rollout.Stand:
		what = fmt.Sprintf("makes %s the current revision", a.Revision)
	case rollout.Undo:
		what = fmt.Sprintf("leaves %s alone after all", name)
	case rollout.Grant:
		what = fmt.Sprintf("grants %s a body on %s", name, orNone(a.Revision))
	case rollout.Disrupt:
		what = p.disruption(a, s)
	case rollout.CreateSlot:
		what = fmt.Sprintf("makes %s, for a body on %s", name, orNone(a.Revision))
	}
	return what + ": " + because(a.Why)
}

func (p *pool) disruption(a *rollout.Action, s *slot) string {
	name := p.member(a.Index)
	if a.DropClaim {
		name += " from its claim " + s.claim
	}
	switch {
	case a.Disruption.Remove:
		return "removes " + name
	case a.Revision == "":
		return "takes " + name + " down"
	case a.Disruption.Update:
		return fmt.Sprintf("brings %s, on %s, to %s where it is", name, orUnknown(s.Runs), a.Revision)
	default:
		return fmt.Sprintf("replaces %s, on %s, by a body on %s", name, orUnknown(s.Runs), a.Revision)
	}
}

func orNone(r rollout.Revision) string {
	if r == "" {
		return "nothing"
	}
	return string(r)
}

func orUnknown(r rollout.Revision) string {
	if r == "" {
		return "an unknown revision"
	}
	return string(r)
}

// reasons say in words what the machine reasons of actions mean.
var reasons = map[rollout.Why]string{
	rollout.WhyFill:         "the size asks for it",
	rollout.WhySurge:        "one more while there is drift to roll",
	rollout.WhyStale:        "it is stale and can be spared",
	rollout.WhyAsked:        "somebody asked for another body",
	rollout.WhySkipped:      "somebody gave up on its body",
	rollout.WhyNotAsked:     "nobody asks for another body any more",
	rollout.WhyStaleDown:    "it is stale and down anyway",
	rollout.WhyNeverServed:  "it has never served and is not what is wanted now",
	rollout.WhyFailed:       "its body has failed",
	rollout.WhyBodyGone:     "its body is gone",
	rollout.WhyExcess:       "there are more than the size asks for",
	rollout.WhyPoolDeleted:  "the pool is deleted",
	rollout.WhyMatchesAgain: "what it runs is wanted again",
	rollout.WhyServesAgain:  "it is back in service",
	rollout.WhyTurnedBusy:   "work has begun on it",
	rollout.WhyTurnedHeld:   "somebody holds it",
	rollout.WhyPaused:       "the rollout is paused",
	rollout.WhyHalted:       "the new revision has failed",
	rollout.WhyNeededAgain:  "the size asks for it again",
	rollout.WhyRetarget:     "another revision is to be born",
	rollout.WhyAdopt:        "nobody can tell what it runs, and it is taken as it is",
	rollout.WhyNotBuildable: "what was granted cannot be built",
	rollout.WhyFailureLimit: "too many of its bodies failed",
	rollout.WhyRecovered:    "one of its bodies has recovered",
	rollout.WhyCounted:      "bodies of it that have recovered are about to go",
	rollout.WhyFirst:        "it is the first of which a body has recovered",
	rollout.WhyWholePool:    "the pool stands on it",
	rollout.WhyEarlyFailure: "it had not been in service for long enough",
}

// moves says what becomes of a slot, and why.
func (p *pool) moves(was, is *slot) string {
	name := p.member(is.Index)
	if is.Phase == was.Phase {
		return fmt.Sprintf("%s is %s still: its body is gone", name, is.Phase)
	}
	return fmt.Sprintf("%s is %s, and was %s: %s", name, is.Phase, was.Phase, p.whyPhase(was, is))
}

// whyPhase says why a slot is in its phase now.
func (p *pool) whyPhase(was, is *slot) string {
	switch is.Phase {
	case rollout.Pending:
		return "its body is gone, and the next one has to wait"
	case rollout.Provisioning:
		return "its body boots"
	case rollout.Preparing:
		return "its body is ready, but not for minReadySeconds yet"
	case rollout.Unready:
		return "its body is not ready any more"
	case rollout.Failed:
		return is.Message
	case rollout.InClaim:
		return is.claim + " holds it"
	case rollout.Updating:
		return "it has drained, and its body stays"
	case rollout.Draining, rollout.Terminating:
		if was.Phase == rollout.Draining {
			return "it has drained"
		}
		return causes[is.Disruption.Cause]
	}
	switch was.Phase {
	case rollout.InClaim:
		return "nobody holds it any more"
	case rollout.Draining:
		return "it stays after all"
	}
	return "its body is ready"
}

// causes say in words why a body goes.
var causes = map[rollout.Cause]string{
	rollout.NoCause:    "somebody deletes it",
	rollout.Drift:      "its body is to be of another revision",
	rollout.ScaleDown:  "it is one too many",
	rollout.BodyFailed: "its body has failed",
	rollout.ClaimEnded: "its claim has ended",
	rollout.Requested:  "somebody asked for it",
}

func because(why rollout.Why) string {
	if r, ok := reasons[why]; ok {
		return r
	}
	return string(why)
}

// narrateStatus says what is new in a pool's status.
func (w *world) narrateStatus(p *pool, now *conditions, plan *rollout.Plan) {
	if w.log == nil {
		return
	}
	said := map[string]bool{}
	for i, c := range now {
		if was := p.status.conditions[i]; c != was && c.Status != "" {
			text := fmt.Sprintf("%s is %s, %s", conditionNames[i], c.Status, c.Reason)
			if !said[c.Message] {
				text += ": " + c.Message
			}
			said[c.Message] = true
			w.say("pool", p.told(text))
		}
	}
	if plan.Next != p.status.next && plan.Next != "" && !said[plan.Next] {
		w.say("pool", p.told(plan.Next))
	}
}

// told says which pool is meant, where there are several.
func (p *pool) told(text string) string {
	if len(p.w.pools) == 1 {
		return text
	}
	return p.name + ": " + text
}

// dump is the state in a few lines.
func (w *world) dump() string { return describe(w) }

// Time is a time since the start. In JSON it is text such as "1m30s".
type Time time.Duration

func (t Time) String() string { return time.Duration(t).String() }

// MarshalText makes JSON say "1m30s".
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

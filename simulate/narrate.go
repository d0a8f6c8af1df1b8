package simulate

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// Line is one line of a narrative.
type Line struct {
	At Time `json:"at"`
	// Who is the actor: user, world, controllers, pool, member, claim, or expect for
	// a failure.
	Who  string `json:"who"`
	Text string `json:"text"`
}

// log collects the narrative; a world without narration has none.
type log struct{ lines []Line }

func (w *world) say(who, text string) {
	if w.log != nil {
		w.log.lines = append(w.log.lines, Line{Time(w.now), who, text})
	}
}

// sayLazily builds the text only if there is a log.
func (w *world) sayLazily(who string, text func() string) {
	if w.log != nil {
		w.say(who, text())
	}
}

func (w *world) sayFailure(f *Failure) { w.sayLazily("expect", f.short) }

// describeMove describes a change of a slot's phase, with its reason.
func (p *pool) describeMove(was, is *slot) string {
	name := p.member(is.Index)
	if is.Phase == was.Phase {
		return fmt.Sprintf("%s stays %s: its body is gone", name, is.Phase)
	}
	return fmt.Sprintf("%s is %s, and was %s: %s", name, is.Phase, was.Phase, p.whyPhase(was, is))
}

// whyPhase returns the reason of a change of phase.
func (p *pool) whyPhase(was, is *slot) string {
	switch is.Phase {
	case rollout.Pending:
		return "its body is gone, and the next one is not born yet"
	case rollout.Provisioning:
		return "its body boots"
	case rollout.Preparing:
		return "its body is ready, but not yet for minReadySeconds"
	case rollout.Unready:
		return "its body is not ready any more"
	case rollout.Failed:
		return is.Message
	case rollout.InClaim:
		return is.claim + " holds it"
	case rollout.Updating:
		return "it has drained, and its body is updated"
	case rollout.Draining, rollout.Terminating:
		if was.Phase == rollout.Draining {
			return "it has drained"
		}
		return causes[is.Disruption.Cause]
	}
	switch was.Phase {
	case rollout.InClaim:
		return "its claim has ended, and its body stays"
	case rollout.Draining:
		return "its disruption was withdrawn"
	}
	return "its body is ready"
}

// causes are the reasons for which a body goes.
var causes = map[rollout.Cause]string{
	rollout.NoCause:    "its slot is deleted",
	rollout.Drift:      "its body is to be of another revision",
	rollout.ScaleDown:  "there are more members than the size asks for",
	rollout.BodyFailed: "its body has failed",
	rollout.ClaimEnded: "its claim has ended",
	rollout.Requested:  "another body was asked for",
}

// narrateStatus writes the changes of a pool's status.
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
			w.say("pool", p.withPoolName(text))
		}
	}
	if plan.Next != p.status.next && plan.Next != "" && !said[plan.Next] {
		w.say("pool", p.withPoolName(plan.Next))
	}
}

// withPoolName prefixes the pool's name if there are several pools.
func (p *pool) withPoolName(text string) string {
	if len(p.w.pools) == 1 {
		return text
	}
	return p.name + ": " + text
}

// dump describes the state in a few lines.
func (w *world) dump() string { return describe(w) }

// Time is the time since the start. Its text form is that of time.Duration: "1m30s".
type Time time.Duration

func (t Time) String() string { return time.Duration(t).String() }

// MarshalText returns the text form.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

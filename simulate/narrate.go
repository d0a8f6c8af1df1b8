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

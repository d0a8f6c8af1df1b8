package states

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// In a scenario every drain and stop takes as long as this.
const storyStop = time.Second

// story writes a path down as a scenario file.
type story struct {
	f Finding
	b strings.Builder
	r *rules
	// t is what time it is, begun when the body in each slot began what it does.
	t     time.Duration
	begun [maxSlots]time.Duration
	// claims are the names of those that there are, made how many there were.
	claims [maxClaims]string
	made   int
	lines  int
}

// Scenario is the finding as a scenario file of that name, which pawl simulate plays.
// What a scenario cannot say exactly is said in comments.
func (f *Finding) Scenario(name string) string {
	s := &story{f: *f, r: f.Policy.rules(f.Bounds.Slots)}
	fmt.Fprintf(&s.b, "name: %s\nwhy: >-\n  %s\n\n", name, strings.ReplaceAll(strings.SplitN(f.Message, "\npanic", 2)[0], "\n", "\n  "))
	s.pool()
	fmt.Fprintf(&s.b, "world: {boot: %s, stop: %s, drain: %s, bootTimeout: %s}\n", bootTime, storyStop, storyStop, bootTimeout)
	switch f.Bounds.Start {
	case Fresh:
		s.b.WriteString("start: {target: A, members: []}\n")
	case Drift:
		s.b.WriteString("start: {target: B, current: A}\n")
	}
	s.timeline()
	s.b.WriteString("\nrun: 2h\n\nexpect:\n  finally: [\"conditions.Reconciling.status == 'False'\"]\n")
	return s.b.String()
}

// pool writes the pool's spec.
func (s *story) pool() {
	p, c := &s.r.policy, s.f.Policy
	fmt.Fprintf(&s.b, "pool:\n  replicas: %d\n", p.Desired)
	put := func(is bool, format string, args ...any) {
		if is {
			fmt.Fprintf(&s.b, format+"\n", args...)
		}
	}
	put(p.Warm, "  sizing: Warm")
	put(p.RefillBelow > 0, "  refillBelow: %d", p.RefillBelow)
	put(p.HasCeiling, "  maxMembers: %d", p.MaxMembers)
	put(c.value("reuse") == 1, "  claims: {onRelease: Reuse}")
	put(true, "  update:\n    type: RollingUpdate\n    maxUnavailable: %d\n    failureLimit: %d\n    maxInFlight: %d\n    progressDeadline: %s",
		p.MaxUnavailable, p.FailureLimit, p.MaxInFlight, progressDeadline)
	put(p.InPlace, "    method: InPlace")
	put(!p.InPlace, "    maxSurge: %d", p.MaxSurge)
	put(p.HasFloor, "    minAvailable: %d", p.MinAvailable)
	put(p.Partition > 0, "    partition: %d", p.Partition)
	put(p.Rollback, "    onFailure: Rollback")
	put(p.MinReady > 0, "    minReadySeconds: %d", int(p.MinReady.Seconds()))
	put(p.Order == rollout.OldestFirst, "    order: OldestFirst")
}

// timeline follows the path.
func (s *story) timeline() {
	w := s.r.start(s.f.Bounds)
	w.tidy()
	s.b.WriteString("timeline:\n")
	for _, e := range s.f.path {
		var v view
		v.look(s.r, &w)
		s.tell(&v, e)
		w = step(s.r, w, e)
	}
	if s.lines == 0 {
		s.b.WriteString("  []\n")
	}
}

// say writes one entry of the timeline.
func (s *story) say(format string, args ...any) {
	s.t += time.Millisecond
	fmt.Fprintf(&s.b, "  - {at: %s, %s}\n", s.t, fmt.Sprintf(format, args...))
	s.lines++
}

// note writes what the scenario cannot say.
func (s *story) note(format string, args ...any) {
	fmt.Fprintf(&s.b, "  # %s: %s\n", s.t, fmt.Sprintf(format, args...))
}

// reaches has at least so much time gone by.
func (s *story) reaches(t time.Duration) { s.t = max(s.t, t) }

// tell writes what happens.
func (s *story) tell(v *view, e edge) {
	if e.late {
		s.note("the next plan is made before it sees that")
	}
	i := int(e.i)
	switch e.kind {
	case planEdge:
		if e.n != whole {
			s.note("the controller dies after %d of %s", e.n, words(v.plan.Actions))
			s.say("crash: {for: 0s}")
			return
		}
		s.note("plan %s", words(v.plan.Actions))
	case stepEdge:
		s.step(v, e)
	case timeEdge, outageEdge:
		if e.kind == outageEdge {
			s.note("controllers do nothing meanwhile")
		}
		if at := v.wake(); at.IsZero() {
			s.t += longWhile
		} else {
			s.t += at.Sub(v.w.now)
		}
	case releaseEdge:
		s.say("release: %s", s.claims[i])
	case makeEdge:
		s.made++
		s.claims[i] = fmt.Sprintf("c%d", s.made)
		s.say("claim: %s", s.claims[i])
	case claimEdge:
		t := &v.claims[i]
		s.note("claim %s: %s", s.claims[i], [...]string{"goes on", "gets a member", "lets its member go", "goes"}[t.Do])
		if t.Do >= rollout.ReleaseMember || t.Claim.Ended() {
			s.claims[i] = ""
			if i == 0 && v.w.claims[1].made {
				s.claims[0], s.claims[1] = s.claims[1], ""
			}
		}
	default:
		s.pooled(v, e)
	}
}

// pooled writes what users do to the pool.
func (s *story) pooled(v *view, e edge) {
	switch e.kind {
	case editEdge:
		s.say("revise: %s", revisions[e.i])
	case pauseEdge:
		s.say("set: {update: {paused: %t}}", !v.w.paused)
	case scaleEdge:
		s.say("set: {replicas: %d}", e.i)
	case partitionEdge:
		s.say("set: {update: {partition: %d}}", e.i)
	case retryEdge:
		s.say("do: retry")
	default:
		s.member(&v.w.slots[e.i], e.kind)
	}
}

// step writes what a slot's step brings.
func (s *story) step(v *view, e edge) {
	sl, t := &v.w.slots[e.i], &v.steps[e.i]
	switch {
	case e.n == refused:
		s.say("member: %d, refuse: {for: 1s}", sl.Index)
	case e.n == noRoom:
		s.note("there is no room for the body of member %d", sl.Index)
	case t.Do != rollout.Nothing:
		s.begun[sl.Index] = s.t
	}
	s.note("member %d is %s, and %s", sl.Index, t.Member.Phase,
		[...]string{"nothing is to be done", "a body is made", "it drains", "the drain is taken back", "its body is updated", "its body is told to go", "the slot goes"}[t.Do])
}

// member writes what happens to one member.
func (s *story) member(sl *slot, k kind) {
	i := sl.Index
	switch k {
	case bootsEdge:
		if sl.body.booted {
			s.say("member: %d, health: Up", i)
			return
		}
		s.reaches(s.begun[i] + bootTime)
		s.note("the body of member %d is ready", i)
	case goesEdge, drainsEdge:
		s.reaches(s.begun[i] + storyStop)
		s.begun[i] = s.t
		s.note("the body of member %d %s", i, kindNames[k])
	case exitsEdge:
		s.note("the body of member %d ends by itself, rather than being deleted", i)
		s.say("member: %d, delete: body", i)
	case vanishEdge:
		s.say("member: %d, delete: body", i)
	case downEdge:
		s.say("member: %d, health: Down", i)
	case slowEdge:
		if sl.body.state == rollout.Stopping {
			s.say("member: %d, stop: never", i)
			return
		}
		s.note("the body of member %d is slow", i)
	case holdEdge:
		s.say("member: %d, hold: %q", i, map[bool]string{false: "a person inspects it"}[sl.Held])
	case workEdge:
		s.say("member: %d, occupancy: %s", i, map[bool]string{true: "Busy", false: "Idle"}[sl.Occupancy == rollout.Idle])
	case recycleEdge:
		s.say("member: %d, do: recycle", i)
	case skipEdge:
		s.say("member: %d, do: skip", i)
	}
}

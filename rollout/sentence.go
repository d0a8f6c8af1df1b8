package rollout

import (
	"fmt"
	"slices"
)

// sentences say each reason to a person, with what would remove it.
var sentences = map[Reason]string{
	WritesUnseen:            "the reader has not seen its own last writes; it goes on as soon as it has",
	Unreachable:             "the pool's members cannot be read; nothing is done until they can",
	SourcesUnresolved:       "what decides a body cannot be read; the last known revision is kept until it can",
	ManualPolicy:            "update.type is Manual; set it to RollingUpdate to replace stale members",
	HaltedTarget:            "too many bodies of the target failed; correct the template or take it back",
	FailedReplacement:       "a body of the target failed and none has recovered; one slot tries it again, nothing in service is taken",
	PausedRollout:           "update.paused is set; unset it to go on",
	PoolResizing:            "the pool's size is being brought about first",
	RevisionNotReproducible: "what the revision was made from is gone, so that it cannot be built",
	Claimed:                 "it is claimed, and waits until the claim is released",
	BusyMember:              "work runs on it, and it waits until that is done",
	OccupancyUnknown:        "nobody can tell whether work runs on it, which counts as busy",
	HeldMember:              "it is held by annotation pawl.dev/hold, or skipped by pawl.dev/skip",
	Partitioned:             "update.partition keeps it off the target",
	OutsideWindow:           "outside the windows in which a disruption may start",
	BudgetFull:              "a shared budget has no room",
	NoSurgeCapacity:         "there is no capacity for a surge body, and nothing else may be out of service",
	UnavailableLimit:        "as many members are out of service as maxUnavailable allows",
	FloorReached:            "no more than minAvailable members are free",
	InFlightLimit:           "as many members roll as maxInFlight allows",
	Backoff:                 "its last attempt failed, and the next one waits",
	RollingMember:           "it is being replaced",
	Next:                    "it is next",
}

// stuckSentence is said of one member that is unreachable, the others not.
const stuckSentence = "what is to be written to it is refused for what it is; the pool's condition Stalled says why"

// because says a reason to a person.
func (q *pass) because(r Reason) string {
	switch r {
	case FloorUnreachable:
		return fmt.Sprintf("spec.%s collide: under them no rollout can ever end", q.floorUnreachable())
	case Unreachable:
		if q.s.Unreadable != Unreachable {
			return stuckSentence
		}
	case OutsideWindow:
		if q.s.WindowNever && q.s.WindowError != "" {
			return q.s.WindowError
		}
	case PausedRollout:
		return q.pauseSentence()
	case HaltedTarget:
		return q.haltSentence()
	}
	return sentences[r]
}

func (q *pass) pauseSentence() string {
	if q.s.Policy.Zero && !q.s.Policy.Paused {
		return "update.maxUnavailable and update.maxSurge are both 0, which pauses the rollout"
	}
	return sentences[PausedRollout]
}

func (q *pass) haltSentence() string {
	healed := fmt.Sprintf("what failed is healed on %s", q.current.ID)
	if q.current.Missing {
		healed = fmt.Sprintf("what failed cannot be healed on %s, since what that was made from is gone", q.current.ID)
	}
	return fmt.Sprintf("%s; what else is in service was left alone, and %s: %s", whatFailed(&q.target), healed, q.wayOut())
}

func (q *pass) rollbackSentence() string {
	return fmt.Sprintf("%s; the pool went back to %s, and what was in service there was left alone: %s",
		whatFailed(&q.s.RolledBack), q.target.ID, q.wayOut())
}

// whatFailed says how many bodies failed, and of the last one in its own words
// why.
func whatFailed(r *Record) string {
	s := fmt.Sprintf("%d bodies of revision %s failed, which is update.failureLimit", r.Failed, r.ID)
	if r.Failed == 1 {
		s = fmt.Sprintf("a body of revision %s failed, which is update.failureLimit", r.ID)
	}
	if len(r.Failures) == 0 {
		return s
	}
	last := slices.MaxFunc(r.Failures, func(a, b Failure) int { return a.At.Compare(b.At) })
	s += fmt.Sprintf("; the last was that of member %d", last.Index)
	if last.Message != "" {
		s += fmt.Sprintf(" (%s)", last.Message)
	}
	return s
}

// wayOut names what a person can do about a revision that failed.
func (q *pass) wayOut() string {
	pool := q.s.Pool
	if pool == "" {
		pool = "POOL"
	}
	return fmt.Sprintf("correct the template (pawl diff %s shows what it changed), or take it back (pawl undo %s), or try it once more (pawl retry %s)", pool, pool, pool)
}

// Explain says in one sentence why the member of the snapshot is not updated,
// or that it is.
func (p *Plan) Explain(m *Member) string {
	q := p.pass
	switch r := p.Verdict(m); {
	case r == HeldMember && m.Skipped && !m.Held:
		return fmt.Sprintf("member %d is on revision %s instead of %s: somebody gave up on bringing it there (pawl skip); it stays until the target changes",
			m.Index, orUnknown(m.Runs), q.target.ID)
	case r == Unreachable && m.Stuck:
		return fmt.Sprintf("member %d is on revision %s instead of %s: %s", m.Index, orUnknown(m.Runs), q.target.ID, stuckSentence)
	case m.Asked && q.asked(m) != "":
		return fmt.Sprintf("member %d is to be replaced, as somebody asked (pawl recycle): %s", m.Index, q.because(q.asked(m)))
	case r != "":
		return fmt.Sprintf("member %d is on revision %s instead of %s: %s", m.Index, orUnknown(m.Runs), q.target.ID, q.because(r))
	case !m.Body:
		return fmt.Sprintf("member %d has no body; the next one is to be of revision %s", m.Index, orUnknown(m.Wants))
	case q.bearing(m) == unsure:
		return fmt.Sprintf("nobody can tell what member %d runs; it is taken as it is until the template changes", m.Index)
	default:
		return fmt.Sprintf("member %d is on revision %s, the target", m.Index, q.target.ID)
	}
}

// asked is what keeps a member from being replaced as somebody asked; Next or
// RollingMember for nothing, empty if there is nothing to replace.
func (q *pass) asked(m *Member) Reason {
	switch {
	case !m.Body || m.Phase == Quarantined || m.Deleting || m.live() && m.Disruption.Cause != Requested:
		return ""
	case !q.readable():
		return q.gate
	case m.live() || q.acted(m):
		return RollingMember
	case m.Claimed:
		return Claimed
	case m.Occupancy == Busy && m.served():
		return BusyMember
	case m.busy():
		return OccupancyUnknown
	case m.Held:
		return HeldMember
	case m.Free() && q.failing && q.birth(m) == q.target.ID:
		return FailedReplacement
	case m.Free():
		return q.recycleLimit()
	}
	return Next
}

// sentence says what happens next in the pool, or who has to do what.
func (q *pass) sentence() string {
	u := q.plan.Updated
	switch {
	case u.Status == True && q.excess() > q.surplus:
		return q.stays()
	case u.Status == True:
		return "nothing to do: " + u.Message
	case u.Reason != "RollingUpdate":
		return u.Message
	}
	for _, t := range q.plan.Blockers {
		if t.Reason != RollingMember {
			return fmt.Sprintf("%d of %d updated; of the others, member %d%s: %s",
				q.plan.Counts.Updated, q.plan.Counts.Members, t.Example, more(t.Count-1), q.because(t.Reason))
		}
	}
	return u.Message
}

// goesOnly says what a pool that is deleted waits for.
func (q *pass) goesOnly() string {
	if s := q.stays(); s != "" {
		return "the pool is deleted; " + s
	}
	return "the pool is deleted; its members are on their way out"
}

// stays names the first slot that is too many and cannot be removed, and why;
// empty if there is none.
func (q *pass) stays() string {
	for i := range q.s.Members {
		m := &q.s.Members[i]
		if m.leaving() || q.removable(m) || q.done.has(i) {
			continue
		}
		why := sentences[HeldMember]
		switch {
		case m.Claimed:
			why = sentences[Claimed]
		case m.busy():
			why = sentences[BusyMember]
		}
		return fmt.Sprintf("%s more than the size asks for; member %d stays: %s", are(max(1, q.excess()-q.surplus)), m.Index, why)
	}
	return ""
}

func orUnknown(r Revision) Revision {
	if r == "" {
		return "unknown"
	}
	return r
}

func members(n int) string {
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}

func are(n int) string {
	if n == 1 {
		return "1 member is"
	}
	return fmt.Sprintf("%d members are", n)
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

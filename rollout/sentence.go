package rollout

import (
	"fmt"
	"slices"
)

// stuckSentence is the message for one unreachable member of a pool that can be reached.
const stuckSentence = "writes to it are rejected; the pool's condition Stalled says why"

// because returns the message of a reason, with names and numbers.
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
	case FailedReplacement:
		return q.probationSentence()
	case Unproven:
		return q.unprovenSentence()
	case UnavailableLimit, NoSurgeCapacity, InFlightLimit, FloorReached:
		return r.Sentence() + q.usedBy()
	}
	return r.Sentence()
}

// usedBy names the first member that uses up the limit, preferably one that does not come
// back by itself, and what would let the rollout go on.
func (q *pass) usedBy() string {
	n := q.ledger.out
	if n == 0 {
		return q.steadyUse()
	}
	first := &q.s.Members[q.ledger.firstOut-1]
	if q.ledger.firstStuck > 0 {
		first = &q.s.Members[q.ledger.firstStuck-1]
	}
	others := ""
	if n > 1 {
		others = fmt.Sprintf(", and %d more out of service", n-1)
	}
	return fmt.Sprintf(": member %d%s%s%s", first.Index, whyDown(first), others, q.steadyUse())
}

// staysDown reports whether the member is down and does not come back by itself.
func staysDown(m *Member) bool { return m.NoRoom || m.Phase == Failed || m.Phase == Unready }

// steadyUse explains a warm pool that always misses members while claims come and go, and
// names the field that lets a rollout go on.
func (q *pass) steadyUse() string {
	if !q.s.Policy.Warm || q.s.Policy.HasFloor || q.ledger.onTop == 0 && q.s.Waiting == 0 {
		return ""
	}
	return "; the pool is in steady use: update.minAvailable would let one member roll at a time, down to that floor"
}

// whyDown says why a member is not in service.
func whyDown(m *Member) string {
	switch {
	case m.NoRoom:
		return " finds no room for its body"
	case m.Phase == Failed && m.Message != "":
		return fmt.Sprintf(" failed (%s)", m.Message)
	case m.Phase == Failed:
		return " failed"
	case m.Phase == Unready && m.Held:
		return " is down and held"
	case m.Phase == Unready:
		return " is down"
	case m.Cordoned && m.healthy():
		return " is cordoned"
	case m.Phase == Draining || m.Phase == Terminating:
		return " is on its way out"
	}
	return " is on its way into service"
}

// probationSentence says which member tries the failed target again, or which one prevents
// that.
func (q *pass) probationSentence() string {
	const failed = "a body of the target failed, and none has recovered since"
	const rest = "no other member in service is taken until one has"
	switch {
	case q.probationInBackoff && !q.acted(q.member(q.probation)):
		return fmt.Sprintf("%s; member %d tries the target after a backoff, and %s", failed, q.probation, rest)
	case q.probation >= 0:
		return fmt.Sprintf("%s; member %d tries the target, and %s", failed, q.probation, rest)
	case q.keptFailure != nil:
		return fmt.Sprintf("%s; the target is not tried, since member %d %s", failed, q.keptFailure.Index, whyKept(q.keptFailure))
	case q.partition() > 0 && q.ledger.offTarget <= q.partition():
		return failed + "; no slot tries the target, since update.partition keeps every other one off it"
	case q.probation == probationBySurge:
		return fmt.Sprintf("%s; a surge body is to try the target%s, and %s", failed, q.whyNoSurge(), rest)
	case q.ledger.takeable == 0:
		return failed + "; no slot can try the target: every member off it is claimed, busy, held, skipped or down"
	}
	return fmt.Sprintf("%s; a member in service is to try the target once one can be spared, and %s", failed, rest)
}

func (q *pass) whyNoSurge() string {
	switch {
	case q.paused():
		return " once the rollout is not paused"
	case q.s.WindowShut:
		return " once a window opens"
	case q.resizing:
		return " once the pool has its size"
	}
	return ""
}

// whyKept says why a failed slot is kept as it is.
func whyKept(m *Member) string {
	switch guard := m.guard(BodyFailed); {
	case guard == Claimed:
		return "failed on it and is claimed"
	case guard == HeldMember:
		return "failed on it and is held (pawl unhold lets it go)"
	case m.NoRoom:
		return "failed on it and finds no room for its next body"
	case m.Stuck:
		return "failed on it, and writes to it are rejected"
	case m.Phase == Terminating:
		return "failed on it, and its body does not terminate"
	}
	return "failed on it, and work may still run there"
}

// unprovenSentence says what is not known of the target yet.
func (q *pass) unprovenSentence() string {
	if q.overdue {
		return "bodies of the target take far longer to boot than those of the current revision did: until one is in service, no member in service is taken, and missing bodies are born on the current revision"
	}
	for _, i := range q.irregular {
		m := &q.s.Members[i]
		if m.Runs == q.target.ID && !m.UnsettledSince.IsZero() && !m.recovered() {
			return fmt.Sprintf("member %d went down before it had recovered: no member in service is taken until a body of the target has recovered", m.Index)
		}
	}
	return Unproven.Sentence()
}

func (q *pass) partitionSentence() string {
	if q.ledger.offTarget == q.partition() {
		return fmt.Sprintf("all but %s on revision %s, as update.partition asks", are(q.ledger.offTarget), q.target.ID)
	}
	return fmt.Sprintf("all but %s on revision %s: fewer than update.partition (%d) asks for; updated members are not taken back", are(q.ledger.offTarget), q.target.ID, q.partition())
}

func (q *pass) pauseSentence() string {
	if q.s.Policy.Zero && !q.s.Policy.Paused {
		return "update.maxUnavailable and update.maxSurge are both 0, which pauses the rollout"
	}
	return PausedRollout.Sentence()
}

func (q *pass) haltSentence() string {
	if q.current.ID == "" {
		return fmt.Sprintf("%s; no body of any revision has recovered, so there is no revision to go back to, and births are retried with backoff: %s", whatFailed(&q.target), q.wayOut())
	}
	healed := fmt.Sprintf("failed members are healed on %s", q.current.ID)
	if q.current.Missing {
		healed = fmt.Sprintf("failed members cannot be healed on %s, since its sources are gone", q.current.ID)
	}
	return fmt.Sprintf("%s; other members in service were left alone, and %s: %s", whatFailed(&q.target), healed, q.wayOut())
}

func (q *pass) rollbackSentence() string {
	return fmt.Sprintf("%s; the pool went back to %s, and members in service on it were left alone: %s",
		whatFailed(&q.s.RolledBack), q.target.ID, q.wayOut())
}

// whatFailed says how many bodies failed, in how many slots, and how the last one failed.
func whatFailed(r *Record) string {
	return fmt.Sprintf("%s of revision %s failed, in %s, which reaches update.failureLimit%s", bodies(r.Failed), r.ID, slotsOf(r.slots()), lastOf(r))
}

// lastWords says which member failed last on the target, and why.
func (q *pass) lastWords() string { return lastOf(&q.target) }

func lastOf(r *Record) string {
	if len(r.Failures) == 0 {
		return ""
	}
	last := slices.MaxFunc(r.Failures, func(a, b Failure) int { return a.At.Compare(b.At) })
	s := fmt.Sprintf("; the last was that of member %d", last.Index)
	if last.Message != "" {
		s += fmt.Sprintf(" (%s)", last.Message)
	}
	return s
}

func bodies(n int) string {
	if n == 1 {
		return "1 body"
	}
	return fmt.Sprintf("%d bodies", n)
}

func slotsOf(n int) string {
	if n == 1 {
		return "1 slot"
	}
	return fmt.Sprintf("%d slots", n)
}

// wayOut says what a person can do about a failed revision.
func (q *pass) wayOut() string {
	pool := q.s.Pool
	if pool == "" {
		pool = "POOL"
	}
	if q.current.ID == "" {
		return fmt.Sprintf("correct the template, or try it once more (pawl retry %s)", pool)
	}
	return fmt.Sprintf("correct the template (pawl diff %s shows what it changed), or take it back (pawl undo %s), or try it once more (pawl retry %s)", pool, pool, pool)
}

// Explain returns one sentence: why the member, as in the snapshot, is not updated, or that
// it is.
func (p *Plan) Explain(m *Member) string {
	v, request := find(p.Verdicts, m.Index), find(p.Requests, m.Index)
	switch {
	case v.Reason == HeldMember && m.Skipped && !m.Held:
		return fmt.Sprintf("member %d is on revision %s instead of %s: it is skipped (pawl skip), and stays until the target changes",
			m.Index, orUnknown(m.Runs), p.Target)
	case request.Reason != "":
		return fmt.Sprintf("member %d is to be replaced, as asked (pawl recycle): %s", m.Index, request.Says)
	case v.Reason != "":
		return fmt.Sprintf("member %d is on revision %s instead of %s: %s", m.Index, orUnknown(m.Runs), p.Target, v.Says)
	case p.Updated.Reason == string(InvalidSnapshot):
		return fmt.Sprintf("nothing is known of member %d: %s", m.Index, p.Updated.Message)
	case !m.Body:
		return fmt.Sprintf("member %d has no body; the next one is to be of revision %s", m.Index, orUnknown(m.Wants))
	case m.Phase == Quarantined:
		return fmt.Sprintf("member %d is kept for inspection, on revision %s", m.Index, orUnknown(m.Runs))
	case m.Runs == "":
		return fmt.Sprintf("the revision of member %d is unknown; it is adopted as it is until the template changes", m.Index)
	case m.Runs != p.Target:
		return fmt.Sprintf("member %d is on revision %s instead of %s; the plan does not know it yet", m.Index, m.Runs, p.Target)
	default:
		return fmt.Sprintf("member %d is on revision %s, the target", m.Index, m.Runs)
	}
}

// requestReason returns the reason why a member is not recycled: Next or RollingMember if
// it is; empty if there is no body to replace.
func (q *pass) requestReason(m *Member) Reason {
	switch {
	case !m.Body || m.Phase == Quarantined || m.Deleting || m.Disrupted() && m.Disruption.Cause != Requested:
		return ""
	case !q.readable():
		return q.gate
	case m.Disrupted() || q.acted(m):
		return RollingMember
	case m.guard(Requested) != "":
		return m.guard(Requested)
	case m.Free() && q.failing && q.birth(m) == q.target.ID:
		return FailedReplacement
	case m.Free():
		return q.recycleLimit()
	}
	return Next
}

// sentence returns Plan.Next.
func (q *pass) sentence() string {
	u := q.plan.Updated
	switch {
	case u.Status == True && q.excess() > q.allowedSurge:
		return q.excessSentence()
	case u.Status == True:
		return "nothing to do: " + u.Message
	case u.Reason != "RollingUpdate":
		return u.Message
	case q.neverServed():
		return fmt.Sprintf("no body of revision %s has come into service yet%s", q.target.ID, q.lastWords())
	}
	for _, t := range q.plan.Blockers {
		if t.Reason != RollingMember {
			return fmt.Sprintf("%d of %d updated; of the others, member %d%s: %s",
				q.plan.Counts.Updated, q.plan.Counts.Members, t.Example, more(t.Count-1), q.because(t.Reason))
		}
	}
	return u.Message
}

// deletionSentence says what the deletion of a pool waits for.
func (q *pass) deletionSentence() string {
	n, first := 0, (*Member)(nil)
	for i := range q.s.Members {
		if m := &q.s.Members[i]; !m.leaving() && !q.actedOn.has(i) {
			if n++; first == nil {
				first = m
			}
		}
	}
	if first == nil {
		return "the pool is deleted; its members are on their way out"
	}
	return fmt.Sprintf("the pool is deleted; %s: member %d%s: %s", membersStay(n), first.Index, more(n-1), whyStays(first))
}

// excessSentence names the first excess slot that cannot be removed, and why.
func (q *pass) excessSentence() string {
	for i := range q.s.Members {
		m := &q.s.Members[i]
		if m.leaving() || m.Phase == Quarantined || q.onTop(m) || q.removable(m) || q.actedOn.has(i) {
			continue
		}
		return fmt.Sprintf("%s more than the size asks for; member %d stays: %s", are(max(1, q.excess()-q.allowedSurge)), m.Index, whyStays(m))
	}
	return fmt.Sprintf("%s more than the size asks for, and stay until enough members are in service", are(max(1, q.excess()-q.allowedSurge)))
}

// whyStays says why a member is not removed.
func whyStays(m *Member) string {
	switch guard := m.guard(ScaleDown); {
	case guard != "":
		return guard.Sentence()
	case m.Stuck:
		return stuckSentence
	}
	return "it is needed until another one is in service"
}

func membersStay(n int) string {
	if n == 1 {
		return "1 member stays"
	}
	return fmt.Sprintf("%d members stay", n)
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

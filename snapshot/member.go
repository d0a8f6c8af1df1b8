package snapshot

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// Member reads one slot.
func Member(m *v1alpha1.Member, now time.Time) rollout.Member {
	st := &m.Status
	phase, _ := rollout.ParsePhase(string(st.Phase))
	r := rollout.Member{
		Index:       int(m.Spec.Index),
		ID:          string(m.UID),
		Wants:       rollout.Revision(m.Spec.Revision),
		Runs:        rollout.Revision(st.Revision),
		Phase:       phase,
		Body:        st.BodyUID != "",
		Gone:        phase == rollout.Failed && (st.BodyUID == "" || st.Exited),
		Incarnation: st.Incarnation,
		Claimed:     m.Spec.Claim != nil,
		Cordoned:    value(m.Spec.Cordoned, false),
		Held:        Held(m, now),
		Occupancy:   Occupancy(m),
		Cost:        Cost(m),
		Asked:       m.Annotations[v1alpha1.AnnotationRecycle] == strconv.FormatInt(st.Incarnation, 10),
		Message:     st.Message,
		BootTook:    duration(st.BootTook),
		StopTook:    duration(st.StopTook),
		Deleting:    !m.DeletionTimestamp.IsZero(),
		FailedEarly: st.FailedEarly,
		NoRoom:      st.NoRoom,
		Attempts:    st.Attempts,
		NextAttempt: Time(st.NextAttemptAt),
		BornAt:      Time(st.BornAt),
		PhaseSince:  Time(st.PhaseSince),
		ServedSince: Time(st.ServedSince),
		DownSince:   Time(st.DownSince),
		ForClaim:    value(m.Spec.ForClaim, false),

		UnsettledSince: Time(st.UnsettledSince),
		Recovered:      rollout.Revision(st.Recovered),
		RecoveredAt:    Time(st.RecoveredAt),
	}
	if r.BornAt.IsZero() {
		r.BornAt = m.CreationTimestamp.Time
	}
	if d := m.Spec.Disruption; d != nil {
		cause, _ := rollout.ParseCause(string(d.Reason))
		r.Disruption = rollout.Disruption{
			Cause: cause, Remove: d.Action == v1alpha1.ActionRemove, Update: d.Action == v1alpha1.ActionUpdate, Rolling: value(d.Rolling, false),
			Incarnation: d.Incarnation, Since: Time(d.Since),
		}
	}
	return r
}

// SetStatus writes the result of a step of the slot's life into the status. The
// caller writes the body's UID, address and message.
func SetStatus(st *v1alpha1.MemberStatus, r *rollout.Member) {
	st.Phase = v1alpha1.Phase(r.Phase.String())
	st.Revision = string(r.Runs)
	st.Incarnation = r.Incarnation
	st.Exited = r.Phase == rollout.Failed && r.Gone && r.Body
	st.FailedEarly = r.FailedEarly
	st.Attempts = r.Attempts
	st.NextAttemptAt = Micro(r.NextAttempt)
	st.BornAt = Micro(r.BornAt)
	st.PhaseSince = Micro(r.PhaseSince)
	st.ServedSince = Micro(r.ServedSince)
	st.DownSince, st.UnsettledSince = Micro(r.DownSince), Micro(r.UnsettledSince)
	st.Recovered, st.RecoveredAt = string(r.Recovered), Micro(r.RecoveredAt)
	st.NoRoom = r.NoRoom
	st.BootTook, st.StopTook = span(r.BootTook), span(r.StopTook)
	if !r.Body {
		st.BodyUID, st.Address = "", ""
	}
}

// SetSpec writes what the engine changed into the member's spec: the grant, the
// disruption, and the removal of a claim. The caller writes a new claim.
func SetSpec(m *v1alpha1.Member, was, is *rollout.Member) {
	Regrant(m, string(is.Wants)) // before the disruption changes
	if is.Disruption != was.Disruption {
		m.Spec.Disruption = Disruption(is.Disruption)
	}
	if was.Claimed && !is.Claimed {
		m.Spec.Claim = nil
	}
}

// Disruption returns a disruption as the API stores it; nil for none.
func Disruption(d rollout.Disruption) *v1alpha1.Disruption {
	if d.Cause == rollout.NoCause {
		return nil
	}
	out := &v1alpha1.Disruption{
		Reason: v1alpha1.DisruptionReason(d.Cause.String()), Action: v1alpha1.ActionReplace,
		Incarnation: d.Incarnation, Since: Micro(d.Since),
	}
	switch {
	case d.Remove:
		out.Action = v1alpha1.ActionRemove
	case d.Update:
		out.Action = v1alpha1.ActionUpdate
	}
	if d.Rolling {
		out.Rolling = &d.Rolling
	}
	return out
}

// ReasonOnTarget is the reason of a member's condition Updated while it is True.
const ReasonOnTarget = "OnTarget"

// OnTarget returns the condition Updated of a member that is on the target.
func OnTarget(m *rollout.Member) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionUpdated, Status: metav1.ConditionTrue, Reason: ReasonOnTarget,
		Message: fmt.Sprintf("member %d is on revision %s, the target", m.Index, m.Runs),
	}
}

// Hold is the value of the annotation pawl.dev/hold.
type Hold struct {
	Reason string     `json:"reason,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
}

// Held reports whether the member is held now. An annotation that cannot be
// parsed holds without an end.
func Held(m *v1alpha1.Member, now time.Time) bool {
	if _, ok := m.Annotations[v1alpha1.AnnotationHold]; !ok {
		return false
	}
	end := HoldEnds(m)
	return end.IsZero() || now.Before(end)
}

// HoldEnds returns when the member's hold ends by itself; zero for never.
func HoldEnds(m *v1alpha1.Member) time.Time {
	text, ok := m.Annotations[v1alpha1.AnnotationHold]
	if !ok {
		return time.Time{}
	}
	var h Hold
	if err := json.Unmarshal([]byte(text), &h); err != nil || h.Until == nil {
		return time.Time{}
	}
	return *h.Until
}

// Cost returns the member's disruption cost. A value that is not a 32-bit
// integer counts as 0.
func Cost(m *v1alpha1.Member) int32 {
	text, ok := m.Annotations[v1alpha1.AnnotationDisruptionCost]
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

func span(d time.Duration) *metav1.Duration {
	if d = d.Round(time.Millisecond); d <= 0 {
		return nil
	}
	return &metav1.Duration{Duration: d}
}

// Time converts a time that the API stores; an absent one becomes zero.
func Time(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// Micro converts a time for the API: cut to microseconds, absent for zero.
func Micro(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewMicroTime(t.UTC().Truncate(time.Microsecond))
	return &m
}

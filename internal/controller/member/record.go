package member

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// say records, once it has gone on for a while, what keeps the slot from its
// next step, and returns that error. Nothing else changes.
func (s *step) say(ctx context.Context, why error) error {
	s.seen = body.Observation{Message: why.Error(), Occupancy: s.seen.Occupancy}
	now := snapshot.Member(s.member, s.now)
	if _, err := s.record(ctx, &now); err != nil {
		return errors.Join(why, err)
	}
	return why
}

// update stores what is not status.
func (s *step) update(ctx context.Context) error {
	if err := s.r.Client.Update(ctx, s.member); err != nil {
		return err //nolint:wrapcheck // a conflict stays one
	}
	s.r.writes.Wrote(client.ObjectKeyFromObject(s.member), s.member.Name, s.member.ResourceVersion)
	return nil
}

// record stores the member if it differs from what is stored.
func (s *step) record(ctx context.Context, m *rollout.Member) (bool, error) {
	was := s.member.DeepCopy()
	st := &s.member.Status
	snapshot.SetStatus(st, m)
	if m.Body && s.seen.UID != "" && s.sight().State != rollout.Absent {
		st.Address = s.seen.Address
		if was.Status.BodyUID == "" || !s.parted() {
			st.BodyUID = s.seen.UID
		}
		if m.Runs == "" && s.seen.Revision != "" {
			st.Revision = s.seen.Revision
		}
	}
	s.setConditions(m)
	message := s.message()
	if equality.Semantic.DeepEqual(was.Status, s.member.Status) {
		if st.Message == message {
			return false, nil
		}
		if s.speaks = m.PhaseSince.Add(quiet); s.now.Before(s.speaks) {
			return false, nil
		}
	}
	st.Message = message
	if err := s.r.Client.Status().Update(ctx, s.member); err != nil {
		s.member = was
		return false, err //nolint:wrapcheck // a conflict stays one
	}
	s.r.writes.Wrote(client.ObjectKeyFromObject(s.member), s.member.Name, s.member.ResourceVersion)
	return true, nil
}

// parted tells whether what is seen may be a part of the body only, while it
// becomes another incarnation or ends.
func (s *step) parted() bool {
	return s.updating() || s.member.Status.Phase == v1alpha1.PhaseTerminating
}

// message is what the body says, and before that what it lacks.
func (s *step) message() string {
	said := s.seen.Message
	if s.stuck != nil && !strings.Contains(said, s.stuck.Error()) {
		said = strings.Trim(s.stuck.Error()+"; "+said, "; ")
	}
	return oneLine(s.redact(said))
}

// setConditions says whether the member is in service, and, of a body that is
// on the target, that it is: the pool's controller says it of the others.
func (s *step) setConditions(m *rollout.Member) {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: m.Phase.String()}
	if m.Phase == rollout.Available || m.Phase == rollout.InClaim {
		ready.Status, ready.Reason = metav1.ConditionTrue, "InService"
	}
	s.setCondition(ready)
	s.setOccupied()
	have := meta.FindStatusCondition(s.member.Status.Conditions, v1alpha1.ConditionUpdated)
	switch {
	case !m.Body:
		meta.RemoveStatusCondition(&s.member.Status.Conditions, v1alpha1.ConditionUpdated)
	case (m.Phase == rollout.Provisioning || m.Phase == rollout.Updating && !s.updating()) && m.Runs != "" && m.Runs == s.target:
		s.setCondition(snapshot.OnTarget(m))
	case have == nil || have.Status != metav1.ConditionFalse:
	case m.Phase == rollout.Terminating:
		s.setCondition(metav1.Condition{
			Type: have.Type, Status: have.Status, Reason: string(rollout.RollingMember), Message: "its body is on its way out",
		})
	case m.Phase == rollout.Updating:
		s.setCondition(metav1.Condition{
			Type: have.Type, Status: have.Status, Reason: string(rollout.RollingMember), Message: "its body becomes another revision",
		})
	}
}

// setCondition sets a condition whose reason has changed or, of one that is
// true, whose message.
func (s *step) setCondition(c metav1.Condition) {
	have := meta.FindStatusCondition(s.member.Status.Conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason && (have.Status != metav1.ConditionTrue || have.Message == c.Message) {
		return
	}
	c.ObservedGeneration = s.member.Generation
	meta.SetStatusCondition(&s.member.Status.Conditions, c)
}

package member

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/source"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// step is one reconciliation of one member.
type step struct {
	r      *Reconciler
	member *v1alpha1.Member
	now    time.Time

	pool      *v1alpha1.Pool
	lifecycle rollout.Lifecycle
	// target is what the pool's template said last.
	target rollout.Revision
	// present is what the pool's template says now; unlive is what is wrong
	// with its live fields, which it lacks then.
	present *v1alpha1.Template
	unlive  error
	// kind and build are those of the body that is there, or was; of is its
	// incarnation, where it is another than is recorded.
	kind    body.Kind
	build   build
	of      int64
	seen    body.Observation
	drained bool
	// stuck is why the body does not have the live fields of now, and retry when
	// that is tried again.
	stuck error
	retry time.Time
	// speaks is when a change of the message alone is written.
	speaks time.Time
	// secrets are all values that were handed out.
	secrets []*source.Values
	// mute: there are secrets that nobody can take out of a text any more.
	mute bool
}

// quiet is how long a slot has to be in its phase until a change of its
// message alone is worth a write: a body that boots says many things.
const quiet = 3 * time.Second

// maxSteps bounds the steps of one reconciliation; a life has fewer.
const maxSteps = 12

// run takes steps until nothing changes, and returns when time alone brings
// the next one. Whatever keeps it from that is said in the member's message.
func (s *step) run(ctx context.Context) (time.Time, error) {
	wake, err := s.steps(ctx)
	switch {
	case err == nil:
		return wake, nil
	case apierrors.IsConflict(err) || ctx.Err() != nil:
		return wake, err
	}
	return wake, s.say(ctx, err)
}

func (s *step) steps(ctx context.Context) (time.Time, error) {
	if err := s.prepare(ctx); err != nil {
		return time.Time{}, err
	}
	if err := s.endHold(ctx); err != nil {
		return time.Time{}, err
	}
	if err := s.observe(ctx); err != nil {
		switch gone, goneErr := s.swept(ctx, err); {
		case goneErr != nil:
			return time.Time{}, goneErr
		case gone:
			return time.Time{}, s.letGo(ctx)
		case s.member.Status.BodyUID != "":
			return time.Time{}, err
		}
		// No body is recorded: should there be one after all, its birth tells,
		// and so does the end of the slot.
		s.seen = body.Observation{State: body.Absent, Message: err.Error()}
	}
	s.applyLive(ctx)
	var wake time.Time
	for range maxSteps {
		t := rollout.Step(s.slotNow(), s.sight(), s.lifecycle, s.now)
		again, err := s.take(ctx, &t)
		if err != nil {
			return time.Time{}, err
		}
		wake = earliest(t.Wake, s.recheck(), s.speaks, s.holdEnds(), s.retry)
		if !again {
			return wake, nil
		}
	}
	return wake, fmt.Errorf("more than %d steps at once: phase %s", maxSteps, s.member.Status.Phase)
}

// holdEnds is when the member's hold ends; zero if that is past, or never.
func (s *step) holdEnds() time.Time {
	if end := snapshot.HoldEnds(s.member); end.After(s.now) {
		return end
	}
	return time.Time{}
}

// endHold removes a hold that has ended by itself: the admission policy that
// keeps it knows no time.
func (s *step) endHold(ctx context.Context) error {
	if end := snapshot.HoldEnds(s.member); end.IsZero() || s.now.Before(end) {
		return nil
	}
	delete(s.member.Annotations, v1alpha1.AnnotationHold)
	return s.update(ctx)
}

func (s *step) recheck() time.Time {
	if s.seen.Recheck <= 0 {
		return time.Time{}
	}
	return s.now.Add(s.seen.Recheck)
}

// prepare reads the pool and the template of the body that is there.
func (s *step) prepare(ctx context.Context) error {
	p, err := s.readPool(ctx)
	if err != nil {
		return err
	}
	policy, err := snapshot.Policy(&p.Spec)
	if err != nil {
		return err
	}
	s.pool, s.lifecycle = p, snapshot.Lifecycle(&p.Spec, policy)
	s.target = s.aim()
	s.setPresent()
	id := s.member.Status.Revision
	if id == "" {
		id = s.member.Spec.Revision
	}
	if s.build, err = s.revision(ctx, id); err != nil {
		return err
	}
	s.kind, err = s.r.Kinds.Of(s.build.template)
	return err
}

// aim is the pool's target. What a member is rolled to, unless that is what the
// pool stands on, says it before the pool's status does, which is written after
// what is decided.
func (s *step) aim() rollout.Revision {
	p, d, granted := s.pool, s.member.Spec.Disruption, s.member.Spec.Revision
	rolled := d != nil && d.Reason == v1alpha1.DisruptionDrift && granted != p.Status.CurrentRevision
	switch {
	case rolled && p.Status.ObservedGeneration < p.Generation:
		return rollout.Revision(granted)
	case p.Status.Rollout != nil:
		return rollout.Revision(p.Status.Rollout.Revision)
	}
	return rollout.Revision(p.Status.TargetRevision)
}

// readPool reads the member's pool. A member that is deleted needs none to come
// to its end.
func (s *step) readPool(ctx context.Context) (*v1alpha1.Pool, error) {
	p := &v1alpha1.Pool{}
	key := types.NamespacedName{Namespace: s.member.Namespace, Name: s.member.Spec.Pool}
	err := s.r.Client.Get(ctx, key, p)
	switch {
	case apierrors.IsNotFound(err) && !s.member.DeletionTimestamp.IsZero():
		p.Namespace, p.Name = key.Namespace, key.Name
		return p, nil
	case err != nil:
		return nil, fmt.Errorf("get Pool %s: %w", key.Name, err)
	}
	return p, nil
}

// slot is the one whose body is there, or was.
func (s *step) slot() body.Slot {
	m := s.member
	slot := s.slotOf(s.build, m.Status.Incarnation)
	slot.Revision = m.Status.Revision
	if s.of != 0 {
		slot.Incarnation, slot.Revision = s.of, s.build.id
	}
	return slot
}

// next is the slot as the next body finds it.
func (s *step) next(m *rollout.Member, b build) body.Slot { return s.slotOf(b, m.NextIncarnation()) }

func (s *step) slotOf(b build, incarnation int64) body.Slot {
	m := s.member
	slot := body.Slot{
		Namespace: m.Namespace, Pool: s.pool.Name, Member: m.Name, Index: m.Spec.Index, UID: string(m.UID),
		Incarnation: incarnation, Revision: b.id, Sources: b.sources,
	}
	if m.Status.BodyUID != "" {
		slot.Known = []string{m.Status.BodyUID}
	}
	if a := s.pool.Spec.ServiceAccountName; a != nil {
		slot.ServiceAccount = *a
	}
	return slot
}

// observe looks at the body. What cannot be told changes nothing.
func (s *step) observe(ctx context.Context) error {
	seen, err := s.kind.Observe(ctx, s.slot(), s.build.template)
	if err != nil {
		return fmt.Errorf("observe body: %w", err)
	}
	s.seen = seen
	return s.recognise(ctx)
}

// recognise looks again at a body that is not of the recorded revision, as what
// it is: it could not become that, and stayed.
func (s *step) recognise(ctx context.Context) error {
	st := &s.member.Status
	id := s.seen.Revision
	switch {
	case st.BodyUID == "" || s.of != 0:
		return nil
	case s.seen.State == body.Absent && st.FailedEarly:
		// Of another kind, perhaps.
		id = s.pool.Status.CurrentRevision
	case s.seen.Incarnation >= st.Incarnation:
		return nil
	}
	if id == "" || id == s.build.id {
		return nil
	}
	b, err := s.revision(ctx, id)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	kind, err := s.r.Kinds.Of(b.template)
	if err != nil {
		return err
	}
	seen, err := kind.Observe(ctx, s.slotOf(b, s.seen.Incarnation), b.template)
	if err != nil {
		return fmt.Errorf("observe body: %w", err)
	}
	if seen.State != body.Absent {
		s.seen, s.build, s.kind, s.of = seen, b, kind, seen.Incarnation
	}
	return nil
}

// sight is the observation as the engine takes it.
func (s *step) sight() rollout.Sight {
	out := rollout.Sight{Drained: s.drained}
	if !s.own() {
		return out
	}
	switch s.seen.State {
	case body.Absent:
		out.State = rollout.Absent
	case body.Ready:
		out.State = rollout.Ready
	case body.Exited:
		out.State = rollout.Exited
	case body.Stopping:
		out.State = rollout.Stopping
		if s.updating() {
			// A part of it is on its way out, and the rest stays.
			out.State = rollout.Booting
		}
	default:
		out.State = rollout.Booting
	}
	return out
}

// own tells whether the body that is seen is the slot's. One of a later
// incarnation is not, since its birth was never recorded, unless it is the body
// of before that is becoming, or has become, the next one. One of an earlier
// incarnation is, if it stayed as it was when it should have become this one.
func (s *step) own() bool {
	is, st := s.seen.Incarnation, &s.member.Status
	switch {
	case is == 0 || is == st.Incarnation:
		return true
	case is < st.Incarnation:
		return st.BodyUID != ""
	}
	return is == st.Incarnation+1 && (s.updating() || st.Phase == v1alpha1.PhaseTerminating && s.known())
}

// known tells whether anything of what is seen is of the recorded body.
func (s *step) known() bool {
	recorded := strings.Split(s.member.Status.BodyUID, ",")
	for part := range strings.SplitSeq(s.seen.UID, ",") {
		if part != "" && slices.Contains(recorded, part) {
			return true
		}
	}
	return false
}

// updating tells whether the body is becoming another revision.
func (s *step) updating() bool {
	d, st := s.member.Spec.Disruption, &s.member.Status
	return st.Phase == v1alpha1.PhaseUpdating && d != nil && d.Incarnation == st.Incarnation
}

// take carries a transition out, and tells whether another step may follow at
// once.
func (s *step) take(ctx context.Context, t *rollout.Transition) (bool, error) {
	switch t.Do {
	case rollout.CreateBody:
		return s.create(ctx, t)
	case rollout.UpdateBody:
		return s.updateBody(ctx, t)
	case rollout.DrainBody:
		return s.drain(ctx, t)
	case rollout.UndrainBody:
		if err := s.kind.Undrain(ctx, s.slot(), s.build.template); err != nil {
			return false, fmt.Errorf("undrain body: %w", err)
		}
		return s.record(ctx, &t.Member)
	case rollout.DeleteBody:
		return s.delete(ctx)
	case rollout.DropSlot:
		return false, s.drop(ctx)
	default:
		return s.record(ctx, &t.Member)
	}
}

// drain begins or continues what comes before the end.
func (s *step) drain(ctx context.Context, t *rollout.Transition) (bool, error) {
	done, err := s.kind.Drain(ctx, s.slot(), s.build.template)
	if err != nil {
		return false, fmt.Errorf("drain body: %w", err)
	}
	if done {
		s.drained = true
		return true, nil
	}
	_, err = s.record(ctx, &t.Member)
	return false, err
}

// delete tells the body to go, and looks whether it is gone already.
func (s *step) delete(ctx context.Context) (bool, error) {
	uid := s.seen.UID
	if err := s.kind.Delete(ctx, s.slot(), uid); err != nil {
		return false, fmt.Errorf("delete body: %w", err)
	}
	if err := s.observe(ctx); err != nil {
		return false, err
	}
	return s.seen.State == body.Absent, nil
}

func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/history"
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
	// kind and template are those of the body that is there, or was.
	kind     body.Kind
	template *v1alpha1.Template
	seen     body.Observation
	drained  bool
	// speaks is when a change of the message alone is written.
	speaks time.Time
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
	if err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
		return wake, s.say(ctx, err)
	}
	return wake, err
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
	var wake time.Time
	for range maxSteps {
		t := rollout.Step(snapshot.Member(s.member, s.now), s.sight(), s.lifecycle, s.now)
		again, err := s.take(ctx, &t)
		if err != nil {
			return time.Time{}, err
		}
		wake = earliest(t.Wake, s.recheck(), s.speaks, s.holdEnds())
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
	s.target = rollout.Revision(p.Status.TargetRevision)
	id := s.member.Status.Revision
	if id == "" {
		id = s.member.Spec.Revision
	}
	if s.template, err = s.revision(ctx, id); err != nil {
		return err
	}
	s.kind, err = s.r.Kinds.Of(s.template)
	return err
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

// revision reads the template of a revision, with what is not part of it as
// the pool says now. Without one it is the pool's.
func (s *step) revision(ctx context.Context, id string) (*v1alpha1.Template, error) {
	now := &s.pool.Spec.Template
	if id == "" {
		return now, nil
	}
	var rev appsv1.ControllerRevision
	key := types.NamespacedName{Namespace: s.member.Namespace, Name: history.Name(s.pool.Name, id)}
	err := s.r.Client.Get(ctx, key, &rev)
	if apierrors.IsNotFound(err) {
		err = s.r.Reader.Get(ctx, key, &rev) // the cache may be late
	}
	if err != nil {
		return nil, fmt.Errorf("get ControllerRevision %s: %w", key.Name, err)
	}
	t, err := history.Template(&rev)
	if err != nil {
		return nil, err
	}
	t.BootTimeout = now.BootTimeout
	if t.Objects != nil && now.Objects != nil {
		t.Ready = now.Ready
	}
	return t, nil
}

func (s *step) slot() body.Slot {
	m := s.member
	slot := body.Slot{
		Namespace: m.Namespace, Pool: s.pool.Name, Member: m.Name, Index: m.Spec.Index, UID: string(m.UID),
		Incarnation: m.Status.Incarnation, Revision: m.Status.Revision,
	}
	if a := s.pool.Spec.ServiceAccountName; a != nil {
		slot.ServiceAccount = *a
	}
	return slot
}

// observe looks at the body. What cannot be told changes nothing.
func (s *step) observe(ctx context.Context) error {
	seen, err := s.kind.Observe(ctx, s.slot(), s.template)
	if err != nil {
		return fmt.Errorf("observe body: %w", err)
	}
	s.seen = seen
	return nil
}

// sight is the observation as the engine takes it. A body of another
// incarnation is none of this one's, unless it is to make room first.
func (s *step) sight() rollout.Sight {
	out := rollout.Sight{Drained: s.drained}
	if s.seen.Incarnation != 0 && s.seen.Incarnation != s.member.Status.Incarnation {
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
	default:
		out.State = rollout.Booting
	}
	return out
}

// take carries a transition out, and tells whether another step may follow at
// once.
func (s *step) take(ctx context.Context, t *rollout.Transition) (bool, error) {
	switch t.Do {
	case rollout.CreateBody:
		return s.create(ctx, t)
	case rollout.DrainBody:
		return s.drain(ctx, t)
	case rollout.UndrainBody:
		if err := s.kind.Undrain(ctx, s.slot(), s.template); err != nil {
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

// create makes the next body and records what came of it.
func (s *step) create(ctx context.Context, t *rollout.Transition) (bool, error) {
	if controllerutil.AddFinalizer(s.member, v1alpha1.FinalizerBody) {
		// Without it the slot could go, and leave its body behind.
		return true, s.update(ctx)
	}
	m := t.Member
	template, err := s.revision(ctx, string(m.Wants))
	if err != nil {
		return false, err
	}
	slot := s.slot()
	slot.Incarnation, slot.Revision = m.NextIncarnation(), string(m.Wants)
	made, err := s.bear(ctx, slot, template)
	switch {
	case err == nil:
		s.template, s.seen = template, made
		s.member.Status.Incarnation = slot.Incarnation // so that the body counts as its own
		return s.record(ctx, new(m.Born(s.now)))
	case errors.Is(err, body.ErrRefused):
		s.seen = body.Observation{State: body.Absent, Message: err.Error()}
		return s.record(ctx, new(m.Refused(s.now)))
	case errors.Is(err, body.ErrNoRoom):
		s.seen = body.Observation{State: body.Absent, Message: err.Error()}
		_, err := s.record(ctx, new(m.WithoutRoom(s.now)))
		s.speaks = time.Time{}
		t.Wake = snapshot.Time(s.member.Status.NextAttemptAt)
		return false, err
	case errors.Is(err, body.ErrOccupied):
		return false, s.makeRoom(ctx, slot, template, err)
	default:
		return false, fmt.Errorf("create body: %w", err)
	}
}

// bear creates a body, and takes one of another revision for what it is: in
// the way.
func (s *step) bear(ctx context.Context, slot body.Slot, template *v1alpha1.Template) (body.Observation, error) {
	if err := s.r.Kinds.Bears(template); err != nil {
		return body.Observation{}, err
	}
	kind, err := s.r.Kinds.Of(template)
	if err != nil {
		return body.Observation{}, err
	}
	made, err := kind.Create(ctx, slot, template)
	if err == nil && made.Revision != "" && made.Revision != slot.Revision {
		return made, fmt.Errorf("%w: by a body of revision %s", body.ErrOccupied, made.Revision)
	}
	if err == nil {
		s.kind = kind
	}
	return made, err
}

// makeRoom ends what was made for this very slot and is not what is to be
// born: of an earlier incarnation, or of a grant that was withdrawn before the
// birth was recorded. Anything else that has the name is left alone.
func (s *step) makeRoom(ctx context.Context, next body.Slot, template *v1alpha1.Template, occupied error) error {
	ended, err := s.endAll(ctx, []remains{{s.slot(), s.template}, {next, template}})
	if err != nil {
		return err
	}
	if !ended {
		return occupied
	}
	return nil // its end is noticed
}

// remains are where a body of the slot may be.
type remains struct {
	slot     body.Slot
	template *v1alpha1.Template
}

// endAll tells every body to go that is found, and whether there was one. What
// cannot be looked at is an error.
func (s *step) endAll(ctx context.Context, places []remains) (bool, error) {
	found := false
	for _, p := range places {
		kind, err := s.r.Kinds.Of(p.template)
		if err != nil {
			return found, err
		}
		seen, err := kind.Observe(ctx, p.slot, p.template)
		if err != nil {
			return found, fmt.Errorf("look for a body: %w", err)
		}
		if seen.State == body.Absent || seen.UID == "" {
			continue
		}
		found = true
		if err := kind.Delete(ctx, p.slot, seen.UID); err != nil {
			return found, fmt.Errorf("delete body: %w", err)
		}
	}
	return found, nil
}

// say records, once it has gone on for a while, what keeps the slot from its
// next step, and returns that error. Nothing else changes.
func (s *step) say(ctx context.Context, why error) error {
	s.seen = body.Observation{Message: why.Error()}
	now := snapshot.Member(s.member, s.now)
	if _, err := s.record(ctx, &now); err != nil {
		return errors.Join(why, err)
	}
	return why
}

// drain begins or continues what comes before the end.
func (s *step) drain(ctx context.Context, t *rollout.Transition) (bool, error) {
	done, err := s.kind.Drain(ctx, s.slot(), s.template)
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

// drop lets the slot go, whose body is gone: after a look at where one may be
// that was made and never recorded.
func (s *step) drop(ctx context.Context) error {
	places := []remains{{s.slot(), s.template}}
	now := snapshot.Member(s.member, s.now)
	if now.Wants != "" {
		template, err := s.revision(ctx, string(now.Wants))
		if err != nil {
			return err
		}
		next := s.slot()
		next.Incarnation, next.Revision = now.NextIncarnation(), string(now.Wants)
		places = append(places, remains{next, template})
	}
	if found, err := s.endAll(ctx, places); err != nil || found {
		return err
	}
	if f, ok := s.kind.(body.Forgetter); ok {
		if err := f.Forget(ctx, s.slot()); err != nil {
			return fmt.Errorf("forget slot: %w", err)
		}
	}
	return s.letGo(ctx)
}

// swept tells whether the member is deleted together with its namespace, whose
// end has taken the account's rights away, so that nothing can be told: what
// the namespace held goes with it.
func (s *step) swept(ctx context.Context, err error) (bool, error) {
	if s.member.DeletionTimestamp.IsZero() || s.template.Objects == nil || !apierrors.IsForbidden(err) {
		return false, nil
	}
	var ns corev1.Namespace
	if err := s.r.Reader.Get(ctx, client.ObjectKey{Name: s.member.Namespace}, &ns); err != nil {
		return false, fmt.Errorf("get Namespace %s: %w", s.member.Namespace, err)
	}
	return !ns.DeletionTimestamp.IsZero(), nil
}

// letGo removes the slot itself.
func (s *step) letGo(ctx context.Context) error {
	m := s.member
	if m.DeletionTimestamp.IsZero() {
		err := s.r.Client.Delete(ctx, m, client.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion})
		return client.IgnoreNotFound(err) // the watch brings it back, being deleted
	}
	if !controllerutil.RemoveFinalizer(m, v1alpha1.FinalizerBody) {
		return nil
	}
	return client.IgnoreNotFound(s.r.Client.Update(ctx, m))
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
		st.BodyUID, st.Address = s.seen.UID, s.seen.Address
		if m.Runs == "" && s.seen.Revision != "" {
			st.Revision = s.seen.Revision
		}
	}
	s.setConditions(m)
	message := oneLine(s.seen.Message)
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

// setConditions says whether the member is in service, and, of a body that is
// on the target, that it is: the pool's controller says it of the others.
func (s *step) setConditions(m *rollout.Member) {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: m.Phase.String()}
	if m.Phase == rollout.Available || m.Phase == rollout.InClaim {
		ready.Status, ready.Reason = metav1.ConditionTrue, "InService"
	}
	s.setCondition(ready)
	have := meta.FindStatusCondition(s.member.Status.Conditions, v1alpha1.ConditionUpdated)
	switch {
	case !m.Body:
		meta.RemoveStatusCondition(&s.member.Status.Conditions, v1alpha1.ConditionUpdated)
	case m.Phase == rollout.Provisioning && m.Runs != "" && m.Runs == s.target:
		s.setCondition(snapshot.OnTarget(m))
	case m.Phase == rollout.Terminating && have != nil && have.Status == metav1.ConditionFalse:
		s.setCondition(metav1.Condition{
			Type: have.Type, Status: have.Status, Reason: string(rollout.RollingMember), Message: "its body is on its way out",
		})
	}
}

// setCondition sets a condition whose reason has changed.
func (s *step) setCondition(c metav1.Condition) {
	have := meta.FindStatusCondition(s.member.Status.Conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason {
		return
	}
	c.ObservedGeneration = s.member.Generation
	meta.SetStatusCondition(&s.member.Status.Conditions, c)
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

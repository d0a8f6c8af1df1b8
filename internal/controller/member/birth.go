package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// create makes the next body and records what came of it.
func (s *step) create(ctx context.Context, t *rollout.Transition) (bool, error) {
	if controllerutil.AddFinalizer(s.member, v1alpha1.FinalizerBody) {
		// Without it the slot could go, and leave its body behind.
		return true, s.update(ctx)
	}
	m := t.Member
	b, err := s.toBe(ctx, &m)
	if err != nil {
		return false, err
	}
	if ended, err := s.endGranted(ctx, &m); err != nil || ended {
		return false, err // its end is noticed
	}
	slot := s.next(&m, b)
	made, err := s.bear(ctx, slot, b.template)
	switch {
	case err == nil:
		s.build, s.seen, s.of = b, made, 0
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
		return false, s.makeRoom(ctx, slot, b, err)
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
func (s *step) makeRoom(ctx context.Context, next body.Slot, b build, occupied error) error {
	ended, err := s.endAll(ctx, []remains{{s.slot(), s.build.template}, {next, b.template}})
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

// granted are the places of bodies that may have been begun on revisions that
// the slot was granted before, and that were taken away again.
func (s *step) granted(ctx context.Context, m *rollout.Member) ([]remains, error) {
	var places []remains
	for _, id := range snapshot.Granted(s.member) {
		if id == string(m.Wants) {
			continue
		}
		b, err := s.revision(ctx, id)
		if apierrors.IsNotFound(err) {
			continue // it was taken away with all that is known of it
		}
		if err != nil {
			return nil, err
		}
		places = append(places, remains{s.next(m, b), b.template})
	}
	return places, nil
}

// endGranted ends what was begun and not recorded on a revision that is not
// granted any more: of other names than the next body's, it would be in
// nobody's way, and stay.
func (s *step) endGranted(ctx context.Context, m *rollout.Member) (bool, error) {
	places, err := s.granted(ctx, m)
	if err != nil {
		return false, err
	}
	return s.endAll(ctx, places)
}

// drop lets the slot go, whose body is gone: after a look at where one may be
// that was made and never recorded.
func (s *step) drop(ctx context.Context) error {
	now := snapshot.Member(s.member, s.now)
	places, err := s.granted(ctx, &now)
	if err != nil {
		return err
	}
	if now.Wants != "" {
		b, err := s.revision(ctx, string(now.Wants))
		if err != nil {
			return err
		}
		places = append(places, remains{s.next(&now, b), b.template})
	}
	places = append(places, remains{s.slot(), s.build.template})
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
	if s.member.DeletionTimestamp.IsZero() || s.build.template.Objects == nil || !apierrors.IsForbidden(err) {
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

package member

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/rollout"
)

// updateBody has the body become what the slot wants, and records what came of
// it. Whatever interrupts it, the next call goes on.
func (s *step) updateBody(ctx context.Context, t *rollout.Transition) (bool, error) {
	m := t.Member
	b, err := s.toBe(ctx, &m)
	if err != nil {
		return false, err
	}
	slot := s.next(&m, b)
	if slot.Known, err = s.parts(ctx, &m); err != nil {
		return false, err
	}
	is, err := s.become(ctx, slot, b)
	switch {
	case errors.Is(err, body.ErrRefused):
		s.seen.Message = err.Error()
		return s.record(ctx, new(m.Refused(s.now)))
	case err != nil:
		return false, fmt.Errorf("update body: %w", err)
	case is.Incarnation != slot.Incarnation || is.Revision != "" && is.Revision != slot.Revision:
		// It may also be this incarnation already, of a revision that was granted
		// before, if the controller crashed before it recorded that.
		s.seen = is
		_, err := s.record(ctx, &m)
		return false, err // it goes on, and is noticed
	}
	s.build, s.seen, s.of = b, is, 0
	s.member.Status.Incarnation = slot.Incarnation // so that the body counts as its own
	return s.record(ctx, new(m.Updated(s.now)))
}

// become updates the body, if bodies of its kind can be.
func (s *step) become(ctx context.Context, slot body.Slot, b build) (body.Observation, error) {
	if is, wanted := kindOf(s.build.template), kindOf(b.template); is != wanted {
		return body.Observation{}, fmt.Errorf("%w: a body of kind %s cannot become one of kind %s where it is: set spec.update.method to Replace", body.ErrRefused, is, wanted)
	}
	if err := s.r.Kinds.Bears(b.template); err != nil {
		return body.Observation{}, err
	}
	u, ok := s.kind.(body.Updater)
	if !ok {
		return body.Observation{}, fmt.Errorf("%w: a body of kind %s cannot be updated where it is: set spec.update.method to Replace", body.ErrRefused, kindOf(b.template))
	}
	return u.Update(ctx, slot, b.template)
}

// parts are the UIDs of what the body is made of, also of what was added for a
// revision that is not wanted any more.
func (s *step) parts(ctx context.Context, m *rollout.Member) ([]string, error) {
	known := s.slot().Known
	places, err := s.granted(ctx, m)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		kind, err := s.r.Kinds.Of(p.template)
		if err != nil {
			return nil, err
		}
		seen, err := kind.Observe(ctx, p.slot, p.template)
		if err != nil {
			return nil, fmt.Errorf("look for a body: %w", err)
		}
		if seen.UID != "" {
			known = append(known, seen.UID)
		}
	}
	return known, nil
}

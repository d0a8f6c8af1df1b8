//go:build linux

package process

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// Update implements body.Updater: the body is ended as its template has it, and
// then started anew as the new one has it, with its directories, what is in them
// and its ports. Only files of the template are written anew, and those that it
// names no more removed. The first call checks the template and begins the end;
// one after the end, which is notified, starts.
//
// What has ended and was not started, because pawld died or the program cannot
// be run, waits as it is for the next call, be it for another revision. It still
// counts as what it was.
func (k *Kind) Update(_ context.Context, slot body.Slot, template *v1alpha1.Template) (body.Observation, error) {
	if err := k.begin(); err != nil {
		return body.Observation{}, err
	}
	defer k.lives.Done()
	s := k.find(slot)
	if s == nil {
		return body.Observation{}, errNoBody
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.record.Body
	switch {
	case s.damage != nil:
		return body.Observation{}, s.damage
	case b == nil || b.MemberUID != slot.UID:
		return body.Observation{}, errNoBody
	case b.ToldAt != nil || b.Incarnation > slot.Incarnation:
		return body.Observation{}, fmt.Errorf("%w: incarnation %d of revision %s, body %s, is not to be updated", body.ErrOccupied, b.Incarnation, b.Revision, b.UID)
	case b.UpdateAt == nil && b.is(slot):
		return s.observe(), nil
	}
	if err := k.update(s, slot, template); err != nil {
		return body.Observation{}, err
	}
	return s.observe(), nil
}

var errNoBody = fmt.Errorf("%w: there is no body to update", body.ErrOccupied)

func (k *Kind) update(s *slot, slot body.Slot, template *v1alpha1.Template) error {
	b := s.record.Body
	if s.life.rests {
		had := k.ports.held(s.key)
		err := k.create(s, slot, template)
		if err != nil {
			k.ports.hold(s.key, had)
		}
		return err
	}
	if err := k.validate(slot, template); err != nil || b.UpdateAt != nil {
		return err
	}
	now := time.Now()
	b.UpdateAt = &now
	if err := s.record.save(s.dir); err != nil {
		b.UpdateAt = nil
		return classify(err, "record that the process is to start anew")
	}
	k.reached("updating")
	close(s.life.again)
	return nil
}

// settle finds out whether the program that the body is now was let go. If it
// was not, the body is what it was before, has ended and is to start anew.
func (s *slot) settle() {
	b := s.record.Body
	if b.Before == nil {
		return
	}
	if s.ran() {
		b.UpdateAt = nil
	} else {
		b.UID, b.Incarnation, b.Revision = b.Before.UID, b.Before.Incarnation, b.Before.Revision
	}
	b.Before = nil
	// Where it cannot be recorded, the next one finds it out again.
	_ = s.record.save(s.dir)
}

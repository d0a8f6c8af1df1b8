package member

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// applyLive brings the pool's live fields to the body that is there, whatever
// the slot's phase. That it fails keeps the slot from nothing.
func (s *step) applyLive(ctx context.Context) {
	l, ok := s.kind.(body.Liver)
	if !ok || len(s.build.template.LiveFields) == 0 || !s.takesLive() {
		return
	}
	key, is := client.ObjectKeyFromObject(s.member), s.liveState()
	if is != "" && s.r.live.is(key, is) {
		return
	}
	if err := l.ApplyLive(ctx, s.slot(), s.build.template); err != nil {
		s.stuck = fmt.Errorf("apply live fields: %w", err)
		return
	}
	s.r.live.set(key, is)
}

// takesLive tells whether there is a body that stays as it is.
func (s *step) takesLive() bool {
	switch s.seen.State {
	case body.Booting, body.Ready, body.Down:
		return s.own() && !s.updating() && s.seen.Incarnation == s.slot().Incarnation
	}
	return false
}

// liveState sums up all that the live fields of the body depend on; empty where
// that cannot be told.
func (s *step) liveState() string {
	text, err := json.Marshal(struct {
		UID         types.UID
		Incarnation int64
		Template    *v1alpha1.Template
	}{s.member.UID, s.slot().Incarnation, s.build.template})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// lives remembers what was applied to whom, so that it is not applied again and
// again. What it forgets costs a look. The zero value is ready.
type lives struct {
	mu      sync.Mutex
	applied map[types.NamespacedName]string
}

func (l *lives) is(member types.NamespacedName, state string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.applied[member] == state
}

func (l *lives) set(member types.NamespacedName, state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.applied == nil {
		l.applied = map[types.NamespacedName]string{}
	}
	l.applied[member] = state
}

func (l *lives) forget(member types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.applied, member)
}

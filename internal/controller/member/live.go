package member

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// liveRetry bounds the time until live fields that could not be applied are
// tried again.
const liveRetry = time.Minute

// applyLive brings the pool's live fields to the body that is there, whatever
// the slot's phase. That it fails is said, and tried again, and keeps the slot
// from nothing.
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
		after := s.r.live.failed(key)
		s.retry = s.now.Add(after)
		ctrl.LoggerFrom(ctx).Info("a body does not take the live fields", "error", s.discreetly(s.stuck).Error(), "retry", after)
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
		UID         types.UID          `json:"uid"`
		Incarnation int64              `json:"incarnation"`
		Template    *v1alpha1.Template `json:"template"`
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
	// failures are how many times in a row it failed.
	failures map[types.NamespacedName]int
}

// failed notes a failure, and says how long to wait: a second, twice that each
// time, and liveRetry at most.
func (l *lives) failed(member types.NamespacedName) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures == nil {
		l.failures = map[types.NamespacedName]int{}
	}
	n := l.failures[member]
	l.failures[member] = min(n+1, 16)
	return min(time.Second<<n, liveRetry)
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
	delete(l.failures, member)
}

func (l *lives) forget(member types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.applied, member)
	delete(l.failures, member)
}

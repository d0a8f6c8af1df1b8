package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/follow"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// view is the pool as the API tells it: it narrates what changes and counts.
type view struct {
	story *story

	mu      sync.Mutex
	changed chan struct{} // closed and made anew at every change
	pool    *v1alpha1.Pool
	members map[string]*v1alpha1.Member
	// addresses are the members' last ones, which they keep while they are down.
	addresses map[string]string
	events    map[types.UID]bool
	// state and target are what was last told of the pool.
	state, target string
	broken        error

	// What is counted: bodies by slot, disruptions by slot and reason, and,
	// from the time at which all members were there, the fewest free ones.
	bodies      map[string]int64
	disruptions map[string]v1alpha1.DisruptionReason
	counting    bool
	fewestFree  int
}

func newView(s *story) *view {
	return &view{
		story: s, changed: make(chan struct{}), members: map[string]*v1alpha1.Member{}, addresses: map[string]string{},
		events: map[types.UID]bool{}, bodies: map[string]int64{}, disruptions: map[string]v1alpha1.DisruptionReason{},
	}
}

// follow follows the pool, its members and their events until ctx ends.
func (v *view) follow(ctx context.Context, c client.WithWatch) {
	var wait sync.WaitGroup
	for _, list := range []client.ObjectList{&v1alpha1.PoolList{}, &v1alpha1.MemberList{}, &eventsv1.EventList{}} {
		wait.Go(func() {
			err := follow.Objects(ctx, c, list, follow.Listener{Changed: v.see, Gone: v.miss}, client.InNamespace(namespace))
			if err != nil {
				v.update(func() { v.broken = fmt.Errorf("follow the API: %w", err) })
			}
		})
	}
	wait.Wait()
}

// update changes the view and wakes whoever waits for it.
func (v *view) update(change func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change()
	close(v.changed)
	v.changed = make(chan struct{})
}

func (v *view) see(o client.Object) {
	v.update(func() {
		switch o := o.(type) {
		case *v1alpha1.Pool:
			v.pool = o
			v.tellPool(o)
		case *v1alpha1.Member:
			v.tellMember(v.members[o.Name], o)
			v.members[o.Name] = o
			v.count(o)
		case *eventsv1.Event:
			v.tellEvent(o)
		}
	})
}

func (v *view) miss(o client.Object) {
	v.update(func() {
		switch o := o.(type) {
		case *v1alpha1.Pool:
			v.pool = nil
		case *v1alpha1.Member:
			v.story.tell("%s  %s → gone", o.Name, o.Status.Phase)
			delete(v.members, o.Name)
		}
	})
}

// tellPool says what the rollout does, whenever that changes.
func (v *view) tellPool(p *v1alpha1.Pool) {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionUpdated)
	if c == nil || !p.DeletionTimestamp.IsZero() || p.Status.ObservedGeneration < p.Generation {
		return
	}
	if target := p.Status.TargetRevision; target != v.target {
		v.target = target
		v.story.tell("pool %s: the target is revision %s now, which is version %s", p.Name, target, p.Spec.Template.Process.Env["VERSION"])
	}
	if state := fmt.Sprintf("pool %s: Updated=%s %s: %s", p.Name, c.Status, c.Reason, c.Message); state != v.state {
		v.state = state
		v.story.tell("%s", state)
	}
}

// tellMember says that a member's phase changed, and why.
func (v *view) tellMember(was, is *v1alpha1.Member) {
	if is.Status.Phase == "" || was != nil && was.Status.Phase == is.Status.Phase {
		return
	}
	before := "new"
	if was != nil && was.Status.Phase != "" {
		before = string(was.Status.Phase)
	}
	var why string
	switch d := is.Spec.Disruption; {
	case d != nil && d.Incarnation >= is.Status.Incarnation:
		why = string(d.Reason)
	case is.Spec.Claim != nil:
		why = "claim " + is.Spec.Claim.Name
	case is.Status.Phase == v1alpha1.PhaseFailed || is.Status.Phase == v1alpha1.PhaseUnready:
		why = is.Status.Message
	case is.Status.Phase == v1alpha1.PhasePending:
		why = "it waits for its revision"
	default:
		why = "revision " + is.Status.Revision
	}
	v.story.tell("%s  %s → %s  (%s)", is.Name, before, is.Status.Phase, why)
}

// tellEvent says a decision of the engine, once.
func (v *view) tellEvent(e *eventsv1.Event) {
	if v.events[e.UID] || e.Regarding.Kind != "Pool" && e.Regarding.Kind != "Claim" {
		return
	}
	v.events[e.UID] = true
	v.story.tell("%s %s: %s", strings.ToLower(e.Regarding.Kind), e.Regarding.Name, e.Note)
}

func (v *view) count(m *v1alpha1.Member) {
	if m.Status.Address != "" {
		v.addresses[m.Name] = m.Status.Address
	}
	if m.Status.BodyUID != "" {
		v.bodies[m.Name] = max(v.bodies[m.Name], m.Status.Incarnation)
	}
	if d := m.Spec.Disruption; d != nil && v.counting {
		v.disruptions[fmt.Sprintf("%s/%d", m.UID, d.Incarnation)] = d.Reason
	}
	if v.counting {
		v.fewestFree = min(v.fewestFree, v.free())
	}
}

// free is the number of members that can be claimed.
func (v *view) free() int {
	n := 0
	for _, m := range v.members {
		if slot := snapshot.Member(m, time.Now()); slot.Free() {
			n++
		}
	}
	return n
}

// startCounting counts from now on.
func (v *view) startCounting() {
	v.update(func() { v.counting, v.fewestFree = true, v.free() })
}

// stopCounting ends the count: what follows is the end of the pool.
func (v *view) stopCounting() {
	v.update(func() { v.counting = false })
}

// all tells whether every member of the pool has it, and there are so many.
func (v *view) all(n int, has func(*v1alpha1.Member) bool) bool {
	if len(v.members) != n {
		return false
	}
	for _, m := range v.members {
		if !has(m) {
			return false
		}
	}
	return true
}

// condition is the pool's Updated condition, if it is about the pool as it is
// now.
func (v *view) condition() (c metav1.Condition) {
	if v.pool == nil || v.pool.Status.ObservedGeneration < v.pool.Generation {
		return c
	}
	if found := meta.FindStatusCondition(v.pool.Status.Conditions, v1alpha1.ConditionUpdated); found != nil {
		c = *found
	}
	return c
}

// names are the members', sorted.
func (v *view) names() []string {
	var list []string
	for name := range v.members {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// await waits until the view is as it should be. Its error says what was
// waited for.
func (v *view) await(ctx context.Context, what string, limit time.Duration, is func() bool) error {
	late := time.After(limit)
	for {
		v.mu.Lock()
		done, broken, changed := is(), v.broken, v.changed
		v.mu.Unlock()
		switch {
		case done:
			return nil
		case broken != nil:
			return broken
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late:
			return fmt.Errorf("promise broken: %s, within %s", what, limit)
		}
	}
}

// blocks tells whether the pool's status names the reason as what keeps this one
// member.
func blocks(p *v1alpha1.Pool, reason rollout.Reason, member string) bool {
	if p.Status.Rollout == nil {
		return false
	}
	return slices.ContainsFunc(p.Status.Rollout.Blockers, func(b v1alpha1.Blocker) bool {
		return b.Reason == string(reason) && b.Count == 1 && b.Example == member
	})
}

package pool

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// report writes what the pass came to: the pool's status, and the members'
// Updated conditions. It returns how long what it left out has to wait.
func (r *Reconciler) report(ctx context.Context, w *world, p *rollout.Plan) (time.Duration, error) {
	if err := r.reportMembers(ctx, w, p); err != nil {
		return 0, err
	}
	old := w.pool.Status.DeepCopy()
	st := old.DeepCopy()
	w.fill(st, p)
	if equality.Semantic.DeepEqual(old, st) {
		return 0, nil
	}
	key := client.ObjectKeyFromObject(w.pool)
	if wait := r.statusSoon(key, w.now); wait > 0 && sameConditions(old.Conditions, st.Conditions) {
		return wait, nil
	}
	updated := w.pool.DeepCopy()
	updated.Status = *st
	if err := r.Client.Status().Patch(ctx, updated, client.MergeFrom(w.pool)); err != nil {
		return 0, fmt.Errorf("patch status of Pool %s: %w", w.pool.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reported[key] = w.now
	return 0, nil
}

// statusSoon is how long until the pool's status may be written again.
func (r *Reconciler) statusSoon(pool types.NamespacedName, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reported[pool].Add(statusInterval).Sub(now)
}

func sameConditions(a, b []metav1.Condition) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range b {
		c := meta.FindStatusCondition(a, b[i].Type)
		if c == nil || c.Status != b[i].Status || c.Reason != b[i].Reason {
			return false
		}
	}
	return true
}

// fill writes the plan's account of the pool into a status.
func (w *world) fill(st *v1alpha1.PoolStatus, p *rollout.Plan) {
	c, s := &p.Counts, &w.snapshot
	st.ObservedGeneration = w.generation
	st.Selector = v1alpha1.LabelPool + "=" + w.pool.Name
	for _, n := range []struct {
		field *int32
		count int
	}{
		{&st.Replicas, c.Members}, {&st.Free, c.Free}, {&st.Claimed, c.Claimed}, {&st.Provisioning, c.Provisioning},
		{&st.Updated, c.Updated}, {&st.Stale, c.Stale}, {&st.Unknown, c.Unknown}, {&st.Rolling, c.Rolling},
		{&st.Surge, c.Surge}, {&st.Failed, c.Failed}, {&st.WaitingClaims, w.waiting},
	} {
		*n.field = int32(n.count)
	}
	st.CurrentRevision, st.TargetRevision = string(s.Current.ID), string(s.Target.ID)
	if s.RolledBack != "" {
		st.TargetRevision = string(s.RolledBack)
	}
	for _, n := range p.Actions {
		if n.Kind == rollout.Stand {
			st.CurrentRevision = string(n.Revision)
		}
	}
	st.Rollout = w.rollout(st.Rollout, p)
	w.conditions(&st.Conditions, p)
}

func (w *world) rollout(old *v1alpha1.RolloutStatus, p *rollout.Plan) *v1alpha1.RolloutStatus {
	if old == nil {
		old = &v1alpha1.RolloutStatus{}
	}
	ro := &v1alpha1.RolloutStatus{
		Revision: string(w.snapshot.Target.ID), Updated: int32(p.Counts.Updated), Total: int32(p.Counts.Members), Next: p.Next,
	}
	if since := w.records[ro.Revision].TargetSince; since != nil {
		t := metav1.NewTime(since.Truncate(time.Second))
		ro.Since = &t
	}
	for _, t := range p.Blockers {
		b := v1alpha1.Blocker{Reason: string(t.Reason), Count: int32(t.Count)}
		if m := w.member(t.Example); m != nil {
			b.Example = m.Name
		}
		b.Since = sinceOf(old.Blockers, b.Reason, w.now)
		ro.Blockers = append(ro.Blockers, b)
	}
	return ro
}

// sinceOf is when a reason appeared: as before if it was there, else now.
func sinceOf(old []v1alpha1.Blocker, reason string, now time.Time) *metav1.Time {
	for i := range old {
		if old[i].Reason == reason && old[i].Since != nil {
			return old[i].Since
		}
	}
	t := metav1.NewTime(now.Truncate(time.Second))
	return &t
}

func (w *world) conditions(list *[]metav1.Condition, p *rollout.Plan) {
	for _, c := range []struct {
		name string
		is   rollout.Condition
	}{
		{v1alpha1.ConditionReady, p.Ready},
		{v1alpha1.ConditionReconciling, p.Reconciling},
		{v1alpha1.ConditionStalled, w.stalled(p)},
		{v1alpha1.ConditionUpdated, w.updated(p)},
		{v1alpha1.ConditionAvailable, p.Available},
	} {
		meta.SetStatusCondition(list, metav1.Condition{
			Type: c.name, Status: metav1.ConditionStatus(c.is.Status), Reason: c.is.Reason, Message: c.is.Message,
			ObservedGeneration: w.generation,
		})
	}
}

func (w *world) stalled(p *rollout.Plan) rollout.Condition {
	if w.invalid != nil {
		return rollout.Condition{Status: rollout.True, Reason: InvalidTemplate, Message: w.invalid.Error()}
	}
	return p.Stalled
}

func (w *world) updated(p *rollout.Plan) rollout.Condition {
	if w.invalid != nil {
		return rollout.Condition{Status: rollout.Unknown, Reason: InvalidTemplate, Message: "nothing is done until the template is right: " + w.invalid.Error()}
	}
	return p.Updated
}

// membersAtOnce bounds how many members' conditions one pass writes.
const membersAtOnce = 200

// reportMembers writes each member's Updated condition, where its reason has
// changed. It is no part of the plan: a conflict leaves it to the next pass.
func (r *Reconciler) reportMembers(ctx context.Context, w *world, p *rollout.Plan) error {
	written := 0
	for i, m := range w.members {
		want := w.memberCondition(p, &w.snapshot.Members[i])
		have := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdated)
		if have != nil && have.Status == want.Status && have.Reason == want.Reason || have == nil && want.Status == "" {
			continue
		}
		if transient(have, want) || actedOn(p, &w.snapshot.Members[i]) {
			continue
		}
		if written++; written > membersAtOnce {
			return nil
		}
		updated := m.DeepCopy()
		if want.Status == "" {
			meta.RemoveStatusCondition(&updated.Status.Conditions, v1alpha1.ConditionUpdated)
		} else {
			meta.SetStatusCondition(&updated.Status.Conditions, want)
		}
		if err := r.Client.Status().Update(ctx, updated); err != nil {
			return fmt.Errorf("update status of Member %s: %w", m.Name, err)
		}
		r.wrote(w, updated)
	}
	return nil
}

// memberCondition says how the member stands to the target; empty for a slot
// without a body, of which nothing can be said.
func (w *world) memberCondition(p *rollout.Plan, m *rollout.Member) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionUpdated}
	switch reason := p.Verdict(m); {
	case !m.Body:
		return c
	case reason != "":
		c.Status, c.Reason = metav1.ConditionFalse, string(reason)
	case m.Runs == w.snapshot.Target.ID:
		return snapshot.OnTarget(m)
	default:
		c.Status, c.Reason = metav1.ConditionUnknown, "RevisionUnknown"
	}
	c.Message = p.Explain(m)
	return c
}

// transient tells whether a change of blocker is not worth a write: the member
// is about to be acted on, or on its way already.
func transient(have *metav1.Condition, want metav1.Condition) bool {
	if have == nil {
		return false
	}
	return want.Reason == string(rollout.RollingMember) || want.Reason == string(rollout.Next)
}

// actedOn tells whether the plan wrote to the member already: what was read of
// it is no longer what is stored.
func actedOn(p *rollout.Plan, m *rollout.Member) bool {
	for i := range p.Actions {
		switch a := &p.Actions[i]; a.Kind {
		case rollout.Undo, rollout.Grant, rollout.Disrupt:
			if a.Index == m.Index {
				return true
			}
		}
	}
	return false
}

package pool

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// report writes what the pass came to: the pool's status, and the members'
// Updated conditions. It returns how long what it left out has to wait.
func (r *Reconciler) report(ctx context.Context, w *world, p *rollout.Plan) (time.Duration, error) {
	r.reportMembers(ctx, w, p)
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
		return 0, errorf(err, "patch status of Pool %s", w.pool.Name)
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
	return remaining(r.reported[pool], statusInterval, now)
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
		{&st.Surge, c.Surge}, {&st.Size, p.Size}, {&st.Failed, c.Failed}, {&st.WaitingClaims, s.Waiting},
	} {
		*n.field = int32(n.count)
	}
	st.CurrentRevision, st.TargetRevision = string(s.Current.ID), string(s.Target.ID)
	if s.RolledBack.ID != "" {
		st.TargetRevision = string(s.RolledBack.ID)
	}
	if w.stood != "" {
		st.CurrentRevision = string(w.stood)
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
		{v1alpha1.ConditionReconciling, w.reconciling(p.Reconciling)},
		{v1alpha1.ConditionStalled, w.stalled(p.Stalled)},
		{v1alpha1.ConditionUpdated, w.updated(p.Updated)},
		{v1alpha1.ConditionAvailable, p.Available},
		{v1alpha1.ConditionSourcesResolved, w.resolved},
	} {
		if c.is.Status != "" {
			w.set(list, c.name, c.is)
		}
	}
}

// membersAtOnce bounds how many members' conditions one pass writes.
const membersAtOnce = 200

// reportMembers writes each member's Updated condition, where its reason or the
// target has changed. It is no part of the plan: a conflict leaves it to the
// next pass, and one that fails keeps nobody else from being told.
func (r *Reconciler) reportMembers(ctx context.Context, w *world, p *rollout.Plan) {
	if len(w.failed) > 0 && !w.answering() {
		return
	}
	written := 0
	say := differences{w: w}
	for i, m := range w.members {
		is := &w.snapshot.Members[i]
		want := w.memberCondition(p, is)
		have := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdated)
		if have == nil && want.Status == "" || transient(have, want) || w.written[m.Name] || w.says(have, &want) {
			continue
		}
		w.explain(&want, p, is, &say)
		if have != nil && have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message {
			continue
		}
		if written++; written > membersAtOnce {
			return
		}
		updated := m.DeepCopy()
		if want.Status == "" {
			meta.RemoveStatusCondition(&updated.Status.Conditions, v1alpha1.ConditionUpdated)
		} else {
			meta.SetStatusCondition(&updated.Status.Conditions, want)
		}
		if err := r.Client.Status().Update(ctx, updated); err != nil {
			w.fail(errorf(err, "update status of Member %s", m.Name))
			if !lost(err) && !w.answering() {
				return
			}
			continue
		}
		r.wrote(w, updated)
	}
}

// memberCondition says how the member stands to the target, without a message;
// empty for a slot without a body, of which nothing can be said.
func (w *world) memberCondition(p *rollout.Plan, m *rollout.Member) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionUpdated}
	switch reason := p.Verdict(m.Index); {
	case !m.Body:
	case reason != "":
		c.Status, c.Reason = metav1.ConditionFalse, string(reason)
	case m.Runs == w.snapshot.Target.ID:
		c.Status, c.Reason = metav1.ConditionTrue, snapshot.ReasonOnTarget
	default:
		c.Status, c.Reason = metav1.ConditionUnknown, "RevisionUnknown"
	}
	return c
}

// says tells whether a member's condition has the reason, and speaks of the
// present target.
func (w *world) says(have, want *metav1.Condition) bool {
	return have != nil && have.Status == want.Status && have.Reason == want.Reason &&
		(have.Status != metav1.ConditionFalse || strings.Contains(have.Message, string(w.snapshot.Target.ID)))
}

// explain says in a member's condition why it is not updated, and in what it
// differs from the target.
func (w *world) explain(c *metav1.Condition, p *rollout.Plan, m *rollout.Member, say *differences) {
	switch c.Status {
	case metav1.ConditionTrue:
		*c = snapshot.OnTarget(m)
	case metav1.ConditionUnknown:
		c.Message = p.Explain(m)
	case metav1.ConditionFalse:
		c.Message = p.Explain(m)
		if d := say.of(m.Runs); d != "" {
			c.Message += "; it differs in " + d
		}
	}
}

// differences remember in a pass what the revisions differ in from the target.
type differences struct {
	w     *world
	known map[rollout.Revision]string
}

// manyDifferences is how many places a member's message names.
const manyDifferences = 3

// of is what the revision differs in; empty where that cannot be told.
func (d *differences) of(id rollout.Revision) string {
	if text, ok := d.known[id]; ok || id == "" {
		return text
	}
	if d.known == nil {
		d.known = map[rollout.Revision]string{}
	}
	d.known[id] = ""
	if is, target := d.w.revision(id), d.w.revision(d.w.snapshot.Target.ID); is != nil && target != nil {
		if places, err := history.Differences(is, target, d.w.pool.Spec.Template.LiveFields); err == nil {
			d.known[id] = history.Few(places, manyDifferences)
		}
	}
	return d.known[id]
}

// transient tells whether a change of blocker is not worth a write: the member
// is about to be acted on, or on its way already.
func transient(have *metav1.Condition, want metav1.Condition) bool {
	if have == nil {
		return false
	}
	return want.Reason == string(rollout.RollingMember) || want.Reason == string(rollout.Next)
}

package pool

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// apply carries out a plan, in its order. Every write is conditional on what
// was read; the first that fails ends the pass, and the next begins anew.
func (r *Reconciler) apply(ctx context.Context, w *world, p *rollout.Plan) error {
	for i := range p.Actions {
		if err := r.do(ctx, w, &p.Actions[i]); err != nil {
			return err
		}
	}
	return r.prune(ctx, w)
}

func (r *Reconciler) do(ctx context.Context, w *world, a *rollout.Action) error {
	switch a.Kind {
	case rollout.RecordFailure, rollout.Recover, rollout.Halt, rollout.Stand:
		return r.record(ctx, w, a)
	case rollout.CreateSlot:
		return r.create(ctx, w, a)
	}
	m := w.member(a.Index)
	if m == nil {
		return fmt.Errorf("member %d of Pool %s: planned for, and not there", a.Index, w.pool.Name)
	}
	m = m.DeepCopy()
	switch a.Kind {
	case rollout.Undo:
		m.Spec.Disruption = nil
		m.Spec.Revision = string(a.Revision)
	case rollout.Grant:
		m.Spec.Revision = string(a.Revision)
	case rollout.Disrupt:
		m.Spec.Disruption = snapshot.Disruption(a.Disruption)
		m.Spec.Revision = string(a.Revision)
		if a.DropClaim {
			m.Spec.Claim = nil
		}
	}
	if err := r.Client.Update(ctx, m); err != nil {
		return fmt.Errorf("%s Member %s: %w", strings.ToLower(a.Kind.String()), m.Name, err)
	}
	r.wrote(w, m)
	r.tell(w, a, m)
	return nil
}

// record stores what happened to a revision.
func (r *Reconciler) record(ctx context.Context, w *world, a *rollout.Action) error {
	rev := w.revision(a.Revision)
	if rev == nil {
		return fmt.Errorf("revision %s of Pool %s: planned for, and not there", a.Revision, w.pool.Name)
	}
	rec := w.records[string(a.Revision)].Take(a.Record)
	if a.Kind == rollout.Stand {
		rec.StoodAt = nowMicro(w.now)
	}
	if err := r.store(ctx, w, rev, rec); err != nil {
		return err
	}
	switch a.Kind {
	case rollout.Halt:
		r.Events.Eventf(w.pool, nil, corev1.EventTypeWarning, "UpdateHalted", "Halt",
			"revision %s: %d bodies failed", a.Revision, a.Record.Failed)
	case rollout.Stand:
		r.Events.Eventf(w.pool, nil, corev1.EventTypeNormal, "Updated", "Stand", "every member is on revision %s", a.Revision)
	case rollout.RecordFailure:
		r.Events.Eventf(w.pool, w.member(a.Index), corev1.EventTypeWarning, "BodyFailed", "RecordFailure",
			"member %d failed on revision %s: %s", a.Index, a.Revision, w.message(a.Index))
	}
	return nil
}

func (w *world) message(index int) string {
	if m := w.member(index); m != nil && m.Status.Message != "" {
		return m.Status.Message
	}
	return "no message"
}

// create makes a slot.
func (r *Reconciler) create(ctx context.Context, w *world, a *rollout.Action) error {
	m := &v1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.pool.Name + "-" + strconv.Itoa(a.Index), Namespace: w.pool.Namespace,
			Labels:     map[string]string{v1alpha1.LabelPool: w.pool.Name},
			Finalizers: []string{v1alpha1.FinalizerBody},
		},
		Spec: v1alpha1.MemberSpec{Pool: w.pool.Name, Index: int32(a.Index), Revision: string(a.Revision)},
	}
	if err := r.Client.Create(ctx, m); err != nil {
		return fmt.Errorf("create Member %s: %w", m.Name, err)
	}
	r.wrote(w, m)
	r.tell(w, a, m)
	return nil
}

// tell records what has happened to a member as an event of the pool.
func (r *Reconciler) tell(w *world, a *rollout.Action, m *v1alpha1.Member) {
	r.Events.Eventf(w.pool, m, corev1.EventTypeNormal, string(a.Why), a.Kind.String(), "%s", Sentence(a, m.Name))
}

// Sentence says an action to a person.
func Sentence(a *rollout.Action, member string) string {
	switch a.Kind {
	case rollout.CreateSlot:
		return fmt.Sprintf("%s is made on revision %s (%s)", member, a.Revision, a.Why)
	case rollout.Undo:
		return fmt.Sprintf("%s goes back into service (%s)", member, a.Why)
	case rollout.Grant:
		return fmt.Sprintf("%s is to be of revision %s (%s)", member, a.Revision, a.Why)
	}
	if a.Disruption.Remove {
		return fmt.Sprintf("%s is removed (%s)", member, a.Why)
	}
	return fmt.Sprintf("%s is replaced, by revision %s (%s)", member, a.Revision, a.Why)
}

// prune lets revisions go that nobody needs any more.
func (r *Reconciler) prune(ctx context.Context, w *world) error {
	limit := snapshot.DefaultRevisionHistoryLimit
	if l := w.pool.Spec.RevisionHistoryLimit; l != nil {
		limit = int(*l)
	}
	if len(w.revisions) <= limit+1 {
		return nil
	}
	s := &w.snapshot
	keep := map[string]bool{string(s.Target.ID): true, string(s.Current.ID): true, string(s.RolledBack): true}
	for _, m := range w.members {
		keep[m.Spec.Revision], keep[m.Status.Revision] = true, true
	}
	for _, rev := range history.Prune(w.revisions, keep, limit) {
		if err := r.Client.Delete(ctx, rev, client.Preconditions{UID: &rev.UID, ResourceVersion: &rev.ResourceVersion}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ControllerRevision %s: %w", rev.Name, err)
		}
	}
	return nil
}

func cut(object string) (kind, name string) {
	kind, name, _ = strings.Cut(object, "/")
	return kind, name
}

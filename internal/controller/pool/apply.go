package pool

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// apply carries out a plan, in its order. Every write is conditional on what
// was read. A race that is lost ends it, and the next pass begins anew; so does
// a record that could not be written, since what follows relies on it. A member
// whose write is refused keeps no other from its turn.
func (r *Reconciler) apply(ctx context.Context, w *world, p *rollout.Plan) {
	for i := range p.Actions {
		a := &p.Actions[i]
		err := r.do(ctx, w, p, a)
		w.fail(err)
		if err != nil && (lost(err) || a.Record != nil || !w.answering()) {
			return
		}
	}
	if len(w.failed) == 0 && w.invalid == nil {
		w.fail(r.unskip(ctx, w))
		w.fail(r.prune(ctx, w))
		w.fail(r.drop(ctx, client.ObjectKeyFromObject(w.pool), w.stored()))
	}
}

func (r *Reconciler) do(ctx context.Context, w *world, p *rollout.Plan, a *rollout.Action) error {
	switch {
	case a.Record != nil:
		return r.record(ctx, w, p, a)
	case a.Kind == rollout.CreateSlot:
		return r.create(ctx, w, a)
	}
	i := w.find(a.Index)
	if i < 0 || w.snapshot.Members[i].ID != string(w.members[i].UID) {
		return fmt.Errorf("member %d of Pool %s: planned for, and not there: %w", a.Index, w.pool.Name, errRace)
	}
	m := w.members[i].DeepCopy()
	was := &w.snapshot.Members[i]
	is := a.Apply(*was, w.now)
	snapshot.SetSpec(m, was, &is)
	if err := r.Client.Update(ctx, m); err != nil {
		err = errorf(err, "%s Member %s", strings.ToLower(a.Kind.String()), m.Name)
		r.refusals.note(w, w.members[i], err)
		return err
	}
	w.written[m.Name] = true
	r.wrote(w, m)
	r.tell(w, a, m)
	return nil
}

// record stores what happened to a revision.
func (r *Reconciler) record(ctx context.Context, w *world, p *rollout.Plan, a *rollout.Action) error {
	rev := w.revision(a.Revision)
	if rev == nil {
		return fmt.Errorf("revision %s of Pool %s: planned for, and not there: %w", a.Revision, w.pool.Name, errRace)
	}
	if a.Record != w.recorded || a.Kind == rollout.Stand { // one write stores all that came to a revision
		rec := w.records[string(a.Revision)].Take(a.Record)
		if a.Kind == rollout.Stand {
			rec = rec.Stand(w.records, w.now)
		}
		if err := r.store(ctx, w, rev, rec); err != nil {
			return err
		}
		w.recorded = a.Record
	}
	switch a.Kind {
	case rollout.Halt:
		r.Events.Eventf(w.pool, nil, corev1.EventTypeWarning, "UpdateHalted", "Halt", "%s", p.Stalled.Message)
	case rollout.Stand:
		w.stood = a.Revision
		r.Events.Eventf(w.pool, nil, corev1.EventTypeNormal, "Updated", "Stand", "the pool stands on revision %s (%s)", a.Revision, a.Why)
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
	slot := a.Apply(rollout.Member{}, w.now)
	m := &v1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{
			Name: history.Slot(w.pool.Name, a.Index), Namespace: w.pool.Namespace,
			Labels:     map[string]string{v1alpha1.LabelPool: w.pool.Name},
			Finalizers: []string{v1alpha1.FinalizerBody},
		},
		Spec: v1alpha1.MemberSpec{Pool: w.pool.Name, Index: int32(slot.Index), Revision: string(slot.Wants)},
	}
	if slot.ForClaim {
		m.Spec.ForClaim = &slot.ForClaim
	}
	err := r.Client.Create(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		return r.taken(ctx, m)
	}
	if err != nil {
		return errorf(err, "create Member %s", m.Name)
	}
	r.wrote(w, m)
	r.tell(w, a, m)
	return nil
}

// taken tells why the name of a slot is taken: by the slot, which the cache does
// not show yet, or by something that will not go away.
func (r *Reconciler) taken(ctx context.Context, m *v1alpha1.Member) error {
	var is v1alpha1.Member
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(m), &is); err != nil {
		return errorf(err, "create Member %s, which is there", m.Name)
	}
	if is.Spec.Pool == m.Spec.Pool && is.Spec.Index == m.Spec.Index {
		return fmt.Errorf("create Member %s: %w", m.Name, errRace)
	}
	return fmt.Errorf("create Member %s: %w by the member with index %d of Pool %s: delete that one",
		m.Name, errForeign, is.Spec.Index, is.Spec.Pool)
}

// tell records what has happened to a member as an event of the pool.
func (r *Reconciler) tell(w *world, a *rollout.Action, m *v1alpha1.Member) {
	r.Events.Eventf(w.pool, m, corev1.EventTypeNormal, string(a.Why), a.Kind.String(), "%s", a.Describe(m.Name))
}

func cut(object string) (kind, name string) {
	kind, name, _ = strings.Cut(object, "/")
	return kind, name
}

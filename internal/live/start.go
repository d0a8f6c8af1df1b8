package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/body/sim"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/revision"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/simulate"
	"github.com/pawl-dev/pawl/snapshot"
)

// writersAtOnce is how many objects are made at a time.
const writersAtOnce = 4

// set puts everything where it starts, while no controller runs.
func (r *run) set(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}
	if err := r.user.Create(ctx, ns); err != nil {
		return fmt.Errorf("create Namespace %s: %w", r.namespace, err)
	}
	for i := range r.stage.Pools {
		if err := r.setPool(ctx, &r.stage.Pools[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) setPool(ctx context.Context, q *simulate.PoolStart) error {
	pool := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{
		Name: q.Name, Namespace: r.namespace, Finalizers: []string{v1alpha1.FinalizerMembers},
	}}
	if err := convert(q.Spec, &pool.Spec); err != nil {
		return fmt.Errorf("pool %s: %w", q.Name, err)
	}
	pool.Spec.Template = *r.template(q.Target)
	if err := r.user.Create(ctx, pool); err != nil {
		return fmt.Errorf("create Pool %s: %w", q.Name, err)
	}
	ids, err := r.setRevisions(ctx, pool, q)
	if err != nil {
		return err
	}
	return each(q.Members, func(m *simulate.MemberStart) error {
		if err := r.setMember(ctx, pool, m, ids); err != nil {
			return fmt.Errorf("set member %d of Pool %s: %w", m.Index, q.Name, err)
		}
		return nil
	})
}

// convert reads what is written as JSON.
func convert(from, to any) error {
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	return nil
}

// each does something with every one of a list, several at a time.
func each[T any](list []T, do func(*T) error) error {
	var wg sync.WaitGroup
	errs := make([]error, writersAtOnce)
	for w := range writersAtOnce {
		wg.Go(func() {
			for i := w; i < len(list) && errs[w] == nil; i += writersAtOnce {
				errs[w] = do(&list[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// template is a version of the template. What its bodies do is in their nature.
func (r *run) template(version string) *v1alpha1.Template {
	return &v1alpha1.Template{
		Sim: &v1alpha1.Sim{Version: &version}, BootTimeout: &metav1.Duration{Duration: r.stage.Nature.BootTimeout()},
	}
}

// setRevisions stores the revisions that there are, the target last, as the
// newest. It returns their ids by version.
func (r *run) setRevisions(ctx context.Context, pool *v1alpha1.Pool, q *simulate.PoolStart) (map[string]string, error) {
	versions := map[string]bool{}
	for i := range q.Members {
		versions[string(q.Members[i].Runs)] = true
	}
	for _, v := range []string{"", q.Current, q.Target} {
		delete(versions, v)
	}
	order := slices.Sorted(maps.Keys(versions))
	if q.Current != q.Target && q.Current != "" {
		order = append([]string{q.Current}, order...)
	}
	order = append(order, q.Target)
	ids := map[string]string{}
	unrendered := ""
	for n, v := range order {
		c, err := history.ContentOf(r.template(v))
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the field
		}
		c.Render = &unrendered
		rev, err := history.New(pool, c, revision.Current, int64(n+1))
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the field
		}
		rec := history.Record{}.Renew(r.stage.Start)
		if v == q.Current {
			rec = rec.Stand(nil, r.stage.Start)
		}
		if err := history.WriteRecord(rev, rec); err != nil {
			return nil, err //nolint:wrapcheck // it names the object
		}
		if err := r.user.Create(ctx, rev); err != nil {
			return nil, fmt.Errorf("create ControllerRevision %s: %w", rev.Name, err)
		}
		ids[v] = history.RevisionID(rev)
	}
	return ids, nil
}

// setMember makes a member and its body. The API server keeps its rules over
// whoever writes, so that some take several writes.
func (r *run) setMember(ctx context.Context, pool *v1alpha1.Pool, start *simulate.MemberStart, ids map[string]string) error {
	is := start.Member
	is.Wants, is.Runs = rollout.Revision(ids[string(is.Wants)]), rollout.Revision(ids[string(is.Runs)])
	m := &v1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{
			Name: history.Slot(pool.Name, is.Index), Namespace: r.namespace,
			Labels:      map[string]string{v1alpha1.LabelPool: pool.Name},
			Annotations: notes(start),
			Finalizers:  []string{v1alpha1.FinalizerBody},
		},
		Spec: v1alpha1.MemberSpec{Pool: pool.Name, Index: int32(is.Index), Revision: string(is.Wants)},
	}
	if err := r.user.Create(ctx, m); err != nil {
		return err //nolint:wrapcheck // the caller says which
	}
	uid, err := r.place(m, start, &is)
	if err != nil {
		return err
	}
	record := func(phase rollout.Phase) error {
		was := is
		was.Phase = phase
		snapshot.SetStatus(&m.Status, &was)
		m.Status.BodyUID = uid
		if start.Occupancy != rollout.Idle {
			m.Status.Conditions = []metav1.Condition{r.occupied(start.Occupancy)}
		}
		return r.user.Status().Update(ctx, m)
	}
	first := is.Phase
	if first == rollout.InClaim {
		first = rollout.Available
	}
	if err := record(first); err != nil {
		return err
	}
	switch {
	case start.Claim != "":
		if err := r.bind(ctx, m, start.Claim); err != nil {
			return err
		}
		return record(is.Phase)
	case is.Disruption.Cause != rollout.NoCause:
		m.Spec.Disruption = snapshot.Disruption(is.Disruption)
		return r.user.Update(ctx, m) //nolint:wrapcheck // the caller says which
	}
	return nil
}

func (r *run) occupied(o rollout.Occupancy) metav1.Condition {
	c := snapshot.Occupied(o)
	c.LastTransitionTime = metav1.NewTime(r.stage.Start)
	return c
}

// notes are what people have written on the member.
func notes(start *simulate.MemberStart) map[string]string {
	notes := map[string]string{}
	if start.Cost != 0 {
		notes[v1alpha1.AnnotationDisruptionCost] = strconv.Itoa(int(start.Cost))
	}
	if start.Held {
		notes[v1alpha1.AnnotationHold] = hold(start.HoldUntil)
	}
	return notes
}

// hold is what stands in the annotation for a hold that ends at the time, or,
// if that is zero, never.
func hold(until time.Time) string {
	h := snapshot.Hold{Reason: "the story says so"}
	if !until.IsZero() {
		h.Until = &until
	}
	text, err := json.Marshal(h)
	if err != nil {
		return h.Reason // it holds all the same
	}
	return string(text)
}

// place puts the member's body into the world.
func (r *run) place(m *v1alpha1.Member, start *simulate.MemberStart, is *rollout.Member) (uid string, err error) {
	state := body.Ready
	switch {
	case start.Stopping:
		state = body.Stopping
	case start.Sick:
		state = body.Down
	case is.Phase == rollout.Provisioning:
		state = body.Booting
	}
	slot := body.Slot{
		Namespace: m.Namespace, Pool: m.Spec.Pool, Member: m.Name, Index: m.Spec.Index, UID: string(m.UID),
		Incarnation: is.Incarnation, Revision: string(is.Runs),
	}
	return r.world.Place(slot, sim.Placed{ //nolint:wrapcheck // it names the bodies
		Version: string(start.Runs), State: state, BornAt: is.BornAt, Occupancy: told(start.Occupancy),
	})
}

// told is how a body tells whether work runs on it. One that was never asked
// says nothing.
func told(o rollout.Occupancy) body.Occupancy {
	switch o {
	case rollout.Busy:
		return body.Busy
	case rollout.OccupancyUnsure:
		return body.UnknownOccupancy
	default:
		return body.Untold
	}
}

// bind makes a claim that holds the member.
func (r *run) bind(ctx context.Context, m *v1alpha1.Member, name string) error {
	c := &v1alpha1.Claim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace, Finalizers: []string{v1alpha1.FinalizerBinding}},
		Spec:       v1alpha1.ClaimSpec{Pool: m.Spec.Pool},
	}
	if err := r.user.Create(ctx, c); err != nil {
		return fmt.Errorf("create Claim %s: %w", name, err)
	}
	now := snapshot.Micro(r.stage.Start)
	m.Spec.Claim = &v1alpha1.MemberClaim{Name: name, UID: c.UID, Holder: c.Spec.Holder, BoundAt: now}
	if err := r.user.Update(ctx, m); err != nil {
		return fmt.Errorf("give it to Claim %s: %w", name, err)
	}
	c.Status = v1alpha1.ClaimStatus{
		ObservedGeneration: c.Generation, Phase: v1alpha1.ClaimBound, Member: m.Name, Revision: m.Status.Revision, BoundAt: now,
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionBound, Status: metav1.ConditionTrue, Reason: "Bound", Message: "it holds member " + m.Name,
			ObservedGeneration: c.Generation, LastTransitionTime: metav1.NewTime(r.stage.Start),
		}},
	}
	if err := r.user.Status().Update(ctx, c); err != nil {
		return fmt.Errorf("record Claim %s: %w", name, err)
	}
	return nil
}

// clean removes what the story has left, so that no controller has to.
func (r *run) clean(ctx context.Context) error {
	var errs []error
	for _, list := range kinds() {
		errs = append(errs, r.sweep(ctx, list))
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}
	return errors.Join(append(errs, client.IgnoreNotFound(r.user.Delete(ctx, ns)))...)
}

// kinds are lists of everything that a story is told by, in the order in which
// it can be removed.
func kinds() []client.ObjectList {
	return []client.ObjectList{
		&v1alpha1.ClaimList{}, &v1alpha1.MemberList{}, &v1alpha1.PoolList{}, &appsv1.ControllerRevisionList{},
	}
}

// sweep removes all objects of a kind, whatever keeps them.
func (r *run) sweep(ctx context.Context, list client.ObjectList) error {
	if err := r.user.List(ctx, list, client.InNamespace(r.namespace)); err != nil {
		return fmt.Errorf("list what is left in Namespace %s: %w", r.namespace, err)
	}
	return meta.EachListItem(list, func(item runtime.Object) error { //nolint:wrapcheck // it is wrapped inside
		o, ok := item.(client.Object)
		if !ok {
			return nil
		}
		o.SetFinalizers(nil)
		if m, ok := o.(*v1alpha1.Member); ok {
			m.Spec.Claim = nil
		}
		err := client.IgnoreNotFound(r.user.Update(ctx, o))
		if err = errors.Join(err, client.IgnoreNotFound(r.user.Delete(ctx, o))); err != nil {
			return fmt.Errorf("remove %s: %w", o.GetName(), err)
		}
		return nil
	})
}

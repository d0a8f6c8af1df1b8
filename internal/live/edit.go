package live

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/simulate"
	"github.com/pawl-dev/pawl/snapshot"
)

// edit has something happen, all of it at the same instant: the specs of pools
// are edited once.
func (r *run) edit(ctx context.Context, edits []simulate.Edit) error {
	specs := map[string][]simulate.Edit{}
	for i := range edits {
		e := &edits[i]
		if e.Undo != "" {
			e.Revise = r.book.undone(e.Pool, e.Undo)
		}
		if e.Revise != "" || e.Set != nil {
			specs[e.Pool] = append(specs[e.Pool], *e)
		}
	}
	for i := range edits {
		e := &edits[i]
		var err error
		switch list := specs[e.Pool]; {
		case e.Revise == "" && e.Set == nil:
			err = r.happen(ctx, e)
		case list != nil:
			delete(specs, e.Pool)
			err = r.editPool(ctx, e.Pool, func(spec map[string]any) map[string]any { return r.revised(spec, list) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// revised is a pool's spec after some edits.
func (r *run) revised(spec map[string]any, edits []simulate.Edit) map[string]any {
	for i := range edits {
		patch := edits[i].Set
		if to := edits[i].Revise; to != "" {
			patch = map[string]any{"template": map[string]any{"sim": map[string]any{"version": to}}}
		}
		spec = simulate.MergePatch(spec, patch)
	}
	return spec
}

// editPool writes a pool's spec as f leaves it.
func (r *run) editPool(ctx context.Context, name string, f func(map[string]any) map[string]any) error {
	p := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace}}
	return r.write(ctx, p, func() error {
		var spec map[string]any
		if err := convert(p.Spec, &spec); err != nil {
			return err
		}
		p.Spec = v1alpha1.PoolSpec{}
		return convert(f(spec), &p.Spec)
	})
}

// write changes an object, and does so again where somebody was faster. One
// that is not there is left alone.
func (r *run) write(ctx context.Context, o client.Object, change func() error) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := r.user.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if err := change(); err != nil {
			return err
		}
		return r.user.Update(ctx, o)
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("edit %s: %w", o.GetName(), err)
	}
	return nil
}

// happen has one thing happen that is no edit of a pool's spec.
func (r *run) happen(ctx context.Context, e *simulate.Edit) error {
	switch {
	case e.DeletePool:
		return r.remove(ctx, &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: e.Pool, Namespace: r.namespace}})
	case e.CreatePool:
		return r.createPool(ctx, e.Pool)
	case e.Retry:
		return r.retry(ctx, e.Pool)
	case e.Jump != 0:
		r.skew.Add(int64(e.Jump))
	case e.Release != "":
		return r.release(ctx, e.Release)
	case e.Renew != "":
		return r.renew(ctx, e.Renew)
	case e.Claims != nil:
		return r.claims(ctx, e.Pool, e.Claims)
	case e.Churn != nil:
		r.churn(e.Pool, e.Churn)
	case e.Crash != nil:
		return r.crash(*e.Crash)
	case e.Lose != nil:
		r.lose(e.Lose)
	case e.Upgrade != nil:
		return r.upgrade(e.Upgrade)
	case e.World != nil:
		return r.change(ctx, e.World)
	case e.Member != nil:
		return r.changeMember(ctx, e.Pool, e.Member)
	}
	return nil
}

// remove deletes an object as a user does. What is not there is no error.
func (r *run) remove(ctx context.Context, o client.Object) error {
	if err := r.user.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", o.GetName(), err)
	}
	return nil
}

func (r *run) release(ctx context.Context, claim string) error {
	return r.remove(ctx, &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Name: claim, Namespace: r.namespace}})
}

func (r *run) renew(ctx context.Context, claim string) error {
	c := &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Name: claim, Namespace: r.namespace}}
	return r.write(ctx, c, func() error {
		c.Spec.RenewTime = snapshot.Micro(r.clock.Now())
		return nil
	})
}

// errParticular: a Claim cannot ask for one member.
var errParticular = errors.New("a claim of a particular member cannot be made on a real API server")

// claims makes claims. One whose name is taken is told about that one.
func (r *run) claims(ctx context.Context, pool string, c *simulate.Claims) error {
	if c.Member >= 0 {
		return errParticular
	}
	for i, name := range c.Names {
		o := &v1alpha1.Claim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace},
			Spec:       v1alpha1.ClaimSpec{Pool: pool},
		}
		if c.TTL > 0 {
			o.Spec.TTL = &metav1.Duration{Duration: c.TTL}
		}
		if c.Wait != nil {
			o.Spec.Wait = &metav1.Duration{Duration: *c.Wait}
		}
		if err := r.user.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create Claim %s: %w", name, err)
		}
		if rest := c.Names[i+1:]; c.Every > 0 && len(rest) > 0 {
			next := *c
			next.Names = rest
			r.after(c.Every, func(ctx context.Context) error { return r.claims(ctx, pool, &next) })
			return nil
		}
	}
	return nil
}

// churn keeps claims alive.
func (r *run) churn(pool string, c *simulate.Churn) {
	for i := range c.Claims {
		r.after(c.Hold*time.Duration(i)/time.Duration(c.Claims), func(ctx context.Context) error { return r.come(ctx, pool, c) })
	}
}

// come makes the next claim, which is released some time after it was bound,
// and then the one after it.
func (r *run) come(ctx context.Context, pool string, c *simulate.Churn) error {
	if p := r.book.pools[pool].pool; r.now() >= c.Until || p == nil || !p.DeletionTimestamp.IsZero() {
		return nil
	}
	r.churned++
	name := "churn-" + strconv.Itoa(r.churned)
	r.bound[name] = func() {
		r.after(c.Hold, func(ctx context.Context) error {
			if err := r.release(ctx, name); err != nil {
				return err
			}
			return r.come(ctx, pool, c)
		})
	}
	return r.claims(ctx, pool, &simulate.Claims{Names: []string{name}, Member: -1})
}

// upgrade starts another version of Pawl.
func (r *run) upgrade(u *simulate.Upgrade) error {
	if u.HashVersion > 0 {
		r.hashVersion = u.HashVersion
	}
	if u.Renderer {
		r.book.renderer++
	}
	return r.crash(0)
}

// lose has reads fail for a while.
func (r *run) lose(l *simulate.Loss) {
	kinds := []string{l.What}
	if l.What == "all" {
		kinds = []string{"members", "occupancy", "sources", "render", "roles"}
	}
	end := r.clock.Now().Add(l.For)
	for _, kind := range kinds {
		r.losses.until(kind, end)
	}
	r.felt()
	r.after(l.For, func(context.Context) error { r.felt(); return nil })
}

// felt has the world be as what is lost now says.
func (r *run) felt() {
	var err error
	if r.losses.lost("members") {
		err = errLost
	}
	r.world.FailReads(err)
	r.book.unsure = r.losses.lost("occupancy")
	r.world.FailOccupancy(r.book.unsure)
	if r.life == nil {
		return
	}
	for i := range r.stage.Pools {
		pool := types.NamespacedName{Namespace: r.namespace, Name: r.stage.Pools[i].Name}
		r.changes.sent(pool)
		select {
		case r.changed <- pool:
		default: // so many wait already that it is among them
		}
	}
}

var errLost = errors.New("the story says so")

// change has the world change.
func (r *run) change(ctx context.Context, c *simulate.WorldChange) error {
	n := r.stage.Nature
	before := n.BootTimeout()
	n.Change(c)
	r.world.SetCapacity(n.Capacity())
	after := n.BootTimeout()
	if before == after {
		return nil
	}
	for i := range r.stage.Pools {
		err := r.editPool(ctx, r.stage.Pools[i].Name, func(spec map[string]any) map[string]any {
			return simulate.MergePatch(spec, map[string]any{"template": map[string]any{"bootTimeout": after.String()}})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// changeMember has something happen to one member.
func (r *run) changeMember(ctx context.Context, pool string, c *simulate.MemberChange) error {
	name := history.Slot(pool, c.Index)
	err := r.changeBody(ctx, pool, name, c)
	if err == nil && (c.Hold != nil || c.Cost != nil || c.Do != "") {
		err = r.changeSlot(ctx, pool, name, c)
	}
	if c.Refuse != nil {
		r.world.Refuse(r.namespace, name, *c.Refuse)
	}
	if err != nil {
		return err
	}
	switch c.Delete {
	case "body":
		return r.world.Remove(r.namespace, name) //nolint:wrapcheck // it names the bodies
	case "slot":
		err := r.remove(ctx, &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace}})
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			return nil // a claimed member is not deleted, and whoever tries is told so
		}
		return err
	}
	return nil
}

// changeSlot writes on a member what people say about it.
func (r *run) changeSlot(ctx context.Context, pool, name string, c *simulate.MemberChange) error {
	target := ""
	if c.Do == "skip" {
		s, err := r.stored(ctx, pool)
		if err != nil || s == nil {
			return err
		}
		target = string(s.Target.ID)
		if s.Unreadable != "" || target == string(s.Current.ID) {
			c.Do = "" // there is nothing to fall back to, and pawl says so
		}
	}
	m := &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace}}
	err := r.write(ctx, m, func() error {
		r.annotate(m, c)
		do(m, c.Do, target)
		return nil
	})
	r.book.own(m.ResourceVersion)
	return err
}

// do does to a member what a command of pawl does, unless that refuses.
func do(m *v1alpha1.Member, command, target string) {
	is := stored(m)
	switch command {
	case "cordon", "uncordon":
		m.Spec.Cordoned = new(command == "cordon")
	case "recycle":
		if !simulate.Leaves(&is) && m.Status.BodyUID != "" {
			m.Annotations[v1alpha1.AnnotationRecycle] = strconv.FormatInt(m.Status.Incarnation, 10)
		}
	case "skip":
		if is.Phase != rollout.Terminating && (!is.Body || string(is.Runs) != target || !is.InService()) {
			m.Annotations[v1alpha1.AnnotationSkip] = target
		}
	}
}

// stored is the pool as the engine would take it now; nil if it is not there.
func (r *run) stored(ctx context.Context, pool string) (*rollout.Snapshot, error) {
	s := &history.Stored{Pool: &v1alpha1.Pool{}}
	err := r.user.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: pool}, s.Pool)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // none is an answer
	case err != nil:
		return nil, fmt.Errorf("get Pool %s: %w", pool, err)
	}
	var members v1alpha1.MemberList
	var revisions appsv1.ControllerRevisionList
	for _, list := range []client.ObjectList{&members, &revisions} {
		if err := r.user.List(ctx, list, client.InNamespace(r.namespace), client.MatchingLabels{v1alpha1.LabelPool: pool}); err != nil {
			return nil, fmt.Errorf("list what Pool %s has: %w", pool, err)
		}
	}
	for i := range members.Items {
		s.Members = append(s.Members, &members.Items[i])
	}
	for i := range revisions.Items {
		s.Revisions = append(s.Revisions, &revisions.Items[i])
	}
	snap, err := s.Snapshot(r.shown())
	if err != nil {
		return nil, fmt.Errorf("read Pool %s: %w", pool, err)
	}
	return snap, nil
}

// retry asks for one more round of a target that has halted or was rolled back.
func (r *run) retry(ctx context.Context, pool string) error {
	s, err := r.stored(ctx, pool)
	if err != nil || s == nil {
		return err
	}
	id := s.Target.ID
	switch {
	case s.RolledBack.ID != "":
		id = s.RolledBack.ID
	case !s.Target.Halted:
		return nil // there is nothing to retry, and pawl says so
	}
	p := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: pool, Namespace: r.namespace}}
	return r.write(ctx, p, func() error {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[v1alpha1.AnnotationRetry] = string(id) + "@" + r.shown().UTC().Format(time.RFC3339Nano)
		return nil
	})
}

// createPool creates a pool again, as its spec was last. As long as the former one is
// not gone the API server refuses that; then it is tried again once it is.
func (r *run) createPool(ctx context.Context, pool string) error {
	b := r.book.pools[pool]
	p := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: pool, Namespace: r.namespace}, Spec: *b.spec.DeepCopy()}
	err := r.user.Create(ctx, p)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("create Pool %s again: %w", pool, err)
		}
		return nil
	}
	b.wanted = b.pool != nil && !b.pool.DeletionTimestamp.IsZero()
	return nil
}

// flap has a body, which is up, go down and up in turn until a time of the
// story, from which on it stays up.
func (r *run) flap(pool string, index int, f simulate.Flap) {
	b := r.book.pools[pool]
	name := history.Slot(pool, index)
	is := b.bodies[index]
	turns := r.turns[name]
	turn := func(at time.Duration, up bool, then func()) {
		r.at(at, func(context.Context) error {
			now, ok := b.bodies[index]
			if !ok || now.UID != is.UID || now.Incarnation != is.Incarnation || r.turns[name] != turns {
				return nil
			}
			err := r.world.SetHealthy(r.namespace, name, up)
			if then != nil {
				then()
			}
			return err //nolint:wrapcheck // it names the bodies
		})
	}
	var down, up func()
	down = func() {
		if at := r.now() + f.Up; at < f.Until {
			turn(at, false, up)
		}
	}
	up = func() {
		if at := r.now() + f.Down; at < f.Until {
			turn(at, true, down)
		} else {
			turn(f.Until, true, nil)
		}
	}
	down()
}

// annotate writes on a member what people say about it.
func (r *run) annotate(m *v1alpha1.Member, c *simulate.MemberChange) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	if c.Cost != nil {
		m.Annotations[v1alpha1.AnnotationDisruptionCost] = strconv.Itoa(*c.Cost)
	}
	switch h := c.Hold; {
	case h == nil:
	case *h == 0:
		delete(m.Annotations, v1alpha1.AnnotationHold)
	case *h < 0:
		m.Annotations[v1alpha1.AnnotationHold] = hold(time.Time{})
	default:
		m.Annotations[v1alpha1.AnnotationHold] = hold(r.stage.Start.Add(*h))
	}
}

// changeBody has something happen to the body of a member.
func (r *run) changeBody(ctx context.Context, pool, name string, c *simulate.MemberChange) error {
	var errs []error
	if c.Health != "" {
		r.turns[name]++
		errs = append(errs, r.world.SetHealthy(r.namespace, name, c.Health != "Down"))
	}
	if _, there := r.book.pools[pool].bodies[c.Index]; c.Flap != nil && there {
		r.flap(pool, c.Index, *c.Flap)
	}
	if c.Stop != nil {
		errs = append(errs, r.world.SetStop(r.namespace, name, *c.Stop))
	}
	if o := c.Occupancy; o != nil {
		is := told(*o)
		if is == body.Untold {
			is = body.Idle
		}
		errs = append(errs, r.world.SetOccupancy(r.namespace, name, is))
	}
	if c.Revision != nil {
		errs = append(errs, r.relabel(ctx, pool, name, *c.Revision))
	}
	return errors.Join(errs...)
}

// relabel has a body say that it runs another version, and that be noted.
func (r *run) relabel(ctx context.Context, pool, name, version string) error {
	id := ""
	p := r.book.pools[pool]
	for have, v := range p.names {
		if v == version && version != "" {
			id = have
		}
	}
	if err := r.world.SetRevision(r.namespace, name, id); err != nil {
		return err //nolint:wrapcheck // it names the bodies
	}
	m := &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace}}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := r.user.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		if p.bodies[int(m.Spec.Index)].Incarnation != m.Status.Incarnation {
			return nil
		}
		m.Status.Revision = id
		err := r.user.Status().Update(ctx, m)
		r.book.own(m.ResourceVersion)
		return err //nolint:wrapcheck // wrapped below
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("relabel Member %s: %w", name, err)
	}
	return nil
}

package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/body/sim"
	"github.com/pawl-dev/pawl/simulate"
)

// observation is one thing that was observed.
type observation struct {
	// version is its place in the order of all writes, and nth tells those of
	// one place apart. Barrier: that order is certain once all writes up to this
	// one are settled.
	version      uint64
	nth, barrier int
	// at is the time of the story, when the real one.
	at   time.Duration
	when time.Time

	// object was stored, or, if gone, removed; or else a body has changed, an
	// edit begins or ends, or the judge has to look.
	object      client.Object
	gone        bool
	body        *sim.Body
	begins, end bool
}

// inbox takes what is observed, in whatever order it comes, and gives it back
// in that in which it happened.
//
// Objects of several kinds come by several watches, which have no common order
// but that of their resource versions: those are one sequence. What is stored
// with a smaller version than something that was received is certain to have
// come once every write has come that was begun before that was received. What
// is no write stands after all writes that were answered by then.
type inbox struct {
	mu   sync.Mutex
	list []observation
	nth  int
	err  error
}

func (b *inbox) put(o observation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nth++
	o.nth, o.when = b.nth, time.Now()
	b.list = append(b.list, o)
}

// take gives what is certain up to a barrier.
func (b *inbox) take(barrier int) []observation {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.SortStableFunc(b.list, func(a, o observation) int {
		return cmp.Or(cmp.Compare(a.version, o.version), cmp.Compare(a.nth, o.nth))
	})
	n := 0
	for n < len(b.list) && b.list[n].barrier <= barrier {
		n++
	}
	out := slices.Clone(b.list[:n])
	b.list = slices.Delete(b.list, 0, n)
	return out
}

// busy tells since when something waits; zero for nothing.
func (b *inbox) busy() (since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.list {
		since = sooner(since, b.list[i].when)
	}
	return since
}

func (b *inbox) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = errors.Join(b.err, err)
}

func (b *inbox) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// here is an observation that is made now and is no write.
func here(r *run) observation {
	version, barrier := r.traffic.place()
	return observation{version: version, barrier: barrier, at: r.now().Truncate(time.Millisecond)}
}

// mark notes that an edit begins or ends.
func (b *inbox) mark(r *run, begins bool) {
	o := here(r)
	o.begins, o.end = begins, !begins
	b.put(o)
}

// moment notes that the judge has to look.
func (b *inbox) moment(r *run) { b.put(here(r)) }

// body gives what notes changes of bodies.
func (b *inbox) body(r *run) func(sim.Body) {
	return func(is sim.Body) {
		o := here(r)
		o.body = &is
		b.put(o)
	}
}

// watch begins to watch everything, and takes in how it is.
func (r *run) watch(ctx context.Context) (*sync.WaitGroup, error) {
	var wg sync.WaitGroup
	for kind, list := range map[string]client.ObjectList{
		"pools": &v1alpha1.PoolList{}, "members": &v1alpha1.MemberList{}, "claims": &v1alpha1.ClaimList{},
		"controllerrevisions": &appsv1.ControllerRevisionList{},
	} {
		if err := r.user.List(ctx, list, client.InNamespace(r.namespace)); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind, err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", kind, err)
		}
		r.traffic.listed(judge, kind, list, false)
		for _, o := range items {
			if o, ok := o.(client.Object); ok {
				r.inbox.put(observation{version: version(o.GetResourceVersion()), object: o})
			}
		}
		from := &client.ListOptions{Namespace: r.namespace, Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
		w, err := r.user.Watch(ctx, list, from)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind, err)
		}
		wg.Go(func() { r.receive(ctx, kind, w) })
	}
	for _, o := range r.inbox.take(r.traffic.settled()) {
		r.note(&o)
	}
	for _, p := range r.book.pools {
		p.counts.Creates, p.writes, p.refused = 0, 0, 0 // those that were there from the start are no births
		r.book.paint(p)
		p.account(r.clock.Now(), r.clock.Now())
	}
	r.book.paintClaims()
	return &wg, nil
}

// receive takes in what a watch brings.
func (r *run) receive(ctx context.Context, kind string, w watch.Interface) {
	defer w.Stop()
	for e := range w.ResultChan() {
		o, ok := e.Object.(client.Object)
		if !ok || e.Type == watch.Error {
			r.inbox.fail(fmt.Errorf("watch %s: %v", kind, e.Object))
			return
		}
		if e.Type != watch.Bookmark {
			_, barrier := r.traffic.place()
			r.inbox.put(observation{
				version: version(o.GetResourceVersion()), barrier: barrier, at: r.now().Truncate(time.Millisecond), object: o, gone: e.Type == watch.Deleted,
			})
		}
		r.traffic.saw(judge, kind, o, e.Type == watch.Deleted)
	}
	if ctx.Err() == nil {
		r.inbox.fail(fmt.Errorf("watch %s: the API server has closed it", kind))
	}
}

// observe takes one thing in and has the judge look at what came of it.
func (r *run) observe(o *observation) {
	if o.at > r.observed {
		r.observed = o.at
	}
	if o.object != nil {
		r.wrote = r.observed
	}
	switch {
	case o.begins:
		r.editing++
		r.judge.Edited(r.observed)
		return
	case o.end:
		r.editing--
	default:
		for _, broken := range r.note(o) {
			r.judge.Break(broken)
		}
	}
	r.look()
}

// note writes one thing into the book, and returns what is broken by it.
func (r *run) note(o *observation) (broken []string) {
	b := r.book
	pool, now := "", r.clock.Now()
	switch is := o.object.(type) {
	case *v1alpha1.Pool:
		pool = is.Name
		if p := b.pools[pool]; p != nil {
			p.pool = is
			if !o.gone {
				p.spec = is.Spec.DeepCopy()
				break
			}
			p.pool.Spec.Replicas = new(int32)
			if p.wanted {
				p.wanted = false
				again := []simulate.Edit{{Pool: pool, CreatePool: true}}
				r.due = append(r.due, func(ctx context.Context) error { return r.enter(ctx, again) })
			}
		}
	case *v1alpha1.Member:
		pool = is.Spec.Pool
		if p := b.pools[pool]; p != nil {
			broken = r.noteMember(p, is, o.gone)
		}
	case *v1alpha1.Claim:
		b.claim(is, o.gone)
		r.claimed(is)
	case *appsv1.ControllerRevision:
		pool = is.Labels[v1alpha1.LabelPool]
		if p := b.pools[pool]; p != nil {
			p.revision(is, o.gone, b.renderer)
		}
	default:
		if o.body == nil {
			return nil
		}
		name, index, _ := slotOf(o.body.Member)
		pool = name
		if p := b.pools[pool]; p != nil {
			p.body(index, *o.body)
			r.begins(p, index)
		}
	}
	if p := b.pools[pool]; p != nil {
		b.paint(p)
		p.account(now, now.Add(-r.late()))
	}
	b.paintClaims()
	return broken
}

func (r *run) noteMember(p *poolBook, is *v1alpha1.Member, gone bool) (broken []string) {
	index := int(is.Spec.Index)
	old := p.members[index]
	p.count(r.book, old, is)
	if gone {
		delete(p.members, index)
		return p.removed(is)
	}
	if old != nil && old.UID != is.UID {
		old = nil
	}
	broken = r.book.promises(p, old, is, r.clock.Now(), r.late())
	p.members[index] = is
	if old == nil {
		if text := p.made(is); text != "" {
			broken = append(broken, text)
		}
	}
	return broken
}

// begins has a body go up and down that does so by its nature, once it is up.
func (r *run) begins(p *poolBook, index int) {
	is, ok := p.bodies[index]
	if !ok || is.State != body.Ready {
		return
	}
	key := is.UID + "#" + strconv.FormatInt(is.Incarnation, 10)
	b := r.stage.Nature.Of(p.version(is.Revision))
	if b.Outcome != simulate.FlapOutcome || r.flapping[key] {
		return
	}
	r.flapping[key] = true
	r.flap(p.name, index, simulate.Flap{Up: b.Up, Down: b.Down, Until: r.stage.Run + time.Hour})
}

// late is how old what somebody goes by may be.
func (r *run) late() time.Duration { return r.stage.Nature.Lag() + r.slack }

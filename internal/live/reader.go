package live

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// reader is what controllers' caches read one kind through. What has changed
// reaches them up to a lag late, the changes of one object in their order; a
// list is as late. Objects were made at the time of the story.
type reader struct {
	toolscache.ListerWatcherWithContext

	kind    string
	clock   *Clock
	traffic *traffic
	lag     func() time.Duration
	born    *births
	tap     *tap
	// watcher is who reads.
	watcher watcher
}

var _ toolscache.ListerWatcher = (*reader)(nil)

// IsWatchListSemanticsUnSupported keeps lists apart from watches.
func (*reader) IsWatchListSemanticsUnSupported() bool { return true }

// late is how late the next thing is read.
func (r *reader) late() time.Duration {
	lag := r.lag()
	if lag <= 0 {
		return 0
	}
	return time.Duration(rand.Int64N(int64(lag) + 1)) //nolint:gosec // nobody has to guess it
}

// List implements toolscache.ListerWatcher.
func (r *reader) List(o metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), o)
}

// Watch implements toolscache.ListerWatcher.
func (r *reader) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), o)
}

// ListWithContext implements toolscache.ListerWithContext.
func (r *reader) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := r.ListerWatcherWithContext.ListWithContext(ctx, o)
	if err != nil {
		return nil, err //nolint:wrapcheck // it stands in for what it calls
	}
	err = meta.EachListItem(list, func(o runtime.Object) error { r.born.stamp(o, r.clock.Now()); return nil })
	if err != nil {
		return nil, err //nolint:wrapcheck // it stands in for what it calls
	}
	r.traffic.asked(r.watcher, r.kind)
	if d := r.late(); d > 0 {
		t := r.clock.NewTimer(d)
		defer t.Stop()
		r.traffic.delay(1)
		defer r.traffic.delay(-1)
		select {
		case <-t.C():
		case <-ctx.Done():
			return nil, ctx.Err() //nolint:wrapcheck // it stands in for what it calls
		}
	}
	_ = meta.EachListItem(list, func(o runtime.Object) error { // it did not fail before
		if m, err := meta.Accessor(o); err == nil {
			r.tap.came(m.GetUID(), version(m.GetResourceVersion()))
		}
		return nil
	})
	r.traffic.listed(r.watcher, r.kind, list, o.Continue != "")
	return list, nil
}

// WatchWithContext implements toolscache.WatcherWithContext.
func (r *reader) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := r.ListerWatcherWithContext.WatchWithContext(ctx, o)
	if err != nil {
		return nil, err //nolint:wrapcheck // it stands in for what it calls
	}
	d := &delayed{
		reader: r, from: w, result: make(chan watch.Event), wake: make(chan struct{}, 1), done: make(chan struct{}),
		last: map[types.UID]time.Time{},
	}
	go d.receive()
	go d.send()
	return d, nil
}

// delayed is a watch whose events come late.
type delayed struct {
	reader *reader
	from   watch.Interface
	result chan watch.Event
	wake   chan struct{}
	done   chan struct{}
	once   sync.Once

	mu sync.Mutex
	// last is when the last event of an object is due that is not out yet.
	last map[types.UID]time.Time
	// ready are those whose time has come, waiting the number of the others.
	ready   []watch.Event
	waiting int
	ended   bool
}

// ResultChan implements watch.Interface.
func (d *delayed) ResultChan() <-chan watch.Event { return d.result }

// Stop implements watch.Interface.
func (d *delayed) Stop() {
	d.once.Do(func() {
		d.from.Stop()
		close(d.done)
	})
}

// receive takes the events in until there are no more.
func (d *delayed) receive() {
	for e := range d.from.ResultChan() {
		d.take(e)
	}
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.rouse()
}

func (d *delayed) take(e watch.Event) {
	r := d.reader
	now := r.clock.Now()
	o, err := meta.Accessor(e.Object)
	if err != nil || e.Type == watch.Error {
		d.push(e)
		return
	}
	if e.Type != watch.Bookmark {
		r.born.stamp(e.Object, now)
	}
	defer r.traffic.saw(r.watcher, r.kind, o, e.Type == watch.Deleted)
	d.mu.Lock()
	last, before := d.last[o.GetUID()]
	d.mu.Unlock()
	due := later(now.Add(r.late()), last)
	if e.Type == watch.Bookmark || !before && !due.After(now) {
		d.push(e)
		return
	}
	d.mu.Lock()
	d.last[o.GetUID()] = due
	d.waiting++
	d.mu.Unlock()
	r.clock.AfterFunc(due.Sub(now), func() {
		d.push(e)
		d.mu.Lock()
		d.waiting--
		if d.last[o.GetUID()].Equal(due) {
			delete(d.last, o.GetUID())
		}
		d.mu.Unlock()
		d.rouse()
	})
}

// push has an event handed out, which is on its way from now on.
func (d *delayed) push(e watch.Event) {
	if o, err := meta.Accessor(e.Object); err == nil && e.Type != watch.Bookmark {
		d.reader.tap.came(o.GetUID(), version(o.GetResourceVersion()))
	}
	d.mu.Lock()
	d.ready = append(d.ready, e)
	d.mu.Unlock()
	d.rouse()
}

func (d *delayed) rouse() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// send hands out what is ready, and ends once nothing can become so: whoever
// reads goes on from the last thing that he got, and must have got them all.
func (d *delayed) send() {
	defer close(d.result)
	for {
		d.mu.Lock()
		list, end := d.ready, d.ended && d.waiting == 0
		d.ready = nil
		d.mu.Unlock()
		for _, e := range list {
			select {
			case d.result <- e:
			case <-d.done:
				return
			}
		}
		if end {
			return // nothing was left when the list was taken, and nothing comes
		}
		select {
		case <-d.wake:
		case <-d.done:
			return
		}
	}
}

// births are when objects were made, by the clock of the story.
type births struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

// stamp has the object say when it was made: at the time at which it is first
// seen.
func (b *births) stamp(o runtime.Object, now time.Time) {
	m, err := meta.Accessor(o)
	if err != nil {
		return
	}
	b.mu.Lock()
	at, ok := b.at[m.GetUID()]
	if !ok {
		at = now
		b.at[m.GetUID()] = now
	}
	b.mu.Unlock()
	m.SetCreationTimestamp(metav1.NewTime(at))
}

package source

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// How long a kind that is not served waits until it is looked up again.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// dial returns access as a service account.
type dial func(namespace, account string) (dynamic.Interface, error)

func dialer(config *rest.Config) dial {
	return func(namespace, account string) (dynamic.Interface, error) {
		c := rest.CopyConfig(config)
		if c.QPS == 0 {
			c.QPS = -1 // the API server's own priority and fairness paces each account
		}
		// The API server adds the groups that the account's own token would have.
		c.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + account}
		return dynamic.NewForConfig(c)
	}
}

// watchKey is what one watch covers: an object, seen with the rights of an
// account of the namespace.
type watchKey struct {
	namespace, account string
	gvk                schema.GroupVersionKind
	name               string
}

// String names the object.
func (k watchKey) String() string { return what(k.gvk.Kind, k.namespace, k.name) }

// watches are those that pools need.
type watches struct {
	dial   dial
	mapper meta.RESTMapper
	notify func(types.NamespacedName)

	mu      sync.Mutex
	closed  bool
	running map[watchKey]*objectWatch
	// used are the watches of each pool.
	used map[types.NamespacedName][]watchKey
	done sync.WaitGroup
}

func newWatches(dial dial, mapper meta.RESTMapper, notify func(types.NamespacedName)) *watches {
	return &watches{
		dial: dial, mapper: mapper, notify: notify,
		running: map[watchKey]*objectWatch{}, used: map[types.NamespacedName][]watchKey{},
	}
}

// objectWatch is one watch, and what it has seen. It is the store of a
// reflector.
type objectWatch struct {
	key    watchKey
	notify func(types.NamespacedName)
	stop   context.CancelFunc
	// settled is closed once it is known what there is, or why not.
	settled chan struct{}
	once    sync.Once

	mu sync.Mutex
	// title names the object in messages.
	title string
	// synced: object is what there is, nil for none. Watching: a change of it
	// is heard of.
	synced, watching bool
	object           *unstructured.Unstructured
	failed           *Unresolved
	// users are the pools, and what of the object counts for them.
	users map[types.NamespacedName][]*v1alpha1.Source
}

// use has exactly these objects watched for a pool, and returns the watches.
func (w *watches) use(pool types.NamespacedName, wanted map[watchKey][]*v1alpha1.Source) map[watchKey]*objectWatch {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[watchKey]*objectWatch, len(wanted))
	for key, sources := range wanted {
		one := w.running[key]
		if one == nil {
			one = w.start(key)
		}
		one.join(pool, sources)
		all[key] = one
	}
	for _, key := range w.used[pool] {
		if one := w.running[key]; all[key] == nil && one != nil && one.leave(pool) {
			one.stop()
			delete(w.running, key)
		}
	}
	delete(w.used, pool)
	if len(all) > 0 {
		w.used[pool] = slices.Collect(maps.Keys(all))
	}
	return all
}

// join makes a pool a user.
func (o *objectWatch) join(pool types.NamespacedName, sources []*v1alpha1.Source) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.users[pool] = sources
}

// leave takes a pool from the users, and tells whether none is left.
func (o *objectWatch) leave(pool types.NamespacedName) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.users, pool)
	return len(o.users) == 0
}

func (w *watches) start(key watchKey) *objectWatch {
	ctx, cancel := context.WithCancel(context.Background())
	one := &objectWatch{
		key: key, title: key.String(), notify: w.notify, stop: cancel, settled: make(chan struct{}), users: map[types.NamespacedName][]*v1alpha1.Source{},
	}
	if w.closed {
		cancel()
		return one
	}
	w.running[key] = one
	w.done.Go(func() { one.run(ctx, w.mapper, w.dial) })
	return one
}

func (w *watches) close() {
	w.mu.Lock()
	w.closed = true
	for key, one := range w.running {
		one.stop()
		delete(w.running, key)
	}
	w.mu.Unlock()
	w.done.Wait()
}

// run watches until ctx ends.
func (o *objectWatch) run(ctx context.Context, mapper meta.RESTMapper, dial dial) {
	retry := firstRetry
	for ctx.Err() == nil {
		mapping, err := mapper.RESTMapping(o.key.gvk.GroupKind(), o.key.gvk.Version)
		var client dynamic.Interface
		if err == nil {
			client, err = dial(o.key.namespace, o.key.account)
		}
		if err == nil {
			o.follow(ctx, mapping, client)
			return
		}
		o.fail(o.explain(nil, err))
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
		retry = min(2*retry, lastRetry)
	}
}

// follow lists and watches the object until ctx ends, through all errors, which
// it retries with backoff.
func (o *objectWatch) follow(ctx context.Context, mapping *meta.RESTMapping, client dynamic.Interface) {
	var at dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if isNamespaced(mapping) {
		at = client.Resource(mapping.Resource).Namespace(o.key.namespace)
	} else {
		o.change(func() { o.title = what(o.key.gvk.Kind, "", o.key.name) })
	}
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, o.key.name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			list, err := at.List(ctx, options)
			if err != nil {
				o.fail(o.explain(mapping, err))
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			result, err := at.Watch(ctx, options)
			if err != nil {
				o.fail(o.explain(mapping, err))
				return nil, err
			}
			o.hears()
			return result, nil
		},
	}
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), &unstructured.Unstructured{}, o, cache.ReflectorOptions{
		// What goes wrong is said by whoever needs the source.
		Name: "source " + o.key.String(), TypeDescription: o.key.gvk.String(), Logger: new(logr.Discard()),
	})
	r.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

func isNamespaced(m *meta.RESTMapping) bool { return m.Scope.Name() == meta.RESTScopeNameNamespace }

// explain says why the object cannot be read, and what to do. The mapping is
// nil as long as its kind is not known.
func (o *objectWatch) explain(at *meta.RESTMapping, err error) *Unresolved {
	k, title := o.key, o.look().title
	switch {
	case meta.IsNoMatchError(err), at != nil && apierrors.IsNotFound(err):
		return known(KindNotServed, "the API server does not serve kind %s in %s: install its definition, or correct object.apiVersion and kind",
			k.gvk.Kind, k.gvk.GroupVersion())
	case apierrors.IsForbidden(err) && at != nil:
		where := " in namespace " + k.namespace
		if !isNamespaced(at) {
			where = ""
		}
		return known(Forbidden, "service account %s/%s may not read %s: grant it the verbs list and watch on %s (name %s)%s",
			k.namespace, k.account, title, at.Resource.GroupResource(), k.name, where)
	default:
		return unknown(Unreachable, err, "%s cannot be read: %v", title, err)
	}
}

// fail notes why it is not known what there is. What was seen before is kept.
func (o *objectWatch) fail(why *Unresolved) {
	o.change(func() { o.failed, o.watching = why, false })
}

// hears notes that changes are heard of from now on.
func (o *objectWatch) hears() {
	o.change(func() { o.failed, o.watching = nil, true })
}

// Replace implements cache.ReflectorStore.
func (o *objectWatch) Replace(list []any, _ string) error {
	var object *unstructured.Unstructured
	for _, item := range list {
		if found := o.mine(item); found != nil {
			object = found
		}
	}
	o.change(func() { o.object, o.synced = object, true })
	return nil
}

// Add implements cache.ReflectorStore.
func (o *objectWatch) Add(item any) error {
	if object := o.mine(item); object != nil {
		o.change(func() { o.object = object })
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (o *objectWatch) Update(item any) error { return o.Add(item) }

// Delete implements cache.ReflectorStore.
func (o *objectWatch) Delete(item any) error {
	if o.mine(item) != nil {
		o.change(func() { o.object = nil })
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (o *objectWatch) Resync() error { return nil }

// mine is the object, if it is that.
func (o *objectWatch) mine(item any) *unstructured.Unstructured {
	object, ok := item.(*unstructured.Unstructured)
	if !ok || object.GetName() != o.key.name {
		return nil
	}
	object.SetManagedFields(nil)
	return object
}

// change makes a change, and notifies the pools for which something else counts
// from now on.
func (o *objectWatch) change(apply func()) {
	o.mu.Lock()
	before := o.view()
	apply()
	after := o.view()
	var told []types.NamespacedName
	for pool, sources := range o.users {
		if slices.ContainsFunc(sources, func(s *v1alpha1.Source) bool { return differ(s, before, after) }) {
			told = append(told, pool)
		}
	}
	settled := after.known()
	o.mu.Unlock()
	if settled {
		o.once.Do(func() { close(o.settled) })
	}
	for _, pool := range told {
		o.notify(pool)
	}
}

// view is what is known of an object: what there is, nil for nothing, unless
// failed says why not.
type view struct {
	title  string
	object *unstructured.Unstructured
	failed *Unresolved
}

// known tells whether there is an answer, be it that it cannot be read.
func (v view) known() bool { return v.failed == nil || v.failed.Reason != NotRead }

// view is called with the lock held.
func (o *objectWatch) view() view {
	v := view{title: o.title, object: o.object, failed: o.failed}
	if v.failed == nil && (!o.synced || !o.watching) {
		v.failed = unknown(NotRead, nil, "%s is being read", o.title)
	}
	return v
}

// look is what is known now.
func (o *objectWatch) look() view {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.view()
}

// take is what a source says of what is known.
func (v view) take(s *v1alpha1.Source) (part, *Unresolved) {
	switch {
	case v.failed != nil:
		return part{}, v.failed
	case v.object == nil:
		return part{}, known(NotFound, "%s is not there: create it", v.title)
	}
	return extract(s, v.object)
}

// differ tells whether a source says something else of one view than of another.
func differ(s *v1alpha1.Source, a, b view) bool {
	p, whyA := a.take(s)
	q, whyB := b.take(s)
	if whyA != nil || whyB != nil {
		return (whyA == nil) != (whyB == nil) || whyA.text != whyB.text
	}
	return !p.equal(&q)
}

// wait waits until all have settled, or ctx ends.
func wait(ctx context.Context, all map[watchKey]*objectWatch) {
	for _, one := range all {
		select {
		case <-one.settled:
		case <-ctx.Done():
			return
		}
	}
}

// keyOf is the watch that a source needs.
func keyOf(p *v1alpha1.Pool, s *v1alpha1.Source) (watchKey, *Unresolved) {
	if p.Spec.ServiceAccountName == nil {
		return watchKey{}, known(Forbidden, "spec.serviceAccountName is not set: sources are read with the rights of an account")
	}
	return watchKey{namespace: p.Namespace, account: *p.Spec.ServiceAccountName, gvk: gvkOf(s), name: objectOf(s)}, nil
}

package objects

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

const (
	// maxWatches is the number of watches held at once; what does not fit is
	// looked at by Recheck.
	maxWatches = 512
	// idleWatch is how long a watch that sees no object is kept.
	idleWatch = 10 * time.Minute
)

// watchKey is what one watch covers: all bodies' objects of a kind in a
// namespace, seen with the rights of an account.
type watchKey struct {
	accountNamespace, account string
	resource                  schema.GroupVersionResource
	namespace                 string
}

// watches notify when an object of a body may have changed. They only ever say
// that it is time to look; nothing is decided on what they hold, which is no
// more than names.
type watches struct {
	notify body.Notify
	now    func() time.Time

	mu      sync.Mutex
	closed  bool
	running map[watchKey]*objectWatch
	done    sync.WaitGroup
}

// objectWatch is one watch.
type objectWatch struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	// broken is set while the API server does not let us watch, or cannot be
	// reached.
	broken atomic.Bool
	// lost is called when the right to watch has been withdrawn, or the version
	// is served no more: whoever relies on the watch has to look, and hears of
	// Recheck.
	lost func()
	used time.Time
}

func newWatches(notify body.Notify) *watches {
	return &watches{notify: notify, now: time.Now, running: map[watchKey]*objectWatch{}}
}

// ensure sees to it that the objects are watched, and says whether all are
// already: then every change from now on is notified of.
func (w *watches) ensure(acc *account, manifests []manifest) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := !w.closed
	for _, m := range manifests {
		if m.resource.Resource == "" {
			all = false
			continue
		}
		key := watchKey{acc.namespace, acc.name, m.resource, m.GetNamespace()}
		one, ok := w.running[key]
		if !ok {
			one = w.start(key, acc)
		}
		if one == nil {
			all = false
			continue
		}
		one.used = w.now()
		all = all && one.informer.HasSynced() && !one.broken.Load()
	}
	return all
}

// start returns nil if there are too many watches.
func (w *watches) start(key watchKey, acc *account) *objectWatch {
	if w.closed || len(w.running) >= maxWatches && !w.sweep() {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	one := &objectWatch{stop: cancel}
	one.lost = func() {
		for _, object := range one.informer.GetStore().List() {
			w.tell(key.accountNamespace, object)
		}
	}
	one.informer = cache.NewSharedIndexInformer(one.listWatch(key, acc), &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
	// Neither can fail before the informer runs.
	_ = one.informer.SetTransform(trim)
	_ = one.informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})
	tell := func(object any) { w.tell(key.accountNamespace, object) }
	_, _ = one.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		UpdateFunc: func(_, object any) { tell(object) },
		DeleteFunc: tell,
	})
	w.running[key] = one
	w.done.Go(func() { one.informer.RunWithContext(ctx) })
	return one
}

// tell notifies of the Member whose object changed. The namespace is that of
// the account, which is that of the Member, wherever the object is.
func (w *watches) tell(namespace string, object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		w.notify(namespace, m.Labels[v1alpha1.LabelMember])
	}
}

// sweep ends the watches that have seen no object for long, and says whether
// there were any.
func (w *watches) sweep() bool {
	before := len(w.running)
	for key, one := range w.running {
		if len(one.informer.GetStore().ListKeys()) == 0 && w.now().Sub(one.used) > idleWatch {
			one.stop()
			delete(w.running, key)
		}
	}
	return len(w.running) < before
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

// listWatch lists and watches, and keeps note of whether that works.
func (o *objectWatch) listWatch(key watchKey, acc *account) cache.ListerWatcher {
	client := acc.metadata.Resource(key.resource).Namespace(key.namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = v1alpha1.LabelMember
			list, err := client.List(ctx, options)
			if err != nil {
				o.fail(err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = v1alpha1.LabelMember
			result, err := client.Watch(ctx, options)
			if err != nil {
				o.fail(err)
				return nil, err
			}
			o.broken.Store(false)
			return result, nil
		},
	}
}

// fail notes that the watch tells of nothing for now. If it comes back, it tells
// of all that has changed since; without rights, or in a version that is not served,
// it may never.
func (o *objectWatch) fail(err error) {
	if !o.broken.Swap(true) && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		o.lost()
	}
}

// trim keeps what a notification needs.
func trim(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	member := m.Labels[v1alpha1.LabelMember]
	m.ObjectMeta = metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		Labels: map[string]string{v1alpha1.LabelMember: member},
	}
	return m, nil
}

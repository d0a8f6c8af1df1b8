// Package follow tells of the objects of a list, and of every change to them,
// for as long as one listens: through watches that end, and servers that
// restart.
package follow

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pause is the time between two attempts to reach a server that is away.
const pause = time.Second

// Listener is told what happens, one call at a time.
type Listener struct {
	// Changed is told of every object as it is at first, and whenever it may
	// have changed.
	Changed func(client.Object)
	// Gone is told of an object that is there no more, as it was last seen.
	Gone func(client.Object)
	// Lost is told why the server cannot be read, before each further attempt.
	// Nil: the first such error ends it.
	Lost func(error)
}

// Objects follows the objects that a list with the options has, until ctx
// ends. It returns nil then, or the error that ended it.
func Objects(ctx context.Context, c client.WithWatch, list client.ObjectList, l Listener, options ...client.ListOption) error {
	f := &follower{client: c, list: list, options: options, listener: l, known: map[types.NamespacedName]client.Object{}}
	for ctx.Err() == nil {
		err := f.round(ctx)
		switch {
		case err == nil || ctx.Err() != nil:
			continue // the watch has ended, as watches do
		case l.Lost == nil:
			return err
		}
		l.Lost(err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

type follower struct {
	client   client.WithWatch
	list     client.ObjectList
	options  []client.ListOption
	listener Listener
	known    map[types.NamespacedName]client.Object
}

// round lists the objects and follows them until the watch ends.
func (f *follower) round(ctx context.Context) error {
	list, ok := f.list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return fmt.Errorf("%T is no list", f.list)
	}
	if err := f.client.List(ctx, list, f.options...); err != nil {
		return err
	}
	if err := f.replace(list); err != nil {
		return err
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	w, err := f.client.Watch(ctx, list, append([]client.ListOption{from}, f.options...)...)
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.ResultChan():
			if !ok || e.Type == watch.Error {
				return nil // an error is mostly that the version is too old: list anew
			}
			if o, ok := e.Object.(client.Object); ok && e.Type != watch.Bookmark {
				f.tell(o, e.Type == watch.Deleted)
			}
		}
	}
}

// replace tells of what a new list has, and of what it no longer has.
func (f *follower) replace(list client.ObjectList) error {
	gone := f.known
	f.known = make(map[types.NamespacedName]client.Object, len(gone))
	err := meta.EachListItem(list, func(item runtime.Object) error {
		o, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", item)
		}
		delete(gone, client.ObjectKeyFromObject(o))
		f.tell(o, false)
		return nil
	})
	for _, o := range gone {
		f.listener.Gone(o)
	}
	return err
}

func (f *follower) tell(o client.Object, gone bool) {
	key := client.ObjectKeyFromObject(o)
	if gone {
		delete(f.known, key)
		f.listener.Gone(o)
		return
	}
	f.known[key] = o
	f.listener.Changed(o)
}

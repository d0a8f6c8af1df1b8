package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// How long an observation is good for where no watch tells of changes.
const (
	recheckSoon = time.Second
	recheckLate = 10 * time.Second
)

// Observe implements body.Kind. It reads the objects from the API server itself,
// never from a cache: what it calls Absent is. An object is absent if the API
// server says so of that very object, in any version, or has served its kind in
// no version for a while (see settle).
//
// The template has to be the one that the body was made from, with what is not
// part of the revision as it is now; it and slot.Incarnation are where the
// objects are looked for. If there are any of that incarnation, the observation
// is of them alone, however few there are; otherwise of what is found in their
// places.
func (k *Kind) Observe(ctx context.Context, slot body.Slot, template *v1alpha1.Template) (body.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if slot.ServiceAccount == "" {
		return body.Observation{}, errors.New("observe the body: spec.serviceAccountName is not set")
	}
	acc, err := k.accounts.get(slot.Namespace, slot.ServiceAccount)
	if err != nil {
		return body.Observation{}, err
	}
	manifests, err := k.manifests(ctx, slot, template)
	if err == nil {
		err = k.locate(ctx, slot, manifests)
	}
	switch {
	case errors.Is(err, body.ErrRefused):
		return k.observeUnmakeable(ctx, acc, slot, template, err)
	case err != nil:
		return body.Observation{}, err
	}
	// First the watches, then the look, so that no change falls between them.
	watched := k.watches.ensure(acc, manifests)
	objects, moved, err := k.look(ctx, acc, slot, manifests)
	if err != nil {
		return body.Observation{}, err
	}
	if moved {
		watched = k.watches.ensure(acc, manifests)
	}
	p := parts{manifests: manifests, objects: objects}
	if p.others, err = k.findOthers(ctx, acc, slot, manifests); err != nil {
		return body.Observation{}, err
	}
	p.ofOneIncarnation(slot.Incarnation)
	o, err := k.judge(ctx, template, p)
	return recheck(o, watched && len(p.others) == 0), err
}

// look reads the objects; those that are missing, or not of the slot's Member,
// are nil. It corrects the resources of the manifests where the mapper was
// wrong, and says whether it was.
func (k *Kind) look(ctx context.Context, acc *account, slot body.Slot, manifests []manifest) (objects []*unstructured.Unstructured, moved bool, err error) {
	objects = make([]*unstructured.Unstructured, len(manifests))
	for i := range manifests {
		m := &manifests[i]
		was, kind := m.resource, m.GroupVersionKind().GroupKind()
		var live *unstructured.Unstructured
		err := errNotServed
		if was.Resource != "" {
			live, m.resource, err = k.read(ctx, acc, was, m.GetNamespace(), m.GetName())
		}
		switch {
		case errors.Is(err, errNotServed):
			m.resource = schema.GroupVersionResource{}
			err = k.unserved.notServed(kind, k.now())
		case err == nil:
			k.unserved.isServed(kind)
		}
		if err != nil {
			return nil, false, fmt.Errorf("read %s: %w", m, err)
		}
		if live != nil && isMarked(live, slot) {
			objects[i] = live
		}
		moved = moved || m.resource != was
	}
	return objects, moved, nil
}

// judge says how a body is that consists of the parts.
func (k *Kind) judge(ctx context.Context, template *v1alpha1.Template, p parts) (body.Observation, error) {
	all := p.all()
	if len(all) == 0 {
		return body.Observation{State: body.Absent}, nil
	}
	o := observationOf(p)
	var ending []string
	for _, o := range all {
		if o.GetDeletionTimestamp() != nil {
			ending = append(ending, nameOf(o))
		}
	}
	missing := p.missing()
	switch {
	case len(ending) > 0:
		o.State, o.Message = body.Stopping, strings.Join(ending, ", ")+" is terminating"
	case len(missing) > 0:
		o.State, o.Message = body.Down, strings.Join(missing, ", ")+" is missing"
	default:
		var err error
		if o.State, o.Message, err = k.readiness(ctx, template, p.objects); err != nil {
			return body.Observation{}, err
		}
	}
	o.Message = oneLine(o.Message)
	return o, nil
}

// observationOf says which body it is.
func observationOf(p parts) body.Observation {
	first := p.all()[0]
	return body.Observation{
		UID:         p.uid(),
		Incarnation: incarnationOf(first),
		Revision:    first.GetLabels()[v1alpha1.LabelRevision],
		Address:     addressOf(p.objects),
		BornAt:      first.GetCreationTimestamp().Time,
	}
}

// recheck says how long the observation is good for.
func recheck(o body.Observation, watched bool) body.Observation {
	switch {
	case watched:
		o.Recheck = 0
	case o.State == body.Ready:
		o.Recheck = recheckLate
	default:
		o.Recheck = recheckSoon
	}
	return o
}

// observeUnmakeable says how the body is of a slot whose template cannot become
// one, because it cannot be rendered for this slot, say. As a rule there never
// was one; but that is looked for, by the marks and among the kinds that can
// still be made out. If there is something, its state cannot be told.
func (k *Kind) observeUnmakeable(ctx context.Context, acc *account, slot body.Slot, template *v1alpha1.Template, cause error) (body.Observation, error) {
	if o, err := k.observeOther(ctx, acc, slot, cause); err != nil || o.State != body.Absent {
		return o, err
	}
	var objects []unstructured.Unstructured
	for i := range template.Objects {
		found, err := k.findMarked(ctx, acc, slot, template, i)
		if err != nil {
			return body.Observation{}, fmt.Errorf("whether there is a body cannot be told: %w (%v)", err, cause) //nolint:errorlint // the cause is no verdict here
		}
		objects = append(objects, found...)
	}
	if len(objects) > 0 {
		return body.Observation{}, fmt.Errorf("the state of %s cannot be told: %v", nameOf(&objects[0]), cause) //nolint:errorlint // as above
	}
	return recheck(body.Observation{State: body.Absent, Message: oneLine(cause.Error())}, false), nil
}

// observeOther says how the body is that is known of and is of another revision
// than the one that cannot be made: which it is, and that how it does is to be
// told by that one. Without such a body it is absent.
func (k *Kind) observeOther(ctx context.Context, acc *account, slot body.Slot, cause error) (body.Observation, error) {
	p := parts{}
	var err error
	if p.others, err = k.findOthers(ctx, acc, slot, nil); err != nil {
		return body.Observation{}, err
	}
	p.ofOneIncarnation(slot.Incarnation)
	if len(p.others) == 0 || p.others[0].GetLabels()[v1alpha1.LabelRevision] == slot.Revision {
		return body.Observation{State: body.Absent}, nil
	}
	o := observationOf(p)
	o.State, o.Message = body.Booting, oneLine(cause.Error())
	return recheck(o, false), nil
}

// findMarked lists what carries the Member's marks and is of the kind, and in
// the namespace, of one manifest, which is not rendered.
func (k *Kind) findMarked(ctx context.Context, acc *account, slot body.Slot, template *v1alpha1.Template, i int) ([]unstructured.Unstructured, error) {
	tree, err := decode(template.Objects[i])
	if err != nil {
		return nil, nil //nolint:nilerr // nothing was ever made from what is no manifest
	}
	object := &unstructured.Unstructured{Object: tree}
	namespace, _, _ := unstructured.NestedString(tree, "metadata", "namespace")
	for _, s := range []string{object.GetAPIVersion(), object.GetKind(), namespace} {
		if strings.Contains(s, "${") {
			return nil, fmt.Errorf("%s: its kind or namespace is an expression", fieldOf(i))
		}
	}
	gvk := schema.FromAPIVersionAndKind(object.GetAPIVersion(), object.GetKind())
	list, err := k.list(ctx, acc, slot, gvk, namespace)
	switch {
	case errors.Is(err, errNotServed):
		return nil, k.unserved.notServed(gvk.GroupKind(), k.now())
	case err != nil:
		return nil, err
	}
	k.unserved.isServed(gvk.GroupKind())
	var found []unstructured.Unstructured
	for _, o := range list {
		if isMarked(&o, slot) {
			found = append(found, o)
		}
	}
	return found, nil
}

// list lists the objects of a kind that are labelled with the member's name, in
// the namespace or, by default, the slot's. The error wraps errNotServed if the
// kind is served in no version.
func (k *Kind) list(ctx context.Context, acc *account, slot body.Slot, gvk schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	at, err := k.placeOf(ctx, gvk)
	if err != nil {
		return nil, err
	}
	if !at.namespaced {
		namespace = ""
	} else if namespace == "" {
		namespace = slot.Namespace
	}
	var list *unstructured.UnstructuredList
	_, err = k.inAnyVersion(ctx, at.GroupVersionResource, func(r schema.GroupVersionResource) (err error) {
		list, err = acc.client(r, namespace).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelMember + "=" + slot.Member})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", at.GroupResource(), err)
	}
	return list.Items, nil
}

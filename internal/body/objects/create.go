package objects

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// fieldManager owns the fields of what is applied.
const fieldManager = "pawl"

// Create implements body.Kind. The template has to be that of slot.Revision.
func (k *Kind) Create(ctx context.Context, slot body.Slot, template *v1alpha1.Template) (body.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	manifests, acc, watched, err := k.prepare(ctx, slot, template)
	if err != nil {
		return body.Observation{}, err
	}
	b := &builder{account: acc, slot: slot}
	objects, err := b.build(ctx, manifests)
	if err != nil {
		return body.Observation{}, k.explain(ctx, manifests, err)
	}
	return k.made(ctx, template, parts{manifests: manifests, objects: objects}, watched)
}

// prepare is what a body is to be made of, and the account that makes it. Watched:
// what is made is watched from before it is there.
func (k *Kind) prepare(ctx context.Context, slot body.Slot, template *v1alpha1.Template) (manifests []manifest, acc *account, watched bool, err error) {
	if slot.ServiceAccount == "" {
		return nil, nil, false, errNoAccount
	}
	if manifests, err = k.plan(ctx, slot, template); err != nil {
		return nil, nil, false, err
	}
	if acc, err = k.accounts.get(slot.Namespace, slot.ServiceAccount); err != nil {
		return nil, nil, false, err
	}
	return manifests, acc, k.watches.ensure(acc, manifests), nil
}

// made is how a body is whose objects have just been written.
func (k *Kind) made(ctx context.Context, template *v1alpha1.Template, p parts, watched bool) (body.Observation, error) {
	for _, m := range p.manifests {
		k.unserved.isServed(m.GroupVersionKind().GroupKind())
	}
	o, err := k.judge(ctx, template, p)
	return recheck(o, watched), err
}

// plan is what the body is to be made of, each object in a version that is
// served.
func (k *Kind) plan(ctx context.Context, slot body.Slot, template *v1alpha1.Template) ([]manifest, error) {
	manifests, err := k.manifests(ctx, slot, template)
	if err != nil {
		return nil, err
	}
	if err := k.locate(ctx, slot, manifests); err != nil {
		return nil, err
	}
	for _, m := range manifests {
		if !m.isServed() {
			return nil, refuseUnserved(m)
		}
	}
	return manifests, nil
}

func refuseUnserved(m manifest) error {
	return refuse(m.field, fmt.Errorf("%s: %w", m.GroupVersionKind(), errNotServed))
}

// explain says why the API server did not know a resource that the mapper
// knows: it is served no more, and the body refused, or that cannot be told. Any
// other error stays as it is.
func (k *Kind) explain(ctx context.Context, manifests []manifest, unknown error) error {
	if !isUnknown(unknown) {
		return unknown
	}
	for _, m := range manifests {
		_, err := k.serving(ctx, m.resource.Group, func(s served) bool { return s.GroupVersionResource == m.resource })
		switch {
		case errors.Is(err, errNotServed):
			return refuseUnserved(m)
		case err != nil:
			return fmt.Errorf("%w; also: %w", unknown, err)
		}
	}
	return unknown
}

// builder makes the objects of one body.
type builder struct {
	*account
	slot body.Slot
	// made are the objects that this call has made, so that it can take them
	// back; those of earlier calls may have been in use.
	made []made
}

type made struct {
	client dynamic.ResourceInterface
	object *unstructured.Unstructured
}

// build returns the objects of the body, making those that are missing. All
// names are looked at before the first object is made.
func (b *builder) build(ctx context.Context, manifests []manifest) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, len(manifests))
	for i, m := range manifests {
		live, err := b.client(m.resource, m.GetNamespace()).Get(ctx, m.GetName(), metav1.GetOptions{})
		switch {
		case isGone(err, m.GetName()):
			continue
		case err != nil:
			return nil, classify("read", m, err)
		}
		if err := b.occupied(m, live); err != nil {
			return nil, err
		}
		objects[i] = live
	}
	for i, m := range manifests {
		if objects[i] != nil {
			continue
		}
		var err error
		if objects[i], err = b.make(ctx, m); err != nil {
			return nil, b.giveUp(ctx, err)
		}
	}
	return objects, nil
}

// make creates an object whose name was found free.
func (b *builder) make(ctx context.Context, m manifest) (*unstructured.Unstructured, error) {
	client := b.client(m.resource, m.GetNamespace())
	object, err := apply(ctx, client, m)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// Something has taken the name since; it may be what an earlier call
		// asked for whose answer was lost.
		live, getErr := client.Get(ctx, m.GetName(), metav1.GetOptions{})
		if getErr != nil {
			return nil, fmt.Errorf("create %s: %w", m, err)
		}
		return live, b.occupied(m, live)
	}
	if err != nil {
		return nil, classify("create", m, err)
	}
	b.made = append(b.made, made{client, object})
	if !isMarked(object, b.slot) || incarnationOf(object) != b.slot.Incarnation {
		return nil, refuse(m.field, fmt.Errorf("%s lost the labels or the annotation of Pawl when it was created: an admission webhook changes them", m))
	}
	return object, nil
}

// impossibleVersion is a resource version that no object has.
const impossibleVersion = math.MaxInt64

// apply creates an object by server-side apply, so that its fields are owned as
// later applications need it, and never takes over a namesake.
//
// By itself, applying to a name that somebody has taken since it was found free
// merges into the stranger's object: there is a conflict only where both set
// one field to different values, and Pawl's labels would be put on what is not
// its own. A resource version makes the application conditional, as it does an
// update: if the name is taken, by whatever, the versions differ, and the API
// server answers Conflict and writes nothing. If it is free, there is nothing
// to compare with, and the object is created. Both are decided in the one
// transaction that writes, so there is no instant in between. (A UID as the
// condition does not do: the API server then insists that the object exists.)
func apply(ctx context.Context, client dynamic.ResourceInterface, m manifest) (*unstructured.Unstructured, error) {
	return client.Apply(ctx, m.GetName(), conditional(m, nil), metav1.ApplyOptions{FieldManager: fieldManager})
}

// conditional is the manifest for the application to that very object or, if
// there is none, to a name that is free.
func conditional(m manifest, live *unstructured.Unstructured) *unstructured.Unstructured {
	object := m.DeepCopy()
	if live != nil {
		object.SetUID(live.GetUID())
	} else {
		object.SetResourceVersion(strconv.FormatInt(impossibleVersion, 10))
	}
	return object
}

// occupied returns an error that wraps body.ErrOccupied unless the live object
// is the one that the manifest asks for.
func (b *builder) occupied(m manifest, live *unstructured.Unstructured) error {
	why := b.foreign(live)
	switch revision := live.GetLabels()[v1alpha1.LabelRevision]; {
	case why != "":
	case live.GetDeletionTimestamp() != nil:
		why = terminating(live)
	case incarnationOf(live) != b.slot.Incarnation:
		why = fmt.Sprintf("is of incarnation %d, not %d", incarnationOf(live), b.slot.Incarnation)
	case revision != b.slot.Revision:
		why = fmt.Sprintf("is of revision %s, not %s", revision, b.slot.Revision)
	default:
		return nil
	}
	return isOccupied(m, why)
}

func isOccupied(m manifest, why string) error {
	return fmt.Errorf("%w: %s: %s %s", body.ErrOccupied, m.field, m, why)
}

// foreign says whose the object is, unless it is of the slot's Member.
func (b *builder) foreign(live *unstructured.Unstructured) string {
	labels := live.GetLabels()
	switch {
	case labels[v1alpha1.LabelMember] == "":
		return "is not Pawl's"
	case labels[v1alpha1.LabelMember] != b.slot.Member || labels[v1alpha1.LabelPool] != b.slot.Pool:
		return fmt.Sprintf("belongs to member %s of pool %s", labels[v1alpha1.LabelMember], labels[v1alpha1.LabelPool])
	case !isMarked(live, b.slot):
		return "belongs to another Member of the same name"
	}
	return ""
}

func terminating(live *unstructured.Unstructured) string {
	why := "is still terminating"
	if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
		why += ", held by " + strings.Join(finalizers, ", ")
	}
	return why
}

// giveUp takes back what this call has made if the rest of it cannot follow,
// so that a refused body leaves nothing behind, and members that wait for room
// do not hold each a part of it. After any other error the next call goes on.
func (b *builder) giveUp(ctx context.Context, err error) error {
	if !errors.Is(err, body.ErrRefused) && !errors.Is(err, body.ErrNoRoom) && !errors.Is(err, body.ErrOccupied) {
		return err
	}
	for _, m := range slices.Backward(b.made) {
		if undo := remove(ctx, m.client, m.object.GetName(), m.object.GetUID()); undo != nil {
			err = fmt.Errorf("%w; also: take %s back: %w", err, nameOf(m.object), undo)
		}
	}
	return err
}

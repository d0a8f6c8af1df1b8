package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/pawl-dev/pawl/internal/body"
)

// Delete implements body.Kind: it deletes the objects that the UID lists, the
// last one first. One that is gone, has another UID or does not carry the
// Member's marks is left alone. An object that cannot be deleted does not spare
// the others.
func (k *Kind) Delete(ctx context.Context, slot body.Slot, uid string) error {
	if uid == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	references, err := parseUID(uid)
	if err != nil {
		return err
	}
	if slot.ServiceAccount == "" {
		return errors.New("delete the body: spec.serviceAccountName is not set")
	}
	acc, err := k.accounts.get(slot.Namespace, slot.ServiceAccount)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range slices.Backward(references) {
		if err := k.deleteOne(ctx, acc, slot, r); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (k *Kind) deleteOne(ctx context.Context, acc *account, slot body.Slot, r reference) error {
	live, at, err := k.find(ctx, acc, r)
	switch {
	case errors.Is(err, errNotServed):
		return nil // whether it is gone with its kind, Observe tells
	case err != nil:
		return fmt.Errorf("before it is deleted: %w", err)
	case live == nil, !isMarked(live, slot), live.GetDeletionTimestamp() != nil:
		return nil
	}
	if err := remove(ctx, acc.client(at, r.namespace), r.name, r.uid); err != nil {
		return fmt.Errorf("delete %s: %w", nameOf(live), err)
	}
	return nil
}

// find reads the object that the reference names, in whichever version it is
// served; nil if it is not there, or another one has its name. The error wraps
// errNotServed if its kind is not served.
func (k *Kind) find(ctx context.Context, acc *account, r reference) (*unstructured.Unstructured, schema.GroupVersionResource, error) {
	at, err := k.mapper.ResourceFor(r.resource.WithVersion(""))
	if meta.IsNoMatchError(err) {
		var s served
		s, err = k.serving(ctx, r.resource.Group, func(s served) bool { return s.Resource == r.resource.Resource })
		at = s.GroupVersionResource
	}
	if err != nil {
		return nil, at, fmt.Errorf("look up %s: %w", r.resource, err)
	}
	live, at, err := k.read(ctx, acc, at, r.namespace, r.name)
	if err != nil {
		return nil, at, fmt.Errorf("read %s %s: %w", r.resource, r.name, err)
	}
	if live == nil || live.GetUID() != r.uid {
		return nil, at, nil
	}
	return live, at, nil
}

// remove deletes the object if it has the UID still; its dependents follow in
// the background.
func remove(ctx context.Context, client dynamic.ResourceInterface, name string, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	err := client.Delete(ctx, name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &background,
	})
	if isGone(err, name) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	resource, err := k.mapper.ResourceFor(schema.GroupVersionResource{Group: r.resource.Group, Resource: r.resource.Resource})
	switch {
	case meta.IsNoMatchError(err):
		return nil // with its kind, all its objects are gone
	case err != nil:
		return fmt.Errorf("look up %s: %w", r.resource, err)
	}
	client := acc.client(resource, r.namespace)
	live, err := client.Get(ctx, r.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read %s %s before it is deleted: %w", r.resource, r.name, err)
	case live.GetUID() != r.uid, !isMarked(live, slot), live.GetDeletionTimestamp() != nil:
		return nil
	}
	if err := remove(ctx, client, r.name, r.uid); err != nil {
		return fmt.Errorf("delete %s: %w", nameOf(live), err)
	}
	return nil
}

// remove deletes the object if it has the UID still; its dependents follow in
// the background.
func remove(ctx context.Context, client dynamic.ResourceInterface, name string, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	err := client.Delete(ctx, name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

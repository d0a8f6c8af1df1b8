package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// Update implements body.Updater: the template is applied to the objects that
// are there, what is new in it is made, and what the body was known by and the
// template does not name is deleted. Fields that the template names become what
// it says, whoever has changed them; others stay.
//
// That the API server would refuse something is found out by a dry run before
// anything is written.
func (k *Kind) Update(ctx context.Context, slot body.Slot, template *v1alpha1.Template) (body.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if slot.ServiceAccount == "" {
		return body.Observation{}, errNoAccount
	}
	manifests, err := k.plan(ctx, slot, template)
	if err != nil {
		return body.Observation{}, err
	}
	acc, err := k.accounts.get(slot.Namespace, slot.ServiceAccount)
	if err != nil {
		return body.Observation{}, err
	}
	watched := k.watches.ensure(acc, manifests)
	u := &updater{builder{account: acc, slot: slot}, parts{manifests: manifests}}
	u.others, err = k.findOthers(ctx, acc, slot, manifests)
	if err == nil {
		err = u.run(ctx)
	}
	for _, o := range u.others {
		if err == nil {
			err = k.deleteOne(ctx, acc, slot, referenceTo(o.resource, o.Unstructured))
		}
	}
	if err != nil {
		return body.Observation{}, k.explain(ctx, manifests, err)
	}
	return k.made(ctx, template, parts{manifests: manifests, objects: u.objects}, watched)
}

// updater makes a body another one where it is.
type updater struct {
	builder
	parts
}

func (u *updater) run(ctx context.Context) error {
	if err := u.look(ctx); err != nil {
		return err
	}
	if len(u.all()) == 0 {
		return fmt.Errorf("%w: there is no body to update", body.ErrOccupied)
	}
	todo := u.todo()
	if len(todo) > 1 {
		for _, i := range todo {
			if err := u.try(ctx, u.manifests[i], u.objects[i]); err != nil {
				return err
			}
		}
	}
	for _, i := range todo {
		var err error
		if live := u.objects[i]; live != nil {
			u.objects[i], err = u.apply(ctx, u.manifests[i], live)
		} else {
			u.objects[i], err = u.make(ctx, u.manifests[i])
		}
		if err != nil {
			return u.giveUp(ctx, err)
		}
	}
	return nil
}

// todo are the places of what is missing or not updated yet.
func (u *updater) todo() []int {
	var list []int
	for i, live := range u.objects {
		if live == nil || !u.isDone(live) {
			list = append(list, i)
		}
	}
	return list
}

func (u *updater) isDone(live *unstructured.Unstructured) bool {
	return incarnationOf(live) == u.slot.Incarnation && live.GetLabels()[v1alpha1.LabelRevision] == u.slot.Revision
}

// look reads the objects that the manifests name.
func (u *updater) look(ctx context.Context) error {
	u.objects = make([]*unstructured.Unstructured, len(u.manifests))
	for i, m := range u.manifests {
		live, err := u.client(m.resource, m.GetNamespace()).Get(ctx, m.GetName(), metav1.GetOptions{})
		switch {
		case isGone(err, m.GetName()):
			continue
		case err != nil:
			return classify("read", m, err)
		}
		if why := u.foreign(live); why != "" {
			return isOccupied(m, why)
		}
		if n := incarnationOf(live); n > u.slot.Incarnation {
			return isOccupied(m, fmt.Sprintf("is of incarnation %d already", n))
		}
		if live.GetDeletionTimestamp() != nil {
			return fmt.Errorf("%s: %s %s", m.field, m, terminating(live))
		}
		u.objects[i] = live
	}
	return nil
}

// try finds out whether the API server would take the manifest, which changes
// nothing. A webhook that cannot tell leaves it to the real thing.
func (u *updater) try(ctx context.Context, m manifest, live *unstructured.Unstructured) error {
	options := metav1.ApplyOptions{FieldManager: fieldManager, DryRun: []string{metav1.DryRunAll}, Force: live != nil}
	_, err := u.client(m.resource, m.GetNamespace()).Apply(ctx, m.GetName(), conditional(m, live), options)
	var status apierrors.APIStatus
	if apierrors.IsBadRequest(err) && errors.As(err, &status) && strings.Contains(status.Status().Message, "dry run") {
		return nil
	}
	if err != nil {
		return classify(verb(live), m, err)
	}
	return nil
}

// apply makes the object that is there what the manifest says.
func (u *updater) apply(ctx context.Context, m manifest, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	object, err := u.client(m.resource, m.GetNamespace()).Apply(ctx, m.GetName(), conditional(m, live), options)
	if err != nil {
		return nil, classify(verb(live), m, err)
	}
	if !isMarked(object, u.slot) || !u.isDone(object) {
		return nil, refuse(m.field, fmt.Errorf("%s lost the labels or the annotation of Pawl when it was updated: an admission webhook changes them", m))
	}
	return object, nil
}

func verb(live *unstructured.Unstructured) string {
	if live == nil {
		return "create"
	}
	return "update"
}

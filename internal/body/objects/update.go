package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
// it says, whoever has changed them; others stay. An object that has ended, as an
// evicted Pod has, becomes nothing any more: it is deleted by its UID and made
// anew; until it is gone the body boots, and nothing else is touched.
//
// That the API server would refuse something is found out by a dry run before
// anything is written.
func (k *Kind) Update(ctx context.Context, slot body.Slot, template *v1alpha1.Template) (body.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	manifests, acc, watched, err := k.prepare(ctx, slot, template)
	if err != nil {
		return body.Observation{}, err
	}
	u := &updater{builder: builder{account: acc, slot: slot}, parts: parts{manifests: manifests}}
	u.hasEnded = func(o *unstructured.Unstructured) bool { return k.hasEnded(ctx, template, u.parts, o) }
	u.others, err = k.findOthers(ctx, acc, slot, manifests)
	if err == nil {
		err = u.run(ctx)
	}
	if err == nil && u.ending != "" {
		return recheck(u.goesOn(), watched), nil
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
	// hasEnded tells whether an object does not come back.
	hasEnded func(*unstructured.Unstructured) bool
	// ending says what has to be gone before the body becomes anything else.
	ending string
}

func (u *updater) run(ctx context.Context) error {
	if err := u.look(ctx); err != nil || u.ending != "" {
		return err
	}
	if len(u.all()) == 0 {
		return fmt.Errorf("%w: there is no body to update", body.ErrOccupied)
	}
	todo := u.todo()
	ended := u.ended(todo)
	if err := u.tryAll(ctx, todo, ended); err != nil {
		return err
	}
	if err := u.clear(ctx, ended); err != nil || u.ending != "" {
		return err
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

// goesOn is how the body is while something of it ends: it is not what it is
// to be.
func (u *updater) goesOn() body.Observation {
	o := observationOf(u.parts)
	o.State, o.Message, o.Incarnation = body.Booting, oneLine(u.ending), u.slot.Incarnation-1
	return o
}

// ended are those of the places at which an object has ended.
func (u *updater) ended(todo []int) []int {
	return slices.DeleteFunc(slices.Clone(todo), func(i int) bool {
		return u.objects[i] == nil || !u.hasEnded(u.objects[i])
	})
}

// clear deletes what has ended, and waits for nothing.
func (u *updater) clear(ctx context.Context, ended []int) error {
	if len(ended) == 0 {
		return nil
	}
	for _, i := range ended {
		m, o := u.manifests[i], u.objects[i]
		if err := remove(ctx, u.client(m.resource, m.GetNamespace()), o.GetName(), o.GetUID()); err != nil {
			return fmt.Errorf("delete %s, which has ended: %w", nameOf(o), err)
		}
	}
	return u.look(ctx)
}

// tryAll finds out whether the API server would take what is to be done, unless
// that is all told by the first thing that is done.
func (u *updater) tryAll(ctx context.Context, todo, ended []int) error {
	if len(todo) < 2 && len(ended) == 0 {
		return nil
	}
	for _, i := range todo {
		var err error
		if slices.Contains(ended, i) {
			err = u.tryAnew(ctx, u.manifests[i])
		} else {
			err = u.try(ctx, u.manifests[i], u.objects[i])
		}
		if err != nil {
			return err
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
	u.objects, u.ending = make([]*unstructured.Unstructured, len(u.manifests)), ""
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
		if live.GetDeletionTimestamp() != nil && u.ending == "" {
			u.ending = fmt.Sprintf("%s: %s %s", m.field, m, terminating(live))
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
	if err == nil || cannotTry(err) {
		return nil
	}
	return classify(verb(live), m, err)
}

// tryAnew is try for an object whose name is taken still, by what has the room
// that it is to have.
func (u *updater) tryAnew(ctx context.Context, m manifest) error {
	object := m.DeepCopy()
	object.SetName("")
	object.SetGenerateName("pawl-")
	_, err := u.client(m.resource, m.GetNamespace()).Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager, DryRun: []string{metav1.DryRunAll}})
	if err == nil || cannotTry(err) {
		return nil
	}
	if err = classify("create", m, err); errors.Is(err, body.ErrNoRoom) {
		return nil
	}
	return err
}

// cannotTry tells whether something on the way knows no dry run.
func cannotTry(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsBadRequest(err) && errors.As(err, &status) && strings.Contains(status.Status().Message, "dry run")
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

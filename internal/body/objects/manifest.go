package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/fieldpath"
)

// AnnotationMemberUID is on every object: the UID of the Member whose body it
// is, so that a later Member of the same name does not take it for its own.
const AnnotationMemberUID = "pawl.dev/member-uid"

// AnnotationAddress on the first object is the member's address.
const AnnotationAddress = "pawl.dev/address"

// AnnotationLive is on objects of which a field is live: a digest of what was
// applied last to such fields.
const AnnotationLive = "pawl.dev/live"

// objectsField is the path of the manifests.
const objectsField = "template.objects"

// manifest is an object as it is to be, rendered and marked.
type manifest struct {
	// field is its path in the template.
	field string
	*unstructured.Unstructured
	// live are its live fields, as paths in the object.
	live []fieldpath.Path
	// resource is set by locate, and metadata.namespace is right from then on.
	// It is empty if the kind is not served, and in another version than the
	// manifest if it is served in others only.
	resource schema.GroupVersionResource
}

// String names the object in messages.
func (m manifest) String() string { return nameOf(m.Unstructured) }

// nameOf is, for example, "ConfigMap shop/web-0".
func nameOf(o *unstructured.Unstructured) string {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return o.GetKind() + " " + name
}

func refuse(field string, err error) error {
	return fmt.Errorf("%w: %s: %w", body.ErrRefused, field, err)
}

// manifests renders the template for the slot and marks what comes out. It
// touches nothing; its errors wrap body.ErrRefused and name the field, but for
// those of ctx.
func (k *Kind) manifests(ctx context.Context, slot body.Slot, template *v1alpha1.Template) ([]manifest, error) {
	if template == nil || len(template.Objects) == 0 {
		return nil, refuse(objectsField, errors.New("there are none"))
	}
	tree := make([]any, len(template.Objects))
	for i, object := range template.Objects {
		m, err := decode(object)
		if err != nil {
			return nil, refuse(fieldOf(i), err)
		}
		tree[i] = m
	}
	rendered, err := k.render(ctx, objectsField, tree, variables(slot))
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("render %s: %w", objectsField, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", body.ErrRefused, err)
	}
	list, ok := rendered.([]any)
	if !ok || len(list) != len(tree) {
		return nil, refuse(objectsField, errors.New("they are no list of manifests once rendered"))
	}
	result := make([]manifest, len(list))
	for i, object := range list {
		o, ok := object.(map[string]any)
		if !ok {
			return nil, refuse(fieldOf(i), errors.New("it is no manifest once rendered"))
		}
		m := manifest{field: fieldOf(i), Unstructured: &unstructured.Unstructured{Object: o}, live: liveIn(template, i)}
		digest := m.liveDigest()
		if err := m.mark(slot); err != nil {
			return nil, err
		}
		if digest != "" {
			m.SetAnnotations(merge(m.GetAnnotations(), map[string]string{AnnotationLive: digest}))
		}
		result[i] = m
	}
	return result, nil
}

func fieldOf(i int) string { return objectsField + "[" + strconv.Itoa(i) + "]" }

func decode(object runtime.RawExtension) (map[string]any, error) {
	raw, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	if m == nil {
		return nil, errors.New("there is no manifest")
	}
	return m, nil
}

func variables(slot body.Slot) map[string]any {
	sources := slot.Sources
	if sources == nil {
		sources = map[string]any{}
	}
	return map[string]any{
		"sources": sources,
		"member": map[string]any{
			"name": slot.Member, "namespace": slot.Namespace,
			"index": int64(slot.Index), "incarnation": slot.Incarnation,
		},
		"pool": map[string]any{"name": slot.Pool, "namespace": slot.Namespace},
	}
}

// mark checks what Pawl has to rely on and puts its name and marks on.
func (m manifest) mark(slot body.Slot) error {
	for _, field := range []string{"apiVersion", "kind"} {
		if s, ok := m.Object[field].(string); !ok || s == "" {
			return refuse(m.field+"."+field, errors.New("it must be set, to a string"))
		}
	}
	if _, err := schema.ParseGroupVersion(m.GetAPIVersion()); err != nil {
		return refuse(m.field+".apiVersion", err)
	}
	if m.Object["metadata"] == nil {
		m.Object["metadata"] = map[string]any{}
	}
	metadata, ok := m.Object["metadata"].(map[string]any)
	if !ok {
		return refuse(m.field+".metadata", errors.New("it must be a map"))
	}
	if err := m.checkMetadata(metadata); err != nil {
		return err
	}
	// What the API server sets is of no use in a template, and comes with
	// every manifest that was read from one.
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(m.Object, "metadata", field)
	}
	if m.GetName() == "" {
		m.SetName(slot.Member)
	}
	m.SetLabels(merge(m.GetLabels(), map[string]string{
		v1alpha1.LabelPool:        slot.Pool,
		v1alpha1.LabelMember:      slot.Member,
		v1alpha1.LabelIncarnation: strconv.FormatInt(slot.Incarnation, 10),
		v1alpha1.LabelRevision:    slot.Revision,
	}))
	m.SetAnnotations(merge(m.GetAnnotations(), map[string]string{AnnotationMemberUID: slot.UID}))
	return nil
}

// checkMetadata refuses what mark would lose or what must not be.
func (m manifest) checkMetadata(metadata map[string]any) error {
	for _, field := range []string{"name", "namespace"} {
		if s, ok := metadata[field].(string); metadata[field] != nil && (!ok || s == "") {
			return refuse(m.field+".metadata."+field, errors.New("it must be a string, and not an empty one"))
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(m.Object, "metadata", field); metadata[field] != nil && err != nil {
			return refuse(m.field+".metadata."+field, errors.New("it must be a map of strings; write a number as ${string(…)}"))
		}
	}
	for _, no := range []struct{ field, why string }{
		{"ownerReferences", "a body has no owner, or a cascading deletion would reach a claimed one"},
		{"generateName", "a body is known by its name; use ${member.name} in metadata.name"},
	} {
		if metadata[no.field] != nil {
			return refuse(m.field+".metadata."+no.field, errors.New("it must not be set: "+no.why))
		}
	}
	if strings.ContainsAny(m.GetName(), ",/") {
		return refuse(m.field+".metadata.name", fmt.Errorf("%q must not hold a comma or a slash", m.GetName()))
	}
	return nil
}

func merge(a, b map[string]string) map[string]string {
	result := make(map[string]string, len(a)+len(b))
	maps.Copy(result, a)
	maps.Copy(result, b)
	return result
}

// isServed says whether the manifest's kind is served in its version.
func (m manifest) isServed() bool {
	return m.resource.Resource != "" && m.resource.Version == m.GroupVersionKind().Version
}

// locate finds out where the manifests belong. Its errors wrap body.ErrRefused
// if a manifest cannot be where it says; that its kind is not served is none.
func (k *Kind) locate(ctx context.Context, slot body.Slot, manifests []manifest) error {
	places := map[string]string{}
	for i := range manifests {
		m := &manifests[i]
		gvk := m.GroupVersionKind()
		at, err := k.placeOf(ctx, gvk)
		switch {
		case errors.Is(err, errNotServed):
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", m.field, err)
		}
		m.resource = at.GroupVersionResource
		if at.namespaced && m.GetNamespace() == "" {
			m.SetNamespace(slot.Namespace)
		}
		if !at.namespaced && m.GetNamespace() != "" {
			return refuse(m.field+".metadata.namespace", fmt.Errorf("it must not be set: a %s is in no namespace", gvk.Kind))
		}
		place := reference{resource: m.resource.GroupResource(), namespace: m.GetNamespace(), name: m.GetName()}.String()
		if other, ok := places[place]; ok {
			return refuse(m.field, fmt.Errorf("it is the same object as %s, %s", other, m))
		}
		places[place] = m.field
	}
	return nil
}

// isMarked says whether an object belongs to a body of the slot's Member, of
// whichever incarnation.
func isMarked(o metav1.Object, slot body.Slot) bool {
	labels := o.GetLabels()
	return labels[v1alpha1.LabelPool] == slot.Pool && labels[v1alpha1.LabelMember] == slot.Member &&
		o.GetAnnotations()[AnnotationMemberUID] == slot.UID
}

// incarnationOf is what the object records; 0 if it cannot be told.
func incarnationOf(o metav1.Object) int64 {
	n, err := strconv.ParseInt(o.GetLabels()[v1alpha1.LabelIncarnation], 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/internal/body"
)

// parts are the objects of a body.
type parts struct {
	manifests []manifest
	// objects are those that the manifests name, each at its manifest's place;
	// nil where there is none.
	objects []*unstructured.Unstructured
	// others are of the body although no manifest names them: it is, or was
	// about to become, another revision.
	others []other
}

type other struct {
	*unstructured.Unstructured
	resource schema.GroupResource
}

// all are the objects that there are.
func (p *parts) all() []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for _, o := range p.objects {
		if o != nil {
			list = append(list, o)
		}
	}
	for _, o := range p.others {
		list = append(list, o.Unstructured)
	}
	return list
}

// missing names what the manifests name and is not there.
func (p *parts) missing() []string {
	var names []string
	for i, o := range p.objects {
		if o == nil {
			names = append(names, p.manifests[i].String())
		}
	}
	return names
}

// uid is the UID of the body.
func (p *parts) uid() string {
	var list []string
	for i, o := range p.objects {
		if o != nil {
			list = append(list, referenceTo(p.manifests[i].resource.GroupResource(), o).String())
		}
	}
	for _, o := range p.others {
		list = append(list, referenceTo(o.resource, o.Unstructured).String())
	}
	return strings.Join(list, ",")
}

// ofOneIncarnation drops the objects that are not of the incarnation or, if
// none is, not of that of the first: names that do not depend on the
// incarnation can be taken by the next body while others still exist.
func (p *parts) ofOneIncarnation(incarnation int64) {
	all := p.all()
	is := func(o *unstructured.Unstructured) bool { return incarnationOf(o) == incarnation }
	if !slices.ContainsFunc(all, is) {
		if len(all) == 0 {
			return
		}
		incarnation = incarnationOf(all[0])
	}
	for i, o := range p.objects {
		if o != nil && !is(o) {
			p.objects[i] = nil
		}
	}
	p.others = slices.DeleteFunc(p.others, func(o other) bool { return !is(o.Unstructured) })
}

// elsewhere are the objects by which the body is known and that no manifest
// names, whether or not they are there still.
func elsewhere(slot body.Slot, manifests []manifest) ([]reference, error) {
	var list []reference
	for _, uid := range slot.Known {
		references, err := parseUID(uid)
		if err != nil {
			return nil, err
		}
		for _, r := range references {
			named := slices.ContainsFunc(manifests, func(m manifest) bool {
				return m.resource.GroupResource() == r.resource && m.GetNamespace() == r.namespace && m.GetName() == r.name
			})
			if !named && !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	return list, nil
}

// findOthers reads what of the body is elsewhere than the manifests say.
func (k *Kind) findOthers(ctx context.Context, acc *account, slot body.Slot, manifests []manifest) ([]other, error) {
	references, err := elsewhere(slot, manifests)
	if err != nil {
		return nil, err
	}
	var found []other
	for _, r := range references {
		live, _, err := k.find(ctx, acc, r)
		kind := schema.GroupKind{Group: r.resource.Group, Kind: r.resource.Resource}
		if errors.Is(err, errNotServed) {
			if err := k.unserved.notServed(kind, k.now()); err != nil {
				return nil, fmt.Errorf("read %s: %w", r.name, err)
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		k.unserved.isServed(kind)
		if live != nil && isMarked(live, slot) {
			found = append(found, other{live, r.resource})
		}
	}
	return found, nil
}

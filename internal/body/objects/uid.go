package objects

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// reference is one object in the UID of a body. Its version is left out: the
// object is the same in all.
type reference struct {
	resource        schema.GroupResource
	namespace, name string
	uid             types.UID
}

// String is resource.group/namespace/name/uid; no part has a slash or a comma.
func (r reference) String() string {
	return r.resource.String() + "/" + r.namespace + "/" + r.name + "/" + string(r.uid)
}

func referenceTo(resource schema.GroupResource, o *unstructured.Unstructured) reference {
	return reference{resource: resource, namespace: o.GetNamespace(), name: o.GetName(), uid: o.GetUID()}
}

// parseUID is the reverse of parts.uid.
func parseUID(uid string) ([]reference, error) {
	var references []reference
	for part := range strings.SplitSeq(uid, ",") {
		fields := strings.Split(part, "/")
		resource := schema.ParseGroupResource(fields[0])
		if len(fields) != 4 || resource.Resource == "" || fields[2] == "" || fields[3] == "" {
			return nil, fmt.Errorf("%q is not the UID of a body of objects", uid)
		}
		references = append(references, reference{resource, fields[1], fields[2], types.UID(fields[3])})
	}
	return references, nil
}

package source

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/fieldpath"
)

// Check says what is wrong with the first of a pool's sources that cannot be as
// it is written, and names the field. It asks nobody.
func Check(spec *v1alpha1.PoolSpec) error {
	for i := range spec.Sources {
		o := spec.Sources[i].Object
		if o == nil {
			continue
		}
		if _, err := schema.ParseGroupVersion(o.APIVersion); err != nil {
			return fmt.Errorf("sources[%d].object.apiVersion: %w", i, err)
		}
		if _, err := fieldpath.Parse(o.FieldPath); err != nil {
			return fmt.Errorf("sources[%d].object.fieldPath: %w", i, err)
		}
	}
	return nil
}

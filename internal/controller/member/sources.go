package member

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
)

// sources are the values that the revision's sources had; lacking is why they
// are gone. An error means that it could not be told.
func (*step) sources(context.Context, *appsv1.ControllerRevision) (values map[string]any, lacking, err error) {
	return nil, nil, nil
}

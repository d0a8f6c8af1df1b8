package quickstart_test

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/examples/quickstart"
)

func TestManifests(t *testing.T) {
	t.Parallel()
	var pool v1alpha1.Pool
	if err := yaml.UnmarshalStrict(quickstart.Pool, &pool); err != nil {
		t.Errorf("pool.yaml: %v", err)
	}
	data, err := os.ReadFile("claim.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var claim v1alpha1.Claim
	if err := yaml.UnmarshalStrict(data, &claim); err != nil {
		t.Errorf("claim.yaml: %v", err)
	}
	if claim.Spec.Pool != pool.Name {
		t.Errorf("claim.yaml is of pool %q, and pool.yaml makes %q", claim.Spec.Pool, pool.Name)
	}
}

//go:build integration

package apitest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// schemas are what kubectl explain reads.
type schemas map[string]any

func loadSchemas(t *testing.T) schemas {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(pawldtest.Shared(t).Config)
	if err != nil {
		t.Fatal(err)
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	data, err := paths["apis/pawl.dev/v1alpha1"].Schema("application/json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct{ Schemas schemas }
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	return document.Components.Schemas
}

// fields calls visit with every field below a schema. What is Kubernetes' own
// (metadata) is left out.
func (s schemas) fields(path string, schema map[string]any, visit func(path string, field map[string]any)) {
	if items, ok := schema["items"].(map[string]any); ok {
		s.fields(path+"[]", items, visit)
	}
	if values, ok := schema["additionalProperties"].(map[string]any); ok {
		s.fields(path+"{}", values, visit)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, field := range properties {
		field := field.(map[string]any)
		visit(path+"."+name, field)
		if name != "metadata" {
			s.fields(path+"."+name, field, visit)
		}
	}
}

func TestExplain(t *testing.T) {
	all := loadSchemas(t)
	for _, kind := range []string{"Pool", "Member", "Claim"} {
		t.Run(kind, func(t *testing.T) {
			root, ok := all["dev.pawl.v1alpha1."+kind].(map[string]any)
			if !ok {
				t.Fatalf("no schema of %s", kind)
			}
			paths := sets.New[string]()
			all.fields(strings.ToLower(kind), root, func(path string, field map[string]any) {
				paths.Insert(path)
				// A reference is explained by what it refers to.
				if text := fmt.Sprint(field["description"], field["allOf"], field["$ref"]); strings.Trim(text, "<nil>") == "" {
					t.Errorf("%s has no description", path)
				}
			})
			if len(paths) < 15 {
				t.Errorf("only %d fields: %v", len(paths), sets.List(paths))
			}
			if kind == "Pool" && !paths.HasAll("pool.spec.update.maxUnavailable", "pool.spec.template.process.readiness.http.path") {
				t.Errorf("fields are missing: %v", sets.List(paths))
			}
		})
	}
}

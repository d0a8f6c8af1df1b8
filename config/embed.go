// Package config holds what Pawl installs in an API server: its custom
// resource definitions, the admission policies that keep what a schema cannot
// see, and the operator's account and rights.
package config

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed crd/*.yaml policies/*.yaml policies/*/*.yaml rbac/*.yaml kustomization.yaml
var files embed.FS

// PartOf is a label selector for the policies that Pawl installs.
const PartOf = "app.kubernetes.io/part-of=pawl"

// CRDs are the custom resource definitions.
func CRDs() ([]unstructured.Unstructured, error) {
	return load("crd/*.yaml")
}

// ClusterPolicies are the admission policies for any cluster, where Pools of
// processes and of simulated bodies are refused.
func ClusterPolicies() ([]unstructured.Unstructured, error) {
	return load("policies/*.yaml", "policies/cluster/*.yaml")
}

// PawldPolicies are the admission policies for pawld, where Pools of processes
// need a right of their own, and those of simulated bodies are refused unless
// sim is on.
func PawldPolicies(sim bool) ([]unstructured.Unstructured, error) {
	patterns := []string{"policies/*.yaml", "policies/pawld/process-*.yaml"}
	if !sim {
		patterns = append(patterns, "policies/pawld/sim-off.yaml")
	}
	return load(patterns...)
}

// RBAC is the operator's account with its rights, and what Kubernetes' own roles
// mean for Pawl. pawld needs none of it.
func RBAC() ([]unstructured.Unstructured, error) {
	return load("rbac/*.yaml")
}

// load decodes the objects of all files that match, in the order of the
// patterns and of the files' names.
func load(patterns ...string) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	for _, pattern := range patterns {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			return nil, fmt.Errorf("match %s: %w", pattern, err)
		}
		for _, name := range names {
			data, err := files.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
			found, err := decode(data)
			if err != nil {
				return nil, fmt.Errorf("decode %s: %w", path.Base(name), err)
			}
			objects = append(objects, found...)
		}
	}
	return objects, nil
}

// decode reads a stream of YAML documents.
func decode(data []byte) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data))
	for {
		var o unstructured.Unstructured
		err := docs.Decode(&o)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
}

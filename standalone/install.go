package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl/config"
)

const (
	installTimeout = time.Minute
	fieldManager   = "pawld"
)

var (
	namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	claimResource     = schema.GroupVersionResource{Group: "pawl.dev", Version: "v1alpha1", Resource: "claims"}
	poolResource      = schema.GroupVersionResource{Group: "pawl.dev", Version: "v1alpha1", Resource: "pools"}
)

// policyResources are the kinds of policies that an earlier pawld may have
// left behind.
var policyResources = []string{
	"validatingadmissionpolicies", "validatingadmissionpolicybindings",
	"mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
}

// installer puts Pawl's definitions and policies into an API server.
type installer struct{ client dynamic.Interface }

// install applies the definitions and policies, takes away policies of an
// earlier pawld, and waits until all of it is in force.
func install(ctx context.Context, c *rest.Config, sim bool) error {
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	i := installer{client}
	definitions, err := config.CRDs()
	if err != nil {
		return err
	}
	policies, err := config.PawldPolicies(sim)
	if err != nil {
		return err
	}
	marker, err := newMarker(policies)
	if err != nil {
		return err
	}
	if err := i.apply(ctx, definitions); err != nil {
		return err
	}
	// The marker goes last: see marker.
	policies = append(policies, marker.policies()...)
	if err := i.apply(ctx, policies); err != nil {
		return err
	}
	if err := i.prune(ctx, policies); err != nil {
		return err
	}
	if err := i.waitEstablished(ctx, definitions); err != nil {
		return err
	}
	if err := i.waitMarker(ctx, marker); err != nil {
		return err
	}
	return i.waitSchemas(ctx, marker)
}

func (i installer) apply(ctx context.Context, objects []unstructured.Unstructured) error {
	for k := range objects {
		o := &objects[k]
		if _, err := i.resource(o).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
			return fmt.Errorf("install %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// prune deletes policies that carry Pawl's label and are none of keep.
func (i installer) prune(ctx context.Context, keep []unstructured.Unstructured) error {
	wanted := map[string]bool{}
	for _, o := range keep {
		wanted[o.GetKind()+"/"+o.GetName()] = true
	}
	for _, r := range policyResources {
		client := i.client.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: r})
		list, err := client.List(ctx, metav1.ListOptions{LabelSelector: config.PartOf})
		if err != nil {
			return fmt.Errorf("list %s: %w", r, err)
		}
		for _, o := range list.Items {
			if wanted[o.GetKind()+"/"+o.GetName()] {
				continue
			}
			if err := client.Delete(ctx, o.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete %s %s: %w", o.GetKind(), o.GetName(), err)
			}
		}
	}
	return nil
}

func (i installer) resource(o *unstructured.Unstructured) dynamic.ResourceInterface {
	r, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return i.client.Resource(r)
}

// waitEstablished waits until the API serves the definitions.
func (i installer) waitEstablished(ctx context.Context, definitions []unstructured.Unstructured) error {
	for k := range definitions {
		d := &definitions[k]
		var last error
		err := wait.PollUntilContextCancel(ctx, startPoll, true, func(ctx context.Context) (bool, error) {
			var o *unstructured.Unstructured
			if o, last = i.resource(d).Get(ctx, d.GetName(), metav1.GetOptions{}); last != nil {
				return false, nil
			}
			conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			for _, c := range conditions {
				c, _ := c.(map[string]any)
				if c["type"] == "Established" && c["status"] == "True" {
					return true, nil
				}
			}
			last = fmt.Errorf("conditions are %v", conditions)
			return false, nil
		})
		if err != nil {
			return fmt.Errorf("wait for the API of %s: %w (%w)", d.GetName(), err, last)
		}
	}
	return nil
}

// waitMarker waits until the API server refuses the marker's probe in the
// marker's words.
func (i installer) waitMarker(ctx context.Context, m marker) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, startPoll, true, func(ctx context.Context) (bool, error) {
		_, last = i.client.Resource(namespaceResource).Create(ctx, m.probe(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return last != nil && strings.Contains(last.Error(), m.answer()), nil
	})
	if err != nil {
		return fmt.Errorf("wait for the admission policies: %w (%w)", err, last)
	}
	return nil
}

// waitSchemas waits until Claims and Pools could be made: the policies that
// mutate them need their schemas, which the API server publishes somewhat after
// the API. It asks by an apply, because a create is held up for two seconds after
// the definition was made.
func (i installer) waitSchemas(ctx context.Context, m marker) error {
	for _, probe := range []struct {
		kind     string
		resource schema.GroupVersionResource
		spec     map[string]any
	}{
		{"Claim", claimResource, map[string]any{"pool": "none"}},
		{"Pool", poolResource, map[string]any{"template": map[string]any{"process": map[string]any{"command": "none"}}}},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "pawl.dev/v1alpha1",
			"kind":       probe.kind,
			"metadata":   map[string]any{"name": m.name()},
			"spec":       probe.spec,
		}}
		var last error
		err := wait.PollUntilContextCancel(ctx, startPoll, true, func(ctx context.Context) (bool, error) {
			_, last = i.client.Resource(probe.resource).Namespace(metav1.NamespaceDefault).Apply(ctx, m.name(), o,
				metav1.ApplyOptions{FieldManager: fieldManager, DryRun: []string{metav1.DryRunAll}})
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("wait for %s to be accepted: %w (%w)", probe.resource.Resource, err, last)
		}
	}
	return nil
}

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// marker shows that policies are in force. It is itself a policy, applied
// after the others under a name that is their digest: an API server that obeys
// it has seen, in the order of their writes, all the others. It is one pair of
// policies, because the API server reads those that mutate and those that
// validate apart: the first labels a certain Namespace, the second refuses it
// and tells the label. No other object meets them.
type marker struct{ digest string }

func newMarker(policies []unstructured.Unstructured) (marker, error) {
	data, err := json.Marshal(policies)
	if err != nil {
		return marker{}, fmt.Errorf("digest of policies: %w", err)
	}
	sum := sha256.Sum256(data)
	return marker{hex.EncodeToString(sum[:5])}, nil
}

func (m marker) name() string { return "pawl-in-force-" + m.digest }

// answer is how the refusal of the probe reads.
func (m marker) answer() string { return "in force: " + m.digest + " " + m.digest }

// probe is the Namespace, which is never stored.
func (m marker) probe() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Namespace",
		"metadata":   map[string]any{"name": m.name(), "labels": map[string]any{"in-force": ""}},
	}}
}

func (m marker) policies() []unstructured.Unstructured {
	onlyProbe := map[string]any{"resourceRules": []any{map[string]any{
		"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"},
		"resources": []any{"namespaces"}, "resourceNames": []any{m.name()},
	}}}
	return []unstructured.Unstructured{
		m.object("MutatingAdmissionPolicy", map[string]any{
			"failurePolicy":      "Fail",
			"reinvocationPolicy": "Never",
			"matchConstraints":   onlyProbe,
			"mutations": []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{
				"expression": fmt.Sprintf(`[JSONPatch{op: "add", path: "/metadata/labels/in-force", value: %q}]`, m.digest),
			}}},
		}),
		m.object("MutatingAdmissionPolicyBinding", map[string]any{"policyName": m.name()}),
		m.object("ValidatingAdmissionPolicy", map[string]any{
			"failurePolicy":    "Fail",
			"matchConstraints": onlyProbe,
			"validations": []any{map[string]any{
				"expression":        "false",
				"messageExpression": fmt.Sprintf(`"in force: %s " + object.metadata.labels["in-force"]`, m.digest),
			}},
		}),
		m.object("ValidatingAdmissionPolicyBinding", map[string]any{"policyName": m.name(), "validationActions": []any{"Deny"}}),
	}
}

func (m marker) object(kind string, spec map[string]any) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1",
		"kind":       kind,
		"metadata":   map[string]any{"name": m.name(), "labels": map[string]any{"app.kubernetes.io/part-of": "pawl"}},
		"spec":       spec,
	}}
}

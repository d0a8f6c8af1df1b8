package config

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// names are the kinds and names of objects, each once.
func names(t *testing.T, objects []unstructured.Unstructured, err error) map[string]bool {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, o := range objects {
		name := o.GetKind() + "/" + o.GetName()
		if found[name] {
			t.Errorf("%s is there twice", name)
		}
		found[name] = true
	}
	return found
}

func TestPolicies(t *testing.T) {
	cluster, err := ClusterPolicies()
	inCluster := names(t, cluster, err)
	pawld, err := PawldPolicies(false)
	inPawld := names(t, pawld, err)
	sim, err := PawldPolicies(true)
	withSim := names(t, sim, err)

	cases := map[string]struct {
		reason              string
		cluster, pawld, sim bool
	}{
		"pawl-member-guard":       {"members are guarded everywhere", true, true, true},
		"pawl-claim-holder":       {"holders are stamped everywhere", true, true, true},
		"pawl-account-right":      {"accounts lend no rights anywhere", true, true, true},
		"pawl-revision-guard":     {"revisions are Pawl's everywhere", true, true, true},
		"pawl-source-guard":       {"so is what is kept for them", true, true, true},
		"pawl-manifests":          {"manifests are checked everywhere", true, true, true},
		"pawl-member-annotations": {"values are checked everywhere", true, true, true},
		"pawl-pool-annotations":   {"values are checked everywhere", true, true, true},
		"pawl-pool-replicas":      {"a pool has a size everywhere", true, true, true},
		"pawl-kinds-off":          {"a cluster runs objects only", true, false, false},
		"pawl-process-right":      {"pawld runs processes for who may", false, true, true},
		"pawl-sim-off":            {"pawld simulates on request", false, true, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []string{"AdmissionPolicy/", "AdmissionPolicyBinding/"} {
				in := func(set map[string]bool) bool { return set["Validating"+kind+name] || set["Mutating"+kind+name] }
				got := []bool{in(inCluster), in(inPawld), in(withSim)}
				for i, want := range []bool{c.cluster, c.pawld, c.sim} {
					if got[i] != want {
						t.Errorf("%s: %s%s in cluster, pawld, pawld with sim: %v", c.reason, kind, name, got)
						break
					}
				}
			}
		})
	}
	for _, o := range append(cluster, pawld...) {
		if o.GetLabels()["app.kubernetes.io/part-of"] != "pawl" {
			t.Errorf("%s %s lacks the label by which pawld finds it again", o.GetKind(), o.GetName())
		}
	}
}

// The kustomization lists every file but those that are for pawld only.
func TestKustomization(t *testing.T) {
	data, err := files.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var k struct{ Resources []string }
	if err := yaml.Unmarshal(data, &k); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, r := range k.Resources {
		listed[r] = true
	}
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == "kustomization.yaml" {
			return err
		}
		want := !strings.HasPrefix(path.Dir(name), "policies/pawld")
		if listed[name] != want {
			t.Errorf("%s is listed: %t, want %t", name, listed[name], want)
		}
		delete(listed, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range listed {
		t.Errorf("%s is listed and not there", name)
	}
}

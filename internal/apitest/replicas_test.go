//go:build integration

package apitest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var replicaBindings = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingadmissionpolicybindings"}

// serverSide applies a Pool's manifest server-side, as one field manager.
func (a api) serverSide(namespace, manager, manifest string) error {
	a.t.Helper()
	o := a.parse(manifest)
	_, err := a.client.Resource(pools).Namespace(namespace).Apply(context.Background(), o.GetName(), o, metav1.ApplyOptions{FieldManager: manager})
	return err
}

// scale writes a Pool's size as kubectl scale and autoscalers do.
func (a api) scale(namespace, name string, n int) {
	a.t.Helper()
	a.apply(pools, namespace, name, []write{{"scale", fmt.Sprintf(`{"spec":{"replicas":%d}}`, n)}})
}

// stored is the spec.replicas that a Pool is stored with; -1: none.
func (a api) stored(namespace, name string) int64 {
	a.t.Helper()
	o, err := a.client.Resource(pools).Namespace(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	n, found, err := unstructured.NestedInt64(o.Object, "spec", "replicas")
	if err != nil {
		a.t.Fatal(err)
	}
	if !found {
		return -1
	}
	return n
}

// leftOut is the refusal of a write that takes away the number n.
func leftOut(n int) string {
	return fmt.Sprintf("spec.replicas: Required value: replicas is %d and must not be left out: write replicas: %d. "+
		"To hand the field to an autoscaler, apply that number with a second field manager, then leave it out (docs/replicas.md)", n, n)
}

func TestPool_ReplicasAtCreation(t *testing.T) {
	create := func(a api, ns, manifest string) error { _, err := a.tryCreate(pools, ns, manifest); return err }
	apply := func(a api, ns, manifest string) error { return a.serverSide(ns, "gitops", manifest) }
	cases := map[string]struct {
		reason string
		write  func(a api, namespace, manifest string) error
		spec   string
		want   int64
	}{
		"absent":      {"no number means one member", create, simPool, 1},
		"null":        {"an empty value of a template engine is no number", create, `{replicas: null, template: {sim: {}}}`, 1},
		"server-side": {"an apply creates like a create", apply, simPool, 1},
		"zero":        {"0 is a number", create, `{replicas: 0, template: {sim: {}}}`, 0},
		"some":        {"a number that is written is kept", create, `{replicas: 7, template: {sim: {}}}`, 7},
	}
	ns := admin(t).namespace()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := admin(t)
			p := unique("p")
			expect(t, c.reason, c.write(a, ns, pool(p, c.spec)), "")
			if got := a.stored(ns, p); got != c.want {
				t.Errorf("%s: stored with replicas %d, want %d", c.reason, got, c.want)
			}
		})
	}
}

func TestPool_ReplicasLeftOut(t *testing.T) {
	patch := func(kind types.PatchType, patch string) func(api, string, string) error {
		return func(a api, ns, p string) error {
			_, err := a.client.Resource(pools).Namespace(ns).Patch(context.Background(), p, kind, []byte(patch), metav1.PatchOptions{})
			return err
		}
	}
	apply := func(a api, ns, p string) error { return a.serverSide(ns, "gitops", pool(p, simPool)) }
	cases := map[string]struct {
		reason   string
		replicas int
		write    func(a api, namespace, name string) error
	}{
		"replace": {"kubectl replace sends the manifest as it is", 50, func(a api, ns, p string) error {
			o, err := a.client.Resource(pools).Namespace(ns).Get(context.Background(), p, metav1.GetOptions{})
			if err != nil {
				return err
			}
			unstructured.RemoveNestedField(o.Object, "spec", "replicas")
			_, err = a.client.Resource(pools).Namespace(ns).Update(context.Background(), o, metav1.UpdateOptions{})
			return err
		}},
		"merge patch": {"kubectl apply and kubectl edit send null for what is left out", 50, patch(types.MergePatchType, `{"spec":{"replicas":null}}`)},
		"JSON patch":  {"a patch that names the field is no other case", 50, patch(types.JSONPatchType, `[{"op":"remove","path":"/spec/replicas"}]`)},
		"server-side": {"what its only owner leaves out would be removed", 50, apply},
		"from zero":   {"an omission must not start a pool that was scaled to 0", 0, apply},
		"from one":    {"nor is it taken where it means the same, so that a later one shrinks nothing", 1, apply},
	}
	ns := admin(t).namespace()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := admin(t)
			p := unique("p")
			if err := a.serverSide(ns, "gitops", pool(p, fmt.Sprintf(`{replicas: %d, template: {sim: {}}}`, c.replicas))); err != nil {
				t.Fatal(err)
			}
			expect(t, c.reason, c.write(a, ns, p), leftOut(c.replicas))
			if got := a.stored(ns, p); got != int64(c.replicas) {
				t.Errorf("%s: replicas are %d, want %d", c.reason, got, c.replicas)
			}
		})
	}
}

// TestPool_ReplicasHandOver plays the ways in docs/replicas.md by which a
// manifest that is applied server-side leaves the number to an autoscaler.
func TestPool_ReplicasHandOver(t *testing.T) {
	const without, with50 = simPool, `{replicas: 50, template: {sim: {}}}`
	type step struct {
		reason  string
		manager string // applies spec; empty: scale to want
		spec    string
		want    int64
		refused int // the number in the refusal; 0: accepted
	}
	cases := map[string][]step{
		"never in the manifest": {
			{"a pool starts with one member", "gitops", without, 1, 0},
			{"an autoscaler takes it from there", "", "", 50, 0},
			{"the next apply leaves its number alone", "gitops", without, 50, 0},
		},
		"second manager": {
			{"the number is in the manifest", "gitops", with50, 50, 0},
			{"its only owner cannot leave it out", "gitops", without, 50, 50},
			{"a second one applies the same number, and no more than that", "autoscaler", `{replicas: 50}`, 50, 0},
			{"then the first can leave it out", "gitops", without, 50, 0},
			{"an autoscaler writes over the second's", "", "", 60, 0},
			{"the next apply leaves its number alone", "gitops", without, 60, 0},
		},
		"scaled before": {
			{"the number is in the manifest", "gitops", with50, 50, 0},
			{"an autoscaler that changes the number takes it over", "", "", 51, 0},
			{"then the manifest can leave it out", "gitops", without, 51, 0},
		},
		"scaled to the same": {
			{"the number is in the manifest", "gitops", with50, 50, 0},
			{"a scale that changes nothing takes nothing over", "", "", 50, 0},
			{"so the manifest cannot leave it out", "gitops", without, 50, 50},
		},
		"taken back": {
			{"a pool starts with one member", "gitops", without, 1, 0},
			{"an autoscaler takes it from there", "", "", 50, 0},
			{"the number can go back into the manifest", "gitops", with50, 50, 0},
			{"and is then kept there", "gitops", without, 50, 50},
		},
	}
	ns := admin(t).namespace()
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			a := admin(t)
			p := unique("p")
			for _, s := range steps {
				if s.manager == "" {
					a.scale(ns, p, int(s.want))
				} else {
					want := ""
					if s.refused != 0 {
						want = leftOut(s.refused)
					}
					expect(t, s.reason, a.serverSide(ns, s.manager, pool(p, s.spec)), want)
				}
				if got := a.stored(ns, p); got != s.want {
					t.Errorf("%s: replicas are %d, want %d", s.reason, got, s.want)
				}
			}
		})
	}
}

// TestPool_ReplicasFromBefore: a Pool that an earlier version stored without
// replicas can still be written, and gets 1 by that, which is what it had.
func TestPool_ReplicasFromBefore(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	cases := map[string]struct {
		reason string
		write  func(name string) error
		want   int64
	}{
		"annotated": {"any write will do", func(p string) error {
			_, err := a.patch(pools, ns, p, annotate("example.com/a", "b"))
			return err
		}, 1},
		"applied": {"as an apply of the manifest that made it", func(p string) error {
			return a.serverSide(ns, "gitops", pool(p, simPool))
		}, 1},
		"scaled": {"a scale is written past the policy", func(p string) error {
			_, err := a.patch(pools, ns, p, write{"scale", `{"spec":{"replicas":5}}`})
			return err
		}, 5},
		"sized": {"a number that is written counts", func(p string) error {
			_, err := a.patch(pools, ns, p, spec(`{"replicas":3}`))
			return err
		}, 3},
	}
	without := func(name string) string { return "old-" + name }
	a.exempt(ns)
	eventually(t, "the policy is out of force", func() error {
		p := a.create(pools, ns, pool(unique("p"), simPool))
		if n := a.stored(ns, p.GetName()); n != -1 {
			return fmt.Errorf("%s has %d replicas", p.GetName(), n)
		}
		return nil
	})
	for name := range cases {
		a.create(pools, ns, pool(without(name), simPool))
	}
	_, err := a.patch(pools, ns, without("annotated"), status(`{"replicas":1}`))
	expect(t, "Pawl reports on a pool without a number", err, "")
	_, err = a.patch(pools, ns, without("annotated"), spec(`{"template":{"sim":{"version":"2"}}}`))
	expect(t, "the schema asks for no number where there was none", err, "")
	if n := a.stored(ns, without("annotated")); n != -1 {
		t.Fatalf("stored with %d replicas, want none", n)
	}
	a.bind(`null`)
	eventually(t, "the policy is in force", func() error {
		p := a.create(pools, ns, pool(unique("p"), simPool))
		if a.stored(ns, p.GetName()) == -1 {
			return errors.New("a pool was created without replicas")
		}
		return nil
	})

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := admin(t)
			p := without(name)
			expect(t, c.reason, c.write(p), "")
			if got := a.stored(ns, p); got != c.want {
				t.Errorf("%s: replicas are %d, want %d", c.reason, got, c.want)
			}
			_, err := a.patch(pools, ns, p, spec(`{"replicas":null}`))
			expect(t, "from then on the number stays", err, leftOut(int(c.want)))
		})
	}
}

// exempt takes a namespace out of the policy that writes replicas, until bind
// takes it in again or the test ends.
func (a api) exempt(namespace string) {
	a.t.Helper()
	a.t.Cleanup(func() { a.bind(`null`) })
	a.bind(fmt.Sprintf(`{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":[%q]}]}}`, namespace))
}

// bind says where the policy that writes replicas is in force.
func (a api) bind(resources string) {
	a.t.Helper()
	a.apply(replicaBindings, "", "pawl-pool-replicas", []write{spec(`{"matchResources":` + resources + `}`)})
}

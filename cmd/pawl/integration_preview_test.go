//go:build integration

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// foretells runs a preview and reads what it says.
func (p *place) foretells(args ...string) *foretold {
	p.Helper()
	var t foretold
	if err := json.Unmarshal([]byte(p.must(append([]string{"preview", "-o", "json"}, args...)...)), &t); err != nil {
		p.Fatal(err)
	}
	return &t
}

// TestIntegration_Preview: what a change would do is foretold from what members
// took to boot, checked by the server, and not done.
func TestIntegration_Preview(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pawldtest.Shared(t))
	p.pool("web", 3, func(o *v1alpha1.Pool) { o.Spec.Template.Sim.Boot = &metav1.Duration{Duration: 500 * time.Millisecond} })
	p.must("hold", "web/1", "--reason", "debugging")
	before := p.now("web")

	told := p.foretells("web", "--set", "template.sim.version=2", "--set", "update.maxUnavailable=2")
	if told.Births != 2 || told.Deletes != 2 || told.Free.Lowest != 1 || told.Finishes || len(told.Stays) != 1 || told.Stays[0].Index != 1 {
		t.Errorf("foretold: %+v", told.Forecast)
	}
	if took := time.Duration(told.Boot.Takes); told.Boot.From != fromMembers || told.Boot.Members != 3 || took < 500*time.Millisecond || took > patience {
		t.Errorf("a boot is taken to take %+v", told.Boot)
	}
	if now := p.now("web"); now.Generation != before.Generation {
		t.Errorf("it has been written: %+v", now.Spec)
	}
	p.says(p.must("preview", "web"), "nothing happens: every member is what it should be")

	status, _, problems := p.call(t.Context(), "preview", "web", "--set", "update.maxInFlight=0")
	if status != 1 {
		t.Errorf("exit status %d", status)
	}
	p.says(problems, "the server would not take this: ", "spec.update.maxInFlight")
	status, _, problems = p.call(t.Context(), "preview", "web", "--set", "update.method=InPlace", "--set", "update.maxSurge=1")
	if status != 1 {
		t.Errorf("exit status %d", status)
	}
	p.says(problems, "method InPlace keeps every body, and so allows no maxSurge")

	file := filepath.Join(t.TempDir(), "pool.yaml")
	write := func(spec string) {
		text := "apiVersion: pawl.dev/v1alpha1\nkind: Pool\nmetadata: {name: web}\nspec: " + spec + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{template: {sim: {version: "3"}}, update: {maxUnavailable: 3}}`)
	if told := p.foretells("-f", file); told.Births != 2 || told.Free.Lowest != 1 || told.After.Members != 3 {
		t.Errorf("foretold of a manifest: %+v", told.Forecast)
	}
	applied := client.RawPatch(types.ApplyPatchType, []byte(`{"apiVersion":"pawl.dev/v1alpha1","kind":"Pool","metadata":{"name":"web"},"spec":{"update":{"maxUnavailable":3,"minAvailable":3}}}`))
	if err := p.client.Patch(t.Context(), p.now("web"), applied, client.FieldOwner("kubectl")); err != nil {
		t.Fatal(err)
	}
	if told := p.foretells("web", "--set", "template.sim.version=3"); len(told.Collide) != 2 {
		t.Errorf("minAvailable of all collides with %v", told.Collide)
	}
	if told := p.foretells("-f", file); told.Births != 2 || len(told.Collide) > 0 {
		t.Errorf("its owner takes minAvailable away: %+v", told.Forecast)
	}
	p.says(p.must("preview", "-f", file, "-o", "wide"), "web-0", "web-1", "web-2", "Held")

	write(`{replicas: 2, template: {sim: {boot: 3s}}}`)
	if err := p.client.Delete(t.Context(), p.now("web")); err != nil {
		t.Fatal(err)
	}
	p.must("unhold", "web/1")
	p.eventually("the pool is gone", func() bool {
		var list v1alpha1.PoolList
		return p.client.List(t.Context(), &list, client.InNamespace(p.namespace)) == nil && len(list.Items) == 0
	})
	p.says(p.must("preview", "-f", file), "there is no such pool yet; it would be filled in 3s")
	var list v1alpha1.PoolList
	if err := p.client.List(t.Context(), &list, client.InNamespace(p.namespace)); err != nil || len(list.Items) > 0 {
		t.Errorf("%d pools, %v", len(list.Items), err)
	}
}

// TestIntegration_PreviewForbidden: who may only read is told what would happen
// all the same, and that the server has not checked it.
func TestIntegration_PreviewForbidden(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pawldtest.Shared(t))
	p.pool("web", 2, nothing)
	look := []string{"get", "list"}
	p.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "look"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"pawl.dev"}, Resources: []string{"pools", "members", "claims"}, Verbs: look},
			{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: look},
		},
	})
	p.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "look"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "look"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "viewer"}},
	})
	p.eventually("the right is there", func() bool {
		status, _, _ := p.call(t.Context(), "--as", "viewer", "status", "web")
		return status == 0
	})
	p.says(p.must("--as", "viewer", "preview", "web", "--set", "template.sim.version=2"),
		"done in ", "2 bodies made", "note: the server has not checked this: you may not ask it for a dry run")
}

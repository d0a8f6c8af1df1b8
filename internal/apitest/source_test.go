//go:build integration

package apitest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What is frozen of sources, and the key of digests, are not for everybody to
// write or delete; all other ConfigMaps and Secrets are.
func TestSourceGuard(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	user := unique("user")
	const lacks = "lacks the verb create on pools/revisions (API group pawl.dev)"
	for _, kind := range []string{"ConfigMap", "Secret"} {
		resource := schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(kind) + "s"}
		t.Run(kind, func(t *testing.T) {
			for _, verb := range []string{"create", "update", "patch", "get", "delete", "deletecollection"} {
				a.grant(ns, user, right{verb, "", resource.Resource, "", ""})
			}
			manifest := func(name, labels string) string {
				return fmt.Sprintf("{apiVersion: v1, kind: %s, metadata: {name: %s, labels: {%s}}}", kind, name, labels)
			}
			const body, frozen = "pawl.dev/pool: p, pawl.dev/member: p-0, pawl.dev/revision: r", "pawl.dev/pool: p, pawl.dev/revision: r, pawl.dev/source: s"
			mine := as(t, user)
			of := mine.client.Resource(resource).Namespace(ns)
			ctx := context.Background()

			_, err := mine.tryCreate(resource, ns, manifest("forged", frozen))
			expect(t, "what is frozen is not forged", err, lacks)
			_, err = mine.tryCreate(resource, ns, manifest("key", `pawl.dev/pool: p, pawl.dev/source: ""`))
			expect(t, "nor is the key of digests", err, lacks)
			_, err = mine.tryCreate(resource, ns, manifest("body", body))
			expect(t, "a body's objects are the account's", err, "")
			_, err = mine.patch(resource, ns, "body", write{"", `{"metadata":{"labels":{"pawl.dev/source":"s"}}}`})
			expect(t, "and are not made a frozen copy", err, lacks)

			a.create(resource, ns, manifest("copy", frozen))
			_, err = mine.patch(resource, ns, "copy", write{"", `{"metadata":{"labels":{"pawl.dev/source":null}}}`})
			expect(t, "a copy is not taken away", err, lacks)
			_, err = mine.patch(resource, ns, "copy", write{"", `{"metadata":{"finalizers":null}}`})
			expect(t, "nor touched", err, lacks)
			expect(t, "nor deleted", of.Delete(ctx, "copy", metav1.DeleteOptions{}), "lacks the verb delete on pools/revisions")
			expect(t, "nor deleted among others", of.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "pawl.dev/source"}), "lacks the verb delete")
			expect(t, "a body's object is", of.Delete(ctx, "body", metav1.DeleteOptions{}), "")

			a.grant(ns, user+kind, right{"delete", "pawl.dev", "pools", "revisions", ""}, right{"delete", "", resource.Resource, "", ""})
			expect(t, "who has the right deletes it", as(t, user+kind).client.Resource(resource).Namespace(ns).Delete(ctx, "copy", metav1.DeleteOptions{}), "")
		})
	}
}

// Sources are read with the account's rights, and the template decides where
// what they say goes.
func TestAccountRight_Sources(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	user := a.writer(ns)
	const sources = `sources: [{name: s, secret: {name: s}}], serviceAccountName: builder, template: {sim: {version: "1"}}`
	lacks := "the sources of this pool are read with the rights of service account builder: grant " + user + " the verb impersonate"
	a.create(pools, ns, pool("theirs", "{"+sources+"}"))
	a.create(pools, ns, pool("plain", `{serviceAccountName: builder, template: {sim: {}}}`))

	_, err := as(t, user).tryCreate(pools, ns, pool("mine", "{"+sources+"}"))
	expect(t, "what the account may read is not for everybody", err, lacks)
	for name, patch := range map[string]string{
		"other sources":    `{"sources":[{"name":"s","secret":{"name":"other"}}]}`,
		"another template": `{"template":{"sim":{"version":"2"}}}`,
	} {
		_, err = as(t, user).patch(pools, ns, "theirs", spec(patch))
		expect(t, "nor is it by "+name, err, lacks)
	}
	_, err = as(t, user).patch(pools, ns, "plain", spec(`{"sources":[{"name":"s","secret":{"name":"s"}}]}`))
	expect(t, "nor by new sources", err, lacks)
	_, err = as(t, user).patch(pools, ns, "theirs", spec(`{"serviceAccountName":"root"}`))
	expect(t, "nor by another account", err, "with the rights of service account root")
	_, err = as(t, user).patch(pools, ns, "theirs", spec(`{"replicas":3,"update":{"type":"RollingUpdate"}}`))
	expect(t, "the rest of the pool is", err, "")
	_, err = as(t, user).patch(pools, ns, "theirs", spec(`{"sources":null}`))
	expect(t, "and no sources are nobody's", err, "")

	a.grant(ns, user, right{"impersonate", "", "serviceaccounts", "", "builder"})
	_, err = as(t, user).tryCreate(pools, ns, pool("mine", "{"+sources+"}"))
	expect(t, "whoever may act as the account may use it", err, "")
}

// The names of sources are labels, and parts of names.
func TestPool_SourceNames(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	for name, ok := range map[string]bool{"a": true, "a_b1": true, "a_": false, "1": false, "a-b": false, "": false} {
		_, err := a.tryCreate(pools, ns, pool(unique("p"), fmt.Sprintf(
			`{sources: [{name: %q, configMap: {name: x}}], serviceAccountName: b, template: {sim: {}}}`, name)))
		if (err == nil) != ok {
			t.Errorf("a source called %q: %v", name, err)
		}
	}
}

//go:build integration

package apitest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/pawl-dev/pawl/config"
	"github.com/pawl-dev/pawl/internal/operator"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// The operator needs no right beyond those that it is installed with: with
// them, it fills a pool, gives a claim its member, rolls the others, and takes
// the pool down.
func TestOperatorRights(t *testing.T) {
	s := pawldtest.Start(t, pawldtest.WithoutControllers(), pawldtest.WithSim())
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	a := api{t, client}
	rights, err := config.RBAC()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range rights {
		r, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		_, err := client.Resource(r).Namespace(o.GetNamespace()).
			Apply(context.Background(), o.GetName(), &o, metav1.ApplyOptions{FieldManager: "test"})
		if err != nil {
			t.Fatal(err)
		}
	}
	a.runOperator(s.Config)

	for _, source := range []string{`kind: ConfigMap, data: {k: v}`, `kind: Secret, stringData: {k: v}`} {
		o := a.parse(`{apiVersion: v1, metadata: {name: s}, ` + source + `}`)
		r, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if _, err := client.Resource(r).Namespace("default").Create(context.Background(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		a.grant("default", "system:serviceaccount:default:reader", right{"list", "", r.Resource, "", "s"}, right{"watch", "", r.Resource, "", "s"})
	}
	a.create(pools, "default", pool("p", `{replicas: 3, template: {sim: {version: "1"}}, update: {type: RollingUpdate},
		serviceAccountName: reader, sources: [{name: c, configMap: {name: s}}, {name: s, secret: {name: s}}]}`))
	a.create(claims, "default", `{apiVersion: pawl.dev/v1alpha1, kind: Claim, metadata: {name: c}, spec: {pool: p}}`)
	eventually(t, "the claim is bound", func() error { return a.has(claims, "c", "Bound", "status", "phase") })
	if _, err := a.patch(pools, "default", "p", spec(`{"template":{"sim":{"version":"2"}}}`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two are rolled", func() error { return a.has(pools, "p", int64(2), "status", "updated") })
	for _, o := range []struct{ resource, name string }{{"claims", "c"}, {"pools", "p"}} {
		r := pools
		r.Resource = o.resource
		if err := client.Resource(r).Namespace("default").Delete(context.Background(), o.name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, o.resource+" are gone", func() error {
			list, err := client.Resource(r).Namespace("default").List(context.Background(), metav1.ListOptions{})
			if err == nil && len(list.Items) > 0 {
				err = errors.New("some are left")
			}
			return err
		})
	}
}

// runOperator runs the operator as its service account until the test ends.
func (a api) runOperator(c *rest.Config) {
	c = rest.CopyConfig(c)
	c.Impersonate.UserName = "system:serviceaccount:pawl-system:pawl"
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- operator.Run(klog.NewContext(ctx, logr.Discard()), c, operator.Options{
			Sim: true, MetricsAddr: "0", HealthAddr: "0", LeaderElection: true, LeaderElectionNamespace: "pawl-system",
		})
	}()
	a.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			a.t.Error(err)
		}
	})
}

// has compares a field of an object.
func (a api) has(r schema.GroupVersionResource, name string, want any, path ...string) error {
	o, err := a.client.Resource(r).Namespace("default").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...); got != want {
		return fmt.Errorf("%v is %v, not %v", path, got, want)
	}
	return nil
}

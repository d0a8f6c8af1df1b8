// Package rostertest has rosters for tests of controllers.
package rostertest

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/controller/roster"
)

// Listed is a roster of what a client lists, which may be a fake one.
type Listed struct{ client.Reader }

var _ roster.Of = Listed{}

// Members implements roster.Of.
func (l Listed) Members(pool types.NamespacedName) (all []*v1alpha1.Member, err error) {
	var list v1alpha1.MemberList
	err = l.List(context.Background(), &list, client.InNamespace(pool.Namespace))
	for i := range list.Items {
		if m := &list.Items[i]; m.Spec.Pool == pool.Name {
			all = append(all, m)
		}
	}
	return all, err
}

// Claims implements roster.Of.
func (l Listed) Claims(pool types.NamespacedName) (all []*v1alpha1.Claim, err error) {
	var list v1alpha1.ClaimList
	err = l.List(context.Background(), &list, client.InNamespace(pool.Namespace))
	for i := range list.Items {
		if c := &list.Items[i]; c.Spec.Pool == pool.Name {
			all = append(all, c)
		}
	}
	return all, err
}

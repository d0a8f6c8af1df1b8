package main

import (
	"context"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// leaveRunning makes the quickstart's pool, unless it is there already, waits
// until its members are available, and leaves it.
func leaveRunning(ctx context.Context, kubeconfig string) error {
	c, err := dial(kubeconfig)
	if err != nil {
		return err
	}
	p, err := quickstartPool()
	if err != nil {
		return err
	}
	if err := c.Create(ctx, p); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create pool %s: %w", p.Name, err)
	}
	ctx, stop := context.WithTimeout(ctx, stepLimit)
	defer stop()
	for {
		if err := c.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return fmt.Errorf("wait for pool %s: %w", p.Name, err)
		}
		if inService(p) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
	_, err = fmt.Fprintf(os.Stdout, `pool %[1]s is there, with %[2]d members that serve
kubeconfig: %[3]s
try:
  export KUBECONFIG=%[3]s
  bin/pawl status %[1]s
  bin/pawl claim %[1]s --name mine
  kubectl edit pool %[1]s     # change VERSION
  bin/pawl status %[1]s --watch
`, p.Name, p.Status.Replicas, kubeconfig)
	return err
}

// inService tells whether all members that the pool asks for are.
func inService(p *v1alpha1.Pool) bool {
	st := &p.Status
	return st.ObservedGeneration == p.Generation && p.Spec.Replicas != nil && st.Free+st.Claimed >= *p.Spec.Replicas
}

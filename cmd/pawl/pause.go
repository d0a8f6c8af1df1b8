package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

func (p *program) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "pause POOL...",
		GroupID: "act",
		Short:   "Stop everything new for drift; scaling, healing and releases go on",
		Example: fmt.Sprintf("  %s pause web", p.name),
		Args:    some("POOL"),
		RunE:    func(c *cobra.Command, pools []string) error { return p.setPaused(c.Context(), pools, true) },
	}
}

func (p *program) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "resume POOL...",
		GroupID: "act",
		Short:   "Let the rollouts of paused pools go on",
		Example: fmt.Sprintf("  %s resume web", p.name),
		Args:    some("POOL"),
		RunE:    func(c *cobra.Command, pools []string) error { return p.setPaused(c.Context(), pools, false) },
	}
}

// setPaused pauses or resumes every pool that it can, and says of each what
// became of it.
func (p *program) setPaused(ctx context.Context, pools []string, paused bool) error {
	k, err := p.connect()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range pools {
		text, err := k.setPaused(ctx, name, paused)
		if err == nil {
			_, err = fmt.Fprintf(p.Out, "pool %s %s\n", name, text)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// setPaused says what became of the pool.
func (c *cluster) setPaused(ctx context.Context, name string, paused bool) (string, error) {
	p, err := c.pool(ctx, name)
	if err != nil {
		return "", err
	}
	was := p.Spec.Update != nil && p.Spec.Update.Paused != nil && *p.Spec.Update.Paused
	switch {
	case was && paused:
		return "is paused already", nil
	case !was && !paused:
		return "is not paused", nil
	}
	patch := fmt.Appendf(nil, `{"spec":{"update":{"paused":%t}}}`, paused)
	target := &v1alpha1.Pool{ObjectMeta: p.ObjectMeta}
	if err := c.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("pawl")); err != nil {
		return "", c.about(err, "pool", name)
	}
	if paused {
		return "paused", nil
	}
	return "resumed", nil
}

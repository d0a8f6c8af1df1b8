package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

func (p *program) retryCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "retry POOL",
		GroupID: "act",
		Short:   "Grant one more round to a target that has failed",
		Long: `Grant one more round to a target that has halted or was rolled back, as if it had just become the target. It is for when
what was wrong lay outside the template; otherwise correct the template, or take it back with undo.`,
		Example: fmt.Sprintf("  %s retry web", p.name),
		Args:    one("POOL"),
		RunE: func(c *cobra.Command, args []string) error {
			k, err := p.connect()
			if err != nil {
				return err
			}
			pool, err := k.past(c.Context(), args[0], p.now())
			if err != nil {
				return err
			}
			return p.retry(c, k, pool)
		},
	}
}

func (p *program) retry(c *cobra.Command, k *cluster, pool *past) error {
	if why := pool.cannotRetry(); why != "" {
		return fmt.Errorf("%s: there is nothing to retry: %s", pool.named(), why)
	}
	id := pool.wanted()
	value := id + "@" + p.now().UTC().Format(time.RFC3339Nano)
	if err := k.annotate(c.Context(), pool.stored.Pool, "Pool", v1alpha1.AnnotationRetry, &value); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Out, "%s tries revision %s once more: its failures are counted anew, up to update.failureLimit\nsee how it goes with `%s status %s --watch`\n",
		pool.named(), pool.label(id), p.name, pool.stored.Pool.Name)
	return err
}

// cannotRetry says why there is nothing to retry; empty if there is.
func (p *past) cannotRetry() string {
	id := p.wanted()
	rec := p.records[id]
	switch {
	case rec.Halted || rec.RolledBack:
		return ""
	case p.snapshot.Unreadable != "":
		return p.plan.Updated.Message
	case rec.Failed > 0:
		return fmt.Sprintf("revision %s has not halted; %s failed, update.failureLimit is %d, and one slot tries it again by itself",
			p.label(id), bodies(rec.Failed), p.snapshot.Policy.FailureLimit)
	}
	return fmt.Sprintf("revision %s has not failed", p.label(id))
}

func bodies(n int) string {
	if n == 1 {
		return "1 body"
	}
	return fmt.Sprintf("%d bodies", n)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/snapshot"
)

// renew says that claims are still wanted.
type renew struct {
	*program

	ttl time.Duration
}

func (p *program) renewCommand() *cobra.Command {
	r := &renew{program: p}
	c := &cobra.Command{
		Use:     "renew CLAIM...",
		GroupID: "act",
		Short:   "Say that claims are still wanted: the heartbeat that a pool may ask for",
		Long: `Say that claims are still wanted. A pool whose spec.claims.heartbeat is set takes a member back from whoever does not say so
for that long. Only the holder of a claim can, or whoever has the verb update on claims/holder.`,
		Example: fmt.Sprintf("  %[1]s renew build-17\n  %[1]s renew build-17 --ttl 3h", p.name),
		Args:    some("CLAIM"),
		RunE:    r.run,
	}
	c.Flags().DurationVar(&r.ttl, "ttl", 0, "and hold the member for so long, counted from when it was given")
	return c
}

// run renews every claim that it can, and says of each what became of it.
func (r *renew) run(c *cobra.Command, claims []string) error {
	if r.ttl < 0 {
		return &usageError{c, errors.New("--ttl must not be negative")}
	}
	return r.each(c.Context(), claims, r.one)
}

func (r *renew) one(ctx context.Context, k *cluster, name string) error {
	var o v1alpha1.Claim
	if err := k.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: name}, &o); err != nil {
		return k.about(err, "claim", name)
	}
	if err := outcome(&o, false); err != nil {
		return err
	}
	if err := k.renew(ctx, &o, r.now(), r.ttl); err != nil {
		return fmt.Errorf("renew claim %s: %w", name, err)
	}
	text := ""
	if o.Status.Member != "" {
		text = ": member " + o.Status.Member
	}
	_, err := fmt.Fprintf(r.Out, "claim %s renewed%s\n", name, text)
	return err
}

// renew says that the claim is still wanted at the time, and changes its ttl
// if that is not 0.
func (c *cluster) renew(ctx context.Context, o *v1alpha1.Claim, now time.Time, ttl time.Duration) error {
	next := o.DeepCopy()
	next.Spec.RenewTime = snapshot.Micro(now)
	if ttl > 0 {
		next.Spec.TTL = &metav1.Duration{Duration: ttl}
	}
	return c.Patch(ctx, next, client.MergeFrom(o))
}

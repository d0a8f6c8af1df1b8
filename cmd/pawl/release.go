package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// gonePoll is how often a released claim is looked for.
const gonePoll = 100 * time.Millisecond

// letGo lets claimed members go.
type letGo struct {
	*program

	wait time.Duration
}

func (p *program) releaseCommand() *cobra.Command {
	r := &letGo{program: p}
	c := &cobra.Command{
		Use:     "release CLAIM...",
		GroupID: "act",
		Short:   "Release claims: their members go back to their pools",
		Example: fmt.Sprintf("  %s release build-17", p.name),
		Args:    some("CLAIM"),
		RunE:    r.run,
	}
	c.Flags().DurationVar(&r.wait, "wait", defaultWait, "wait for so long until each is released; 0 is not at all")
	return c
}

// run releases every claim that it can, and says of each what became of it.
func (r *letGo) run(c *cobra.Command, claims []string) error {
	if r.wait < 0 {
		return &usageError{c, errors.New("--wait must not be negative")}
	}
	return r.each(c.Context(), claims, r.one)
}

// each does something to every one of the names, whatever became of the others.
func (p *program) each(ctx context.Context, names []string, do func(context.Context, *cluster, string) error) error {
	k, err := p.connect()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, do(ctx, k, name))
	}
	return errors.Join(errs...)
}

func (r *letGo) one(ctx context.Context, k *cluster, name string) error {
	var o v1alpha1.Claim
	if err := k.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: name}, &o); err != nil {
		return k.about(err, "claim", name)
	}
	if err := k.Delete(ctx, &o, client.Preconditions{UID: &o.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release claim %s: %w", name, err)
	}
	if err := r.await(ctx, k, &o); err != nil {
		return err
	}
	text := "released"
	if r.wait == 0 {
		text = "is being released"
	}
	if o.Status.Member != "" {
		text += ": member " + o.Status.Member
	}
	_, err := fmt.Fprintf(r.Out, "claim %s %s\n", name, text)
	return err
}

// await waits until the claim is gone.
func (r *letGo) await(ctx context.Context, k *cluster, o *v1alpha1.Claim) error {
	if r.wait == 0 {
		return nil
	}
	err := wait.PollUntilContextTimeout(ctx, gonePoll, r.wait, true, func(ctx context.Context) (bool, error) {
		var now v1alpha1.Claim
		err := k.Get(ctx, client.ObjectKeyFromObject(o), &now)
		return apierrors.IsNotFound(err) || err == nil && now.UID != o.UID, client.IgnoreNotFound(err)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("claim %s is not released within %s; is `pawl controller` or pawld running?", o.Name, r.wait)
	}
	return err
}

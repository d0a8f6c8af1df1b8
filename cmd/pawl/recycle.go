package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/follow"
	"github.com/pawl-dev/pawl/snapshot"
)

// recycle asks for another body.
type recycle struct {
	*program

	wait    bool
	timeout time.Duration
}

func (p *program) recycleCommand() *cobra.Command {
	r := &recycle{program: p}
	c := &cobra.Command{
		Use:     "recycle POOL/INDEX",
		GroupID: "act",
		Short:   "Have a member's body replaced, through the same gates as a rollout",
		Long: `Have a member's body replaced by another one, through the same gates as a rollout: it waits while the member is claimed,
busy or held, and while the pool can spare none. It says what comes next, or what it waits for.

With --wait it goes on until another body is in service: the member's next one or, in a pool with maxSurge, a surge member
that stands in for it, so that the member itself is removed.`,
		Example: fmt.Sprintf("  %[1]s recycle web/2\n  %[1]s recycle web/2 --wait --timeout 10m", p.name),
		Args:    one("POOL/INDEX"),
		RunE:    r.run,
	}
	c.Flags().BoolVarP(&r.wait, "wait", "w", false, "go on until the member is in service again")
	c.Flags().DurationVar(&r.timeout, "timeout", 0, "with --wait: give up waiting after this long; 0 is never")
	return c
}

func (r *recycle) run(c *cobra.Command, args []string) error {
	if r.timeout < 0 || r.timeout != 0 && !r.wait {
		return &usageError{c, fmt.Errorf("--timeout %s: needs --wait, and must not be negative", r.timeout)}
	}
	s, err := r.subject(c, args[0])
	if err != nil {
		return err
	}
	if err := r.ask(c.Context(), s); err != nil || !r.wait {
		return err
	}
	return r.await(c.Context(), s)
}

// ask asks for another body.
func (r *recycle) ask(ctx context.Context, s *subject) error {
	m := s.member()
	switch d := disruption(m); {
	case d != nil && d.Action == v1alpha1.ActionRemove && !standsIn(d) || !m.DeletionTimestamp.IsZero():
		return fmt.Errorf("%s is being removed, and gets no other body", s.is())
	case m.Status.BodyUID == "":
		return fmt.Errorf("%s has no body to replace: %s", s.is(), s.plan.Explain(s.slot()))
	}
	already := ""
	if s.slot().Asked {
		already = " already"
	} else if err := s.annotate(ctx, v1alpha1.AnnotationRecycle, new(strconv.FormatInt(m.Status.Incarnation, 10))); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(r.Out, "%s is to get another body%s\n", s.is(), already); err != nil {
		return err
	}
	return s.foresee(r.Out)
}

// What ends a wait: the member's next body is in service, or a surge member
// serves in place of the member, which is gone.
var (
	errBack     = errors.New("in service again")
	errReplaced = errors.New("replaced by a surge member")
)

// await follows the member until another body of it is in service.
func (r *recycle) await(ctx context.Context, s *subject) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if r.timeout > 0 {
		timer := time.AfterFunc(r.timeout, func() { end(errTimeout) })
		defer timer.Stop()
	}
	asked := s.member()
	last, lines := asked, newJournal(r.Out, r.now)
	err := follow.Objects(ctx, s.cluster, &v1alpha1.MemberList{}, follow.Listener{
		Changed: func(o client.Object) {
			if m, ok := o.(*v1alpha1.Member); ok {
				lines.member(m, false)
				if m.UID != asked.UID {
					end(gone(last)) // another slot of its index was made meanwhile
					return
				}
				last = m
				if err := recycled(asked, m, r.now()); err != nil {
					end(err)
				}
			}
		},
		Gone: func(client.Object) { end(gone(last)) },
		Lost: lines.lost,
	}, client.InNamespace(asked.Namespace), named(asked.Name))
	switch cause := context.Cause(ctx); {
	case err != nil:
		return err
	case errors.Is(cause, errBack):
		return nil
	case errors.Is(cause, errReplaced):
		_, err := fmt.Fprintf(r.Out, "member %s was removed: a surge member serves in its place\n", asked.Name)
		return err
	case errors.Is(cause, errTimeout):
		return fmt.Errorf("member %s has no other body in service after %s, and is %s; it is still asked for", asked.Name, r.timeout, phase(last))
	default:
		return cause
	}
}

// recycled tells what became of a member for which another body was asked:
// errBack once that is in service, another error if it will not come, nil if it
// may.
func recycled(asked, m *v1alpha1.Member, now time.Time) error {
	slot := snapshot.Member(m, now)
	switch {
	case m.Status.Incarnation > asked.Status.Incarnation:
		if slot.InService() {
			return errBack
		}
		return nil
	case !slot.Asked && disruption(m) == nil:
		return fmt.Errorf("member %s is no longer to get another body: somebody withdrew it (annotation %s)", m.Name, v1alpha1.AnnotationRecycle)
	}
	return nil
}

// gone is what a removal comes to, by how the member was seen last: errReplaced
// if it was asked for and a surge member stood in for it, otherwise an error.
func gone(last *v1alpha1.Member) error {
	if d := disruption(last); d != nil && standsIn(d) {
		return errReplaced
	}
	return fmt.Errorf("member %s was removed", last.Name)
}

// standsIn reports whether a member goes because somebody asked for another
// body, and a surge member stands in for it.
func standsIn(d *v1alpha1.Disruption) bool {
	return d.Reason == v1alpha1.DisruptionRequested && d.Action == v1alpha1.ActionRemove
}

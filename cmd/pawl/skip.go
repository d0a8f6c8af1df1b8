package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// skip gives up on bringing a member to the target.
type skip struct {
	*program

	undo bool
}

func (p *program) skipCommand() *cobra.Command {
	k := &skip{program: p}
	c := &cobra.Command{
		Use:     "skip POOL/INDEX",
		GroupID: "act",
		Short:   "Give up on bringing a member to the target, so that it holds nobody up",
		Long: `Give up on bringing a member to the target: its slot stays on the current revision, or goes back to it, and holds nobody
up, until the target changes.`,
		Example: fmt.Sprintf("  %[1]s skip web/2\n  %[1]s skip web/2 --undo", p.name),
		Args:    one("POOL/INDEX"),
		RunE:    k.run,
	}
	c.Flags().BoolVar(&k.undo, "undo", false, "have the member take its turn after all")
	return c
}

func (k *skip) run(c *cobra.Command, args []string) error {
	s, err := k.subject(c, args[0])
	if err != nil {
		return err
	}
	does := s.skip
	if k.undo {
		does = s.unskip
	}
	text, err := does(c.Context())
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(k.Out, "%s %s\n", s.is(), text); err != nil {
		return err
	}
	return s.foresee(k.Out)
}

func (s *subject) skip(ctx context.Context) (string, error) {
	target := string(s.snapshot.Target.ID)
	switch {
	case s.slot().Skipped:
		return "is skipped already", nil
	case s.cannotSkip() != "":
		return "", fmt.Errorf("%s cannot be skipped: %s", s.is(), s.cannotSkip())
	}
	return fmt.Sprintf("is skipped: it is not brought to revision %s", target), s.annotate(ctx, v1alpha1.AnnotationSkip, &target)
}

// cannotSkip says why there is nothing to give up on; empty if there is.
func (s *subject) cannotSkip() string {
	m, target, current := s.slot(), s.snapshot.Target.ID, s.current()
	switch {
	case s.snapshot.Unreadable != "":
		return "nobody can tell now what the target is: " + s.plan.Updated.Message
	case current == "":
		return "no body of the pool has recovered yet: there is no current revision to fall back to"
	case string(target) == current && s.snapshot.RolledBack.ID != "":
		return fmt.Sprintf("revision %s was rolled back already, and the target is revision %s again; there is nothing else to fall back to", s.wanted(), target)
	case string(target) == current:
		return fmt.Sprintf("the target, revision %s, is the current one: there is nothing to fall back to", target)
	case m.Phase == rollout.Terminating:
		return "its body is terminating already, and what holds that is not its revision: " + orNothing(m.Message)
	case m.Body && m.Runs == target && m.InService():
		return fmt.Sprintf("it is in service on the target, revision %s", target)
	}
	return ""
}

func orNothing(said string) string {
	if said == "" {
		return "the body says nothing about it"
	}
	return said
}

func (s *subject) unskip(ctx context.Context) (string, error) {
	if _, ok := s.member().Annotations[v1alpha1.AnnotationSkip]; !ok {
		return "is not skipped", nil
	}
	return "is no longer skipped", s.annotate(ctx, v1alpha1.AnnotationSkip, nil)
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// hold keeps a member as it is.
type hold struct {
	*program

	reason, until string
}

func (p *program) holdCommand() *cobra.Command {
	h := &hold{program: p}
	c := &cobra.Command{
		Use:     "hold POOL/INDEX",
		GroupID: "act",
		Short:   "Keep a member as it is: no rollout, no recycle, no scale-down takes it",
		Long: `Keep a member as it is, until a time or until it is let go: no rollout, no recycle and no scale-down takes it. It can be
claimed all the same, and gets another body if the one that it has fails.

A hold that is there already is replaced. Whoever may patch members may hold them.`,
		Example: fmt.Sprintf("  %[1]s hold web/2 --reason \"debugging the disk\" --until 4h\n  %[1]s hold web/2 --until 2031-05-01T18:00:00+02:00", p.name),
		Args:    one("POOL/INDEX"),
		RunE:    h.run,
	}
	c.Flags().StringVar(&h.reason, "reason", "", "why, for whoever wonders")
	c.Flags().StringVar(&h.until, "until", "", "when it ends by itself: a time such as 2031-05-01T18:00:00+02:00, or a duration such as 4h; never if left out")
	return c
}

func (h *hold) run(c *cobra.Command, args []string) error {
	end, err := parseEnd(h.until, h.now())
	if err != nil {
		return &usageError{c, fmt.Errorf("--until %w", err)}
	}
	value := snapshot.Hold{Reason: h.reason}
	if !end.IsZero() {
		value.Until = &end
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode annotation %s: %w", v1alpha1.AnnotationHold, err)
	}
	s, err := h.subject(c, args[0])
	if err != nil {
		return err
	}
	going := s.going()
	if err := s.annotate(c.Context(), v1alpha1.AnnotationHold, new(string(text))); err != nil {
		return err
	}
	_, err = fmt.Fprintf(h.Out, "%s\n", held(s.member(), s.now))
	if err == nil && going != "" {
		_, err = fmt.Fprintf(h.Out, "  %s\n", going)
	}
	return err
}

// going says what a hold does to a member that is on its way out; empty if it
// is not.
func (s *subject) going() string {
	d := disruption(s.member())
	switch phase := s.slot().Phase; {
	case d == nil:
		return ""
	case phase == rollout.Terminating || phase == rollout.Updating:
		return fmt.Sprintf("it comes too late for this body, which is %s (%s); the next one is held", phase, d.Reason)
	case d.Reason == v1alpha1.DisruptionDrift || d.Reason == v1alpha1.DisruptionRequested:
		return fmt.Sprintf("its replacement (%s) is called off, unless its body is gone by then", d.Reason)
	}
	return fmt.Sprintf("its body goes all the same (%s); the next one is held", d.Reason)
}

// parseEnd reads the end of a hold: a time as RFC 3339 has it, or a duration
// from now; zero for the empty string.
func parseEnd(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	end, err := time.Parse(time.RFC3339, text)
	if span, notSpan := time.ParseDuration(text); notSpan == nil {
		end, err = now.Add(span), nil
	}
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("%q: must be a time such as %s, or a duration such as 4h", text, now.Add(4*time.Hour).UTC().Format(time.RFC3339))
	case !end.After(now):
		return time.Time{}, fmt.Errorf("%s: a hold must end in the future, and now it is %s", text, now.UTC().Format(time.RFC3339))
	case end.Year() > 9999:
		return time.Time{}, errors.New(text + ": must be before the year 10000; leave it out to hold without an end")
	}
	return end.UTC().Truncate(time.Second), nil
}

func (p *program) unholdCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "unhold POOL/INDEX",
		GroupID: "act",
		Short:   "Let a held member go: it takes its turn again",
		Example: fmt.Sprintf("  %s unhold web/2", p.name),
		Args:    one("POOL/INDEX"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := p.subject(c, args[0])
			if err != nil {
				return err
			}
			return s.unhold(c, p.Out)
		},
	}
}

func (s *subject) unhold(c *cobra.Command, out io.Writer) error {
	if _, ok := s.member().Annotations[v1alpha1.AnnotationHold]; !ok {
		_, err := fmt.Fprintf(out, "%s is not held\n", s.is())
		return err
	}
	if err := s.annotate(c.Context(), v1alpha1.AnnotationHold, nil); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%s is no longer held\n", s.is()); err != nil {
		return err
	}
	return s.foresee(out)
}

// held says that a member is held at the time, until when and why; empty if it
// is not.
func held(m *v1alpha1.Member, now time.Time) string {
	if !snapshot.Held(m, now) {
		return ""
	}
	text := m.Name + " is held"
	if end := snapshot.HoldEnds(m); !end.IsZero() {
		text += fmt.Sprintf(" until %s (for %s)", end.UTC().Format(time.RFC3339), age(now, end))
	}
	if why := holdReason(m); why != "" {
		text += ": " + why
	}
	return text
}

// holdReason is what a hold says why; one that is no JSON is taken as the
// reason itself.
func holdReason(m *v1alpha1.Member) string {
	text := m.Annotations[v1alpha1.AnnotationHold]
	var h snapshot.Hold
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return text
	}
	return h.Reason
}

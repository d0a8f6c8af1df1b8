package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/revision"
)

const (
	// errDiffer: two revisions differ, which has been told.
	errDiffer exitError = 1
	// errTrouble: they could not be compared, which has been told.
	errTrouble exitError = 2
	// longValue is the number of characters of a value that a line has room for.
	longValue = 60
)

// diff shows what differs between two revisions of a pool.
type diff struct {
	*program

	out  *output
	full bool
}

func (p *program) diffCommand() *cobra.Command {
	d := &diff{program: p}
	c := &cobra.Command{
		Use:     "diff POOL [REVISION]",
		GroupID: "look",
		Short:   "Show what differs between what the template says now and another revision",
		Long: `Show what differs between what the template says now and another revision, named by its number or id: without one, the
current revision, or else what most of the stale members run.

Of secret sources it shows only that they differ. The exit status is 0 if nothing differs, 1 if something does, and 2 if
that could not be told.`,
		Example: fmt.Sprintf("  %[1]s diff web\n  %[1]s diff web 3 --full", p.name),
		Args:    upTo2("POOL"),
		RunE: func(c *cobra.Command, args []string) error {
			differ, err := d.run(c, args)
			switch {
			case err != nil:
				p.complain("%v", p.cure(err))
				return errTrouble
			case differ:
				return errDiffer
			}
			return nil
		},
	}
	d.out = outputFlag(c, asJSON, asYAML)
	c.Flags().BoolVar(&d.full, "full", false, "show it as a unified diff of the two as YAML; the same as --output yaml")
	return c
}

// upTo2 wants one argument, and takes a second one.
func upTo2(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s is missing", what)
		case len(args) > 2:
			return fmt.Errorf("one %s and one REVISION at a time, not %d arguments", what, len(args))
		}
		return nil
	}
}

func (d *diff) run(c *cobra.Command, args []string) (differ bool, err error) {
	k, err := d.connect()
	if err != nil {
		return false, err
	}
	pool, err := k.past(c.Context(), args[0], d.now())
	if err != nil {
		return false, err
	}
	from, to := pool.stale(), pool.wanted()
	if len(args) > 1 {
		r, err := pool.resolve(args[1])
		if err != nil {
			return false, err
		}
		from = history.RevisionID(r)
	}
	if from == "" && to == "" {
		return false, fmt.Errorf("%s has no revision to compare the template with; `pawl history %s` lists those it has", pool.named(), pool.stored.Pool.Name)
	}
	if from == "" {
		_, err := fmt.Fprintf(d.Out, "%s: nothing differs; no member runs anything but revision %s\n", pool.named(), pool.label(to))
		return false, err
	}
	if from == to {
		_, err := fmt.Fprintf(d.Out, "%s: nothing differs; revision %s is what the template says now\n", pool.named(), pool.label(to))
		return false, err
	}
	if pool.revision(from) == nil {
		return false, fmt.Errorf("%s: revision %s is stored no longer; `pawl history %s` lists those that are", pool.named(), from, pool.stored.Pool.Name)
	}
	s := &sides{past: pool, from: from, to: to}
	if pool.revision(to) == nil {
		s.was, s.is = &sources{}, &sources{}
		if len(pool.stored.Pool.Spec.Sources) > 0 {
			_, _ = fmt.Fprintln(d.ErrOut, "note: this is the template alone; no revision has taken yet what sources say with it")
		}
		return true, d.show(s)
	}
	if s.was, err = pool.sources(c.Context(), k, from); err != nil {
		return false, err
	}
	if s.is, err = pool.sources(c.Context(), k, to); err != nil {
		return false, err
	}
	return true, d.show(s)
}

// sides are two revisions of a pool, and what their sources said.
type sides struct {
	*past

	from, to string
	was, is  *sources
}

// stale is the revision to compare with where none is named: the current one,
// or else what most of the stale members run; empty if there is neither.
func (p *past) stale() string {
	if id := p.current(); id != "" && id != p.wanted() {
		return id
	}
	on, most := p.on(), ""
	for _, r := range p.stored.Revisions {
		if id := history.RevisionID(r); id != p.wanted() && on[id] > on[most] {
			most = id
		}
	}
	return most
}

// difference is what differs between two revisions.
type difference struct {
	From string `json:"from"`
	// To is empty for a template of which there is no revision.
	To string `json:"to"`
	// Places are those of the template, and of sources that are not secret, with
	// both values.
	Places []change `json:"places,omitempty"`
	// Others are those whose values are not shown: sources, by kind, name and
	// key, and the renderer.
	Others []string `json:"others,omitempty"`
}

// change is a place, and what stands there: nothing where it is absent.
type change struct {
	Path   string          `json:"path"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

func (d *diff) show(s *sides) error {
	before, err := s.document(s.from)
	if err != nil {
		return err
	}
	after, err := s.document(s.to)
	if err != nil {
		return err
	}
	names := [2]string{s.called(s.from), s.called(s.to)}
	if d.full || d.out.value == asYAML {
		return unified(d.Out, names, s.whole(before, s.was), s.whole(after, s.is))
	}
	is := difference{From: s.from, To: s.to}
	if is.Places, err = changes(before, after); err != nil {
		return err
	}
	_, others, err := s.differences(s.from, s.to)
	if err != nil {
		return err
	}
	for _, place := range others {
		if was, now := s.was.places[place], s.is.places[place]; was != nil || now != nil {
			is.Places = append(is.Places, change{place, was, now})
		} else {
			is.Others = append(is.Others, place)
		}
	}
	if d.out.value == asJSON {
		return d.out.encode(d.Out, is)
	}
	if _, err := fmt.Fprintf(d.Out, "--- %s\n+++ %s\n", names[0], names[1]); err != nil {
		return err
	}
	return is.tell(d.Out)
}

// whole is a template and, if either side has any, what sources said.
func (s *sides) whole(template []byte, sources *sources) any {
	if len(s.was.tree)+len(s.is.tree) == 0 {
		return json.RawMessage(template)
	}
	return map[string]any{"template": json.RawMessage(template), "sources": sources.tree}
}

// changes are the places in which two templates differ.
func changes(before, after []byte) ([]change, error) {
	found, err := revision.Changes(before, after)
	if err != nil {
		return nil, err
	}
	list := make([]change, len(found))
	for i, c := range found {
		list[i] = change{c.Path, c.Before, c.After}
	}
	return list, nil
}

// called says which revision it is, and what it is to the pool.
func (p *past) called(id string) string {
	if id == "" {
		return p.label(id)
	}
	text := "revision " + p.label(id)
	if states := p.states(id); len(states) > 0 {
		text += ", " + strings.Join(states, ", ")
	}
	return text
}

// tell writes a line for each place.
func (d *difference) tell(w io.Writer) error {
	var b strings.Builder
	for _, c := range d.Places {
		fmt.Fprintf(&b, "  %s: %s → %s\n", c.Path, short(c.Before), short(c.After))
	}
	for _, place := range d.Others {
		fmt.Fprintf(&b, "  %s differs\n", place)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// short is a value as a line has room for it.
func short(value []byte) string {
	text := cmp.Or(string(value), "none")
	if utf8.RuneCountInString(text) <= longValue {
		return text
	}
	return string([]rune(text)[:longValue-1]) + "…"
}

// unified writes a unified diff of two documents as YAML.
func unified(w io.Writer, names [2]string, before, after any) error {
	u := difflib.UnifiedDiff{FromFile: names[0], ToFile: names[1], Context: 3}
	for _, side := range []struct {
		lines    *[]string
		document any
	}{{&u.A, before}, {&u.B, after}} {
		text, err := yaml.Marshal(side.document)
		if err != nil {
			return fmt.Errorf("write as YAML: %w", err)
		}
		*side.lines = difflib.SplitLines(string(text))
	}
	return difflib.WriteUnifiedDiff(w, u)
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
)

// undo puts the template of an earlier revision back.
type undo struct {
	*program

	to           string
	templateOnly bool
	dryRun       bool
}

func (p *program) undoCommand() *cobra.Command {
	u := &undo{program: p}
	c := &cobra.Command{
		Use:     "undo POOL",
		GroupID: "act",
		Short:   "Put the template of an earlier revision back",
		Long: `Put the template of an earlier revision back into a pool, which then rolls to it like to any other template: without
--to, that of the current revision or, where the template says that already, of the last one before it on which the pool
stood. Live fields keep the values that they have now.

What a revision took from sources cannot be put back by a template. Where that differs, nothing is done unless
--template-only is given: then the pool rolls to another revision, which is mostly a new one.`,
		Example: fmt.Sprintf("  %[1]s undo web\n  %[1]s undo web --to 3 --dry-run", p.name),
		Args:    one("POOL"),
		RunE:    u.run,
	}
	c.Flags().StringVar(&u.to, "to", "", "the revision, by its number or id, as history lists them")
	c.Flags().BoolVar(&u.templateOnly, "template-only", false, "go on although the content of sources was another one then")
	c.Flags().BoolVar(&u.dryRun, "dry-run", false, "have the server check it and say what would change, but change nothing")
	_ = c.RegisterFlagCompletionFunc("to", p.revisions) // it can only fail if the flag does not exist
	return c
}

func (u *undo) run(c *cobra.Command, args []string) error {
	k, err := u.connect()
	if err != nil {
		return err
	}
	pool, err := k.past(c.Context(), args[0], u.now())
	if err != nil {
		return err
	}
	to, err := pool.goal(u.to)
	if err != nil {
		return err
	}
	if history.RevisionID(to) == pool.wanted() {
		_, err := fmt.Fprintf(u.Out, "%s: the template is that of revision %s already\n", pool.named(), pool.label(pool.wanted()))
		return err
	}
	is, err := pool.undone(to)
	if err != nil {
		return err
	}
	lost, err := pool.lost(to)
	if err != nil {
		return err
	}
	switch same := len(is.Places) == 0; {
	case len(lost) > 0 && (same || !u.templateOnly):
		return pool.unrestored(to, lost, same)
	case same:
		_, err := fmt.Fprintf(u.Out, "%s: the template is that of revision %s already; it is rendered to something else now, which it cannot bring back\n",
			pool.named(), pool.label(history.RevisionID(to)))
		return err
	}
	if err := u.write(c.Context(), k, pool, to); err != nil {
		return err
	}
	return u.tell(pool, to, is, len(lost) == 0)
}

// goal is the revision to go back to.
func (p *past) goal(named string) (*appsv1.ControllerRevision, error) {
	if named != "" {
		return p.resolve(named)
	}
	switch r := p.revision(p.current()); {
	case r != nil && p.current() != p.wanted():
		return r, nil
	case r != nil && p.stored.Invalid != nil:
		return nil, fmt.Errorf("%s: the template is that of the current revision, %s, already, and that is not what is wrong: %w; to go further back, name a revision with --to",
			p.named(), p.label(p.current()), p.stored.Invalid)
	}
	var last *appsv1.ControllerRevision
	for _, r := range p.stored.Revisions {
		id := history.RevisionID(r)
		if id == p.wanted() {
			continue
		}
		if rec := p.records[id]; (rec.Stood > 0 || rec.StoodAt != nil) && !rec.Halted {
			last = r
		}
	}
	switch {
	case last == nil && p.current() == "":
		return nil, fmt.Errorf("%s: it has no current revision, since no body of it has recovered yet; name a revision with --to, as `pawl history %s` lists them", p.named(), p.stored.Pool.Name)
	case last == nil:
		return nil, fmt.Errorf("%s: it has stood on no other revision than %s; name one with --to, as `pawl history %s` lists them",
			p.named(), p.label(p.wanted()), p.stored.Pool.Name)
	}
	return last, nil
}

// undone is what changes in the template.
func (p *past) undone(to *appsv1.ControllerRevision) (*difference, error) {
	is, err := p.document(p.wanted())
	if err != nil {
		return nil, err
	}
	was, err := p.document(history.RevisionID(to))
	if err != nil {
		return nil, err
	}
	d := &difference{}
	d.Places, err = changes(is, was)
	return d, err
}

// unrestored says which content of sources a template cannot bring back, and
// where that is kept. Same: the template is as it was.
func (p *past) unrestored(to *appsv1.ControllerRevision, lost []frozen, same bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: nothing was done: sources said something else at revision %s, and a template cannot bring that back:", p.named(), p.label(history.RevisionID(to)))
	for _, f := range lost {
		fmt.Fprintf(&b, "\n  %s, %s", f.source, f.look)
	}
	b.WriteString("\nmake that what it was")
	if !same {
		b.WriteString(", or go on with the template alone, which makes another revision of it: --template-only")
	}
	return errors.New(b.String())
}

// manyRaces is how often a write may lose to one of the pool's status.
const manyRaces = 10

// write puts the template of the revision into the pool, unless that was edited
// since it was read. That its status is written meanwhile is no edit.
func (u *undo) write(ctx context.Context, k *cluster, p *past, to *appsv1.ControllerRevision) error {
	is := p.stored.Pool
	for range manyRaces {
		err := u.patch(ctx, k, is, to)
		switch {
		case err == nil:
			return nil
		case !apierrors.IsConflict(err):
			return fmt.Errorf("%s: put back the template of revision %s: %w", p.named(), p.label(history.RevisionID(to)), err)
		}
		if is, err = k.pool(ctx, is.Name); err != nil {
			return err
		}
		if is.UID != p.stored.Pool.UID || !equality.Semantic.DeepEqual(is.Spec, p.stored.Pool.Spec) {
			break
		}
	}
	return fmt.Errorf("%s was edited meanwhile, and is left alone; look at it, and ask again", p.named())
}

func (u *undo) patch(ctx context.Context, k *cluster, p *v1alpha1.Pool, to *appsv1.ControllerRevision) error {
	patch, err := undoing(p, to)
	if err != nil {
		return err
	}
	options := []client.PatchOption{client.FieldOwner("pawl")}
	if u.dryRun {
		options = append(options, client.DryRunAll)
	}
	return k.Patch(ctx, p.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), options...)
}

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// undoing is the patch that makes the pool's template that of the revision. It
// is for the version of the pool that was read, and leaves alone what is not
// part of revisions.
func undoing(p *v1alpha1.Pool, to *appsv1.ControllerRevision) ([]byte, error) {
	t, err := history.TemplateFor(to, &p.Spec.Template)
	if err != nil {
		return nil, err
	}
	is := &p.Spec.Template
	ops := []operation{{"replace", "/metadata/resourceVersion", p.ResourceVersion}}
	for _, kind := range []struct {
		name    string
		is, was bool
		value   any
	}{
		{"objects", is.Objects != nil, t.Objects != nil, t.Objects},
		{"process", is.Process != nil, t.Process != nil, t.Process},
		{"sim", is.Sim != nil, t.Sim != nil, t.Sim},
	} {
		switch {
		case kind.was:
			ops = append(ops, operation{"add", "/spec/template/" + kind.name, kind.value}) // it replaces what is there
		case kind.is:
			ops = append(ops, operation{Op: "remove", Path: "/spec/template/" + kind.name})
		}
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encode template: %w", err)
	}
	return patch, nil
}

// tell says what was put back, and what comes of it. Whole: sources say what
// they said then, so that the revision itself is back.
func (u *undo) tell(p *past, to *appsv1.ControllerRevision, is *difference, whole bool) error {
	id := history.RevisionID(to)
	why := unresolved(p.stored.Pool)
	_, err := fmt.Fprintf(u.Out, "%s: the template of revision %s %s %s\n", p.named(), p.label(id), u.verb(whole && why == ""), p.label(p.wanted()))
	switch {
	case err != nil:
	case !whole:
		_, err = fmt.Fprintf(u.Out, "with what sources say now it is another revision than %s, to which the pool rolls anew\n", id)
	case why != "":
		_, err = fmt.Fprintf(u.Out, "sources cannot be read now, so that nobody can tell yet whether that is revision %s again: %s\n", id, why)
	}
	if err == nil {
		err = is.tell(u.Out)
	}
	if err != nil || u.dryRun {
		return err
	}
	if whole && p.records[id].Halted {
		if _, err := fmt.Fprintf(u.Out, "it has halted before, and stays so until `%s retry %s` grants it another round\n", u.name, p.stored.Pool.Name); err != nil {
			return err
		}
	}
	next := fmt.Sprintf("see how it goes with `%s status %s --watch`", u.name, p.stored.Pool.Name)
	if p.snapshot.Policy.Manual {
		next = "update.type is Manual: members that run something else stay as they are"
	}
	_, err = fmt.Fprintln(u.Out, next)
	return err
}

// verb is what the template does to the one that was there. Whole: its revision
// is back with it.
func (u *undo) verb(whole bool) string {
	switch {
	case whole && u.dryRun:
		return "would be back (dry run), in place of"
	case whole:
		return "is back, in place of"
	case u.dryRun:
		return "would take the place (dry run) of"
	}
	return "takes the place of"
}

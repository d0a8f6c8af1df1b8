package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// subject is the member that a command is about, and what the engine says of
// its pool.
type subject struct {
	*explanation

	cluster *cluster
	at      int // its position among the members
}

// subject finds the member that POOL/INDEX names.
func (p *program) subject(c *cobra.Command, arg string) (*subject, error) {
	name, index, err := poolIndex(arg)
	if err == nil && index < 0 {
		err = fmt.Errorf("%s: which member of it? write POOL/INDEX, such as %s/0", arg, arg)
	}
	if err != nil {
		return nil, &usageError{c, err}
	}
	k, err := p.connect()
	if err != nil {
		return nil, err
	}
	e, err := k.explanation(c.Context(), name, p.now())
	if err != nil {
		return nil, err
	}
	at := e.find(index)
	if at < 0 {
		return nil, fmt.Errorf("pool %s has no member with index %d; `%s status %s` lists them", name, index, p.name, name)
	}
	return &subject{explanation: e, cluster: k, at: at}, nil
}

func (s *subject) member() *v1alpha1.Member { return s.stored.Members[s.at] }

// slot is the member as the engine takes it.
func (s *subject) slot() *rollout.Member { return &s.snapshot.Members[s.at] }

// is starts a message about the member.
func (s *subject) is() string { return "member " + s.member().Name }

// annotate sets an annotation of the member, or takes it away, and asks the
// engine anew.
func (s *subject) annotate(ctx context.Context, key string, value *string) error {
	if err := s.cluster.annotate(ctx, s.member(), "Member", key, value); err != nil {
		return err
	}
	return s.ask()
}

// foresee writes what comes next for the member.
func (s *subject) foresee(w io.Writer) error {
	lines := s.steps(s.at)
	if len(lines) == 0 {
		lines = []string{s.plan.Explain(s.slot())}
	}
	if line := held(s.member(), s.now); line != "" {
		lines = append(lines, line)
	}
	_, err := fmt.Fprintf(w, "  %s\n", strings.Join(lines, "\n  "))
	return err
}

// annotate sets an annotation of an object, or takes it away where there is no
// value, and reads what became of the object. It is for this very object, not
// for another one of its name.
func (c *cluster) annotate(ctx context.Context, o client.Object, kind, key string, value *string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.GetUID(), "annotations": map[string]any{key: value},
	}})
	if err != nil {
		return fmt.Errorf("encode annotation %s: %w", key, err)
	}
	name := o.GetName()
	err = c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("pawl"))
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("annotate %s %s: %w; it takes the verb patch on %ss, which the role edit has", kind, name, err, strings.ToLower(kind))
	case err != nil:
		return fmt.Errorf("annotate %s %s: %w", kind, name, err)
	}
	return nil
}

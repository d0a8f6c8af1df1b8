package member

import (
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/internal/source"
)

// Sources give what was frozen of a pool's sources for a revision.
type Sources interface {
	// Frozen returns the values of the sources, which are those that the
	// revision records. An error that wraps source.ErrMissing says that they are
	// gone; any other, that it cannot be told.
	Frozen(ctx context.Context, pool types.NamespacedName, revision string, sources []source.Source) (*source.Values, error)
}

// sources are the values that the revision's sources had; lacking is why they
// are gone. An error means that it could not be told.
func (s *step) sources(ctx context.Context, rev *appsv1.ControllerRevision) (values map[string]any, lacking, err error) {
	c, err := history.ReadContent(rev)
	if err != nil || len(c.Sources) == 0 {
		return nil, nil, err
	}
	list := make([]source.Source, len(c.Sources))
	for i, recorded := range c.Sources {
		list[i] = source.Source(recorded)
	}
	pool := types.NamespacedName{Namespace: s.pool.Namespace, Name: s.pool.Name}
	v, err := s.r.Sources.Frozen(ctx, pool, history.RevisionID(rev), list)
	if errors.Is(err, source.ErrMissing) {
		s.mute = s.mute || slices.ContainsFunc(list, func(s source.Source) bool { return s.Secret })
		return nil, err, nil
	}
	s.secrets = append(s.secrets, v)
	return v.Map(), nil, err
}

// withheld is said instead of words that may hold a secret which nobody knows
// any more.
const withheld = "its words are withheld: what is secret in its sources is gone, and could not be taken out of them"

// redact takes what is secret out of what a body, or who was to make one, said.
func (s *step) redact(text string) string {
	if s.mute && text != "" {
		return withheld
	}
	for _, v := range s.secrets {
		text = v.Redact(text)
	}
	return text
}

// discreet is an error in whose text nothing is secret.
type discreet struct {
	error

	text string
}

// Error implements error.
func (d discreet) Error() string { return d.text }

// Unwrap gives the error as it was.
func (d discreet) Unwrap() error { return d.error }

// discreetly takes what is secret out of an error's text.
func (s *step) discreetly(err error) error {
	if err == nil || s.redact(err.Error()) == err.Error() {
		return err
	}
	return discreet{err, s.redact(err.Error())}
}

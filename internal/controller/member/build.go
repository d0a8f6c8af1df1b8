package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/rollout"
)

// build is what a body of a revision is made of.
type build struct {
	// id is the revision; empty for what the pool's template says now.
	id       string
	template *v1alpha1.Template
	// sources are the values of ${sources.NAME}; lacking is why they are not
	// there any more. Without them a body can be looked at and ended, not made.
	sources map[string]any
	lacking error
}

// revision reads what a body of the revision is made of, with what is not part
// of it as the pool says now.
func (s *step) revision(ctx context.Context, id string) (build, error) {
	if id == "" {
		return build{template: s.present}, nil
	}
	var rev appsv1.ControllerRevision
	key := types.NamespacedName{Namespace: s.member.Namespace, Name: history.Name(s.pool.Name, id)}
	err := s.r.Client.Get(ctx, key, &rev)
	if apierrors.IsNotFound(err) {
		err = s.r.Reader.Get(ctx, key, &rev) // the cache may be late
	}
	if err != nil {
		return build{}, fmt.Errorf("get ControllerRevision %s: %w", key.Name, err)
	}
	b := build{id: id}
	if b.template, err = history.TemplateFor(&rev, s.present); err != nil {
		return build{}, err
	}
	b.template.LiveFields = slices.DeleteFunc(slices.Clone(b.template.LiveFields), func(path string) bool {
		return !strings.HasPrefix(path, kindOf(b.template))
	})
	b.sources, b.lacking, err = s.sources(ctx, &rev)
	return b, err
}

// toBe is what the body that comes next is made of.
func (s *step) toBe(ctx context.Context, m *rollout.Member) (build, error) {
	if s.unlive != nil {
		// Nobody knows what it would be; this does not count against the revision.
		return build{}, errors.New("spec." + s.unlive.Error())
	}
	b, err := s.revision(ctx, string(m.Wants))
	if err == nil {
		err = b.lacking
	}
	return b, err
}

// setPresent notes what the pool's template says now. Live fields that cannot
// be change nothing.
func (s *step) setPresent() {
	s.present = &s.pool.Spec.Template
	if s.unlive = s.r.Kinds.CheckLive(s.present); s.unlive != nil {
		t := *s.present
		t.LiveFields = nil
		s.present = &t
	}
}

func kindOf(t *v1alpha1.Template) string {
	switch {
	case t.Objects != nil:
		return "objects"
	case t.Process != nil:
		return "process"
	}
	return "sim"
}

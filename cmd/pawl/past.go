package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/revision"
)

// past is a pool and the revisions that it has had, in the order in which they
// last became the target.
type past struct {
	*explanation

	records map[string]history.Record
	// spec is the id of the revision that has the pool's template; empty if none
	// has. Unlike the engine's target it is that also where nothing moves.
	spec string
}

func (c *cluster) past(ctx context.Context, pool string, now time.Time) (*past, error) {
	e, err := c.explanation(ctx, pool, now)
	if err != nil {
		return nil, err
	}
	p := &past{explanation: e, records: map[string]history.Record{}}
	for _, r := range e.stored.Revisions {
		rec, err := history.ReadRecord(r)
		if err != nil {
			return nil, err
		}
		p.records[history.RevisionID(r)] = rec
	}
	p.spec = p.find()
	return p, nil
}

// find is the id of the revision that has the pool's template, whatever sources
// say now. Of one that is not stored yet it is known only where the engine has
// read the template.
func (p *past) find() string {
	if p.stored.Invalid == nil && p.stored.Pool.DeletionTimestamp.IsZero() {
		return p.explanation.wanted()
	}
	t := &p.stored.Pool.Spec.Template
	content, err := history.ContentOf(t)
	if err != nil {
		return ""
	}
	r, _, err := new(history.Finder).Find(history.Question{
		Revisions: p.stored.Revisions, Records: p.records, Content: content, TemplateOnly: true,
		Live: t.LiveFields, Prefer: p.stored.Pool.Status.TargetRevision,
	})
	if err != nil || r == nil {
		return ""
	}
	return history.RevisionID(r)
}

// wanted is the id of the revision that the template says now; empty if there
// is none.
func (p *past) wanted() string { return p.spec }

// named is the pool, for messages.
func (p *past) named() string { return "pool " + p.stored.Pool.Name }

// before is the one that was the target before r; nil if r was the first that
// is known of.
func (p *past) before(r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	var last *appsv1.ControllerRevision
	for _, other := range p.stored.Revisions {
		if other.Name == r.Name {
			return last
		}
		last = other
	}
	return last
}

// resolve finds the revision that a person names: by its id or its number.
func (p *past) resolve(arg string) (*appsv1.ControllerRevision, error) {
	if r := p.revision(arg); r != nil {
		return r, nil
	}
	number, err := strconv.ParseInt(arg, 10, 64)
	for _, r := range p.stored.Revisions {
		if err == nil && r.Revision == number {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%s has no revision %s, or no longer; `pawl history %s` lists those it has", p.named(), arg, p.stored.Pool.Name)
}

// label is what a revision is called: by its number and its id.
func (p *past) label(id string) string {
	if id == "" {
		return "a template of which there is no revision"
	}
	if r := p.revision(id); r != nil {
		return fmt.Sprintf("%d (%s)", r.Revision, id)
	}
	return id
}

// states say what a revision is to the pool; none for one of the past.
func (p *past) states(id string) []string {
	var list []string
	if id == string(p.snapshot.Target.ID) {
		list = append(list, "target")
	}
	if id == p.current() {
		list = append(list, "current")
	}
	switch rec := p.records[id]; {
	case rec.RolledBack:
		list = append(list, "rolled back")
	case rec.Halted:
		list = append(list, "halted")
	}
	return list
}

// on counts the bodies of each revision.
func (p *past) on() map[string]int {
	n := map[string]int{}
	for _, m := range p.stored.Members {
		if m.Status.BodyUID != "" {
			n[m.Status.Revision]++
		}
	}
	return n
}

// document is the canonical form of the template of a revision, with today's
// live fields, so that they are no difference. What the template says now may
// not be stored yet.
func (p *past) document(id string) ([]byte, error) {
	t := &p.stored.Pool.Spec.Template
	if r := p.revision(id); r != nil {
		var err error
		if t, err = history.TemplateFor(r, t); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(v1alpha1.Template{Objects: t.Objects, Process: t.Process, Sim: t.Sim})
	if err != nil {
		return nil, fmt.Errorf("encode template: %w", err)
	}
	return revision.Canonical(raw)
}

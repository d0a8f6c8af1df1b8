// Package history keeps a pool's revisions as apps/v1 ControllerRevisions: the
// template as it was written, the version of the hash that named it, and, in
// an annotation, what happened to its bodies.
package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/revision"
	"github.com/pawl-dev/pawl/rollout"
)

// content is what a ControllerRevision holds; it never changes.
type content struct {
	Hash     hash            `json:"hash"`
	Template json.RawMessage `json:"template"`
}

type hash struct {
	Version int `json:"version"`
}

// Record is what happened to the bodies of a revision. It is kept with the
// revision, and so outlives slots, restarts and the pool's status.
type Record struct {
	Failures   []Failure `json:"failures,omitempty"`
	Failed     int       `json:"failed,omitempty"`
	Halted     bool      `json:"halted,omitempty"`
	RolledBack bool      `json:"rolledBack,omitempty"`
	// StoodAt is when the whole pool last stood on it. The revision with the
	// latest is the current one.
	StoodAt *metav1.MicroTime `json:"stoodAt,omitempty"`
	// TargetSince is when it last became the target.
	TargetSince *metav1.MicroTime `json:"targetSince,omitempty"`
}

// Failure is a slot whose body failed and has not recovered.
type Failure struct {
	ID          string           `json:"id"`
	Index       int              `json:"index"`
	Incarnation int64            `json:"incarnation"`
	Count       int              `json:"count"`
	At          metav1.MicroTime `json:"at"`
}

// ID names the revision of a template: the part of it that decides what a body
// is. How readiness is judged and how long a boot may take are not part of it.
func ID(t *v1alpha1.Template) (string, error) {
	raw, err := decisive(t)
	if err != nil {
		return "", err
	}
	canonical, err := revision.Canonical(raw)
	if err != nil {
		return "", fmt.Errorf("spec.template: %w", err)
	}
	return revision.Hash(revision.Current, canonical)
}

// decisive is the part of a template that decides what a body is.
func decisive(t *v1alpha1.Template) ([]byte, error) {
	raw, err := json.Marshal(v1alpha1.Template{Objects: t.Objects, Process: t.Process, Sim: t.Sim})
	if err != nil {
		return nil, fmt.Errorf("encode spec.template: %w", err)
	}
	return raw, nil
}

// Name is the name of the ControllerRevision of a pool's revision.
func Name(pool, id string) string { return pool + "-" + id }

// New makes the ControllerRevision of a pool's present template.
func New(p *v1alpha1.Pool, id string, number int64) (*appsv1.ControllerRevision, error) {
	raw, err := decisive(&p.Spec.Template)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(content{Hash: hash{Version: revision.Current}, Template: raw})
	if err != nil {
		return nil, fmt.Errorf("encode revision: %w", err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(p.Name, id), Namespace: p.Namespace,
			Labels: map[string]string{v1alpha1.LabelPool: p.Name, v1alpha1.LabelRevision: id},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}, nil
}

// Template is the template that a revision holds.
func Template(r *appsv1.ControllerRevision) (*v1alpha1.Template, error) {
	var c content
	if err := json.Unmarshal(r.Data.Raw, &c); err != nil {
		return nil, fmt.Errorf("ControllerRevision %s: data: %w", r.Name, err)
	}
	var t v1alpha1.Template
	if err := json.Unmarshal(c.Template, &t); err != nil {
		return nil, fmt.Errorf("ControllerRevision %s: data.template: %w", r.Name, err)
	}
	return &t, nil
}

// RevisionID is the id of a ControllerRevision of a pool.
func RevisionID(r *appsv1.ControllerRevision) string { return r.Labels[v1alpha1.LabelRevision] }

// ReadRecord reads what happened to a revision. One that cannot be read is an
// error, never an empty record.
func ReadRecord(r *appsv1.ControllerRevision) (Record, error) {
	text, ok := r.Annotations[v1alpha1.AnnotationRecord]
	if !ok {
		return Record{}, nil
	}
	var rec Record
	if err := json.Unmarshal([]byte(text), &rec); err != nil {
		return Record{}, fmt.Errorf("ControllerRevision %s: annotation %s: %w; remove it to start with a clean record",
			r.Name, v1alpha1.AnnotationRecord, err)
	}
	return rec, nil
}

// WriteRecord puts a record into the revision, which the caller then stores.
func WriteRecord(r *appsv1.ControllerRevision, rec Record) error {
	text, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("encode record of ControllerRevision %s: %w", r.Name, err)
	}
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	r.Annotations[v1alpha1.AnnotationRecord] = string(text)
	return nil
}

// Engine is the record as the engine takes it.
func (rec Record) Engine(id string) rollout.Record {
	out := rollout.Record{ID: rollout.Revision(id), Failed: rec.Failed, Halted: rec.Halted, RolledBack: rec.RolledBack}
	for _, f := range rec.Failures {
		out.Failures = append(out.Failures, rollout.Failure{
			ID: f.ID, Index: f.Index, Incarnation: f.Incarnation, Count: f.Count, At: f.At.Time,
		})
	}
	return out
}

// Take puts what the engine decided into the record.
func (rec Record) Take(r *rollout.Record) Record {
	rec.Failed, rec.Halted, rec.RolledBack, rec.Failures = r.Failed, r.Halted, r.RolledBack, nil
	for _, f := range r.Failures {
		rec.Failures = append(rec.Failures, Failure{
			ID: f.ID, Index: f.Index, Incarnation: f.Incarnation, Count: f.Count,
			At: metav1.NewMicroTime(f.At.UTC().Truncate(time.Microsecond)),
		})
	}
	return rec
}

// Renew is the record of a revision that becomes the target anew: clean,
// unless it is halted.
func (rec Record) Renew(now time.Time) Record {
	since := metav1.NewMicroTime(now.UTC().Truncate(time.Microsecond))
	rec.TargetSince = &since
	if !rec.Halted {
		rec.Failures, rec.Failed = nil, 0
	}
	return rec
}

// Current is the revision on which the whole pool last stood: at first, the
// first one there was. It is nil if there is none.
func Current(list []*appsv1.ControllerRevision) *appsv1.ControllerRevision {
	var best, first *appsv1.ControllerRevision
	var stood time.Time
	for _, r := range list {
		if first == nil || r.Revision < first.Revision {
			first = r
		}
		rec, err := ReadRecord(r)
		if err == nil && rec.StoodAt != nil && (best == nil || rec.StoodAt.After(stood)) {
			best, stood = r, rec.StoodAt.Time
		}
	}
	if best == nil {
		return first
	}
	return best
}

// Prune says which revisions go: the oldest beyond the limit of those that
// keep does not name.
func Prune(list []*appsv1.ControllerRevision, keep map[string]bool, limit int) []*appsv1.ControllerRevision {
	var old []*appsv1.ControllerRevision
	for _, r := range list {
		if !keep[RevisionID(r)] {
			old = append(old, r)
		}
	}
	slices.SortFunc(old, func(a, b *appsv1.ControllerRevision) int {
		if a.Revision != b.Revision {
			return int(b.Revision - a.Revision)
		}
		return strings.Compare(a.Name, b.Name)
	})
	if len(old) <= limit {
		return nil
	}
	return old[limit:]
}

// Package history keeps a pool's revisions as apps/v1 ControllerRevisions: the
// template as it was written, the version of the hash that named it, and, in
// an annotation, what happened to its bodies.
package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/revision"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
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
	// Stood counts the times that the whole pool came to stand on a revision:
	// the last such time of this one, 0 for never. The revision with the
	// largest is the current one.
	Stood int64 `json:"stood,omitempty"`
	// StoodAt is when that was, for people: a clock may go back.
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
	Forgiven    bool             `json:"forgiven,omitempty"`
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

// Of are the revisions of the pool among those that carry its label, in the
// order of their numbers. Others have been made by somebody else.
func Of(pool string, list []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	var out []*appsv1.ControllerRevision
	for _, r := range list {
		if id := RevisionID(r); id != "" && r.Name == Name(pool, id) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, older)
	return out
}

// older orders revisions by number, then by name.
func older(a, b *appsv1.ControllerRevision) int {
	return cmp.Or(cmp.Compare(a.Revision, b.Revision), strings.Compare(a.Name, b.Name))
}

// Next is the number of the next revision. Once the numbers are used up, those
// that there are get lower ones in the same order: changed has to be stored
// first, in its order.
func Next(list []*appsv1.ControllerRevision) (next int64, changed []*appsv1.ControllerRevision) {
	var last int64
	for _, r := range list {
		last = max(last, r.Revision)
	}
	if last < math.MaxInt64 {
		return last + 1, nil
	}
	for i, r := range slices.SortedFunc(slices.Values(list), older) {
		if n := int64(i + 1); r.Revision != n {
			r.Revision = n
			changed = append(changed, r)
		}
	}
	return int64(len(list) + 1), changed
}

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
			Labels:     map[string]string{v1alpha1.LabelPool: p.Name, v1alpha1.LabelRevision: id},
			Finalizers: []string{v1alpha1.FinalizerRevision},
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
			ID: f.ID, Index: f.Index, Incarnation: f.Incarnation, Count: f.Count, At: f.At.Time, Forgiven: f.Forgiven,
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
			At: metav1.NewMicroTime(f.At.UTC().Truncate(time.Microsecond)), Forgiven: f.Forgiven,
		})
	}
	return rec
}

// Renew is the record of a revision that becomes the target anew.
func (rec Record) Renew(now time.Time) Record {
	renewed := rec.Engine("").Renewed()
	rec = rec.Take(&renewed)
	rec.TargetSince = snapshot.Micro(now)
	return rec
}

// Stand is the record of a revision on which the whole pool has come to stand,
// after it stood on the others.
func (rec Record) Stand(others map[string]Record, now time.Time) Record {
	last := rec.Stood
	for _, o := range others {
		last = max(last, o.Stood)
	}
	if last < math.MaxInt64 {
		last++
	}
	rec.Stood, rec.StoodAt = last, snapshot.Micro(now)
	return rec
}

// Current is the revision on which the whole pool last stood: at first, the
// first one there was. It is nil if there is none.
func Current(list []*appsv1.ControllerRevision) *appsv1.ControllerRevision {
	var best, first *appsv1.ControllerRevision
	var last Record
	for _, r := range list {
		if first == nil || older(r, first) < 0 {
			first = r
		}
		rec, err := ReadRecord(r)
		if err != nil || rec.Stood <= 0 && rec.StoodAt == nil {
			continue
		}
		if best == nil || rec.stoodAfter(&last) {
			best, last = r, rec
		}
	}
	if best == nil {
		return first
	}
	return best
}

// stoodAfter compares by the count; by the clock only what was not counted.
func (rec *Record) stoodAfter(other *Record) bool {
	if rec.Stood != other.Stood {
		return rec.Stood > other.Stood
	}
	return rec.StoodAt != nil && (other.StoodAt == nil || rec.StoodAt.After(other.StoodAt.Time))
}

// Prune says which revisions go, of those that keep does not name: what
// somebody has deleted, and the oldest beyond the limit.
func Prune(list []*appsv1.ControllerRevision, keep map[string]bool, limit int) []*appsv1.ControllerRevision {
	var old, gone []*appsv1.ControllerRevision
	for _, r := range list {
		switch {
		case keep[RevisionID(r)]:
		case !r.DeletionTimestamp.IsZero():
			gone = append(gone, r)
		default:
			old = append(old, r)
		}
	}
	slices.SortFunc(old, func(a, b *appsv1.ControllerRevision) int { return older(b, a) })
	if len(old) > limit {
		gone = append(gone, old[limit:]...)
	}
	return gone
}

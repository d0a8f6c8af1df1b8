package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// Record is what happened to the bodies of a revision. It is kept with the
// revision, and so outlives slots, restarts and the pool's status.
type Record struct {
	Failures   []Failure `json:"failures,omitempty"`
	Failed     int       `json:"failed,omitempty"`
	Halted     bool      `json:"halted,omitempty"`
	RolledBack bool      `json:"rolledBack,omitempty"`
	// Recovered is how many of its bodies had recovered by Counted, and did not fail
	// later; Cutoff is since when they were in service at the latest.
	Recovered int               `json:"recovered,omitempty"`
	Counted   *metav1.MicroTime `json:"counted,omitempty"`
	Cutoff    *metav1.MicroTime `json:"cutoff,omitempty"`
	// Worked: a body recovered that failed later.
	Worked bool `json:"worked,omitempty"`
	// Stood counts the times that the whole pool came to stand on a revision:
	// the last such time of this one, 0 for never. The revision with the
	// largest is the current one; without any there is none.
	Stood int64 `json:"stood,omitempty"`
	// StoodAt is when that was, for people: a clock may go back.
	StoodAt *metav1.MicroTime `json:"stoodAt,omitempty"`
	// TargetSince is when it last became the target.
	TargetSince *metav1.MicroTime `json:"targetSince,omitempty"`
	// Retried is the request for another round that was granted last.
	Retried string `json:"retried,omitempty"`
	// Render is the digest of the rendered sample, of a revision that was stored
	// without it.
	Render *string `json:"render,omitempty"`
}

// Failure is a slot in which bodies failed.
type Failure struct {
	ID          string           `json:"id"`
	Index       int              `json:"index"`
	Incarnation int64            `json:"incarnation"`
	Count       int              `json:"count"`
	At          metav1.MicroTime `json:"at"`
	Forgiven    bool             `json:"forgiven,omitempty"`
	// Message is the body's own words.
	Message string `json:"message,omitempty"`
}

// maxMessage bounds one failure's message, and maxMessages those of a revision
// together, in bytes: an object's annotations may have 256 KiB, and
// rollout.MaxFailures without a message take a third of it.
const maxMessage, maxMessages = 256, 32 << 10

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
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // it would make a message six times as long
	if err := e.Encode(rec); err != nil {
		return fmt.Errorf("encode record of ControllerRevision %s: %w", r.Name, err)
	}
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	r.Annotations[v1alpha1.AnnotationRecord] = strings.TrimSpace(text.String())
	return nil
}

// Engine is the record as the engine takes it.
func (rec Record) Engine(id string) rollout.Record {
	out := rollout.Record{
		ID: rollout.Revision(id), Failed: rec.Failed, Halted: rec.Halted, RolledBack: rec.RolledBack,
		Recovered: rec.Recovered, Counted: snapshot.Time(rec.Counted), Cutoff: snapshot.Time(rec.Cutoff), Worked: rec.Worked, Since: snapshot.Time(rec.TargetSince),
	}
	for _, f := range rec.Failures {
		out.Failures = append(out.Failures, rollout.Failure{
			ID: f.ID, Index: f.Index, Incarnation: f.Incarnation, Count: f.Count, At: f.At.Time, Forgiven: f.Forgiven, Message: f.Message,
		})
	}
	return out
}

// Take puts what the engine decided into the record.
func (rec Record) Take(r *rollout.Record) Record {
	rec.Failed, rec.Halted, rec.RolledBack, rec.Failures = r.Failed, r.Halted, r.RolledBack, nil
	rec.Recovered, rec.Counted, rec.Cutoff, rec.Worked = r.Recovered, snapshot.Micro(r.Counted), snapshot.Micro(r.Cutoff), r.Worked
	most := min(maxMessage, maxMessages/max(1, len(r.Failures)))
	for _, f := range r.Failures {
		rec.Failures = append(rec.Failures, Failure{
			ID: f.ID, Index: f.Index, Incarnation: f.Incarnation, Count: f.Count,
			At: metav1.NewMicroTime(f.At.UTC().Truncate(time.Microsecond)), Forgiven: f.Forgiven, Message: shorten(f.Message, most),
		})
	}
	return rec
}

// Renew is the record of a revision that becomes the target anew.
func (rec Record) Renew(now time.Time) Record {
	renewed := rec.Engine("").Renewed(now)
	rec = rec.Take(&renewed)
	rec.TargetSince = snapshot.Micro(now)
	return rec
}

// Retry is the record of a revision that gets one more round, on request.
func (rec Record) Retry(request string, now time.Time) Record {
	rec.Halted, rec.RolledBack, rec.Retried = false, false, request
	return rec.Renew(now)
}

// Adopt notes what the content is rendered to, of a revision that says the same
// and was stored without that. It tells whether anything was noted.
func (rec *Record) Adopt(r *appsv1.ControllerRevision, c *Content) bool {
	if rec.Render != nil || c.render() == "" {
		return false
	}
	if has, err := ReadContent(r); err != nil || has.Render != nil {
		return false
	}
	rec.Render = c.Render
	return true
}

// Stand is the record of a revision on which the pool has come to stand,
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

// stoodAfter compares by the count; by the clock only what was not counted.
func (rec *Record) stoodAfter(other *Record) bool {
	if rec.Stood != other.Stood {
		return rec.Stood > other.Stood
	}
	return rec.StoodAt != nil && (other.StoodAt == nil || rec.StoodAt.After(other.StoodAt.Time))
}

// shorten makes one line of at most so many bytes of a text.
func shorten(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

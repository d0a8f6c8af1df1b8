// Package history keeps a pool's revisions as apps/v1 ControllerRevisions: what
// decides a body, the version of the hash that named it, and, in an annotation,
// what happened to its bodies.
//
// A revision keeps the name that it got, for as long as anything refers to it:
// members record it, and bodies carry it. Which one the template is now is
// found by content (see Finder), whatever version of the hash gave it its name.
// A new version of the hash therefore names new revisions, and renames nothing.
package history

import (
	"cmp"
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

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

// RevisionID is the id of a ControllerRevision of a pool.
func RevisionID(r *appsv1.ControllerRevision) string { return r.Labels[v1alpha1.LabelRevision] }

// Current is the revision on which the pool last stood, or the first one of
// which a body recovered. It is nil if there is none.
func Current(list []*appsv1.ControllerRevision) *appsv1.ControllerRevision {
	var best *appsv1.ControllerRevision
	var last Record
	for _, r := range list {
		rec, err := ReadRecord(r)
		if err != nil || rec.Stood <= 0 && rec.StoodAt == nil {
			continue
		}
		if best == nil || rec.stoodAfter(&last) {
			best, last = r, rec
		}
	}
	return best
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

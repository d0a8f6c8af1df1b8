package snapshot

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// Granted returns the revisions that were granted for the member's next
// incarnation and then replaced by another grant. Parts of a body of such a
// revision may exist already.
func Granted(m *v1alpha1.Member) []string {
	fields := strings.Fields(m.Annotations[v1alpha1.AnnotationGranted])
	if len(fields) == 0 || fields[0] != nextIncarnation(m) {
		return nil
	}
	return fields[1:]
}

// Regrant changes the member's grant. If the birth of the previous grant may
// have begun, it notes that revision for Granted. Call it before the disruption
// is changed.
func Regrant(m *v1alpha1.Member, revision string) {
	previous, earlier := m.Spec.Revision, Granted(m)
	if previous != "" && previous != revision && mayBeBegun(m) && !slices.Contains(earlier, previous) {
		earlier = append(slices.Clone(earlier), previous)
	}
	m.Spec.Revision = revision
	if len(earlier) == 0 {
		delete(m.Annotations, v1alpha1.AnnotationGranted)
		return
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[v1alpha1.AnnotationGranted] = strings.Join(append([]string{nextIncarnation(m)}, earlier...), " ")
}

// mayBeBegun reports whether the birth of the next incarnation may have begun.
func mayBeBegun(m *v1alpha1.Member) bool {
	d, st := m.Spec.Disruption, &m.Status
	return st.Phase == "" || st.Phase == v1alpha1.PhasePending || d != nil && d.Incarnation == st.Incarnation
}

func nextIncarnation(m *v1alpha1.Member) string {
	r := Member(m, time.Time{})
	return strconv.FormatInt(r.NextIncarnation(), 10)
}

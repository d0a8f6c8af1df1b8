package snapshot

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// Granted are the revisions that the member was granted for the incarnation
// that comes next, and that were taken away again: something may have been made
// of them already.
func Granted(m *v1alpha1.Member) []string {
	words := strings.Fields(m.Annotations[v1alpha1.AnnotationGranted])
	if len(words) == 0 || words[0] != nextIncarnation(m) {
		return nil
	}
	return words[1:]
}

// Regrant changes what the member is to be. If that could have been begun, it
// notes what it was to be until now. The disruption is the one of before.
func Regrant(m *v1alpha1.Member, revision string) {
	was, earlier := m.Spec.Revision, Granted(m)
	if was != "" && was != revision && unborn(m) && !slices.Contains(earlier, was) {
		earlier = append(slices.Clone(earlier), was)
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

// unborn tells whether the next incarnation may have been begun.
func unborn(m *v1alpha1.Member) bool {
	d, st := m.Spec.Disruption, &m.Status
	return st.Phase == "" || st.Phase == v1alpha1.PhasePending || d != nil && d.Incarnation == st.Incarnation
}

func nextIncarnation(m *v1alpha1.Member) string {
	r := Member(m, time.Time{})
	return strconv.FormatInt(r.NextIncarnation(), 10)
}

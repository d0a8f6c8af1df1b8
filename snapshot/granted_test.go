package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

func TestRegrant(t *testing.T) {
	t.Parallel()
	disrupted := &v1alpha1.Disruption{Reason: v1alpha1.DisruptionDrift, Incarnation: 4}
	status := func(p v1alpha1.Phase) v1alpha1.MemberStatus {
		return v1alpha1.MemberStatus{Phase: p, Incarnation: 4, Revision: "a"}
	}
	tests := map[string]struct {
		reason string
		m      v1alpha1.Member
		noted  string
		grants []string
		want   string
	}{
		"in service":         {"its revision is that of a body, not of a birth that may have begun", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "a"}, Status: status("Available")}, "", []string{"b"}, ""},
		"retargeted":         {"the birth of b may have begun", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b", Disruption: disrupted}, Status: status("Terminating")}, "", []string{"c"}, "5 b"},
		"never born":         {"the birth of a slot's first body may have begun", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b"}}, "", []string{"c"}, "1 b"},
		"pending":            {"a pending slot has its incarnation number already", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b"}, Status: status("Pending")}, "", []string{"c"}, "4 b"},
		"the same revision":  {"a body that is healed on its own revision may have begun, too", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "a", Disruption: disrupted}, Status: status("Terminating")}, "", []string{"c"}, "5 a"},
		"there and back":     {"each revision is noted once", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b", Disruption: disrupted}, Status: status("Terminating")}, "", []string{"", "c", "b", "c"}, "5 b c"},
		"no change":          {"the grant was not replaced", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b", Disruption: disrupted}, Status: status("Terminating")}, "", []string{"b"}, ""},
		"of an earlier life": {"notes about an earlier incarnation are dropped", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b"}, Status: status("Available")}, "4 x y", []string{"c"}, ""},
		"of this life":       {"notes about this incarnation are kept", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b", Disruption: disrupted}, Status: status("Terminating")}, "5 x", []string{"c"}, "5 x b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := tt.m.DeepCopy()
			if tt.noted != "" {
				m.Annotations = map[string]string{v1alpha1.AnnotationGranted: tt.noted}
			}
			for _, g := range tt.grants {
				Regrant(m, g)
			}
			if diff := cmp.Diff(tt.want, m.Annotations[v1alpha1.AnnotationGranted]); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tt.reason, diff)
			}
			if m.Spec.Revision != tt.grants[len(tt.grants)-1] {
				t.Errorf("%s: granted %q, want %q", tt.reason, m.Spec.Revision, tt.grants[len(tt.grants)-1])
			}
		})
	}
}

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
		"in service":         {"its revision is what it is, not what it was to be", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "a"}, Status: status("Available")}, "", []string{"b"}, ""},
		"retargeted":         {"the birth of b may have begun", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b", Disruption: disrupted}, Status: status("Terminating")}, "", []string{"c"}, "5 b"},
		"never born":         {"so it may be at a slot's first", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b"}}, "", []string{"c"}, "1 b"},
		"pending":            {"the number is given already", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b"}, Status: status("Pending")}, "", []string{"c"}, "4 b"},
		"the same revision":  {"healed on what it was", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "a", Disruption: disrupted}, Status: status("Terminating")}, "", []string{"c"}, "5 a"},
		"there and back":     {"each is kept, once", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b", Disruption: disrupted}, Status: status("Terminating")}, "", []string{"", "c", "b", "c"}, "5 b c"},
		"no change":          {"nothing was taken away", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b", Disruption: disrupted}, Status: status("Terminating")}, "", []string{"b"}, ""},
		"of an earlier life": {"that is spent", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b"}, Status: status("Available")}, "4 x y", []string{"c"}, ""},
		"of this life":       {"kept on", v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "b", Disruption: disrupted}, Status: status("Terminating")}, "5 x", []string{"c"}, "5 x b"},
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
				t.Errorf("%s: it is to be %q", tt.reason, m.Spec.Revision)
			}
		})
	}
}

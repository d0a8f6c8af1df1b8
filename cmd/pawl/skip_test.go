package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
)

func TestSkip(t *testing.T) {
	t.Parallel()
	stuck := func(_ *testing.T, objects []client.Object) {
		m := objects[5].(*v1alpha1.Member)
		m.Status.Phase, m.Status.Revision, m.Status.Incarnation = v1alpha1.PhaseProvisioning, m.Spec.Revision, 2
		m.Status.ServedSince = nil
	}
	for name, tt := range map[string]struct {
		reason string
		args   []string
		change func(t *testing.T, objects []client.Object)
		status int
		says   string // the beginning of it
		value  string // the annotation afterwards
	}{
		"stuck": {
			"a body that does not come up gives way to one of the current revision", []string{"web/2"}, stuck, 0,
			"member web-2 is skipped: it is not brought to revision 9pddxxgw7rvz\n  web-2 is replaced by a body of revision s66lgtrnbk28: the slot is skipped (pawl skip)\n", "9pddxxgw7rvz",
		},
		"waiting": {
			"a member whose turn has not come stays what it is", []string{"web/1"}, nil, 0,
			"member web-1 is skipped: it is not brought to revision 9pddxxgw7rvz\n  member 1 is on revision s66lgtrnbk28 instead of 9pddxxgw7rvz: it is skipped", "9pddxxgw7rvz",
		},
		"already": {
			"once is enough", []string{"web/1"}, func(_ *testing.T, objects []client.Object) {
				objects[4].SetAnnotations(map[string]string{v1alpha1.AnnotationSkip: "9pddxxgw7rvz"})
			}, 0, "member web-1 is skipped already\n", "9pddxxgw7rvz",
		},
		"of an earlier target": {
			"a skip is for one target", []string{"web/1"}, func(_ *testing.T, objects []client.Object) {
				objects[4].SetAnnotations(map[string]string{v1alpha1.AnnotationSkip: "bbbbbbbbbbbb"})
			}, 0, "member web-1 is skipped: it is not brought to revision 9pddxxgw7rvz\n", "9pddxxgw7rvz",
		},
		"undo": {
			"it takes its turn after all", []string{"web/1", "--undo"}, func(_ *testing.T, objects []client.Object) {
				objects[4].SetAnnotations(map[string]string{v1alpha1.AnnotationSkip: "9pddxxgw7rvz"})
			}, 0, "member web-1 is no longer skipped\n  member 1 is on revision s66lgtrnbk28 instead of 9pddxxgw7rvz: as many", "",
		},
		"undo nothing": {
			"there is nothing to undo", []string{"web/1", "--undo"}, nil, 0, "member web-1 is not skipped\n", "",
		},
		"terminating": {
			"a body that is going is not brought back by it", []string{"web/2"}, func(_ *testing.T, objects []client.Object) {
				objects[5].(*v1alpha1.Member).Status.Message = "finalizer example.com/volume"
			}, 1, "error: member web-2 cannot be skipped: its body is terminating already, and what holds that is not its revision: finalizer example.com/volume\n", "",
		},
		"in service": {
			"what has arrived is not given up on", []string{"web/3"}, nil, 1,
			"error: member web-3 cannot be skipped: it is in service on the target, revision 9pddxxgw7rvz\n", "",
		},
		"nothing behind": {
			"there has to be something to fall back to", []string{"web/1"}, func(t *testing.T, objects []client.Object) {
				t.Helper()
				if err := history.WriteRecord(objects[2].(*appsv1.ControllerRevision), history.Record{Stood: 2, StoodAt: micro(0)}); err != nil {
					t.Fatal(err)
				}
			}, 1, "error: member web-1 cannot be skipped: the target, revision 9pddxxgw7rvz, is the current one: there is nothing to fall back to\n", "",
		},
		"rolled back": {
			"the pool has fallen back already", []string{"web/3"}, func(t *testing.T, objects []client.Object) {
				t.Helper()
				if err := history.WriteRecord(objects[2].(*appsv1.ControllerRevision), history.Record{Halted: true, RolledBack: true}); err != nil {
					t.Fatal(err)
				}
			}, 1, "error: member web-3 cannot be skipped: revision 9pddxxgw7rvz was rolled back already, and the target is revision s66lgtrnbk28 again; there is nothing else to fall back to\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, objects := world(t)
			if tt.change != nil {
				tt.change(t, objects)
			}
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), append([]string{"skip"}, tt.args...)...); got != tt.status {
				t.Errorf("%s: exit status %d, %s", tt.reason, got, &term.err)
			}
			if got := term.out.String() + term.err.String(); !strings.HasPrefix(got, tt.says) {
				t.Errorf("%s: it says %q, want %q", tt.reason, got, tt.says)
			}
			if got := memberOf(t, term, strings.Replace(tt.args[0], "/", "-", 1)).Annotations[v1alpha1.AnnotationSkip]; got != tt.value {
				t.Errorf("%s: it is skipped for %q, want %q", tt.reason, got, tt.value)
			}
		})
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		record history.Record
		status int
		says   string
		value  string
	}{
		"halted": {
			"a target that has halted gets one more round", history.Record{Failed: 3, Halted: true}, 0,
			"pool web tries revision 2 (9pddxxgw7rvz) once more: its failures are counted anew, up to update.failureLimit\nsee how it goes with `pawl status web --watch`\n",
			"9pddxxgw7rvz@2031-05-01T12:00:00Z",
		},
		"rolled back": {
			"so does one that was rolled back", history.Record{Failed: 3, RolledBack: true}, 0,
			"pool web tries revision 2 (9pddxxgw7rvz) once more:", "9pddxxgw7rvz@2031-05-01T12:00:00Z",
		},
		"failing": {
			"one that has not failed often enough tries by itself", history.Record{Failed: 1}, 1,
			"error: pool web: there is nothing to retry: revision 2 (9pddxxgw7rvz) has not halted; 1 body failed, update.failureLimit is 3, and one slot tries it again by itself\n", "",
		},
		"well": {
			"and one that has not failed at all needs no other round", history.Record{}, 1,
			"error: pool web: there is nothing to retry: revision 2 (9pddxxgw7rvz) has not failed\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, objects := world(t)
			if err := history.WriteRecord(objects[2].(*appsv1.ControllerRevision), tt.record); err != nil {
				t.Fatal(err)
			}
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), "retry", "web"); got != tt.status {
				t.Errorf("%s: exit status %d, %s", tt.reason, got, &term.err)
			}
			if got := term.out.String() + term.err.String(); !strings.HasPrefix(got, tt.says) {
				t.Errorf("%s: it says %q, want %q", tt.reason, got, tt.says)
			}
			if got := poolOf(t, term).Annotations[v1alpha1.AnnotationRetry]; got != tt.value {
				t.Errorf("%s: asked is %q, want %q", tt.reason, got, tt.value)
			}
		})
	}
}

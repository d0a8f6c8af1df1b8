package history

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

var noon = time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)

// revisions are of the pool web, with these numbers; their ids are r0, r1 and so on.
func revisions(numbers ...int64) []*appsv1.ControllerRevision {
	var list []*appsv1.ControllerRevision
	for i, n := range numbers {
		id := "r" + string(rune('0'+i))
		list = append(list, &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Name:   Name("web", id),
				Labels: map[string]string{v1alpha1.LabelPool: "web", v1alpha1.LabelRevision: id},
			},
			Revision: n,
		})
	}
	return list
}

func ids(list []*appsv1.ControllerRevision) string {
	var all []string
	for _, r := range list {
		all = append(all, RevisionID(r))
	}
	return strings.Join(all, " ")
}

func TestRecord_roundTrip(t *testing.T) {
	t.Parallel()
	rec := Record{
		Failures: []Failure{
			{ID: "a", Index: 1, Incarnation: 2, Count: 3, At: *snapshot.Micro(noon)},
			{ID: "b", Index: 2, Incarnation: 4, Count: 1, At: *snapshot.Micro(noon), Forgiven: true},
		},
		Failed: 4, Halted: true, RolledBack: true, Stood: 7, StoodAt: snapshot.Micro(noon), TargetSince: snapshot.Micro(noon),
	}
	r := revisions(1)[0]
	record(t, r, rec)
	got, err := ReadRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rec, got); diff != "" {
		t.Errorf("written and read (-want +got)\n%s", diff)
	}
	engine := got.Engine("r0")
	if diff := cmp.Diff(rec, got.Take(&engine)); diff != "" {
		t.Errorf("to the engine and back (-want +got)\n%s", diff)
	}
}

func TestRecord_Renew(t *testing.T) {
	t.Parallel()
	failed := Record{Failures: []Failure{{ID: "a", Incarnation: 2, Count: 1, At: *snapshot.Micro(noon)}}, Failed: 1, Stood: 3}
	got := failed.Renew(noon)
	if got.Failed != 0 || got.Stood != 3 || got.TargetSince == nil || len(got.Failures) != 1 || !got.Failures[0].Forgiven {
		t.Errorf("failures are forgiven, and not forgotten: %+v", got)
	}
	failed.Halted = true
	if got := failed.Renew(noon); !got.Halted || got.Failed != 1 || got.Failures[0].Forgiven {
		t.Errorf("what is halted stays so: %+v", got)
	}
}

func TestRecord_Stand(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		others map[string]Record
		want   int64
	}{
		"first":   {"it counts from 1", nil, 1},
		"later":   {"it comes after all others, whatever the clock says", map[string]Record{"a": {Stood: 4, StoodAt: snapshot.Micro(noon.Add(time.Hour))}}, 5},
		"used up": {"a number that somebody wrote does not make it negative", map[string]Record{"a": {Stood: math.MaxInt64}}, math.MaxInt64},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (Record{}).Stand(tt.others, noon); got.Stood != tt.want || !got.StoodAt.Time.Equal(noon) {
				t.Errorf("%s: %+v", tt.reason, got)
			}
		})
	}
}

func TestCurrent(t *testing.T) {
	t.Parallel()
	early, late := snapshot.Micro(noon), snapshot.Micro(noon.Add(time.Hour))
	tests := map[string]struct {
		reason  string
		records []Record
		want    string
	}{
		"never":      {"until a body has recovered there is none", []Record{{}, {}}, ""},
		"renumbered": {"the count decides, not the number", []Record{{Stood: 2}, {Stood: 1}}, "r0"},
		"unstamped":  {"a first revision of an earlier version was marked at no time", []Record{{Stood: 1}, {}}, "r0"},
		"clock back": {"the count decides, not the clock", []Record{{Stood: 1, StoodAt: late}, {Stood: 2, StoodAt: early}}, "r1"},
		"uncounted":  {"records without a count have only the clock", []Record{{StoodAt: early}, {StoodAt: late}}, "r1"},
		"both":       {"what was counted is later than what was not", []Record{{StoodAt: late}, {Stood: 1, StoodAt: early}}, "r1"},
		"same":       {"where somebody made two the same, the clock decides", []Record{{Stood: 9, StoodAt: late}, {Stood: 9, StoodAt: early}}, "r0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := revisions(1, 2)
			for i, rec := range tt.records {
				record(t, list[i], rec)
			}
			for range 2 {
				got := ""
				if r := Current(list); r != nil {
					got = RevisionID(r)
				}
				if got != tt.want {
					t.Errorf("%s: %q instead of %q", tt.reason, got, tt.want)
				}
				slices.Reverse(list)
			}
		})
	}
	if Current(nil) != nil {
		t.Error("there is none, and one is found")
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	list := revisions(3, math.MaxInt64, 5)
	n, changed := Next(list)
	if n != 4 || ids(changed) != "r0 r2 r1" || list[0].Revision != 1 || list[2].Revision != 2 || list[1].Revision != 3 {
		t.Errorf("numbers that are used up begin anew, in their order: %d, %s changed, %d %d %d",
			n, ids(changed), list[0].Revision, list[2].Revision, list[1].Revision)
	}
	if n, changed := Next(revisions(3, 9, 5)); n != 10 || changed != nil {
		t.Errorf("the next number is %d, and %s change", n, ids(changed))
	}
	if n, _ := Next(nil); n != 1 {
		t.Errorf("the first number is %d", n)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		limit  int
		delete int
		want   string
	}{
		"within":       {"what the limit allows stays", 3, -1, ""},
		"beyond":       {"the oldest beyond the limit go", 1, -1, "r2 r1"},
		"deleted":      {"what somebody deleted goes once nobody needs it", 3, 3, "r3"},
		"deleted kept": {"and not before", 3, 0, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := revisions(1, 2, 3, 4)
			if tt.delete >= 0 {
				list[tt.delete].DeletionTimestamp = &metav1.Time{Time: noon}
			}
			if got := ids(Prune(list, map[string]bool{"r0": true}, tt.limit)); got != tt.want {
				t.Errorf("%s: %q go instead of %q", tt.reason, got, tt.want)
			}
		})
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	list := revisions(2, 1, 3)
	list[2].Name = "copy"
	if got := ids(Of("web", list)); got != "r1 r0" {
		t.Errorf("revisions %s", got)
	}
}

func TestDistinct(t *testing.T) {
	t.Parallel()
	var list []*v1alpha1.Member
	for name, index := range map[string]int32{"web-2": 2, "web-0": 0, "a": 2, "z": 1, "b": 1} {
		list = append(list, &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MemberSpec{Pool: "web", Index: index}})
	}
	members, extra := Distinct(list)
	names := func(list []*v1alpha1.Member) string {
		var all []string
		for _, m := range list {
			all = append(all, m.Name)
		}
		return strings.Join(all, " ")
	}
	if a, b := names(members), names(extra); a != "web-0 b web-2" || b != "z a" {
		t.Errorf("members %s, extra %s", a, b)
	}
}

func TestStored_SnapshotUnreadableRecord(t *testing.T) {
	t.Parallel()
	s := stored(t, noon)
	s.Pool.Status.CurrentRevision, s.Pool.Status.TargetRevision = sim("1"), sim("2")
	s.Revisions[0].Annotations[v1alpha1.AnnotationRecord] = "{"
	got, err := s.Snapshot(noon)
	if err != nil {
		t.Fatal(err)
	}
	if got.Unreadable != rollout.SourcesUnresolved || string(got.Current.ID) != sim("1") || string(got.Target.ID) != sim("2") {
		t.Errorf("a record that cannot be read changes something: %+v", got)
	}
	if s.Invalid == nil || !strings.Contains(s.Invalid.Error(), s.Revisions[0].Name) {
		t.Errorf("it is not named: %v", s.Invalid)
	}

	s = stored(t, noon)
	s.Pool.DeletionTimestamp = &metav1.Time{Time: noon}
	s.Revisions[0].Annotations[v1alpha1.AnnotationRecord] = "{"
	if got, err := s.Snapshot(noon); err != nil || got.Unreadable != "" {
		t.Errorf("a pool that goes waits for a record: %q, %v", got.Unreadable, err)
	}
}

package history

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/revision"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// Stored is a pool as the API holds it.
type Stored struct {
	Pool      *v1alpha1.Pool
	Members   []*v1alpha1.Member
	Claims    []*v1alpha1.Claim
	Revisions []*appsv1.ControllerRevision
	// Target is the revision that the template is now, and Same are others that
	// say the same. Without them Snapshot looks for the template's, and takes its
	// sources to say what they said last.
	Target string
	Same   []string
	// Missing are the revisions that cannot be built any more.
	Missing map[string]bool
	// Invalid is why nothing is done: what is wrong with the pool's template,
	// or with what is stored of a revision; nil for nothing. Snapshot adds what
	// it finds.
	Invalid error
	// Wake is when time alone changes what Snapshot found: a hold ends, or a
	// window opens or closes. Zero for never. Snapshot sets it.
	Wake time.Time
}

// Snapshot is what the engine takes of it at the time. A revision that the
// template has become and that is not stored yet has a clean record. Members
// and Revisions are put in order, and what does not belong there left out: the
// snapshot has the same members at the same places. Of a pool that is being
// deleted the records are not asked: no body is born any more.
func (s *Stored) Snapshot(now time.Time) (*rollout.Snapshot, error) {
	policy, err := snapshot.Policy(&s.Pool.Spec)
	if err != nil {
		return nil, err
	}
	out := &rollout.Snapshot{
		Pool: s.Pool.Name, Policy: policy, Deleting: !s.Pool.DeletionTimestamp.IsZero(), Surge: int(s.Pool.Status.Surge),
		Size: int(s.Pool.Status.Size),
	}
	s.Members, _ = Distinct(s.Members)
	s.Revisions = Of(s.Pool.Name, s.Revisions)
	windows := snapshot.UpdateWindows(&s.Pool.Spec)
	open, until := windows.At(now)
	out.WindowShut, out.WindowNever, out.WindowError, s.Wake = !open, !open && until.IsZero(), windows.Problem(), until
	out.Waiting = snapshot.Waiting(s.Claims, s.Members)
	out.Members = make([]rollout.Member, len(s.Members))
	bound := snapshot.Bound(s.Claims)
	for i, m := range s.Members {
		out.Members[i] = snapshot.Member(m, now)
		if bound[m.Name] {
			out.Members[i].Taken()
		}
		if end := snapshot.HoldEnds(m); end.After(now) && (s.Wake.IsZero() || end.Before(s.Wake)) {
			s.Wake = end
		}
	}
	s.revisions(out)
	s.relate(out)
	return out, nil
}

// Distinct are the members in ascending order of index, each index once: the
// one that is named after it, or else the first by name. The others are extra.
func Distinct(list []*v1alpha1.Member) (members, extra []*v1alpha1.Member) {
	if !slices.IsSortedFunc(list, byIndex) {
		list = inOrder(list)
	}
	members = make([]*v1alpha1.Member, 0, len(list))
	for _, m := range list {
		if n := len(members); n > 0 && members[n-1].Spec.Index == m.Spec.Index {
			extra = append(extra, m)
			continue
		}
		members = append(members, m)
	}
	return members, extra
}

// inOrder is the list by index: sorted as numbers, without a look at the members,
// which lie all over the memory, and then where several have one index.
func inOrder(list []*v1alpha1.Member) []*v1alpha1.Member {
	keys := make([]uint64, len(list))
	for i, m := range list {
		keys[i] = uint64(uint32(m.Spec.Index))<<32 | uint64(uint32(i))
	}
	slices.Sort(keys)
	out := make([]*v1alpha1.Member, len(list))
	for i, k := range keys {
		out[i] = list[uint32(k)]
	}
	for from := 0; from < len(keys); {
		to := from + 1
		for to < len(keys) && keys[to]>>32 == keys[from]>>32 {
			to++
		}
		slices.SortFunc(out[from:to], byIndex)
		from = to
	}
	return out
}

func byIndex(a, b *v1alpha1.Member) int {
	if a.Spec.Index != b.Spec.Index {
		return cmp.Compare(a.Spec.Index, b.Spec.Index)
	}
	switch named := Slot(a.Spec.Pool, int(a.Spec.Index)); named {
	case a.Name:
		return -1
	case b.Name:
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}

// Slot is the name of the Member in a pool's slot.
func Slot(pool string, index int) string { return pool + "-" + strconv.Itoa(index) }

// revisions finds the target and the current revision. Where it cannot be told
// they stay what they were.
func (s *Stored) revisions(out *rollout.Snapshot) {
	records := make(map[string]Record, len(s.Revisions))
	var unread []error
	for _, r := range s.Revisions {
		rec, err := ReadRecord(r)
		if err != nil && !out.Deleting {
			unread = append(unread, err)
		}
		records[RevisionID(r)] = rec
	}
	if s.Invalid == nil {
		s.Invalid = errors.Join(unread...)
	}
	if !out.Deleting && s.Invalid == nil && s.Target == "" {
		s.Invalid = s.find(records)
	}
	target, current := s.Pool.Status.TargetRevision, s.Pool.Status.CurrentRevision
	switch {
	case out.Deleting:
	case s.Invalid != nil:
		out.Unreadable = rollout.SourcesUnresolved
	default:
		target = s.Target
	}
	if current == "" || len(unread) == 0 {
		current = ""
		if c := Current(s.Revisions); c != nil {
			current = RevisionID(c)
		}
	}
	if slices.Contains(s.Same, current) {
		current = target
	}
	out.Current, out.Target = s.record(records, current), s.record(records, target)
	if out.Target.RolledBack {
		out.RolledBack, out.Target = out.Target, out.Current
	}
}

func (s *Stored) record(records map[string]Record, id string) rollout.Record {
	r := records[id].Engine(id)
	r.Missing = s.Missing[id]
	return r
}

// find looks for the revision of the template, whose sources are not known.
func (s *Stored) find(records map[string]Record) error {
	t := &s.Pool.Spec.Template
	c, err := ContentOf(t)
	if err != nil {
		return err
	}
	found, same, err := new(Finder).Find(Question{
		Revisions: s.Revisions, Records: records, Content: c, TemplateOnly: true,
		Live: t.LiveFields, Prefer: s.Pool.Status.TargetRevision,
	})
	switch {
	case err != nil:
		return err
	case found != nil:
		s.Target, s.Same = RevisionID(found), same
		return nil
	}
	s.Target, err = c.ID(revision.Current)
	return err
}

// relate tells how the members stand to the target, where their names for it
// and their annotations have to be read.
func (s *Stored) relate(out *rollout.Snapshot) {
	for i, m := range s.Members {
		is := &out.Members[i]
		if len(s.Same) > 0 {
			is.Wants, is.Runs = s.named(is.Wants), s.named(is.Runs)
		}
		if id, ok := m.Annotations[v1alpha1.AnnotationSkip]; ok {
			is.Skipped = id != "" && s.named(rollout.Revision(id)) == out.Target.ID
		}
	}
}

// named is the revision by the name of the target, if it says the same.
func (s *Stored) named(id rollout.Revision) rollout.Revision {
	if slices.Contains(s.Same, string(id)) {
		return rollout.Revision(s.Target)
	}
	return id
}

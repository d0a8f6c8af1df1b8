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
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// Stored is a pool as the API holds it.
type Stored struct {
	Pool      *v1alpha1.Pool
	Members   []*v1alpha1.Member
	Revisions []*appsv1.ControllerRevision
	// Invalid is why nothing is done: what is wrong with the pool's template,
	// or with what is stored of a revision; nil for nothing. Snapshot adds what
	// it finds.
	Invalid error
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
	}
	s.Members, _ = Distinct(s.Members)
	s.Revisions = Of(s.Pool.Name, s.Revisions)
	out.Members = make([]rollout.Member, len(s.Members))
	for i, m := range s.Members {
		out.Members[i] = snapshot.Member(m, now)
	}
	s.revisions(out)
	return out, nil
}

// Distinct are the members in ascending order of index, each index once: the
// one that is named after it, or else the first by name. The others are extra.
func Distinct(list []*v1alpha1.Member) (members, extra []*v1alpha1.Member) {
	if !slices.IsSortedFunc(list, byIndex) {
		list = slices.SortedFunc(slices.Values(list), byIndex)
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
	target, current := s.Pool.Status.TargetRevision, s.Pool.Status.CurrentRevision
	if !out.Deleting {
		id, err := ID(&s.Pool.Spec.Template)
		switch {
		case err != nil || s.Invalid != nil:
			out.Unreadable = rollout.SourcesUnresolved
		default:
			target = id
		}
	}
	if current == "" || len(unread) == 0 {
		current = target
		if c := Current(s.Revisions); c != nil {
			current = RevisionID(c)
		}
	}
	out.Current = records[current].Engine(current)
	out.Target = records[target].Engine(target)
	if out.Target.RolledBack {
		out.RolledBack, out.Target = out.Target, out.Current
	}
}

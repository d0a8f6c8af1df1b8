package history

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// Stored is a pool as the API holds it.
type Stored struct {
	Pool *v1alpha1.Pool
	// Members in ascending order of index.
	Members   []*v1alpha1.Member
	Revisions []*appsv1.ControllerRevision
	// Invalid is what is wrong with the pool's template; nil for nothing.
	Invalid error
}

// Snapshot is what the engine takes of it at the time. A revision that the
// template has become and that is not stored yet has a clean record. An error
// names the object that cannot be read.
func (s *Stored) Snapshot(now time.Time) (*rollout.Snapshot, error) {
	policy, err := snapshot.Policy(&s.Pool.Spec)
	if err != nil {
		return nil, err
	}
	out := &rollout.Snapshot{
		Policy: policy, Deleting: !s.Pool.DeletionTimestamp.IsZero(), Surge: int(s.Pool.Status.Surge),
	}
	out.Members = make([]rollout.Member, len(s.Members))
	for i, m := range s.Members {
		out.Members[i] = snapshot.Member(m, now)
	}
	return out, s.revisions(out)
}

// revisions finds the target and the current revision.
func (s *Stored) revisions(out *rollout.Snapshot) error {
	records := make(map[string]Record, len(s.Revisions))
	for _, r := range s.Revisions {
		rec, err := ReadRecord(r)
		if err != nil {
			return err
		}
		records[RevisionID(r)] = rec
	}
	target := s.Pool.Status.TargetRevision
	if !out.Deleting {
		id, err := ID(&s.Pool.Spec.Template)
		switch {
		case err != nil || s.Invalid != nil:
			out.Unreadable = rollout.SourcesUnresolved
		default:
			target = id
		}
	}
	current := target
	if c := Current(s.Revisions); c != nil {
		current = RevisionID(c)
	}
	out.Current = records[current].Engine(current)
	out.Target = records[target].Engine(target)
	if out.Target.RolledBack {
		out.RolledBack, out.Target = out.Target.ID, out.Current
	}
	return nil
}

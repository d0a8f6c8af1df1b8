// Package snapshot converts API objects into the engine's types, and applies
// the defaults of absent fields. The operator, the simulator and the CLI all
// read the API through it, so that the same object means the same to each.
package snapshot

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// Defaults of optional fields.
const (
	DefaultReplicas             = 1
	DefaultBootTimeout          = 10 * time.Minute
	DefaultProgressDeadline     = 10 * time.Minute
	DefaultFailureLimit         = 3
	DefaultRevisionHistoryLimit = 10
)

// Policy resolves the policy of a pool. An error names the field; a spec that
// the API server accepted causes none.
func Policy(spec *v1alpha1.PoolSpec) (rollout.Policy, error) {
	u := spec.Update
	if u == nil {
		u = &v1alpha1.Update{}
	}
	n := int(value(spec.Replicas, DefaultReplicas))
	var f shares
	unavailable := f.parse("maxUnavailable", u.MaxUnavailable, 1)
	surge := f.parse("maxSurge", u.MaxSurge, 0)
	floor := f.parse("minAvailable", u.MinAvailable, 0)
	limit := f.parse("failureLimit", u.FailureLimit, DefaultFailureLimit)
	if f.err != nil {
		return rollout.Policy{}, f.err
	}
	p := rollout.Policy{
		Desired:          n,
		Warm:             value(spec.Sizing, v1alpha1.SizingTotal) == v1alpha1.SizingWarm,
		RefillBelow:      min(int(value(spec.RefillBelow, 0)), n),
		MaxMembers:       int(value(spec.MaxMembers, 0)),
		HasCeiling:       spec.MaxMembers != nil,
		InPlace:          value(u.Method, v1alpha1.MethodReplace) == v1alpha1.MethodInPlace,
		Rollback:         value(u.OnFailure, v1alpha1.FailureHalt) == v1alpha1.FailureRollback,
		Manual:           value(u.Type, v1alpha1.UpdateManual) == v1alpha1.UpdateManual,
		Paused:           value(u.Paused, false),
		MinAvailable:     floor.Up(n),
		HasFloor:         floor.Written,
		Partition:        int(value(u.Partition, 0)),
		MinReady:         time.Duration(value(u.MinReadySeconds, 0)) * time.Second,
		ProgressDeadline: DefaultProgressDeadline,
		FailureLimit:     max(1, limit.Up(n)),
		ReplaceUnknown:   value(u.Unknown, v1alpha1.UnknownAdopt) == v1alpha1.UnknownReplace,
	}
	if value(u.Order, v1alpha1.OrderLowestIndex) == v1alpha1.OrderOldestFirst {
		p.Order = rollout.OldestFirst
	}
	if u.ProgressDeadline != nil {
		p.ProgressDeadline = u.ProgressDeadline.Duration
	}
	p.MaxUnavailable, p.MaxSurge, p.Zero = rollout.Budget(unavailable, surge, n)
	p.MaxInFlight = int(value(u.MaxInFlight, int32(max(p.MaxUnavailable, p.MaxSurge, 1))))
	return p, nil
}

// Lifecycle resolves the times of a body's life from the template and the policy.
func Lifecycle(spec *v1alpha1.PoolSpec, p rollout.Policy) rollout.Lifecycle {
	l := rollout.Lifecycle{BootTimeout: DefaultBootTimeout, MinReady: p.MinReady, RecoverAfter: p.RecoverAfter()}
	if b := spec.Template.BootTimeout; b != nil {
		l.BootTimeout = b.Duration
	}
	return l
}

// Aim returns the revision to which the pool brings its members, read from its
// status: the target, or the current revision if the target is halted or rolled
// back. Claims prefer members of this revision.
func Aim(p *v1alpha1.Pool) rollout.Revision {
	st := &p.Status
	stalled := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionStalled)
	switch {
	case stalled != nil && stalled.Status == metav1.ConditionTrue && (stalled.Reason == "UpdateHalted" || stalled.Reason == "RolledBack"):
		return rollout.Revision(st.CurrentRevision)
	case st.Rollout != nil && st.Rollout.Revision != "":
		return rollout.Revision(st.Rollout.Revision)
	}
	return rollout.Revision(st.TargetRevision)
}

// value returns *p, or absent if p is nil.
func value[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}

// shares parses numbers and percentages, and keeps the first error.
type shares struct{ err error }

func (f *shares) parse(field string, v *intstr.IntOrString, absent int) rollout.Share {
	if v == nil {
		return rollout.Share{N: absent}
	}
	s := rollout.Share{N: v.IntValue(), Written: true}
	if v.Type == intstr.String {
		n, err := strconv.Atoi(strings.TrimSuffix(v.StrVal, "%"))
		if err != nil || !strings.HasSuffix(v.StrVal, "%") || n > 100 {
			n = -1
		}
		s.N, s.Percent = n, true
	}
	if s.N < 0 && f.err == nil {
		f.err = fmt.Errorf("spec.update.%s: %q must be a number of 0 or more, or a percentage from 0%% to 100%%", field, v.String())
	}
	return s
}

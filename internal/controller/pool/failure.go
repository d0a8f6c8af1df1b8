package pool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// Reasons of conditions that say what went wrong in a pass.
const (
	// InvalidTemplate: the pool's template is wrong.
	InvalidTemplate = "InvalidTemplate"
	// ApplyFailed: something that was to be written could not be.
	ApplyFailed = "ApplyFailed"
	// DuplicateMembers: several Members have one index.
	DuplicateMembers = "DuplicateMembers"
)

var (
	// errRace: what was to be written has changed since it was read.
	errRace = errors.New("it has changed meanwhile")
	// errForeign: a name that is needed is somebody else's.
	errForeign = errors.New("the name is taken")
)

// raceRetries is how often in a row a race may be lost before it is reported as
// what it then is: a failure.
const raceRetries = 5

// manyFailures is how many failures a condition's message names, and
// failuresAtOnce how many end a pass.
const (
	manyFailures   = 3
	failuresAtOnce = 20
)

func errorf(err error, format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// lost tells whether the error is a lost race and nothing else: somebody was
// first, and the next pass sees it.
func lost(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if !lost(e) {
				return false
			}
		}
		return true
	}
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || errors.Is(err, errRace)
}

// refused tells whether the API server refuses the object for what it is, so
// that others may fare better, and trying again helps only once somebody has
// changed something.
func refused(err error) bool {
	if errors.Is(err, errForeign) {
		return true
	}
	var status apierrors.APIStatus
	if lost(err) || !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}

// fail notes an error of the pass.
func (w *world) fail(err error) {
	if err != nil {
		w.failed = append(w.failed, err)
	}
}

// answering tells whether another write has a chance: all that failed was
// refused for what it is, and it is not too much.
func (w *world) answering() bool {
	n := 0
	for _, err := range w.failed {
		switch {
		case lost(err):
		case !refused(err):
			return false
		default:
			n++
		}
	}
	return n < failuresAtOnce
}

// failures says what failed, and whether trying again is no help.
func (w *world) failures() (message string, stuck bool) {
	var all []string
	for _, err := range slices.Concat(w.failed, w.stuck) {
		if lost(err) && !w.again {
			continue
		}
		stuck = stuck || refused(err)
		all = append(all, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if n := len(all) - manyFailures; n > 0 {
		all = append(all[:manyFailures], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, "; "), stuck
}

// stalled is the engine's condition, unless something is wrong that the engine
// does not see.
func (w *world) stalled(is rollout.Condition) rollout.Condition {
	message, stuck := w.failures()
	switch {
	case w.invalid != nil && !w.passing:
		return rollout.Condition{Status: rollout.True, Reason: w.reason, Message: w.complaint()}
	case stuck:
		return rollout.Condition{Status: rollout.True, Reason: ApplyFailed, Message: message}
	case len(w.extra) > 0:
		return rollout.Condition{Status: rollout.True, Reason: DuplicateMembers, Message: w.duplicates()}
	}
	return is
}

// reconciling says of what failed and may succeed by itself.
func (w *world) reconciling(is rollout.Condition) rollout.Condition {
	if message, stuck := w.failures(); message != "" && !stuck {
		return rollout.Condition{Status: rollout.True, Reason: ApplyFailed, Message: "it is tried again: " + message}
	}
	return is
}

func (w *world) updated(is rollout.Condition) rollout.Condition {
	switch {
	case w.invalid == nil:
		return is
	case w.reason == InvalidTemplate:
		return rollout.Condition{Status: rollout.Unknown, Reason: w.reason, Message: "nothing is done until the template is right: " + w.complaint()}
	}
	return rollout.Condition{Status: rollout.Unknown, Reason: w.reason, Message: "nothing is done while this is so: " + w.complaint()}
}

func (w *world) complaint() string {
	if w.reason == InvalidTemplate {
		return w.invalid.Error()
	}
	return strings.ReplaceAll(w.invalid.Error(), "\n", "; ")
}

// duplicates names the Members that are left alone.
func (w *world) duplicates() string {
	var all []string
	for _, m := range w.extra {
		first := "another Member"
		if f := w.member(int(m.Spec.Index)); f != nil {
			first = "Member " + f.Name
		}
		all = append(all, fmt.Sprintf("Member %s has index %d, as %s has, and is left alone: delete it", m.Name, m.Spec.Index, first))
	}
	if n := len(all) - manyFailures; n > 0 {
		all = append(all[:manyFailures], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, "; ")
}

// complain reports an error that ended the pass before there was a plan, and
// hands it back.
func (r *Reconciler) complain(ctx context.Context, w *world, err error) error {
	if err == nil || errors.Is(err, errUnseen) || lost(err) && !w.again {
		return err
	}
	w.fail(err)
	updated := w.pool.DeepCopy()
	st := &updated.Status
	st.ObservedGeneration = w.generation
	of := func(name string) rollout.Condition {
		if c := meta.FindStatusCondition(st.Conditions, name); c != nil && c.Reason != ApplyFailed {
			return rollout.Condition{Status: rollout.Status(c.Status), Reason: c.Reason, Message: c.Message}
		}
		return rollout.Condition{Status: rollout.False, Reason: "AsExpected"}
	}
	w.set(&st.Conditions, v1alpha1.ConditionReconciling, w.reconciling(of(v1alpha1.ConditionReconciling)))
	w.set(&st.Conditions, v1alpha1.ConditionStalled, w.stalled(of(v1alpha1.ConditionStalled)))
	if equality.Semantic.DeepEqual(&w.pool.Status, st) {
		return err
	}
	if patchErr := r.Client.Status().Patch(ctx, updated, client.MergeFrom(w.pool)); patchErr != nil {
		return errors.Join(err, errorf(patchErr, "patch status of Pool %s", w.pool.Name))
	}
	return err
}

func (w *world) set(list *[]metav1.Condition, name string, is rollout.Condition) {
	meta.SetStatusCondition(list, metav1.Condition{
		Type: name, Status: metav1.ConditionStatus(is.Status), Reason: is.Reason, Message: is.Message,
		ObservedGeneration: w.generation,
	})
}

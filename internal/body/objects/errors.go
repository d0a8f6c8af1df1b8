package objects

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/internal/body"
)

// classify makes of an API server's answer what the caller of Create acts on:
// no room, refused, or a plain error when it says nothing about the body.
func classify(verb string, m manifest, err error) error {
	wrapped := fmt.Errorf("%s: %s %s: %w", m.field, verb, m, err)
	switch {
	case isNoRoom(err):
		return fmt.Errorf("%w: %w", body.ErrNoRoom, wrapped)
	case isRefusal(err):
		return fmt.Errorf("%w: %w", body.ErrRefused, wrapped)
	}
	return wrapped
}

// isNoRoom: a quota is used up (the API server has no reason of its own for
// that, but the same words since the first version), or somebody asks to come
// back later.
func isNoRoom(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") ||
		code(err) == http.StatusTooManyRequests || code(err) == http.StatusInsufficientStorage
}

func isRefusal(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || isUnknown(err) || isAnother(err) {
		return false
	}
	switch code := code(err); code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict:
		return false
	case http.StatusInternalServerError:
		// What does not fit the schema is called an internal error by the
		// API server's apply.
		return strings.HasPrefix(err.Error(), "failed to create typed patch object")
	default:
		return code >= 400 && code < 500
	}
}

// isAnother says whether the API server answered that the name is that of another
// object than the one with the UID, which it says as if the UID was to change.
func isAnother(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// code is the HTTP status of an API server's answer, 0 if there was none.
func code(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return 0
}

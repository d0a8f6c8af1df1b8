package objects

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/internal/body"
)

func TestClassify(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	terminating := apierrors.NewForbidden(pods, "a", errors.New("being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	status := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	cases := map[string]struct {
		reason string
		err    error
		want   error
	}{
		"Forbidden":   {"no right", apierrors.NewForbidden(pods, "a", errors.New("no")), body.ErrRefused},
		"Invalid":     {"not valid", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", field.ErrorList{}), body.ErrRefused},
		"BadRequest":  {"not understood", apierrors.NewBadRequest("x"), body.ErrRefused},
		"NotFound":    {"no such namespace", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a"), body.ErrRefused},
		"NoPath":      {"what it does not know may be served again", apierrors.NewGenericServerResponse(404, "patch", schema.GroupResource{}, "", "404 page not found", 0, true), nil},
		"Webhook":     {"an admission webhook says no, with a code of its own", status(418, "admission webhook denied the request"), body.ErrRefused},
		"TooLarge":    {"an object too large", apierrors.NewRequestEntityTooLargeError("x"), body.ErrRefused},
		"Schema":      {"not of the schema", status(500, "failed to create typed patch object (a; b): .c: field not declared in schema"), body.ErrRefused},
		"Quota":       {"a quota is used up", apierrors.NewForbidden(pods, "a", errors.New("exceeded quota: q, requested: pods=1")), body.ErrNoRoom},
		"TooMany":     {"come back later", apierrors.NewTooManyRequests("x", 1), body.ErrNoRoom},
		"Storage":     {"the disk is full", status(http.StatusInsufficientStorage, "x"), body.ErrNoRoom},
		"Terminating": {"the namespace goes away", terminating, nil},
		"Internal":    {"something broke", apierrors.NewInternalError(errors.New("etcd: mvcc: database space exceeded")), nil},
		"WebhookDown": {"an admission webhook does not answer", apierrors.NewInternalError(errors.New("failed calling webhook")), nil},
		"Timeout":     {"too slow", apierrors.NewServerTimeout(pods, "patch", 1), nil},
		"Unavailable": {"not there", apierrors.NewServiceUnavailable("x"), nil},
		"Credentials": {"Pawl itself is not let in", apierrors.NewUnauthorized("x"), nil},
		"Conflict":    {"somebody was faster, at a quota, say", apierrors.NewConflict(pods, "a", errors.New("x")), nil},
		"Network":     {"no answer at all", errors.New("connection refused"), nil},
	}
	m := manifest{field: "template.objects[0]", Unstructured: &unstructured.Unstructured{Object: map[string]any{"kind": "Pod"}}}
	m.SetName("a")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := classify("create", m, c.err)
			for _, kind := range []error{body.ErrRefused, body.ErrNoRoom, body.ErrOccupied} {
				if errors.Is(got, kind) != errors.Is(c.want, kind) {
					t.Errorf("%s: got %v, want kind %v", c.reason, got, c.want)
				}
			}
			if !errors.Is(got, c.err) || !strings.Contains(got.Error(), "template.objects[0]: create Pod a: ") {
				t.Errorf("%s: the answer is kept, and the object named: got %v", c.reason, got)
			}
		})
	}
}

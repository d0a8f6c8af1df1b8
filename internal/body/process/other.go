//go:build !linux

package process

import (
	"context"
	"errors"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// Render fills ${…} in a string of a template in.
type Render func(s string, vars map[string]any) (string, error)

// Kind cannot be had on this system.
type Kind struct{}

var errSystem = errors.New("process bodies need Linux: they rely on pidfds")

// New returns an error: process bodies need Linux.
func New(string, Render, body.Notify, Options) (*Kind, error) { return nil, errSystem }

// Close does nothing.
func (*Kind) Close() {}

// Create implements body.Kind.
func (*Kind) Create(context.Context, body.Slot, *v1alpha1.Template) (body.Observation, error) {
	return body.Observation{}, errSystem
}

// Observe implements body.Kind.
func (*Kind) Observe(context.Context, body.Slot, *v1alpha1.Template) (body.Observation, error) {
	return body.Observation{}, errSystem
}

// Drain implements body.Kind.
func (*Kind) Drain(context.Context, body.Slot, *v1alpha1.Template) (done bool, err error) {
	return false, errSystem
}

// Undrain implements body.Kind.
func (*Kind) Undrain(context.Context, body.Slot, *v1alpha1.Template) error { return errSystem }

// Delete implements body.Kind.
func (*Kind) Delete(context.Context, body.Slot, string) error { return errSystem }

// Validate implements body.Validator.
func (*Kind) Validate(body.Slot, *v1alpha1.Template) error { return errSystem }

// Update implements body.Updater.
func (*Kind) Update(context.Context, body.Slot, *v1alpha1.Template) (body.Observation, error) {
	return body.Observation{}, errSystem
}

// CheckLive implements body.Liver.
func (*Kind) CheckLive(*v1alpha1.Template) error { return errSystem }

// ApplyLive implements body.Liver.
func (*Kind) ApplyLive(context.Context, body.Slot, *v1alpha1.Template) error { return errSystem }

// Forget implements body.Forgetter.
func (*Kind) Forget(context.Context, body.Slot) error { return errSystem }

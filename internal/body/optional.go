package body

import (
	"context"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// Validator is implemented by kinds that can say beforehand, touching nothing,
// that a body can never be created as it is.
type Validator interface {
	// Validate returns an error that wraps ErrRefused and names the field, or
	// nil. What it lets pass may still be refused by Create.
	Validate(slot Slot, template *v1alpha1.Template) error
}

// Forgetter is implemented by kinds that keep something of a slot when it has
// no body: ports, logs.
type Forgetter interface {
	// Forget removes what is kept of a slot whose Member goes. It returns
	// ErrOccupied while there is a body. It is idempotent.
	Forget(ctx context.Context, slot Slot) error
}

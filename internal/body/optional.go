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

// Updater is implemented by kinds whose bodies can become another revision
// where they are.
type Updater interface {
	// Update makes the body that is there slot.Incarnation of slot.Revision, as
	// the template says, keeping its identity and data, and says what it is
	// then. A body that is that already is left alone. Its errors are those of
	// Create; ErrOccupied where there is no body of this slot to update.
	Update(ctx context.Context, slot Slot, template *v1alpha1.Template) (Observation, error)
}

// Liver is implemented by kinds whose bodies take live fields.
type Liver interface {
	// ApplyLive brings the template's live fields to the body that is there and
	// changes nothing else. It is idempotent, costs nothing where all is as it
	// should be, and does nothing without a body. An error that wraps ErrRefused
	// names the field and why the body cannot take it.
	ApplyLive(ctx context.Context, slot Slot, template *v1alpha1.Template) error
}

// Forgetter is implemented by kinds that keep something of a slot when it has
// no body: ports, logs.
type Forgetter interface {
	// Forget removes what is kept of a slot whose Member goes. It returns
	// ErrOccupied while there is a body. It is idempotent.
	Forget(ctx context.Context, slot Slot) error
}

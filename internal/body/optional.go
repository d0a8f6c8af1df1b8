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
	// the template says, keeping its data, and says how far that is. A body that
	// is that already is left alone. Where something has to end first, it is
	// begun: as long as what is observed has not slot.Incarnation, it goes on,
	// and the kind notifies when it is to be called again, also by another
	// process, and also for another revision meanwhile.
	//
	// An error that wraps ErrRefused says that the body cannot become that, as a
	// rule before it was touched; ErrOccupied that there is no body of this slot
	// to update; anything else that it is to be tried again.
	Update(ctx context.Context, slot Slot, template *v1alpha1.Template) (Observation, error)
}

// Liver is implemented by kinds whose bodies take live fields.
type Liver interface {
	// CheckLive says, touching nothing, which of the template's live fields can
	// never be one. Its error wraps ErrRefused and names the paths.
	CheckLive(template *v1alpha1.Template) error
	// ApplyLive brings what the template says at its live fields to the body of
	// slot.Incarnation and changes nothing else. It is idempotent, costs nothing
	// where all is as it should be, and does nothing without that body. An error
	// that wraps ErrRefused says why the body cannot take it.
	ApplyLive(ctx context.Context, slot Slot, template *v1alpha1.Template) error
}

// Forgetter is implemented by kinds that keep something of a slot when it has
// no body: ports, logs.
type Forgetter interface {
	// Forget removes what is kept of a slot whose Member goes. It returns
	// ErrOccupied while there is a body. It is idempotent.
	Forget(ctx context.Context, slot Slot) error
}

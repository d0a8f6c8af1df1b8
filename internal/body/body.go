// Package body says what can be a member's body: Kubernetes objects, a local
// process, or a simulated one. Each kind is a package below this one and
// implements Kind.
package body

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// Kind makes, watches and ends bodies of one kind. Every method is idempotent
// and safe for concurrent use on different slots; calls for one slot do not
// overlap. None blocks for as long as a body takes to boot or to stop: they
// start things, and Observe tells how far they are.
type Kind interface {
	// Create makes the body of slot.Incarnation unless it is there already,
	// and says what it made. It returns ErrOccupied while a body of another
	// incarnation, or anything foreign, has the name; an error that wraps
	// ErrNoRoom where there is no capacity for it now; one that wraps
	// ErrRefused where it can never be created as it is; and any other error
	// when the world could not be reached.
	Create(ctx context.Context, slot Slot, template *v1alpha1.Template) (Observation, error)
	// Observe says how the slot's body is, whichever incarnation it has. An
	// error means that this could not be told, never that there is none.
	Observe(ctx context.Context, slot Slot, template *v1alpha1.Template) (Observation, error)
	// Drain starts or continues what comes before the end, and is done when it
	// says so. Undrain takes it back.
	Drain(ctx context.Context, slot Slot, template *v1alpha1.Template) (done bool, err error)
	Undrain(ctx context.Context, slot Slot, template *v1alpha1.Template) error
	// Delete tells the body with the UID to go. A body with another UID, or
	// none, is not touched; that is no error.
	Delete(ctx context.Context, slot Slot, uid string) error
}

// Slot is the member whose body is meant.
type Slot struct {
	Namespace, Pool, Member string
	Index                   int32
	// UID is the UID of the Member object; bodies that carry another one
	// belong to an earlier Member of the same name.
	UID string
	// Incarnation is the body's number; the first is 1.
	Incarnation int64
	// Revision is recorded with the body, and told by Observe.
	Revision string
	// Known are UIDs under which the slot's body has been known. What they name
	// and the template does not is part of it.
	Known []string
	// Sources are the values of ${sources.NAME} for this revision: a map of texts
	// by key for a ConfigMap or Secret, any value for a field of an object.
	Sources map[string]any
	// ServiceAccount is the account whose rights are used; only for objects.
	ServiceAccount string
}

// State is how a body is.
type State string

// The states of a body.
const (
	// Absent: there is none.
	Absent State = "Absent"
	// Booting: it is there and has not been ready yet.
	Booting State = "Booting"
	// Ready: it serves.
	Ready State = "Ready"
	// Down: it is there, has been ready before, and is not now.
	Down State = "Down"
	// Exited: it has ended by itself and does not come back.
	Exited State = "Exited"
	// Stopping: it was told to go, and is not gone.
	Stopping State = "Stopping"
)

// Observation is how the body of a slot is.
type Observation struct {
	State State
	// UID identifies the body; empty with Absent.
	UID string
	// Incarnation and Revision are what the body itself records; 0 and empty
	// where it cannot be told.
	Incarnation int64
	Revision    string
	// Address is where it serves; may be empty.
	Address string
	// BornAt is when it was created.
	BornAt time.Time
	// Message is one line about its state, in its own words where it has any:
	// exit code, last line of output, event. At most 1,024 bytes.
	Message string
	// Occupancy is whether work runs on it, where the kind can tell by itself.
	Occupancy Occupancy
	// Recheck is how long this observation is good for. Zero: until the kind's
	// own notification (a watch, a process's end) says otherwise.
	Recheck time.Duration
}

// Occupancy is whether work runs on a body.
type Occupancy string

// The occupancies. Untold: this kind has no say in it.
const (
	Untold           Occupancy = ""
	Idle             Occupancy = "Idle"
	Busy             Occupancy = "Busy"
	UnknownOccupancy Occupancy = "Unknown"
)

// Errors that Create wraps; test with errors.Is.
var (
	// ErrOccupied: the name is taken by a body of another incarnation that is
	// still there, or by something that is no body of this member.
	ErrOccupied = errors.New("name is taken")
	// ErrNoRoom: there is no capacity now; trying again later may succeed.
	ErrNoRoom = errors.New("no room")
	// ErrRefused: the body cannot be created as it is (invalid, forbidden,
	// missing command).
	ErrRefused = errors.New("refused")
)

// Notify tells that the body of a Member may have changed. It never blocks.
type Notify func(namespace, member string)

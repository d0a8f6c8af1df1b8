package sim

import (
	"time"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
)

// script is one body with all that is going to become of it. A zero time is
// never.
type script struct {
	UID         string `json:"uid"`
	MemberUID   string `json:"memberUID"`
	Incarnation int64  `json:"incarnation"`
	Revision    string `json:"revision,omitempty"`
	// Version is the template's.
	Version string    `json:"version,omitempty"`
	BornAt  time.Time `json:"bornAt,omitzero"`
	// As is what it is, BootAt when it began to boot as that.
	As     *v1alpha1.Sim `json:"as,omitempty"`
	BootAt time.Time     `json:"bootAt,omitzero"`
	// ReadyAt is when it has booted, EndsAt when it ends by itself.
	ReadyAt time.Time `json:"readyAt,omitzero"`
	EndsAt  time.Time `json:"endsAt,omitzero"`
	// SickSince is since when it is unhealthy.
	SickSince time.Time `json:"sickSince,omitzero"`
	// DrainedAt is when the drain that it is in is done.
	DrainedAt time.Time `json:"drainedAt,omitzero"`
	// GoneAt is when it is gone, once it was told to go.
	GoneAt time.Time `json:"goneAt,omitzero"`

	// Occupancy is whether work runs on it; empty: nobody has said.
	Occupancy body.Occupancy `json:"occupancy,omitempty"`

	// DrainTakes and StopTakes are how long these take once they begin.
	DrainTakes time.Duration `json:"drainTakes,omitempty"`
	StopTakes  time.Duration `json:"stopTakes,omitempty"`
	// StopSet is how long it takes to stop instead, negative for ever.
	StopSet *time.Duration `json:"stopSet,omitempty"`
}

// at tells how the body is at a time.
func (s *script) at(now time.Time) body.State {
	switch {
	case passed(s.GoneAt, now):
		return body.Absent
	case !s.GoneAt.IsZero():
		return body.Stopping
	case passed(s.EndsAt, now):
		return body.Exited
	case !passed(s.ReadyAt, now):
		return body.Booting
	case s.SickSince.IsZero():
		return body.Ready
	case s.SickSince.After(s.ReadyAt):
		return body.Down
	}
	// Sick since before it was ready, so it has never been.
	return body.Booting
}

// drained tells whether nothing has to happen any more before its end.
func (s *script) drained(now time.Time) bool {
	return s.at(now) == body.Exited || !s.GoneAt.IsZero() || passed(s.DrainedAt, now)
}

// next is the next time after now at which at or drained changes by itself.
func (s *script) next(now time.Time) time.Time {
	if !s.GoneAt.IsZero() {
		return later(s.GoneAt, now)
	}
	first := time.Time{}
	for _, t := range []time.Time{s.ReadyAt, s.EndsAt, s.DrainedAt} {
		if t = later(t, now); !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

func passed(t, now time.Time) bool { return !t.IsZero() && !now.Before(t) }

// later is t if it is after now, or never.
func later(t, now time.Time) time.Time {
	if t.After(now) {
		return t
	}
	return time.Time{}
}

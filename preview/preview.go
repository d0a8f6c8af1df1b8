// Package preview forecasts a rollout: which members are replaced, in which order,
// how long it takes, how low availability gets, and whether it ends. It runs the
// engine in virtual time; bodies boot and stop in the times that the Outlook gives.
package preview

import (
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// Outlook is the input of a forecast.
type Outlook struct {
	// Snapshot is the pool at the time Now, perhaps with another spec. It is not
	// changed.
	Snapshot *rollout.Snapshot
	Now      time.Time
	// Life has the times of a body's life, from the template and the policy.
	Life rollout.Lifecycle
	// Boot is the time from a body's birth until it is ready, Stop the time from
	// the decision to delete it until it is gone; 0 or more.
	Boot, Stop time.Duration
	// HoldEnds and ClaimEnds are the times at which holds and claims end by
	// themselves, by member index. A hold or claim that is not listed stays.
	HoldEnds, ClaimEnds map[int]time.Time
	// Reuse: a member keeps its body when its claim ends. Otherwise it gets a new
	// one.
	Reuse bool
	// Window reports whether a disruption may start at the time, and until when
	// that holds; zero for ever. Nil: always open. It replaces Snapshot.WindowShut.
	Window func(time.Time) (open bool, until time.Time)

	// wholePlans makes every plan consider all members; tests compare with it.
	wholePlans bool
}

// Forecast is what happens to a pool if it is not edited meanwhile.
type Forecast struct {
	// Finishes: in the end every member that the policy wants on the target is on
	// it. Reason and Next are then the reason of the pool's condition Updated and
	// the sentence that says what the pool waits for.
	Finishes bool   `json:"finishes"`
	Reason   string `json:"reason"`
	Next     string `json:"next"`
	// Collide names the two fields of the spec that together keep the rollout from
	// ending, if there are such fields.
	Collide []string `json:"collide,omitempty"`
	// Took is the time until the last change. Endless: the forecast was given up,
	// because the same changes repeat.
	Took    Time `json:"took"`
	Endless bool `json:"endless,omitempty"`
	// Free and InService are the lows of these two counts.
	Free      Low `json:"free"`
	InService Low `json:"inService"`
	// Births counts the bodies that are created, Deletes those that are deleted,
	// and Updates those that are updated in place.
	Births  int `json:"births"`
	Deletes int `json:"deletes"`
	Updates int `json:"updates"`
	// SurgePeak is the largest number of slots above the desired number.
	SurgePeak int `json:"surgePeak"`
	// Before and After count the members at the start and in the end.
	Before Tally `json:"before"`
	After  Tally `json:"after"`
	// Moves are the changes of members, in the order in which they begin.
	Moves []Move `json:"moves"`
	// Stays are the members that are not on the target in the end, sorted by index.
	Stays []Stay `json:"stays"`
}

// Tally counts members: all slots, and bodies by revision.
type Tally struct {
	Members int `json:"members"`
	Updated int `json:"updated"`
	Stale   int `json:"stale"`
	Unknown int `json:"unknown"`
}

// Low is the course of a count.
type Low struct {
	// Now is the count at the start, Lowest the smallest one, first reached at At,
	// and End the count in the end.
	Now    int  `json:"now"`
	Lowest int  `json:"lowest"`
	At     Time `json:"at"`
	End    int  `json:"end"`
}

// Time is a duration, or a time as the duration since the start. Its text form is
// that of time.Duration: "1m30s".
type Time time.Duration

func (t Time) String() string { return time.Duration(t).String() }

// MarshalText returns the text form.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText parses the text form.
func (t *Time) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*t = Time(d)
	return err
}

func (l *Low) observe(n int, at Time) {
	if n < l.Lowest {
		l.Lowest, l.At = n, at
	}
}

// Deed is the kind of a change of a member.
type Deed string

// The deeds.
const (
	// Replaced: the member gets a new body.
	Replaced Deed = "Replace"
	// UpdatedInPlace: the same body becomes another revision.
	UpdatedInPlace Deed = "Update"
	// Removed: the slot and its body are deleted.
	Removed Deed = "Remove"
	// Made: a slot is created, with its first body.
	Made Deed = "Create"
	// Born: an existing slot without a body gets one.
	Born Deed = "Birth"
)

// Move is one change of a member.
type Move struct {
	Index int  `json:"index"`
	Deed  Deed `json:"deed"`
	// At is when the change begins. Done is when the member is in service again or,
	// if it is removed, gone; absent if that does not happen.
	At   Time  `json:"at"`
	Done *Time `json:"done,omitempty"`
	// From and To are the revisions before and after; empty for none or unknown.
	From rollout.Revision `json:"from,omitempty"`
	To   rollout.Revision `json:"to,omitempty"`
	Why  rollout.Why      `json:"why,omitempty"`
	// Surge: the slot is above the desired number.
	Surge bool `json:"surge,omitempty"`
}

// Stay is a member that is not on the target in the end.
type Stay struct {
	Index    int              `json:"index"`
	Revision rollout.Revision `json:"revision,omitempty"`
	// Reason is what keeps the member from being updated, Text the sentence for
	// users, and Needs the party that has to act.
	Reason rollout.Reason `json:"reason"`
	Text   string         `json:"text"`
	Needs  rollout.Need   `json:"needs,omitempty"`
}

// Preview forecasts the pool. It assumes that every new body becomes ready after
// Boot, and that bodies that are down now stay down.
func Preview(o *Outlook) *Forecast {
	f := newForecaster(o)
	f.run()
	return f.report()
}

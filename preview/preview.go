// Package preview foretells what becomes of a pool: what goes, in which order, how
// long that takes, how low availability gets, and whether it ever ends. The engine
// decides, as it would decide then; bodies come up and go in the time that the
// outlook says.
package preview

import (
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// Outlook is what a forecast starts from.
type Outlook struct {
	// Snapshot is the pool as it is, or as it would be with another spec, at
	// the time Now. It is not changed.
	Snapshot *rollout.Snapshot
	Now      time.Time
	// Life is what the template and the policy say about a body's life.
	Life rollout.Lifecycle
	// Boot is the time from a body's birth until it is ready, Stop the time
	// from the decision that it goes until it is gone; 0 or more.
	Boot, Stop time.Duration
	// HoldEnds and ClaimEnds are when the holds and claims of members end by
	// themselves, by index. Those that are not named stay.
	HoldEnds, ClaimEnds map[int]time.Time
	// Reuse: a member whose claim ends is free again as it is. Otherwise it
	// gets a new body.
	Reuse bool
	// Window tells whether a disruption may start at the time, and until when
	// that holds; zero for ever. Nil: always. It replaces Snapshot.WindowShut.
	Window func(time.Time) (open bool, until time.Time)

	// whole has the engine look at all members each time.
	whole bool
}

// Forecast is what would become of a pool if nobody did anything meanwhile.
type Forecast struct {
	// Finishes: in the end every member that the policy wants on the target is on
	// it. Reason is that of the pool's condition Updated then, and Next the
	// sentence about what the pool waits for.
	Finishes bool   `json:"finishes"`
	Reason   string `json:"reason"`
	Next     string `json:"next"`
	// Collide are the two fields of the spec that keep a rollout from ever ending;
	// none if that is not so.
	Collide []string `json:"collide,omitempty"`
	// Took is the time until nothing moves any more. Endless: no such time was
	// found, because the same happens again and again.
	Took    Time `json:"took"`
	Endless bool `json:"endless,omitempty"`
	// Free and InService are how low those numbers get.
	Free      Low `json:"free"`
	InService Low `json:"inService"`
	// Births are the bodies that are made, Deletes those that are told to go,
	// Updates those that become another revision where they are.
	Births  int `json:"births"`
	Deletes int `json:"deletes"`
	Updates int `json:"updates"`
	// SurgePeak is the largest number of slots above the desired number.
	SurgePeak int `json:"surgePeak"`
	// Before and After are the members at the start and in the end.
	Before Tally `json:"before"`
	After  Tally `json:"after"`
	// Moves are what is done to members, in the order in which it is begun.
	Moves []Move `json:"moves"`
	// Stays are the members that are not on the target in the end, by index.
	Stays []Stay `json:"stays"`
}

// Tally counts members: all slots, and the bodies by revision.
type Tally struct {
	Members int `json:"members"`
	Updated int `json:"updated"`
	Stale   int `json:"stale"`
	Unknown int `json:"unknown"`
}

// Low is how low a number gets.
type Low struct {
	// Now is the number at the start, Lowest the smallest one, which it comes to
	// at the time At for the first time, and End the number in the end.
	Now    int  `json:"now"`
	Lowest int  `json:"lowest"`
	At     Time `json:"at"`
	End    int  `json:"end"`
}

// Time is a span of time, or how long after the start something is. JSON says it as
// "1m30s".
type Time time.Duration

func (t Time) String() string { return time.Duration(t).String() }

// MarshalText writes it for JSON.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what JSON says.
func (t *Time) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*t = Time(d)
	return err
}

func (l *Low) see(n int, at Time) {
	if n < l.Lowest {
		l.Lowest, l.At = n, at
	}
}

// Deed is what is done to a member.
type Deed string

// The deeds.
const (
	// Replaced by a new body.
	Replaced Deed = "Replace"
	// UpdatedInPlace: the same body becomes another revision.
	UpdatedInPlace Deed = "Update"
	// Removed with its slot.
	Removed Deed = "Remove"
	// Made: a slot and its first body.
	Made Deed = "Create"
	// Born: a slot that waited for its body gets it.
	Born Deed = "Birth"
)

// Move is one thing that is done to a member.
type Move struct {
	Index int  `json:"index"`
	Deed  Deed `json:"deed"`
	// At is when it is begun, Done when the member is in service, or gone if it
	// is removed; absent if it does not come to that.
	At   Time  `json:"at"`
	Done *Time `json:"done,omitempty"`
	// From and To are the revisions before and after; empty for none or unknown.
	From rollout.Revision `json:"from,omitempty"`
	To   rollout.Revision `json:"to,omitempty"`
	Why  rollout.Why      `json:"why,omitempty"`
	// Surge: the slot is made above the desired number.
	Surge bool `json:"surge,omitempty"`
}

// Stay is a member that is not on the target in the end.
type Stay struct {
	Index    int              `json:"index"`
	Revision rollout.Revision `json:"revision,omitempty"`
	// Reason is what keeps it, Text says so to a person, and Needs names who has to
	// act.
	Reason rollout.Reason `json:"reason"`
	Text   string         `json:"text"`
	Needs  rollout.Need   `json:"needs,omitempty"`
}

// Preview foretells what becomes of the pool. The engine decides; bodies take
// as long as the outlook says, all come up, and those that are down stay so.
func Preview(o *Outlook) *Forecast {
	f := newForecaster(o)
	f.run()
	return f.tell()
}

// Package live plays scenario files on a real API server, with the real
// controllers and simulated bodies.
//
// Each file gets a namespace, a world of bodies and a copy of the operator of
// its own, so that many can be played side by side on one server. It is set up
// by writing its objects while no controller runs. What users do in a story is
// done by API writes; a crash ends the operator, and no request of it gets
// through from then on, not even in the middle of a pass.
//
// # Time
//
// A story has a clock of its own (Clock), which starts at 0:00 UTC; controllers
// and bodies go by it, so that everything that is stored, and all that they wait
// for, is the story's time. The clock is moved by whoever plays the story:
//
//   - While there is something to do (a write or a watch event on its way, a
//     request in a queue, a pass that runs) it goes on at the run's speed: so
//     much faster than real time that a reaction, which takes milliseconds, is
//     short beside the shortest time that the file speaks of. What happens while
//     controllers are at work does happen while they are at work.
//   - While there is nothing to do it skips to the next thing that is due.
//   - While something has been on its way for a tenth of a second it stands
//     still. A busy machine makes a run longer, not wrong.
//
// To know that there is nothing to do, every write is followed from its request
// until it was seen by the judge and by every handler of the controllers' cache
// (traffic, tap), every notice of a body until it is in a queue (notices), and
// every request in a queue until it is done (queue). Nothing of that is looked
// at by the judge.
//
// # What is judged
//
// The judge sees objects as watches of its own bring them, and bodies as their
// world tells of them; it never asks the controllers. Objects of different kinds
// come by different watches, which have no common order. But resource versions
// are one sequence, so what was observed is put in their order: an observation
// is taken in once every write that was begun before it came has been seen too,
// and so cannot be missed. A change of a body stands after all writes that were
// answered when it happened. Every state that the judge looks at is one that a
// consistent reader could have seen.
//
// Expectations that name a time (at, within, and t in expressions) may hold a
// little sooner or later: by a quarter of a second of real time at the run's
// speed. All others have to hold in every single state.
//
// What is promised anyhow is held against every single write: no member with a
// claim and a disruption, no claim on two members, nothing disrupted that is
// claimed, busy, or held; and, of what adds up over several objects (limits,
// floors, sizes), that the write was right by what there was at some time within
// the lag and that quarter of a second, all that was decided since included: a
// controller cannot know what has not reached it yet.
//
// # What is late
//
// A file's lag is put between the server and the controllers' cache: each event
// comes up to so much later, those of one object in their order, and so does
// each list after a start.
//
// # Commands and clocks
//
// What people do with pawl is done by writing what pawl writes, and not where
// pawl would refuse it. The controllers' clock is the story's, ahead or back by
// what the story says; bodies, users and the API server go by the story's own.
// Bodies that go up and down are made sick and well by whoever plays the story.
//
// # What cannot be had
//
// A claim of one certain member, since Claims have no such field; and content of
// sources that changes, since the digests in revisions are made with a key of
// the controllers' own, so that the revisions that are there at the start cannot
// be written. Files that need either are left out, and the reason is told.
//
// Entries of one instant are one edit, but several writes. A pool's spec is
// edited once. What happens to several members at once is noticed member by
// member; the controller of Pools has to wait until all of it is. Whatever else
// happens at one instant may be seen one after the other.
package live

// Package simulate plays stories about pools in virtual time, around the
// engine that the controllers use.
//
// A [Scenario] is one file: where the world starts, what happens to it, and
// what must hold; scenarios/FORMAT.md describes it. [Load] and [Parse] check
// and compile it, [Scenario.Run] plays it under a seed, and [Play] plays many
// files under many seeds at once. The same file and seed always have the same
// result, to the byte.
//
// # The world
//
// Everything that Pawl would keep in the API is a record here: members, pool
// specs, what is remembered of revisions, claims. A record is never changed; a
// write stores another one in its place if the writer has seen the last one,
// as a resource version makes sure in the API. Bodies boot, serve, crash and
// stop by themselves, whether or not a controller looks.
//
// # The controllers
//
// Three of them run for each pool, one step at a time, woken by what changes
// and by their own timers: the planner (pool) asks [rollout.New] and carries
// the plan out, the keeper (members) brings each slot through its life with
// [rollout.Step], and the binder (claims) gives members away with
// [rollout.Pick]. Each reads through a cache of its own, in which a write
// arrives up to `lag` late, the writes to one object in their order. None
// decides before it has seen its own last writes. A crash drops caches, timers
// and all that is on its way; a start lists what is stored, and acts once the
// list has arrived, which may take as long as any read.
//
// What users do at one instant reaches each reader at one instant, whole. The
// binder serves the claims that wait in the order in which they were made, as
// many in one pass as there are free members. After a start or an outage of the
// API server each claim has one whole heartbeat.
//
// A pool of a thousand members or more gets four passes of the planner a second
// at most, as any pool does from the real controller.
//
// # Clocks
//
// The world has one clock, which expressions read as t. The controllers have
// another, which an entry may set back or forward: what they store and compare
// is of that one, while bodies boot and stop, and timers run, by the first.
// When claims were last renewed is counted by the first too, as a process does
// that looks at its own clock only. The API server stamps claims by the first.
//
// # What is looked at, and when
//
// A judge looks after every single write and every change of a body. What lies
// between two writes at one instant is a state that others can read, so it has
// to be as good as any other; only the entries of the timeline at one instant
// are one edit, of which nobody sees a half. An entry that waits for an
// expression happens next, but a crash happens there and then, also between
// two writes of one pass. `at` looks when all that happens at its instant has
// happened, and `within` from the last entry before its time on.
//
// A member counts as in service if what is recorded says so and its body is
// ready in truth. After a rollback the target is the revision that the pool
// went back to, until the template changes.
//
// # Revisions
//
// A revision is a name here, and what is stored keeps its name: another hash
// algorithm comes to a restart. A renderer that changes makes another revision
// of every template, called A' where it was A; so does a source whose content
// changes. Each further combination of renderer and content adds an apostrophe,
// and one that comes back has the name that it had. All sources say "1" at the
// start. How bodies of A behave holds for A' too, unless the file says
// otherwise.
//
// # Random worlds
//
// The package's tests draw worlds at random, as the text of scenario files,
// play them, and see to it that each promise holds at every step and that a
// world in which nothing happens any more comes to rest within a time that is
// computed for it. `make worlds` plays 100,000. One that fails is made as small
// as possible and printed; saved as it is, pawl simulate shows the same failure.
//
// # Seeds
//
// Seed 1 takes every time as the file says it, has reads arrive as late as the
// file allows, and lets things happen in the order in which they came up.
// Every other seed varies boot, stop and drain times by a fifth, draws how
// late each read is, and shuffles what happens at one instant.
//
// # What the simulator does not have yet
//
// A file may ask for what the format knows and the simulator does not:
// budgets, groups, roles, handovers, hooks, autoscaling, a second leader, a
// restore from a backup. It is read as far as that goes, and [Scenario.Needs]
// says what is missing; such a file waits, and neither passes nor fails.
// [Scenario.Unlive] says why a file cannot be played on a real API server.
//
// # Forecasts
//
// [Preview] tells what becomes of one pool if nobody does anything meanwhile:
// who goes, when, how few stay free, what keeps the others, and whether it
// ends. The engine is asked about bodies that move in virtual time; there is no
// second copy of its rules. It is asked about the members of which something
// can be decided now, and told how many others there are ([rollout.Rest]), so
// that a plan of 100,000 members takes no longer than one of ten. A property
// holds that to what it says when it is asked about all; another holds
// forecasts to what the simulated world comes to, and a test of package
// internal/live to what real controllers do.
package simulate

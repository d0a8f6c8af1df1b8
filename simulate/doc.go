// Package simulate plays scenarios of pools in virtual time, with the engine that
// the controllers use.
//
// A [Scenario] is one file: the start of the world, a timeline, and expectations;
// scenarios/FORMAT.md describes it. [Load] and [Parse] check and compile it,
// [Scenario.Run] plays it under a seed, and [Play] plays many files under many
// seeds at once. The same file and seed always give the same result, to the byte.
//
// # The world
//
// Everything that Pawl would store in the API is a record here: members, pool
// specs, records of revisions, claims. A record is immutable. A write replaces
// the record that the writer has read; if that is not the stored one any more,
// the write is a conflict, as with resource versions. Bodies boot, serve, crash
// and stop independently of the controllers.
//
// # The controllers
//
// Each pool has three, woken by changes and by their own timers: the planner
// (pool) applies the plans of [rollout.New], the keeper (members) advances each
// slot with [rollout.Step], and the binder (claims) chooses members with
// [rollout.Pick]. Each reads through a cache of its own, in which a write arrives
// up to `lag` late; writes to one object arrive in order. No controller decides
// before it has seen its own last writes. A crash drops caches, timers and writes
// in flight to caches. A start lists everything, and acts once the list has
// arrived, which takes as long as any read.
//
// All edits of one instant reach a cache together. The binder serves waiting
// claims in the order in which they were made, as many in one pass as there are
// free members. After a start or an outage of the API server each claim has one
// whole heartbeat.
//
// A pool of a thousand members or more gets at most four passes of the planner a
// second. The real controller limits every pool so.
//
// # Clocks
//
// The world has a clock, which expressions read as t. The controllers have
// another, which an entry may set back or forward. Times that controllers store
// and compare are of their clock. Bodies, timers, the age of heartbeats and the
// creation times of claims go by the world's clock.
//
// # When expectations are checked
//
// The judge checks after every single write and every change of a body: a state
// between two writes at one instant can be read by others, so it must be good,
// too. Only the entries of the timeline at one instant are one edit, whose
// intermediate states are not checked. An entry that waits for an expression
// happens as the next event, except a crash, which happens at once, even between
// two writes of one pass. `at` is checked at the end of its instant, and `within`
// from the last entry before its time on.
//
// A member counts as in service if its record says so and its body is ready.
// After a rollback the target is the revision to which the pool went back, until
// the template changes.
//
// # Revisions
//
// A revision is a name here, and stored names do not change, so that another hash
// algorithm is only a restart. A changed renderer makes another revision of every
// template, named A' for A; so does a changed content of a source. Each further
// combination of renderer and content adds an apostrophe, and a combination that
// returns has its former name. The content of all sources is "1" at the start.
// Bodies of A' behave as those of A, unless the file says otherwise.
//
// # Random worlds
//
// The package's tests draw random worlds as the text of scenario files and play
// them. Every promise must hold at every step, and once nothing happens any more,
// the pool must come to rest within a time that is computed for it. `make worlds`
// plays 100,000. A failing world is shrunk and printed as a file; pawl simulate
// reproduces the failure from it.
//
// # Seeds
//
// With seed 1 all times are those of the file, every read is as late as the file
// allows, and events of one instant happen in the order in which they were
// scheduled. Every other seed varies boot, stop and drain times by up to a fifth,
// draws the delay of each read, and shuffles the events of one instant.
//
// # What the simulator does not have yet
//
// The format has features that the simulator does not play: budgets, groups,
// roles, handovers, hooks, autoscaling, a second leader, a restore from a backup.
// Files that use them are parsed but not played, and neither pass nor fail;
// [Scenario.Needs] lists what is missing. [Scenario.Unlive] gives the reason for
// which a file cannot be played on a real API server.
//
// # Forecasts
//
// [Scenario.Outlook] is the input of a forecast by package preview. A property
// test compares forecasts with the simulated world, and a test of package
// internal/live compares them with real controllers.
package simulate

// Package states checks the engine in every state that a small pool can come to,
// rather than in a sample of them. It runs the code of package rollout itself; there
// is no model of it.
//
// From each start it follows every edge, breadth first: a plan carried out whole, or
// cut off by a crash after any of its writes, or made on a read that is late by one
// event; each slot's next step; what bodies do; time; and what users do. Users and
// faults have a budget a path: that and the number of slots are the bounds.
//
// # Time
//
// Time moves only to the next instant at which something can change by itself: the
// wakes of the plan and of the slots, the end of a boot, a recovery; or, where nothing
// wakes, by a long while. It stands while a controller has something to do, or a body
// that is not slow drains or stops: that takes milliseconds. An outage, which is a
// fault, lets it move nevertheless. A body that is not slow boots within bootTime.
//
// # Equal states
//
// Two states are one if they differ in nothing that a decision can depend on. Times are
// kept as ages; of a gap between two times that is longer than any threshold only that
// it is so long ([world.tidy]). States are decoded from that form and explored, so a
// test holds the form to what it promises: the tidied state has the same successors.
//
// # What is checked
//
// In every state: the engine's own promises ([rollout.CheckInvariants]), that it does
// not panic, and that between a plan and its wake time alone changes nothing. On every
// edge: what must hold of stored members. From every state the world comes to rest, once
// users and faults stop, under one fair order: slots first, then claims, then the plan,
// then bodies, then time. These steps are edges, too, so that it is enough to look for
// cycles among them, and at the states from which none leads on.
package states

// Package sim makes scripted bodies, which do nothing but boot, serve and stop
// in their time, for tests, demos and load.
//
// A World holds the bodies and implements body.Kind. It is not the controllers'
// own: they may be stopped and started anew on the same World, as they would be
// on the same machines. With a file it outlives its own process, too; bodies go
// through their times meanwhile.
//
// How a body is, is a function of its script and the time (see script.at), so
// nothing has to run for it to become ready, crash or be gone. One timer, for
// the next such moment of any body, tells those who want to know.
//
// The time is that of Options.Clock, so that a story of an hour can be played
// against a real API server in a few seconds.
package sim

// Package gate starts a program in two steps: first a process that only
// waits, with the pid that the program will have, then the program itself, in
// its place. In between the caller writes down who that process is. Should the
// caller die before it said "go", however it dies, the process ends without
// having run anything: no program ever runs of which there is no record.
//
// The waiting process is the caller's own executable, run again. Importing
// this package therefore adds an init function that takes over when, and only
// when, the process was started by Start.
package gate

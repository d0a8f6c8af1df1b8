// Package process makes bodies of local processes.
//
// # Slots
//
// A Member has a directory, NAMESPACE/MEMBER below the kind's own, which stays
// from body to body and which holds
//
//	slot.json            the ports of the slot, and who its body is
//	stdout.log[.1 …]     what the body writes, kept until the next one is made
//	stderr.log[.1 …]
//	work-N, tmp-N        working and temporary directory of incarnation N, and
//	                     of those that it was updated to
//
// What a body is, how it is judged and how it is ended is taken from the
// template when it is made, and kept: a template that changes meanwhile changes
// nothing for the bodies that are there, but for what is live in it.
//
// # Starting
//
// A process first waits at a gate (package gate), until slot.json says which
// process it is. So whoever dies at whatever moment: either no program has run,
// or the next one finds it. It runs in a session of its own, with files of its
// own, and does not notice when the one that started it ends. Whoever runs the
// latter under systemd sets KillMode=process, or all bodies end with it.
//
// # Who is who
//
// A process is known by its pid together with its start time, the boot of the
// machine and the namespace of its pid. Everything that is done to one is done
// through a pidfd that was opened before those were compared, so it reaches that
// process or none. The processes of a body are those that carry its UID in the
// environment they were started with, as PAWL_BODY, and those in the session or
// the process group that its first process leads, as long as that number cannot
// have come to mean another. See group.members.
//
// # Ending
//
// All processes of a body are told by the stop signal and, after the grace, by
// SIGKILL. That happens to what is left of it, too, when its first process
// ends by itself: a body ends as a whole. It is gone when none of them is left.
//
// # Updates
//
// A body that is updated where it is ends as a whole, as it would if it was told
// to go, and then starts anew in its directories and with its ports. slot.json
// says so from before the first signal until the new program was let go; in
// between, whoever comes later finds a body that has ended and is to start, and
// counts as what it was.
//
// # Readiness
//
// A probe is made every period and may take as long as that, but at least one
// second and at most ten. The first that succeeds makes the body ready. After
// that, three in a row that fail make it down, and the next that succeeds makes
// it ready again. An output probe succeeds once and for all. Redirects are
// answers; they are not followed.
//
// # Ports
//
// They are loopback ports outside of the range that the system uses for outgoing
// connections, where it leaves room for that. No two slots have the same. They
// stay with the slot; one that something else has taken while the slot had no
// body is replaced by another.
package process

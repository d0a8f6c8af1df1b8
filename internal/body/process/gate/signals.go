//go:build linux

package gate

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// resetSignals gives every signal its default action and unblocks it. The
// runtime's handlers go with the exec anyway; what this undoes is what was
// ignored or blocked before this process began, which exec would hand on.
// Only for just before an exec.
func resetSignals() {
	// SIG_DFL is 0, so an action of zeros, of at least the kernel's size.
	var action [64]byte
	const setSize = 8
	for sig := uintptr(1); sig <= 64; sig++ {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, setSize, 0, 0)
	}
	var none unix.Sigset_t
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &none, nil)
}

package pawldtest

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// shared is the server of a package's tests, and why there is none.
var (
	shared    *Server
	errShared = errors.New("no shared server: call pawldtest.Main from TestMain")
)

// Main runs a package's tests around one server that they share, and returns
// the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(pawldtest.Main(m)) }
func Main(m *testing.M, options ...Option) int {
	shared, errShared = start(options)
	code := m.Run()
	if errShared != nil {
		return code
	}
	if code != 0 {
		fmt.Fprintf(os.Stderr, "end of pawld's log:\n%s", shared.tail())
	}
	if err := errors.Join(shared.Stop(), shared.guard.end()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Shared is the server of the package's tests.
func Shared(t testing.TB) *Server {
	t.Helper()
	if errShared != nil {
		t.Fatal(errShared)
	}
	return shared
}

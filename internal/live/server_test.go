package live

import (
	"os"
	"path/filepath"
	"testing"
)

// A server that is stopped leaves nothing behind, neither its directory nor the
// guard over it, and has nothing to complain about, however fast the guard is, or
// if somebody has killed it.
func TestServer_Stop(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		s, err := StartServer(t.Context(), filepath.Join("testdata", "pawld"))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			_ = s.guard.Process.Kill()
		}
		if err := s.Stop(); err != nil {
			t.Errorf("round %d: %v", i, err)
		}
		if s.guard.ProcessState == nil {
			t.Errorf("round %d: the guard is still there", i)
		}
		if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
			t.Errorf("round %d: its directory is still there: %v", i, err)
		}
	}
}

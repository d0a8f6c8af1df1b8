package simulate

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	// What fails is printed as a scenario file, which is better to keep.
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

package simulate

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

var worlds = flag.Int("worlds", 0, "how many random worlds to draw, on all processors together; 0 for what -rapid.checks says on each")

func TestMain(m *testing.M) {
	flag.Parse()
	// What fails is printed as a scenario file, which is better to keep.
	setFlag("rapid.nofailfile", "true")
	if n := runtime.GOMAXPROCS(0); *worlds > 0 {
		setFlag("rapid.checks", strconv.Itoa((*worlds+n-1)/n))
	}
	os.Exit(m.Run())
}

func setFlag(name, value string) {
	if err := flag.Set(name, value); err != nil {
		panic(err)
	}
}

package simulate

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

var worlds = flag.Int("worlds", 0, "how many random worlds to draw, in total; 0 for the number of -rapid.checks on each processor")

func TestMain(m *testing.M) {
	flag.Parse()
	// A failure is printed as a scenario file, so rapid's own files are not needed.
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

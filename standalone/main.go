// Command pawld is Pawl on one machine: etcd, a Kubernetes API server and
// Pawl's controllers in one process, on one data directory.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // windows name time zones, which a bare machine does not know
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run is main with its exit code: 0 after an orderly stop, 1 otherwise.
func run(args []string) int {
	command := newCommand()
	command.SetArgs(args)
	if err := command.Execute(); err != nil {
		_, _ = fmt.Fprintf(terminal, "%s: %v\n", filepath.Base(os.Args[0]), err)
		return 1
	}
	return 0
}

// Command pawl is Pawl's command line, and the operator. Under the name
// kubectl-pawl it is a plugin of kubectl.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // windows name time zones, which a bare machine does not know

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	status := newProgram(os.Args[0], streams).run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

// Command demo shows Pawl's main job on real processes, and checks everything
// that it says: a pool rolls to another version one member at a time, the
// claimed member is left alone and named as what the rollout waits for, and
// once it is released the rollout ends.
//
// It exits with 0 if every promise held, and with 1, naming it, if one did
// not. Either way it stops everything that it started.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	pawl := flag.String("pawl", "bin/pawl", "the program pawl")
	pawld := flag.String("pawld", "bin/pawld", "the program pawld; pawl-quickstart-server is beside it")
	apply := flag.String("apply", "", "only apply the quickstart to the server of this kubeconfig, and leave it running")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	var err error
	if *apply != "" {
		err = leaveRunning(ctx, *apply)
	} else {
		err = show(ctx, *pawl, *pawld)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// show runs the demo and cleans up after it.
func show(ctx context.Context, pawl, pawld string) (err error) {
	if pawl, err = filepath.Abs(pawl); err != nil {
		return err
	}
	if pawld, err = filepath.Abs(pawld); err != nil {
		return err
	}
	d := &demo{pawl: pawl, story: newStory(os.Stdout, time.Now)}
	d.story.tell("starting pawld: a Kubernetes API, Pawl's controllers and the members, on this machine only")
	if d.server, err = start(ctx, pawld); err != nil {
		return err
	}
	d.story.tell("pawld serves")
	err = d.run(ctx)
	return errors.Join(err, d.end(ctx))
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/follow"
)

const (
	// beatsPerHeartbeat is how often a claim is renewed within the time in which
	// it has to be once, so that one that is lost does not matter.
	beatsPerHeartbeat = 3
	// lookAgain is how often a pool is asked for its heartbeat, which may be
	// edited.
	lookAgain = 5 * time.Second
	// beatAgain is the time until a renewal that failed is tried again.
	beatAgain = time.Second
	// signalled is what shells add to a signal's number for an exit status.
	signalled = 128
)

// oneAndCommand wants a pool, and after a -- what to run.
func oneAndCommand(c *cobra.Command, args []string) error {
	dash := c.ArgsLenAtDash()
	if dash < 0 {
		return one("POOL")(c, args)
	}
	if dash == len(args) {
		return errors.New("COMMAND is missing after --")
	}
	return one("POOL")(c, args[:dash])
}

// farewells are the signals beside those that end any command on which a claim
// is not left behind. What is ignored, as nohup has it, stays so.
func farewells() []os.Signal {
	return slices.DeleteFunc([]os.Signal{syscall.SIGHUP, syscall.SIGQUIT}, signal.Ignored)
}

// with runs the command with the member that the claim holds, and then
// releases the claim if this call made it. An interrupt is the command's: the
// terminal gives it to both.
func (m *claim) with(ctx context.Context, k *cluster, o *v1alpha1.Claim, made bool, command []string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, append(farewells(), os.Interrupt, syscall.SIGTERM)...)
	defer signal.Stop(signals)
	if ctx.Err() != nil {
		return m.giveUp(ctx, k, o, made, ctx.Err())
	}
	ctx = context.WithoutCancel(ctx)
	err := m.hold(ctx, k, o, command, signals)
	if !made {
		_, _ = fmt.Fprintf(m.ErrOut, "claim %s was there before, and stays; `%s release %s` releases it\n", o.Name, m.program.name, o.Name)
		return err
	}
	ctx, stop := context.WithTimeout(ctx, cleanupTimeout)
	defer stop()
	if released := k.Delete(ctx, o, client.Preconditions{UID: &o.UID}); client.IgnoreNotFound(released) != nil {
		m.complain("claim %s could not be released: %v; `%s release %s` does", o.Name, released, m.program.name, o.Name)
	}
	return err
}

// hold runs the command, and keeps the claim while it does.
func (m *claim) hold(ctx context.Context, k *cluster, o *v1alpha1.Claim, command []string, signals <-chan os.Signal) error {
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Stdin, run.Stdout, run.Stderr = m.In, m.Out, m.ErrOut
	run.Env = append(os.Environ(), environment(o)...)
	if err := run.Start(); err != nil {
		return fmt.Errorf("run %s: %w", command[0], err)
	}
	ctx, stop := context.WithCancel(ctx)
	var keepers sync.WaitGroup
	keepers.Go(func() { m.renewing(ctx, k, o) })
	keepers.Go(func() {
		m.watch(ctx, k, o, func(why error) {
			m.complain("%v; %s is asked to end", why, command[0])
			_ = run.Process.Signal(syscall.SIGTERM) // it may just have ended
		})
	})
	keepers.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-signals:
				if s != os.Interrupt {
					_ = run.Process.Signal(s)
				}
			}
		}
	})
	err := run.Wait()
	stop()
	keepers.Wait()
	return exitOf(err)
}

// environment tells a command about the member that a claim holds.
func environment(o *v1alpha1.Claim) []string {
	return []string{
		"PAWL_ADDRESS=" + o.Status.Address, "PAWL_MEMBER=" + o.Status.Member, "PAWL_REVISION=" + o.Status.Revision,
		"PAWL_CLAIM=" + o.Name, "PAWL_POOL=" + o.Spec.Pool, "PAWL_NAMESPACE=" + o.Namespace,
	}
}

// exitOf is the exit status of a command as shells say it.
func exitOf(err error) error {
	exit := new(exec.ExitError)
	if !errors.As(err, &exit) {
		return err
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return exitError(signalled + int(w.Signal()))
	}
	return exitError(exit.ExitCode())
}

// renewing renews the claim as often as the pool asks, until ctx ends. While
// the pool cannot be read it goes on as the pool asked last.
func (m *claim) renewing(ctx context.Context, k *cluster, o *v1alpha1.Claim) {
	b := &beat{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(m.beat(ctx, k, o, b)):
		}
	}
}

// beat is what is known of a claim's heartbeat.
type beat struct {
	// every is the time between renewals: 0 for none, and before asked.
	every time.Duration
	asked bool
	// last is when the claim was renewed, late that this failed since.
	last time.Time
	late bool
}

// beat renews the claim if it is time, and returns when to ask again.
func (m *claim) beat(ctx context.Context, k *cluster, o *v1alpha1.Claim, b *beat) time.Duration {
	if every, err := k.every(ctx, o); err == nil {
		b.every, b.asked = every, true
	}
	if b.asked && b.every == 0 {
		return lookAgain
	}
	if wait := b.every - time.Since(b.last); wait > 0 {
		return min(wait, lookAgain)
	}
	limited, stop := context.WithTimeout(ctx, lookAgain)
	defer stop()
	if err := k.renew(limited, o, m.now(), 0); err != nil {
		if ctx.Err() == nil && !b.late {
			m.complain("claim %s could not be renewed, and is tried again: %v", o.Name, err)
		}
		b.late = true
		return min(cmp.Or(b.every, beatAgain), beatAgain)
	}
	b.last, b.late = time.Now(), false
	return min(cmp.Or(b.every, lookAgain), lookAgain)
}

// every is the time between renewals for which the claim's pool asks now; 0
// for none.
func (c *cluster) every(ctx context.Context, o *v1alpha1.Claim) (time.Duration, error) {
	ctx, stop := context.WithTimeout(ctx, lookAgain)
	defer stop()
	var p v1alpha1.Pool
	cached := &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}} // it is asked often
	if err := c.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Spec.Pool}, &p, cached); err != nil {
		return 0, fmt.Errorf("read pool %s: %w", o.Spec.Pool, err)
	}
	if p.Spec.Claims == nil || p.Spec.Claims.Heartbeat == nil {
		return 0, nil
	}
	return p.Spec.Claims.Heartbeat.Duration / beatsPerHeartbeat, nil
}

// watch tells, once, that the claim has ended before its command, and that its
// member is wanted back.
func (m *claim) watch(ctx context.Context, k *cluster, o *v1alpha1.Claim, ended func(error)) {
	var over, asked bool
	look := func(seen client.Object, gone bool) {
		c, ok := seen.(*v1alpha1.Claim)
		if !ok || c.UID != o.UID || over {
			return
		}
		if err := outcome(c, gone); err != nil {
			over = true
			ended(err)
			return
		}
		r := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionUpdateRequested)
		if is := r != nil && r.Status == "True"; is != asked {
			asked = is
			_, _ = fmt.Fprintf(m.ErrOut, "claim %s: %s\n", c.Name, r.Message)
		}
	}
	_ = follow.Objects(ctx, k, &v1alpha1.ClaimList{}, follow.Listener{
		Changed: func(o client.Object) { look(o, false) },
		Gone:    func(o client.Object) { look(o, true) },
		Lost:    func(error) {}, // the server may come back; the claim goes on without it
	}, client.InNamespace(o.Namespace), named(o.Name))
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/examples/quickstart"
)

const (
	namespace = "default"
	claimName = "mine"
	// size is the number of members of the quickstart's pool, floor its
	// minAvailable.
	size, floor = 4, 2

	// stepLimit is how long a step of the demo may take; rollLimit a rollout.
	stepLimit = 20 * time.Second
	rollLimit = 40 * time.Second
)

// demo is one run.
type demo struct {
	pawl   string
	story  *story
	server *server

	client client.WithWatch
	pool   *v1alpha1.Pool
	view   *view
	prober *prober
	// stopWatching ends the view and the prober; they have ended when it returns.
	stopWatching func()
	claimed      string
	rolled       time.Duration
}

// run plays the acts, as long as every promise holds.
func (d *demo) run(ctx context.Context) error {
	var err error
	if d.client, err = dial(d.server.kubeconfig); err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d.watch(ctx, fail)
	for _, act := range []func(context.Context) error{d.fill, d.claim, d.edit, d.blocked, d.release} {
		if err := act(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause // the first thing that broke
			}
			return err
		}
	}
	d.view.stopCounting()
	d.stopWatching()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return d.account()
}

// dial makes a client of the server.
func dial(kubeconfig string) (client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), eventsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// watch begins to follow the API and to ask the processes.
func (d *demo) watch(ctx context.Context, fail context.CancelCauseFunc) {
	d.view = newView(d.story)
	d.prober = newProber(func() map[string]string {
		d.view.mu.Lock()
		defer d.view.mu.Unlock()
		return maps.Clone(d.view.addresses)
	})
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{}, 2)
	go func() { d.view.follow(ctx, d.client); done <- struct{}{} }()
	go func() { d.prober.run(ctx, fail); done <- struct{}{} }()
	d.stopWatching = func() {
		stop()
		for range cap(done) {
			<-done
		}
		d.stopWatching = func() {}
	}
}

// fill makes the pool and waits until every member is there.
func (d *demo) fill(ctx context.Context) error {
	d.story.title("a pool of %d processes, version 1: examples/quickstart/pool.yaml", size)
	var err error
	if d.pool, err = quickstartPool(); err != nil {
		return err
	}
	if err := d.client.Create(ctx, d.pool); err != nil {
		return fmt.Errorf("create pool %s: %w", d.pool.Name, err)
	}
	err = d.view.await(ctx, "all members become available", stepLimit, func() bool {
		return d.view.all(size, available) && d.view.condition().Status == metav1.ConditionTrue
	})
	if err != nil {
		return err
	}
	if err := d.answer(ctx, "1", d.view.names()...); err != nil {
		return err
	}
	d.view.startCounting()
	d.prober.judgeFromNow()
	d.story.kept("%d members are available, and each answers over HTTP as version 1", size)
	return nil
}

func quickstartPool() (*v1alpha1.Pool, error) {
	p := &v1alpha1.Pool{}
	if err := yaml.UnmarshalStrict(quickstart.Pool, p); err != nil {
		return nil, fmt.Errorf("examples/quickstart/pool.yaml: %w", err)
	}
	return p, nil
}

func available(m *v1alpha1.Member) bool {
	return m.Status.Phase == v1alpha1.PhaseAvailable && m.Spec.Claim == nil
}

// answer waits until the members' processes answer as the version.
func (d *demo) answer(ctx context.Context, version string, members ...string) error {
	for _, name := range members {
		late := time.Now().Add(stepLimit)
		for {
			list := d.prober.bodies(name)
			if len(list) > 0 && list[len(list)-1].Version == version {
				break
			}
			if time.Now().After(late) {
				return fmt.Errorf("promise broken: %s answers over HTTP as version %s; it answered %+v", name, version, list)
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(pollInterval):
			}
		}
	}
	return nil
}

// claim claims a member, as a user does.
func (d *demo) claim(ctx context.Context) error {
	d.story.title("somebody claims a member")
	var c v1alpha1.Claim
	out, err := d.exec(ctx, "claim", d.pool.Name, "--name", claimName, "-o", "json")
	if err == nil {
		err = json.Unmarshal(out, &c)
	}
	if err != nil {
		return err
	}
	d.claimed = c.Status.Member
	is, err := d.prober.ask(ctx, c.Status.Address)
	if err != nil || is.Member != d.claimed {
		return fmt.Errorf("promise broken: the claim gives the address of its member: %s answered %+v (%v)", c.Status.Address, is, err) //nolint:errorlint // told, not handled
	}
	d.prober.hold(d.claimed, is)
	d.story.kept("claim %s holds %s at %s: process %d, version %s", claimName, d.claimed, c.Status.Address, is.PID, is.Version)
	return nil
}

// exec runs pawl and returns what it printed.
func (d *demo) exec(ctx context.Context, args ...string) ([]byte, error) {
	d.story.tell("$ pawl %s", strings.Join(args, " "))
	var problems bytes.Buffer
	c := exec.CommandContext(ctx, d.pawl, append([]string{"--kubeconfig", d.server.kubeconfig}, args...)...)
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", filepath.Base(d.pawl), args[0], err, problems.String())
	}
	return out, nil
}

// edit changes the template and follows the rollout as far as it can go.
func (d *demo) edit(ctx context.Context) error {
	d.story.title("the template is edited: VERSION is 2 now")
	patch := []byte(`{"spec":{"template":{"process":{"env":{"VERSION":"2"}}}}}`)
	began := d.story.elapsed()
	if err := d.client.Patch(ctx, d.pool.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("edit pool %s: %w", d.pool.Name, err)
	}
	err := d.view.await(ctx, "the rollout replaces all but the claimed member and then waits", rollLimit, func() bool {
		return d.view.condition().Reason == "UpdateBlocked" && d.view.all(size, func(m *v1alpha1.Member) bool {
			return m.Name == d.claimed || available(m) && m.Status.Incarnation == 2
		})
	})
	if err != nil {
		return err
	}
	d.rolled = d.story.elapsed() - began
	others := make([]string, 0, size)
	for _, name := range d.view.names() {
		if name != d.claimed {
			others = append(others, name)
		}
	}
	if err := d.answer(ctx, "2", others...); err != nil {
		return err
	}
	rounds, worst := d.prober.polls()
	d.story.kept("%s answer as version 2; in %d rounds of asking all members, at most %d of them was out of service", strings.Join(others, ", "), rounds, worst)
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// settle is how long the claimed member is watched while the rollout waits.
const settle = time.Second

// blocked checks that what the rollout waits for is named, and left alone.
func (d *demo) blocked(ctx context.Context) error {
	d.story.title("the rollout waits for %s, which is claimed", d.claimed)
	err := d.view.await(ctx, "the claimed member is named as what the rollout waits for", stepLimit, func() bool {
		m := d.view.members[d.claimed]
		if m == nil {
			return false
		}
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdated)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == string(rollout.Claimed) &&
			blocks(d.view.pool, rollout.Claimed, d.claimed) && d.view.condition().Reason == "UpdateBlocked"
	})
	if err != nil {
		return err
	}
	d.story.kept("member %s: Updated=False Claimed; pool %s: blocker Claimed, 1 member, %s; Updated=False UpdateBlocked", d.claimed, d.pool.Name, d.claimed)
	select { // the prober breaks the promise, if it is broken
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(settle):
	}
	is := d.prober.bodies(d.claimed)
	if len(is) != 1 || is[0].Version != "1" {
		return fmt.Errorf("promise broken: %s stays as it is: it was %+v", d.claimed, is)
	}
	d.story.kept("%s is still process %d, version 1, and never failed to answer", d.claimed, is[0].PID)
	return nil
}

// release ends the claim, and with it the rollout.
func (d *demo) release(ctx context.Context) error {
	d.story.title("the claim is released")
	d.prober.letGo()
	if _, err := d.exec(ctx, "release", claimName); err != nil {
		return err
	}
	err := d.view.await(ctx, "the last member is replaced, and the pool is updated", stepLimit, func() bool {
		return d.view.condition().Status == metav1.ConditionTrue && d.view.all(size, func(m *v1alpha1.Member) bool {
			return available(m) && m.Status.Incarnation == 2
		})
	})
	if err == nil {
		err = d.answer(ctx, "2", d.claimed)
	}
	if err == nil {
		d.story.kept("all %d members answer as version 2: Updated=True", size)
	}
	return err
}

// account checks what was counted, and prints it.
func (d *demo) account() error {
	v := d.view
	var made int64
	for _, n := range v.bodies {
		made += n
	}
	reasons := map[v1alpha1.DisruptionReason]int{}
	for _, r := range v.disruptions {
		reasons[r]++
	}
	drift, ended := reasons[v1alpha1.DisruptionDrift], reasons[v1alpha1.DisruptionClaimEnded]
	processes := 0
	for name := range v.addresses {
		processes += len(d.prober.bodies(name))
	}
	rounds, worst := d.prober.polls()
	var errs []error
	for _, p := range []struct {
		holds bool
		what  string
	}{
		{made == 2*size && processes == 2*size, fmt.Sprintf("each member is made once a version: %d bodies, %d processes", made, processes)},
		{drift == size-1 && ended == 1 && len(v.disruptions) == size, fmt.Sprintf("each member is disrupted once: %v", reasons)},
		{v.fewestFree >= floor, fmt.Sprintf("never fewer than %d members free: %d were", floor, v.fewestFree)},
	} {
		if !p.holds {
			errs = append(errs, errors.New("promise broken: "+p.what))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	d.story.title("what happened")
	d.story.table([][]string{
		{"bodies created", fmt.Sprint(made), fmt.Sprintf("%d of version 1, %d of version 2", size, size)},
		{"disruptions", fmt.Sprint(len(v.disruptions)), fmt.Sprintf("%d for drift, %d because its claim ended", drift, ended)},
		{"lowest number of free members", fmt.Sprint(v.fewestFree), fmt.Sprintf("of %d that nobody had claimed; the floor is %d", size-1, floor)},
		{"most members out of service", fmt.Sprint(worst), fmt.Sprintf("over HTTP, in %d rounds, one every %s", rounds, pollInterval)},
		{"time to roll", fmt.Sprintf("%.1f s", d.rolled.Seconds()), fmt.Sprintf("%d members, one at a time", size-1)},
		{"time in all", fmt.Sprintf("%.1f s", d.story.elapsed().Seconds()), "the start of pawld included"},
	})
	return nil
}

// table writes rows in columns.
func (s *story) table(rows [][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, "          "+strings.Join(row, "\t"))
	}
	_ = w.Flush()
}

// end stops everything, whatever happened, and makes sure that it has stopped.
func (d *demo) end(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	d.story.title("the end: the pool is deleted, pawld stops")
	if d.stopWatching != nil {
		d.stopWatching()
	}
	errs := []error{d.remove(ctx)}
	errs = append(errs, d.server.stop())
	if pids := d.server.leftovers(); len(pids) > 0 {
		d.server.kill(pids)
		errs = append(errs, fmt.Errorf("promise broken: no process is left over: %v were", pids))
	} else {
		d.story.kept("pawld has stopped, and no process is left over")
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w\nthe end of pawld's log:\n%s", errors.Join(err, os.RemoveAll(d.server.dir)), d.server.log())
	}
	return os.RemoveAll(d.server.dir)
}

// remove deletes the claim and the pool, and waits until their members are
// gone.
func (d *demo) remove(ctx context.Context) error {
	if d.client == nil || d.pool == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, stepLimit)
	defer stop()
	claim := &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claimName}}
	if err := client.IgnoreNotFound(d.client.Delete(ctx, claim)); err != nil {
		return fmt.Errorf("delete claim %s: %w", claimName, err)
	}
	if err := client.IgnoreNotFound(d.client.Delete(ctx, d.pool.DeepCopy())); err != nil {
		return fmt.Errorf("delete pool %s: %w", d.pool.Name, err)
	}
	for {
		var now v1alpha1.Pool
		err := d.client.Get(ctx, client.ObjectKeyFromObject(d.pool), &now)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("promise broken: a deleted pool goes, and its members with it, within %s: %w", stepLimit, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollInterval):
		}
	}
}

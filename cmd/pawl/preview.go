package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/internal/render"
	"github.com/pawl-dev/pawl/preview"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// manyMoves is how many members a preview for people names of each kind.
const manyMoves = 20

// previewing is a run of `pawl preview`.
type previewing struct {
	*program

	out        *output
	file       string
	set        []string
	boot, stop time.Duration
}

func (p *program) previewCommand() *cobra.Command {
	v := &previewing{program: p}
	c := &cobra.Command{
		Use:     "preview (POOL | -f FILE) [--set PATH=VALUE]...",
		GroupID: "look",
		Short:   "Foretell what a change would do to a pool, or what a pool is about to do, and change nothing",
		Long: `Foretell what becomes of a pool: which members go, in which order and when, what keeps the others and who has to act,
how few members stay free, how long it takes, and whether it can ever end.

It looks at a pool as it is, with fields of its spec set to other values (--set), or as a manifest says it should be
(-f). The server checks the change in a dry run where you may ask for one. Nothing is written.

The answer comes from the engine that the controller uses, asked about what the server holds now, in virtual time. It
takes new bodies to come up, members that are down to stay so, and claims, holds and work to stay but where they end at
a known time. How long bodies take is what those of the pool's members took; --boot and --stop say otherwise.

A PATH leads into the spec, such as update.maxUnavailable, template.sim.version or template.objects[0].spec.image; a
VALUE is YAML, and an empty one takes the field away.`,
		Example: fmt.Sprintf(`  %[1]s preview web
  %[1]s preview web --set update.maxUnavailable=2 --set template.sim.version=2
  %[1]s preview -f pool.yaml -o wide`, p.name),
		Args: v.args,
		RunE: v.run,
	}
	v.out = outputFlag(c, asJSON, asYAML, asWide)
	c.Flags().StringVarP(&v.file, "filename", "f", "", "a file with the pool's manifest; - is standard input")
	c.Flags().StringArrayVar(&v.set, "set", nil, "set a field of the spec: PATH=VALUE; may be given several times")
	c.Flags().DurationVar(&v.boot, "boot", 0, "the time from a body's birth until it is in service, minReadySeconds left out; 0 is as measured")
	c.Flags().DurationVar(&v.stop, "stop", 0, "the time from the decision that a body goes until it is gone; 0 is as measured")
	c.ValidArgsFunction = p.names(&v1alpha1.PoolList{}, false)
	return c
}

func (v *previewing) args(_ *cobra.Command, args []string) error {
	switch {
	case v.boot < 0 || v.stop < 0:
		return errors.New("--boot and --stop must not be negative")
	case len(args) > 1:
		return one("POOL")(nil, args)
	case len(args) == 0 && v.file == "":
		return errors.New("POOL is missing; name one, or a manifest with -f")
	}
	return nil
}

func (v *previewing) run(c *cobra.Command, args []string) error {
	edit, err := v.edit(args)
	if err != nil {
		return &usageError{c, err}
	}
	k, err := v.connect()
	if err != nil {
		return err
	}
	if edit.namespace != "" {
		k.namespace = edit.namespace
	}
	pr, err := k.propose(c.Context(), edit)
	if bad := new(editError); errors.As(err, &bad) {
		return &usageError{c, err}
	}
	if err != nil {
		return err
	}
	told, err := v.foretell(c.Context(), k, pr)
	if err != nil {
		return err
	}
	return told.print(v.out, v.Out)
}

// foretell asks the engine about the pool as it would be.
func (v *previewing) foretell(ctx context.Context, k *cluster, pr *proposal) (*foretold, error) {
	s, err := k.would(ctx, pr)
	if err != nil {
		return nil, err
	}
	t := &foretold{Pool: pr.pool.Name, Namespace: k.namespace, Exists: pr.live != nil, Notes: pr.notes}
	now := v.now()
	snap, err := s.Snapshot(now)
	if err != nil {
		return nil, err
	}
	if s.Invalid != nil {
		t.note("nothing moves while this is so: %v", s.Invalid)
	}
	if string(snap.Target.ID) != pr.pool.Status.TargetRevision {
		snap.Target = snap.Target.Renewed(now)
	}
	if snap.Policy.Manual && slices.ContainsFunc(snap.Members, func(m rollout.Member) bool { return m.Runs != snap.Target.ID }) {
		t.Assumes = append(t.Assumes, "update.type: RollingUpdate")
		snap.Policy.Manual = false
	}
	t.Current, t.Target = string(snap.Current.ID), string(snap.Target.ID)
	for _, r := range s.Revisions {
		t.known = t.known || history.RevisionID(r) == t.Target
	}
	life := snapshot.Lifecycle(&pr.pool.Spec, snap.Policy)
	t.Boot, t.Stop = v.spans(pr, snap)
	o := &preview.Outlook{
		Snapshot: snap, Now: now, Life: life, Boot: time.Duration(t.Boot.Takes), Stop: time.Duration(t.Stop.Takes),
		HoldEnds: map[int]time.Time{}, ClaimEnds: map[int]time.Time{}, Reuse: reuses(&pr.pool.Spec),
	}
	for i, m := range s.Members {
		if end := snapshot.HoldEnds(m); !end.IsZero() {
			o.HoldEnds[snap.Members[i].Index] = end
		}
		if c := m.Spec.Claim; c != nil && c.ExpiresAt != nil {
			o.ClaimEnds[snap.Members[i].Index] = c.ExpiresAt.Time
		}
	}
	if u := pr.pool.Spec.Update; u != nil && len(u.Windows) > 0 {
		o.Window = snapshot.UpdateWindows(&pr.pool.Spec).At
	}
	t.Forecast = preview.Preview(o)
	return t, nil
}

// would is the pool as it would be, and what is stored of it.
func (c *cluster) would(ctx context.Context, pr *proposal) (*history.Stored, error) {
	s := &history.Stored{Pool: pr.pool}
	if pr.live != nil {
		e, err := c.explanation(ctx, pr.pool.Name, time.Time{})
		if err != nil {
			return nil, err
		}
		s.Members, s.Claims, s.Revisions, s.Invalid = e.stored.Members, e.stored.Claims, e.stored.Revisions, e.stored.Invalid
	}
	if pr.live == nil || !reflect.DeepEqual(pr.live.Spec, pr.pool.Spec) {
		s.Invalid = render.Check(&pr.pool.Spec)
	}
	if pr.live == nil {
		return s, nil
	}
	others := !reflect.DeepEqual(pr.live.Spec.Sources, pr.pool.Spec.Sources)
	if others {
		s.Target = newRevision // what they say is not known here
	}
	others = others || !reflect.DeepEqual(pr.live.Spec.ServiceAccountName, pr.pool.Spec.ServiceAccountName)
	if why := unresolved(pr.live); why != "" && s.Invalid == nil {
		if others {
			pr.note("taken for granted, since sources would be read in another way: that they can be. As it is, they cannot: " + why)
		} else {
			s.Invalid = errors.New(why)
		}
	}
	return s, nil
}

// newRevision stands for one whose sources are not read.
const newRevision = "new"

func reuses(spec *v1alpha1.PoolSpec) bool {
	c := spec.Claims
	return c != nil && c.OnRelease != nil && *c.OnRelease == v1alpha1.ReleaseReuse
}

// span is how long something is taken to take, and where that comes from.
type span struct {
	Takes preview.Time `json:"takes"`
	// From is Flag, Measured (the median of so many Members), Template or Guess.
	From    string `json:"from"`
	Members int    `json:"members,omitempty"`
}

// The sources of a span.
const (
	fromFlag     = "Flag"
	fromMembers  = "Measured"
	fromTemplate = "Template"
	fromNowhere  = "Guess"
)

// Guesses, where nothing is known.
const (
	guessedBoot = 30 * time.Second
	guessedStop = 10 * time.Second
)

// spans are how long bodies take to boot and to stop.
func (v *previewing) spans(pr *proposal, s *rollout.Snapshot) (boot, stop span) {
	ready := time.Duration(0) // how long bodies had to be ready until they were in service
	if pr.live != nil {
		if p, err := snapshot.Policy(&pr.live.Spec); err == nil {
			ready = p.MinReady
		}
	}
	sim := pr.pool.Spec.Template.Sim
	if sim == nil {
		sim = &v1alpha1.Sim{}
	}
	simulated := pr.pool.Spec.Template.Sim != nil
	boot = spanOf(v.boot, s.Members, func(m *rollout.Member) time.Duration { return m.BootTook }, guessedBoot)
	if boot.From == fromMembers {
		boot.Takes = max(0, boot.Takes-preview.Time(ready))
	}
	stop = spanOf(v.stop, s.Members, func(m *rollout.Member) time.Duration { return m.StopTook }, guessedStop)
	if boot.From == fromNowhere && simulated {
		boot = span{Takes: preview.Time(orZero(sim.Boot)), From: fromTemplate}
	}
	if stop.From == fromNowhere && simulated {
		stop = span{Takes: preview.Time(orZero(sim.Stop) + orZero(sim.Drain)), From: fromTemplate}
	}
	return boot, stop
}

// spanOf is what a flag says, or the median of what members took, or a guess.
func spanOf(flag time.Duration, members []rollout.Member, took func(*rollout.Member) time.Duration, guess time.Duration) span {
	if flag > 0 {
		return span{Takes: preview.Time(flag), From: fromFlag}
	}
	var list []time.Duration
	for i := range members {
		if d := took(&members[i]); d > 0 {
			list = append(list, d)
		}
	}
	if len(list) == 0 {
		return span{Takes: preview.Time(guess), From: fromNowhere}
	}
	slices.Sort(list)
	return span{Takes: preview.Time(list[len(list)/2]), From: fromMembers, Members: len(list)}
}

func orZero(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

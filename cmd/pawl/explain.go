package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/internal/render"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// fewPlaces is how many places in which revisions differ are named.
const fewPlaces = 5

// manySentences is how many members of a pool are explained one by one.
const manySentences = 20

// explanation is what the engine says about a pool as the API holds it.
type explanation struct {
	stored   *history.Stored
	snapshot *rollout.Snapshot
	plan     *rollout.Plan
	now      time.Time
}

func (p *program) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "explain POOL[/INDEX]",
		GroupID: "look",
		Short:   "Say why a pool, or one of its members, is not updated, and what happens next",
		Long: `Say why a pool, or one of its members, is not updated, and what happens next.

The answer comes from the engine that the controller uses, asked about what the server holds now. Nothing is changed.`,
		Example: fmt.Sprintf("  %[1]s explain web\n  %[1]s explain web/2", p.name),
		Args:    one("POOL"),
		RunE: func(c *cobra.Command, args []string) error {
			name, index, err := poolIndex(args[0])
			if err != nil {
				return &usageError{c, err}
			}
			k, err := p.connect()
			if err != nil {
				return err
			}
			return p.explain(c.Context(), k, name, index)
		},
	}
}

// poolIndex splits POOL/INDEX; the index is -1 where there is none.
func poolIndex(arg string) (name string, index int, err error) {
	name, number, ok := strings.Cut(arg, "/")
	if !ok {
		return name, -1, nil
	}
	index, err = strconv.Atoi(number)
	if err != nil || index < 0 {
		return "", 0, fmt.Errorf("%s: %q is no index; write POOL/INDEX, such as %s/0", arg, number, name)
	}
	return name, index, nil
}

func (p *program) explain(ctx context.Context, k *cluster, name string, index int) error {
	e, err := k.explanation(ctx, name, p.now())
	if err != nil {
		return err
	}
	if index < 0 {
		return e.pool(p.Out)
	}
	i := e.find(index)
	if i < 0 {
		return fmt.Errorf("pool %s has no member with index %d; `%s status %s` lists them", name, index, p.name, name)
	}
	events, err := k.events(ctx, e.stored.Members[i])
	if err != nil {
		return err
	}
	return e.member(p.Out, i, events)
}

// explanation asks the engine about the pool. Sources it does not read: what
// the controller said of them last counts.
func (c *cluster) explanation(ctx context.Context, name string, now time.Time) (*explanation, error) {
	p, err := c.pool(ctx, name)
	if err != nil {
		return nil, err
	}
	s := &history.Stored{Pool: p, Invalid: render.Check(&p.Spec)}
	if s.Members, err = c.members(ctx, name); err != nil {
		return nil, err
	}
	var list appsv1.ControllerRevisionList
	if err := c.List(ctx, &list, client.InNamespace(c.namespace), client.MatchingLabels{v1alpha1.LabelPool: name}); err != nil {
		return nil, fmt.Errorf("list revisions of pool %s: %w", name, err)
	}
	for i := range list.Items {
		s.Revisions = append(s.Revisions, &list.Items[i])
	}
	if s.Claims, err = c.claims(ctx, name); err != nil {
		return nil, err
	}
	if why := unresolved(p); why != "" && s.Invalid == nil {
		s.Invalid = errors.New(why)
	}
	e := &explanation{stored: s, now: now}
	return e, e.ask()
}

// unresolved is why the pool's sources cannot be read; empty if they can.
func unresolved(p *v1alpha1.Pool) string {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionSourcesResolved)
	if c == nil || c.Status == metav1.ConditionTrue || p.Status.ObservedGeneration < p.Generation {
		return ""
	}
	return c.Message
}

// ask asks the engine about what is stored now.
func (e *explanation) ask() error {
	var err error
	if e.snapshot, err = e.stored.Snapshot(e.now); err != nil {
		return err
	}
	e.plan = e.snapshot.Plan(e.now)
	return nil
}

// wanted is the id of what the template says now, whether it is the target or
// was rolled back.
func (e *explanation) wanted() string {
	if back := e.snapshot.RolledBack.ID; back != "" {
		return string(back)
	}
	return string(e.snapshot.Target.ID)
}

func (e *explanation) current() string { return string(e.snapshot.Current.ID) }

// revision is the one with the id; nil if it is not stored.
func (e *explanation) revision(id string) *appsv1.ControllerRevision {
	for _, r := range e.stored.Revisions {
		if history.RevisionID(r) == id {
			return r
		}
	}
	return nil
}

// differences are the places in which two revisions differ, in words: those of
// the template, and others. Of one that is not stored nothing is known.
func (e *explanation) differences(before, after string) (template, others []string, err error) {
	a, b := e.revision(before), e.revision(after)
	if a == nil || b == nil {
		return nil, nil, nil
	}
	all, err := history.Differences(a, b, e.stored.Pool.Spec.Template.LiveFields)
	for _, place := range all {
		if place == "template" || strings.HasPrefix(place, "template.") || strings.HasPrefix(place, "template[") {
			template = append(template, place)
		} else {
			others = append(others, place)
		}
	}
	return template, others, err
}

// differs says in which places two revisions differ; empty if that is not
// known.
func (e *explanation) differs(before, after string) string {
	template, others, err := e.differences(before, after)
	if err != nil || before == after {
		return ""
	}
	return history.Few(append(template, others...), fewPlaces)
}

// find is the position of the member with the index; -1 if there is none.
func (e *explanation) find(index int) int {
	for i := range e.snapshot.Members {
		if e.snapshot.Members[i].Index == index {
			return i
		}
	}
	return -1
}

// pool says how the pool stands and, for each member that is not updated, why.
func (e *explanation) pool(w io.Writer) error {
	p := e.stored.Pool
	var b strings.Builder
	fmt.Fprintf(&b, "pool %s/%s: %s\n", p.Namespace, p.Name, e.numbers())
	e.target(&b)
	e.conditions(&b)
	e.blockers(&b)
	e.sentences(&b)
	e.next(&b, -1)
	_, err := io.WriteString(w, b.String())
	return err
}

// numbers are the engine's, about the members as they are now.
func (e *explanation) numbers() numbers {
	c := &e.plan.Counts
	return numbers{
		updated: c.Updated, total: c.Members, free: c.Free, claimed: c.Claimed, rolling: c.Rolling,
		unknown: c.Unknown, surge: c.Surge, failed: c.Failed, waiting: e.snapshot.Waiting, state: e.plan.Updated.Reason,
	}
}

// target says which revision the members should be on, and what is wrong with
// the template if something is.
func (e *explanation) target(b *strings.Builder) {
	s := e.snapshot
	switch {
	case s.Current.ID == "":
		fmt.Fprintf(b, "target: revision %s; there is no current revision, since no body of the pool has recovered yet\n", s.Target.ID)
	case s.Target.ID != s.Current.ID:
		fmt.Fprintf(b, "target: revision %s, from %s\n", s.Target.ID, s.Current.ID)
		if places := e.differs(e.current(), string(s.Target.ID)); places != "" {
			fmt.Fprintf(b, "differs: %s\n", places)
		}
	default:
		fmt.Fprintf(b, "target: revision %s\n", s.Target.ID)
	}
	for _, line := range remarks(e.stored.Pool, e.now) {
		if !strings.HasPrefix(line, "next: ") {
			fmt.Fprintf(b, "note: %s\n", line)
		}
	}
	for _, line := range slices.Concat(asides(e.stored.Pool, e.stored.Members, e.now), asked(e.stored.Claims)) {
		fmt.Fprintf(b, "note: %s\n", line)
	}
	if err := e.stored.Invalid; err != nil {
		fmt.Fprintf(b, "invalid: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

func (e *explanation) conditions(b *strings.Builder) {
	b.WriteString("\nconditions:\n")
	rows := [][]string{}
	for _, c := range []struct {
		name string
		is   rollout.Condition
	}{
		{v1alpha1.ConditionUpdated, e.plan.Updated}, {v1alpha1.ConditionReady, e.plan.Ready},
		{v1alpha1.ConditionAvailable, e.plan.Available}, {v1alpha1.ConditionReconciling, e.plan.Reconciling},
		{v1alpha1.ConditionStalled, e.plan.Stalled},
	} {
		rows = append(rows, []string{"  " + c.name, string(c.is.Status), c.is.Reason, c.is.Message})
	}
	b.WriteString(aligned(rows))
}

func (e *explanation) blockers(b *strings.Builder) {
	if len(e.plan.Blockers) == 0 {
		return
	}
	b.WriteString("\nblockers:\n")
	rows := [][]string{}
	for _, t := range e.plan.Blockers {
		since := ""
		if r := e.stored.Pool.Status.Rollout; r != nil {
			for _, known := range r.Blockers {
				if known.Reason == string(t.Reason) && known.Since != nil {
					since = "for " + age(known.Since.Time, e.now)
				}
			}
		}
		rows = append(rows, []string{"  " + string(t.Reason), members(t.Count), "first: " + e.name(t.Example), since})
	}
	b.WriteString(aligned(rows))
}

func members(n int) string {
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}

// name is that of the member with the index.
func (e *explanation) name(index int) string {
	if i := e.find(index); i >= 0 {
		return e.stored.Members[i].Name
	}
	return strconv.Itoa(index)
}

// sentences say why each member is not updated, of the first so many.
func (e *explanation) sentences(b *strings.Builder) {
	var lines []string
	for i := range e.snapshot.Members {
		if m := &e.snapshot.Members[i]; e.plan.Verdict(m.Index) != "" {
			lines = append(lines, e.plan.Explain(m))
		}
	}
	if len(lines) == 0 {
		return
	}
	b.WriteString("\nwhy:\n")
	for i, line := range lines {
		if i == manySentences {
			fmt.Fprintf(b, "  and %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintf(b, "  %s\n", line)
	}
}

// next says what the controller does next, with the member at the position or,
// if that is -1, with all; then what the pool waits for.
func (e *explanation) next(b *strings.Builder, position int) {
	b.WriteString("\nnext:\n")
	for _, line := range e.steps(position) {
		fmt.Fprintf(b, "  %s\n", line)
	}
	if position >= 0 {
		if line := e.after(position); line != "" {
			fmt.Fprintf(b, "  %s\n", line)
		}
		fmt.Fprintf(b, "  pool: %s\n", e.plan.Next)
		return
	}
	fmt.Fprintf(b, "  %s\n", e.plan.Next)
	if !e.plan.Wake.IsZero() {
		fmt.Fprintf(b, "  looks again by itself in %s\n", age(e.now, e.plan.Wake))
	}
}

// steps are what the controller is about to do.
func (e *explanation) steps(position int) []string {
	var lines []string
	for i := range e.plan.Actions {
		a := &e.plan.Actions[i]
		mine := position < 0 || a.Index == e.snapshot.Members[position].Index
		if mine && a.Record == nil {
			lines = append(lines, a.Describe(e.slot(a.Index)))
		}
	}
	if n := len(lines); n > manySentences {
		lines = append(lines[:manySentences], fmt.Sprintf("and %d more", n-manySentences))
	}
	return lines
}

// after is what ends the member's wait and what comes then; empty if the
// sentence about the member says it already.
func (e *explanation) after(position int) string {
	m, slot := e.stored.Members[position], e.snapshot.Members[position]
	blocker := e.plan.Verdict(slot.Index)
	release := snapshot.Release(e.stored.Pool, m, e.now)
	release.Waiting, release.Stale, release.Blocker = e.snapshot.Waiting, e.plan.Counts.Stale, blocker
	slot.Disruption = rollout.Disruption{}
	ends := slot.Release(&release, e.now).Disruption
	switch d := disruption(m); {
	case d != nil && d.Action == v1alpha1.ActionRemove:
		return "its body goes, and the member with it"
	case d != nil && e.granted(m) != "":
		return "its body goes, and the next one is of revision " + e.granted(m)
	case d != nil:
		return "its body goes, and the next one waits for its revision"
	case m.Spec.Claim == nil:
		return ""
	case ends.Update:
		return fmt.Sprintf("when claim %s ends, it is updated", m.Spec.Claim.Name)
	case ends.Cause != rollout.NoCause:
		return fmt.Sprintf("when claim %s ends, it gets a new body", m.Spec.Claim.Name)
	case blocker != "":
		return fmt.Sprintf("when claim %s ends, it takes its turn in the rollout", m.Spec.Claim.Name)
	}
	return fmt.Sprintf("when claim %s ends, it is free again as it is", m.Spec.Claim.Name)
}

// granted is the revision of a member's next body, as far as the plan goes.
func (e *explanation) granted(m *v1alpha1.Member) string {
	for i := range e.plan.Actions {
		if a := &e.plan.Actions[i]; a.Kind == rollout.Grant && a.Index == int(m.Spec.Index) {
			return string(a.Revision)
		}
	}
	return m.Spec.Revision
}

// slot is the name of the member with the index, also of one that is not there
// yet.
func (e *explanation) slot(index int) string { return e.stored.Pool.Name + "-" + strconv.Itoa(index) }

// age is a span of time as people say it.
func age(from, to time.Time) string { return duration.HumanDuration(to.Sub(from)) }

func since(t *metav1.MicroTime, now time.Time) string {
	if t == nil {
		return ""
	}
	return " for " + age(t.Time, now)
}

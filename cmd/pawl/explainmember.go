package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// manyEvents is how many events of a member are shown, the latest ones.
const manyEvents = 10

// member says why one member is not updated, and what became of it lately.
func (e *explanation) member(w io.Writer, i int, events []eventsv1.Event) error {
	m, slot := e.stored.Members[i], &e.snapshot.Members[i]
	var b strings.Builder
	fmt.Fprintf(&b, "member %s/%s of pool %s: %s%s\n", m.Namespace, m.Name, m.Spec.Pool, phase(m), since(m.Status.PhaseSince, e.now))
	for _, line := range e.facts(m) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	b.WriteString("\nwhy:\n")
	if reason := e.plan.Verdict(slot.Index); reason != "" {
		fmt.Fprintf(&b, "  %s: %s\n", reason, e.plan.Explain(slot))
		if places := e.differs(m.Status.Revision, string(e.snapshot.Target.ID)); places != "" {
			fmt.Fprintf(&b, "  differs: %s\n", places)
		}
	} else {
		fmt.Fprintf(&b, "  %s\n", e.plan.Explain(slot))
	}
	e.next(&b, i)
	b.WriteString("\nevents:\n")
	if len(events) == 0 {
		b.WriteString("  none of late\n")
	}
	rows := [][]string{}
	for _, event := range events {
		rows = append(rows, []string{"  " + age(when(&event), e.now) + " ago", event.Reason, event.Note})
	}
	b.WriteString(aligned(rows))
	_, err := io.WriteString(w, b.String())
	return err
}

// facts are what is recorded of a member, and of the claim that it has.
func (e *explanation) facts(m *v1alpha1.Member) []string {
	st := &m.Status
	list := []string{fmt.Sprintf("revision %s, incarnation %d, address %s", orDash(st.Revision), st.Incarnation, orDash(st.Address))}
	if c := m.Spec.Claim; c != nil {
		line := fmt.Sprintf("claimed by %s%s", holder(m), since(c.BoundAt, e.now))
		if c.ExpiresAt != nil {
			line += ", expires in " + age(e.now, c.ExpiresAt.Time)
		}
		list = append(list, line)
	}
	if c := requested(e.claim(m)); c != nil {
		list = append(list, fmt.Sprintf("its holder was asked %s ago to give it back: %s", age(c.LastTransitionTime.Time, e.now), c.Message))
	}
	list = append(list, asides(e.stored.Pool, []*v1alpha1.Member{m}, e.now)...)
	if d := disruption(m); d != nil {
		list = append(list, fmt.Sprintf("disrupted%s: %s, to %s the body", since(d.Since, e.now), d.Reason, strings.ToLower(string(d.Action))))
	}
	list = append(list, e.down(m)...)
	if st.Message != "" {
		list = append(list, "its body says: "+st.Message)
	}
	if t := st.NextAttemptAt; t != nil && t.After(e.now) {
		list = append(list, "the next attempt to make a body is in "+age(e.now, t.Time))
	}
	return list
}

// down are the facts about a member's time out of service, and about births
// that came to nothing.
func (e *explanation) down(m *v1alpha1.Member) []string {
	st := &m.Status
	var list []string
	if st.DownSince != nil {
		list = append(list, "out of service"+since(st.DownSince, e.now))
	}
	if st.UnsettledSince != nil {
		list = append(list, fmt.Sprintf("its body left service %s ago, before it had recovered", age(st.UnsettledSince.Time, e.now)))
	}
	if m.Spec.ForClaim != nil && *m.Spec.ForClaim {
		list = append(list, "the slot was made because a claim waited")
	}
	switch n := st.Attempts; {
	case st.NoRoom && n > 1:
		list = append(list, fmt.Sprintf("there was no room for its body, %d times in a row", n))
	case st.NoRoom:
		list = append(list, "there was no room for its body")
	case n > 1:
		list = append(list, fmt.Sprintf("%d bodies in a row did not recover", n))
	}
	return list
}

// requested is the condition of a claim whose holder was asked to give its
// member back; nil if that is not so.
func requested(c *v1alpha1.Claim) *metav1.Condition {
	if c == nil || !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionUpdateRequested) {
		return nil
	}
	return meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionUpdateRequested)
}

// claim is the one that a member has; nil if it has none, or that is gone.
func (e *explanation) claim(m *v1alpha1.Member) *v1alpha1.Claim {
	for _, c := range e.stored.Claims {
		if m.Spec.Claim != nil && c.Name == m.Spec.Claim.Name && c.UID == m.Spec.Claim.UID {
			return c
		}
	}
	return nil
}

// events are the latest ones about a member, of its pool and of its claims,
// the oldest first.
func (c *cluster) events(ctx context.Context, m *v1alpha1.Member) ([]eventsv1.Event, error) {
	var found []eventsv1.Event
	for _, of := range []fields.Set{
		{"regarding.kind": "Pool", "regarding.name": m.Spec.Pool}, {"regarding.kind": "Claim"}, {"regarding.kind": "Member", "regarding.name": m.Name},
	} {
		var list eventsv1.EventList
		if err := c.List(ctx, &list, client.InNamespace(c.namespace), client.MatchingFieldsSelector{Selector: of.AsSelector()}); err != nil {
			return nil, fmt.Errorf("list events of member %s: %w", m.Name, err)
		}
		for _, e := range list.Items {
			if e.Regarding.UID == m.UID || e.Related != nil && e.Related.UID == m.UID {
				found = append(found, e)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b eventsv1.Event) int { return cmp.Compare(when(&a).UnixMicro(), when(&b).UnixMicro()) })
	return found[max(0, len(found)-manyEvents):], nil
}

// when is when an event last happened.
func when(e *eventsv1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.DeprecatedLastTimestamp.Time
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	_, objects := world(t)
	for name, args := range map[string][]string{
		"status.txt":  {"status", "web"},
		"status.yaml": {"status", "web", "-o", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, objects...)
			if got := term.do(t.Context(), args...); got != 0 {
				t.Fatalf("exit status %d: %s", got, &term.err)
			}
			golden(t, name, term.out.String())
		})
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	many := func(n int) (list []*v1alpha1.Member) {
		for i := range n {
			m := member(0, v1alpha1.PhaseAvailable, "new")
			m.Name, m.Spec.Index = fmt.Sprintf("web-%d", i), int32(i)
			switch {
			case i%10 == 3:
				m.Status.Phase, m.Status.Revision = v1alpha1.PhaseClaimed, "old"
				m.Spec.Claim = &v1alpha1.MemberClaim{Name: fmt.Sprintf("c%d", i)}
				blocked(m, "Claimed")
			case i == 7:
				m.Status.Phase, m.Status.BodyUID = v1alpha1.PhasePending, ""
				blocked(m, "Claimed") // of the body that is gone
			}
			list = append(list, m)
		}
		return list
	}
	pool := func(change func(*v1alpha1.Pool)) *v1alpha1.Pool {
		p := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 1}}
		p.Status.ObservedGeneration = 1
		change(p)
		return p
	}
	var all strings.Builder
	for _, tt := range []struct {
		reason string
		tree   tree
	}{
		{"many members are summed up", tree{pool: pool(func(*v1alpha1.Pool) {}), members: many(51)}},
		{"fifty are not", tree{pool: pool(func(*v1alpha1.Pool) {}), members: many(50)}},
		{"a pool without members", tree{pool: pool(func(*v1alpha1.Pool) {})}},
		{"no controller runs", tree{pool: pool(func(p *v1alpha1.Pool) { p.Status = v1alpha1.PoolStatus{} })}},
		{"the controller is late", tree{pool: pool(func(p *v1alpha1.Pool) { p.Generation = 2 })}},
		{"a pool goes", tree{pool: pool(func(p *v1alpha1.Pool) { p.DeletionTimestamp = new(metav1.NewTime(noon)) })}},
		{"a rollout is stuck", tree{pool: pool(func(p *v1alpha1.Pool) {
			p.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Message: "3 bodies of revision new failed"},
				{Type: v1alpha1.ConditionUpdated, Status: metav1.ConditionFalse, Reason: "UpdateHalted"},
			}
			p.Status.Failed, p.Status.Surge, p.Status.Unknown, p.Status.WaitingClaims = 2, 1, 1, 2
		})}},
	} {
		fmt.Fprintf(&all, "# %s\n%s\n", tt.reason, &tt.tree)
	}
	golden(t, "trees.txt", all.String())
}

func TestJournal(t *testing.T) {
	t.Parallel()
	p, objects := world(t)
	now := noon
	var out bytes.Buffer
	j := newJournal(&out, func() time.Time { return now })
	for _, o := range objects {
		if m, ok := o.(*v1alpha1.Member); ok {
			j.member(m.DeepCopy(), false)
		}
	}
	j.pool(p)
	after := func(d time.Duration) { now = now.Add(d) }
	change := func(m *v1alpha1.Member, to v1alpha1.Phase) *v1alpha1.Member {
		m = m.DeepCopy()
		m.Status.Phase = to
		return m
	}
	claimed, moving, done := objects[3].(*v1alpha1.Member), objects[5].(*v1alpha1.Member), objects[6].(*v1alpha1.Member)

	after(1200 * time.Millisecond)
	reborn := change(moving, v1alpha1.PhaseProvisioning)
	reborn.Status.Incarnation, reborn.Status.Revision = 2, done.Status.Revision
	j.member(reborn, false)
	j.member(reborn, false) // the same again says nothing
	j.lost(errors.New("connection refused"))
	j.lost(errors.New("connection refused"))
	after(12 * time.Second)
	failed := change(reborn, v1alpha1.PhaseFailed)
	failed.Status.Message = "exit status 1"
	j.member(failed, false)
	j.member(change(done, v1alpha1.PhaseUnready), false)
	j.member(&v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Name: "web-4"}}, false)
	released := change(claimed, v1alpha1.PhaseTerminating)
	released.Spec.Claim = nil
	released.Spec.Disruption = &v1alpha1.Disruption{Reason: v1alpha1.DisruptionClaimEnded, Incarnation: 1}
	j.member(released, false)
	j.member(done, false)
	taken := change(done, v1alpha1.PhaseClaimed)
	taken.Spec.Claim = &v1alpha1.MemberClaim{Name: "build-18"}
	j.member(taken, false)
	after(100 * time.Second)
	j.member(released, true)
	p = p.DeepCopy()
	j.pool(p) // nothing new
	p.Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ConditionUpdated, Status: metav1.ConditionTrue, Reason: "AllMembersCurrent", Message: "every member is on the target"}
	p.Generation++
	j.pool(p) // of the spec before the edit
	p.Status.ObservedGeneration++
	j.pool(p)
	golden(t, "journal.txt", out.String())
}

func TestLive(t *testing.T) {
	t.Parallel()
	p, objects := world(t)
	var out bytes.Buffer
	l := newLive(&out, func() (int, int) { return 72, 8 }, func() time.Time { return noon }, false)
	l.tick() // nothing to draw yet
	l.pool(p)
	for _, o := range objects {
		if m, ok := o.(*v1alpha1.Member); ok {
			l.member(m, false)
		}
	}
	l.tick()
	l.tick() // nothing new
	l.lost(errors.New("connection refused"))
	l.member(objects[6].(*v1alpha1.Member), true)
	l.tick()
	golden(t, "live.txt", strings.NewReplacer("\x1b", "ESC", "\r", "CR").Replace(out.String()))
}

func TestStatus_watch(t *testing.T) {
	t.Parallel()
	condition := func(status metav1.ConditionStatus, reason string) func(*v1alpha1.Pool) {
		return func(p *v1alpha1.Pool) {
			p.Status.Conditions = []metav1.Condition{
				{Type: v1alpha1.ConditionUpdated, Status: status, Reason: reason, Message: "so it is"},
				{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionFalse},
			}
		}
	}
	for name, tt := range map[string]struct {
		reason string
		change func(*v1alpha1.Pool)
		status int
		errors string
	}{
		"updated":     {"a rollout that has ended ends the watch", condition(metav1.ConditionTrue, "AllMembersCurrent"), 0, ""},
		"halted":      {"only a person gets it any further", condition(metav1.ConditionFalse, "UpdateHalted"), 1, "pool web: UpdateHalted: so it is"},
		"rolled back": {"only a person gets it any further", condition(metav1.ConditionFalse, "RolledBack"), 1, "pool web: RolledBack: so it is"},
		"too slow":    {"it is still on its way", condition(metav1.ConditionFalse, "RollingUpdate"), 1, "pool web is not updated after 10m0s: 1 of 4 updated"},
		"born": {"the last bodies are on their way", func(p *v1alpha1.Pool) {
			condition(metav1.ConditionTrue, "AllMembersCurrent")(p)
			p.Status.Conditions[1].Status = metav1.ConditionTrue
		}, 1, "pool web is not updated after 10m0s"},
		"edited": {"the condition is about an earlier template", func(p *v1alpha1.Pool) {
			condition(metav1.ConditionTrue, "AllMembersCurrent")(p)
			p.Generation++
		}, 1, "pool web is not updated after 10m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, objects := world(t)
				tt.change(p)
				term := newTerminal(t, append([]client.Object{p}, objects[1:]...)...)
				if got := term.do(t.Context(), "status", "web", "--watch", "--timeout", "10m"); got != tt.status {
					t.Errorf("%s: exit status %d, want %d: %s", tt.reason, got, tt.status, &term.err)
				}
				if !strings.Contains(term.err.String(), tt.errors) {
					t.Errorf("%s: it says %q, want %q", tt.reason, &term.err, tt.errors)
				}
			})
		})
	}
}

//go:build integration

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// TestPool_cascade: a foreground cascading delete of a pool, with the garbage
// collector at work, leaves a claimed member and its process alone; they go
// once the claim is released.
func TestPool_cascade(t *testing.T) {
	server := pawldtest.Start(t, pawldtest.WithControllerManager())
	w := newWorld(t, server.Config)
	pool := w.processPool("web", 3, "1")
	w.create(pool)
	w.updated("web", 3)
	c := w.claim("mine", "web")
	before, err := ask(t.Context(), c.Status.Address)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.c.Delete(t.Context(), pool, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	w.eventually("only the claimed member is left", func() error {
		var list v1alpha1.MemberList
		if err := w.c.List(t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].Name != c.Status.Member {
			return fmt.Errorf("%d members", len(list.Items))
		}
		return nil
	})
	var m v1alpha1.Member
	if err := w.c.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: c.Status.Member}, &m); err != nil {
		t.Fatal(err)
	}
	if err := w.c.Delete(t.Context(), &m); err == nil {
		t.Error("the claimed member could be deleted")
	}
	if after, err := ask(t.Context(), c.Status.Address); err != nil || after != before {
		t.Errorf("the claimed process was %+v and is %+v (%v)", before, after, err)
	}
	if err := w.c.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.gone(pool)
	if pids := w.processes(); len(pids) > 0 {
		t.Errorf("processes left over: %v", pids)
	}
}

// TestPool_slotDeleted: somebody deletes a member by hand; its process goes
// and the slot is filled again.
func TestPool_slotDeleted(t *testing.T) {
	w := shared(t)
	w.create(w.processPool("web", 2, "1"))
	w.updated("web", 2)
	old := w.members("web")[1]
	if err := w.c.Delete(t.Context(), &old); err != nil {
		t.Fatal(err)
	}
	w.eventually("the slot is made anew", func() error {
		if m := w.members("web"); len(m) != 2 || m[1].UID == old.UID || m[1].Name != old.Name || m[1].Status.Phase != v1alpha1.PhaseAvailable {
			return fmt.Errorf("%s; members: %s", describe(w.pool("web")), list(m))
		}
		return nil
	})
	w.updated("web", 2)
	if pids := w.processes(); len(pids) != 2 {
		t.Errorf("%d processes instead of 2", len(pids))
	}
}

// TestPool_invalidTemplate: an expression that does not compile is named, and
// nothing is touched: neither at first nor by a later edit.
func TestPool_invalidTemplate(t *testing.T) {
	w := shared(t)
	broken := w.processPool("broken", 2, "${member.nme}")
	broken.Spec.Template.Process.Env[envVersion] = "${membr.name}"
	w.create(broken)
	p := w.reason("broken", v1alpha1.ConditionStalled, "InvalidTemplate")
	message := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStalled).Message
	if !strings.Contains(message, "template.process.env") || !strings.Contains(message, "membr") {
		t.Errorf("the message does not name the field: %s", message)
	}
	if n := len(w.members("broken")); n != 0 {
		t.Errorf("%d members were made", n)
	}

	w.create(w.processPool("web", 2, "1"))
	w.updated("web", 2)
	before := w.processes()
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Template.Process.Args = []string{"${"} })
	p = w.reason("web", v1alpha1.ConditionUpdated, "InvalidTemplate")
	if p.Status.Free != 2 {
		t.Errorf("%d members are free", p.Status.Free)
	}
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Template.Process.Args = nil })
	w.updated("web", 2)
	if after := w.processes(); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("processes were %v and are %v", before, after)
	}
}

// TestPool_rendersForSome: a template that renders for member 0 and fails for
// member 1 costs that member, and nobody else.
func TestPool_rendersForSome(t *testing.T) {
	w := shared(t)
	w.create(w.processPool("web", 3, "1"))
	w.updated("web", 3)
	w.recovered("web")
	w.edit("web", func(p *v1alpha1.Pool) {
		p.Spec.Template.Process.Env[envVersion] = `${[1, 1][member.index]}`
		p.Spec.Update.FailureLimit = intOrString(1)
	})
	p := w.reason("web", v1alpha1.ConditionUpdated, "UpdateHalted")
	w.eventually("all members in service", func() error {
		if p = w.pool("web"); p.Status.Free != 3 {
			return errors.New(describe(p))
		}
		return nil
	})
	if m := w.members("web"); m[2].Status.Revision != p.Status.CurrentRevision {
		t.Errorf("member 2 is on %s instead of %s", m[2].Status.Revision, p.Status.CurrentRevision)
	}
}

// TestPool_refillBelow: a pool that has enough free members makes none for those
// that are claimed, but for a larger size it does at once.
func TestPool_refillBelow(t *testing.T) {
	w := shared(t)
	pool := w.simPool("web", 3)
	pool.Spec.Sizing = new(v1alpha1.SizingWarm)
	pool.Spec.RefillBelow = new(int32(2))
	w.create(pool)
	w.updated("web", 3)
	w.claim("mine", "web")
	w.eventually("one is claimed, and none is made for it", func() error {
		if st := w.pool("web").Status; st.Free != 2 || st.Claimed != 1 || st.Replicas != 3 || st.Size != 3 {
			return errors.New(describe(w.pool("web")))
		}
		return nil
	})
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Replicas = new(int32(5)) })
	w.eventually("it grows to its size", func() error {
		if st := w.pool("web").Status; st.Free != 5 || st.Claimed != 1 || st.Size != 5 {
			return errors.New(describe(w.pool("web")))
		}
		return nil
	})
}

// TestPool_missingCommand: a command that is not there is named before
// anything is touched, at first and by a later edit.
func TestPool_missingCommand(t *testing.T) {
	w := shared(t)
	missing := func(p *v1alpha1.Pool) { p.Spec.Template.Process.Command = "/no/such/program" }
	pool := w.processPool("broken", 1, "1")
	missing(pool)
	w.create(pool)
	w.create(w.processPool("web", 2, "1"))
	w.updated("web", 2)
	w.edit("web", missing)
	for _, name := range []string{"broken", "web"} {
		p := w.reason(name, v1alpha1.ConditionStalled, "InvalidTemplate")
		message := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStalled).Message
		if !strings.Contains(message, "template.process.command") || !strings.Contains(message, "/no/such/program") {
			t.Errorf("%s: the message does not name the field: %s", name, message)
		}
	}
	if n := len(w.members("broken")); n != 0 {
		t.Errorf("%d members were made", n)
	}
	for _, m := range w.members("web") {
		if m.Status.Phase != v1alpha1.PhaseAvailable || m.Status.Incarnation != 1 {
			t.Errorf("member %s: %s, incarnation %d", m.Name, m.Status.Phase, m.Status.Incarnation)
		}
	}
}

// TestPool_crash: a process that dies by itself is made anew; a claim on it
// fails, and the claim's end is told.
func TestPool_crash(t *testing.T) {
	w := shared(t)
	w.create(w.processPool("web", 2, "1"))
	w.updated("web", 2)
	c := w.claim("mine", "web")
	a, err := ask(t.Context(), c.Status.Address)
	if err != nil {
		t.Fatal(err)
	}
	kill(t, a.PID)
	w.eventually("the claim fails", func() error {
		if now := w.claimed(c); now.Status.Phase != v1alpha1.ClaimFailed {
			return fmt.Errorf("phase %s", now.Status.Phase)
		}
		return nil
	})
	w.eventually("both members are free", func() error {
		if p := w.pool("web"); p.Status.Free != 2 {
			return errors.New(describe(p))
		}
		return nil
	})
}

// TestPool_steady: a pool at rest writes nothing, whatever woke its
// controllers.
func TestPool_steady(t *testing.T) {
	w := shared(t)
	w.create(w.processPool("web", 3, "1"))
	w.updated("web", 3)
	c := w.claim("mine", "web")
	w.eventually("status settled", func() error {
		if p := w.pool("web"); p.Status.Claimed != 1 || p.Status.Free != 2 {
			return errors.New(describe(p))
		}
		return nil
	})
	versions := func() string {
		var all []string
		p := w.pool("web")
		all = append(all, p.ResourceVersion, w.claimed(c).ResourceVersion)
		for _, m := range w.members("web") {
			all = append(all, m.ResourceVersion)
		}
		return strings.Join(all, " ")
	}
	before, since := versions(), time.Now()
	// A stretch of time is what is observed here; it hides nothing.
	for time.Since(since) < 5*time.Second {
		if now := versions(); now != before {
			t.Fatalf("somebody wrote: versions were %s and are %s", before, now)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestMember_writes counts the writes to members while they are replaced: four
// each, from the decision until they are in service again.
func TestMember_writes(t *testing.T) {
	w := shared(t)
	const n = 4
	w.create(w.processPool("web", n, "1"))
	w.updated("web", n)
	watch, err := w.c.Watch(t.Context(), &v1alpha1.MemberList{}, client.InNamespace(w.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: w.pool("web").ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Template.Process.Env[envVersion] = "2" })
	writes := map[string][]string{}
	done := map[string]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for len(done) < n {
		select {
		case <-ctx.Done():
			t.Fatalf("only %d members were replaced", len(done))
		case e := <-watch.ResultChan():
			m, ok := e.Object.(*v1alpha1.Member)
			if !ok {
				t.Fatalf("watch: %+v", e.Object)
			}
			if m.Spec.Disruption == nil {
				continue // the blocker, before its turn has come
			}
			writes[m.Name] = append(writes[m.Name], fmt.Sprintf("%s %s%s", m.Status.Phase, updatedOf(m), m.Status.Message))
			done[m.Name] = m.Status.Phase == v1alpha1.PhaseAvailable && m.Status.Incarnation == 2 || done[m.Name]
			if !done[m.Name] {
				delete(done, m.Name)
			}
		}
	}
	for name, phases := range writes {
		if len(phases) > 4 {
			t.Errorf("%s was written %d times for one replacement: %q", name, len(phases), phases)
		}
	}
}

// updatedOf is what a member says of its revision.
func updatedOf(m *v1alpha1.Member) string {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdated); c != nil {
		return fmt.Sprintf("Updated=%s %s: ", c.Status, c.Reason)
	}
	return ""
}

// TestClaim_ttl: a claim ends by itself when its time is up, and its member is
// replaced.
func TestClaim_ttl(t *testing.T) {
	w := shared(t)
	pool := w.processPool("web", 1, "1")
	pool.Spec.Claims = &v1alpha1.Claims{MaxTTL: &metav1.Duration{Duration: time.Second}}
	w.create(pool)
	w.updated("web", 1)
	c := w.claim("mine", "web")
	if c.Spec.Holder == "" || c.Status.ExpiresAt == nil {
		t.Errorf("holder %q, expires at %v", c.Spec.Holder, c.Status.ExpiresAt)
	}
	w.eventually("the claim expires", func() error {
		if now := w.claimed(c); now.Status.Phase != v1alpha1.ClaimExpired {
			return fmt.Errorf("phase %s", now.Status.Phase)
		}
		return nil
	})
	w.eventually("its member has a new body", func() error {
		if m := w.members("web"); m[0].Status.Incarnation != 2 || m[0].Status.Phase != v1alpha1.PhaseAvailable {
			return fmt.Errorf("incarnation %d, %s", m[0].Status.Incarnation, m[0].Status.Phase)
		}
		return nil
	})
}

// TestClaim_many: more claims than members, at once and in all the races that
// brings: no member has two, no claim has two, and the rest wait.
func TestClaim_many(t *testing.T) {
	w := shared(t)
	const n, more = 5, 5
	w.create(w.processPool("web", n, "1"))
	w.updated("web", n)
	errs := make(chan error)
	for i := range n + more {
		go func() {
			errs <- w.c.Create(t.Context(), &v1alpha1.Claim{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%d", i), Namespace: w.namespace}, Spec: v1alpha1.ClaimSpec{Pool: "web"},
			})
		}()
	}
	for range n + more {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("all members are claimed", func() error {
		var claims v1alpha1.ClaimList
		if err := w.c.List(t.Context(), &claims, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		phases := map[v1alpha1.ClaimPhase]int{}
		holders := map[string]string{}
		for _, c := range claims.Items {
			phases[c.Status.Phase]++
			if c.Status.Member == "" {
				continue
			}
			if other := holders[c.Status.Member]; other != "" {
				t.Fatalf("member %s is held by %s and %s", c.Status.Member, other, c.Name)
			}
			holders[c.Status.Member] = c.Name
		}
		if phases[v1alpha1.ClaimBound] != n || phases[v1alpha1.ClaimPending] != more {
			return fmt.Errorf("%v", phases)
		}
		return nil
	})
	p := w.pool("web")
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, deadline, true, func(context.Context) (bool, error) {
		p = w.pool("web")
		return p.Status.WaitingClaims == more && p.Status.Claimed == n, nil
	}); err != nil {
		t.Errorf("status: %s", describe(p))
	}
}

// TestClaim_refused: a claim for a pool that is not there waits and says so;
// one without a pool is refused.
func TestClaim_refused(t *testing.T) {
	w := shared(t)
	err := w.c.Create(t.Context(), &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: w.namespace}})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec: Required value") {
		t.Errorf("a claim without a pool: %v", err)
	}
	c := &v1alpha1.Claim{ObjectMeta: metav1.ObjectMeta{Name: "early", Namespace: w.namespace}, Spec: v1alpha1.ClaimSpec{Pool: "later"}}
	w.create(c)
	w.eventually("it says what it waits for", func() error {
		b := meta.FindStatusCondition(w.claimed(c).Status.Conditions, v1alpha1.ConditionBound)
		if b == nil || b.Reason != "PoolNotFound" {
			return fmt.Errorf("%+v", b)
		}
		return nil
	})
	w.create(w.processPool("later", 1, "1"))
	w.eventually("it is bound once the pool is there", func() error {
		if now := w.claimed(c); now.Status.Phase != v1alpha1.ClaimBound {
			return fmt.Errorf("phase %s", now.Status.Phase)
		}
		return nil
	})
}

//go:build integration

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/internal/operator"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

var write = flag.Int("write", 0, "make TestStored write this set below testdata/stored, which must not exist yet, and check nothing")

// storedDir is where the sets are; see the README there.
const storedDir = "../../testdata/stored"

// quietFor is how long nothing may be written until a pool counts as at rest.
const quietFor = 2 * time.Second

// TestStored loads what earlier versions stored, one namespace a set, and runs
// today's operator on it: nothing rolls, no claim is lost, no revision is made
// or forgotten, and what was under way comes to its end.
func TestStored(t *testing.T) {
	server := pawldtest.Start(t, pawldtest.WithoutControllers(), pawldtest.WithSim())
	simFile := filepath.Join(t.TempDir(), "sim")
	if *write > 0 {
		w := newWorld(t, server.Config)
		w.writeSet(*write, simFile, func() (stop func()) { return w.operate(server, simFile) })
		return
	}
	dirs, err := filepath.Glob(filepath.Join(storedDir, "*", fileAt))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no sets in %s: %v", storedDir, err)
	}
	var sets []*set
	var sim strings.Builder
	w := newWorld(t, server.Config)
	for _, at := range dirs {
		s := readSet(t, filepath.Dir(at))
		w.load(s)
		sim.WriteString(s.sim)
		sets = append(sets, s)
	}
	if err := os.WriteFile(simFile, []byte(sim.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	w.operate(server, simFile)
	for _, s := range sets {
		w.namespace = s.namespace
		t.Run(s.name, func(t *testing.T) {
			in := *w
			in.t = t
			in.checkSet(s)
		})
	}
}

// operate runs the operator until stop is called, or the test ends.
func (w *world) operate(server *pawldtest.Server, simFile string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- operator.Run(ctx, server.Config, operator.Options{Sim: true, SimFile: simFile, MetricsAddr: "0", HealthAddr: "0"})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// checkSet compares the set with what the operator makes of it.
func (w *world) checkSet(s *set) {
	w.t.Helper()
	w.seen(s)
	w.quiet(s)
	before, after := s.state(w.t), w.state(s)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if was, ok := before[name]; !ok {
			w.t.Errorf("%s was not stored:\n%s", name, after[name])
		} else if was != after[name] {
			w.t.Errorf("%s was stored as\n%s\nand is\n%s", name, was, after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			w.t.Errorf("%s is gone; it was stored as\n%s", name, before[name])
		}
	}
	w.holds(s)
	w.goesOn(s)
	w.holds(s)
}

// seen waits until the operator has made a pass over each pool. Each is edited
// first in a field that changes no member, since a pool that needs no write shows
// no sign of a pass otherwise.
func (w *world) seen(s *set) {
	w.t.Helper()
	for _, p := range s.pools {
		if !p.DeletionTimestamp.IsZero() {
			continue
		}
		w.edit(p.Name, func(p *v1alpha1.Pool) { p.Spec.RevisionHistoryLimit = new(int32(100)) })
		w.eventually("a pass over "+p.Name, func() error {
			if p := w.pool(p.Name); p.Status.ObservedGeneration != p.Generation {
				return errors.New(describe(p))
			}
			return nil
		})
	}
}

// quiet waits until nothing of the set has been written for a while, but for
// members that fail again and again, and their pools.
func (w *world) quiet(s *set) {
	w.t.Helper()
	last, since := "", time.Time{}
	w.eventually("set "+s.name+" comes to rest", func() error {
		if now := strings.Join(w.resourceVersions(s), "\n"); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < quietFor {
			return errors.New("it is still written")
		}
		return nil
	})
}

func (w *world) resourceVersions(s *set) []string {
	w.t.Helper()
	var all []string
	for _, list := range []client.ObjectList{&v1alpha1.PoolList{}, &v1alpha1.MemberList{}, &v1alpha1.ClaimList{}, &appsv1.ControllerRevisionList{}} {
		w.each(list, func(o client.Object) {
			if !s.moves[poolOf(o)] {
				all = append(all, fmt.Sprintf("%T %s %s", o, o.GetName(), o.GetResourceVersion()))
			}
		})
	}
	return all
}

// poolOf is the name of the pool that an object belongs to.
func poolOf(o client.Object) string {
	switch o := o.(type) {
	case *v1alpha1.Pool:
		return o.Name
	case *v1alpha1.Member:
		return o.Spec.Pool
	case *v1alpha1.Claim:
		return o.Spec.Pool
	}
	return o.GetLabels()[v1alpha1.LabelPool]
}

// state is what must not change while the operator starts on a set: a line for
// each object, by kind and name. Of a pool with a member that is not settled, and
// of one of which no body has served yet, only part is compared: it goes on.
type state map[string]string

// standing are the pools of each set that stand on their target by today's
// definition, and did not by that of the version that stored them: what is off the
// target is claimed or skipped.
var standing = map[string][]string{"1": {"manual", "skipped"}}

// stands reports whether the pool with the name stands on its target.
func (s *set) stands(pool string) bool { return slices.Contains(standing[s.name], pool) }

// stand is the revision of one of the set's pools that comes to stand on it, after
// it stood on its first one.
func (s *set) stand(t testing.TB, r *appsv1.ControllerRevision) *appsv1.ControllerRevision {
	t.Helper()
	for i := range s.pools {
		p := &s.pools[i]
		if p.Name != poolOf(r) || !s.stands(p.Name) || p.Status.TargetRevision != history.RevisionID(r) {
			continue
		}
		rec, err := history.ReadRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		r = r.DeepCopy()
		if err := history.WriteRecord(r, rec.Stand(map[string]history.Record{"first": {Stood: 1}}, time.Now())); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// state is that of the set as it was stored.
func (s *set) state(t testing.TB) state {
	t.Helper()
	all := state{}
	for i := range s.pools {
		p := s.pools[i].DeepCopy()
		if s.stands(p.Name) {
			p.Status.CurrentRevision = p.Status.TargetRevision
		}
		all.pool(s, p)
	}
	for i := range s.members {
		if m := &s.members[i]; !unsettled(m) {
			all.member(m)
		}
	}
	for i := range s.revisions {
		all.revision(s, s.stand(t, &s.revisions[i]))
	}
	for _, o := range s.objects {
		all.frozen(o)
	}
	return all
}

// state is that of the set as it is now.
func (w *world) state(s *set) state {
	w.t.Helper()
	all := state{}
	w.each(&v1alpha1.PoolList{}, func(o client.Object) { all.pool(s, o.(*v1alpha1.Pool)) })
	w.each(&v1alpha1.MemberList{}, func(o client.Object) {
		m := o.(*v1alpha1.Member)
		was := s.member(m.Name)
		if !unsettled(was) {
			all.member(m)
		} else if d := m.Spec.Disruption; disrupted(m) && d.Reason == v1alpha1.DisruptionDrift && !disrupted(was) {
			w.t.Errorf("Member %s, which was stored as %s, is now disrupted for drift: %+v", m.Name, was.Status.Phase, d)
		}
	})
	w.each(&appsv1.ControllerRevisionList{}, func(o client.Object) { all.revision(s, o.(*appsv1.ControllerRevision)) })
	for _, kind := range []string{"ConfigMap", "Secret"} {
		for _, o := range w.dump("v1", kind) {
			all.frozen(o)
		}
	}
	return all
}

func (s state) pool(of *set, p *v1alpha1.Pool) {
	st := &p.Status
	line := "target " + st.TargetRevision
	if of.served[p.Name] {
		line += ", current " + st.CurrentRevision
	}
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionUpdated); c != nil && of.served[p.Name] && !of.moves[p.Name] {
		line += fmt.Sprintf(", Updated %s %s, %d members: %d free, %d claimed, %d updated, %d stale, %d rolling",
			c.Status, c.Reason, st.Replicas, st.Free, st.Claimed, st.Updated, st.Stale, st.Rolling)
	}
	s["Pool "+p.Name] = line
}

func (s state) member(m *v1alpha1.Member) {
	line := fmt.Sprintf("%s #%d, runs %s, wants %s, body %s", m.Status.Phase, m.Status.Incarnation, m.Status.Revision, m.Spec.Revision, m.Status.BodyUID)
	if c := m.Spec.Claim; c != nil {
		line += fmt.Sprintf(", claimed by %s %s", c.Name, c.UID)
	}
	if d := m.Spec.Disruption; disrupted(m) {
		line += fmt.Sprintf(", disrupted: %s %s", d.Reason, d.Action)
	}
	s["Member "+m.Name] = line
}

func (s state) revision(of *set, r *appsv1.ControllerRevision) {
	rec, err := history.ReadRecord(r)
	line := fmt.Sprintf("%v", err)
	if of.served[poolOf(r)] {
		line = fmt.Sprintf("halted %t, rolled back %t, stood %d, retried %q, %v", rec.Halted, rec.RolledBack, rec.Stood, rec.Retried, err)
	}
	if !of.moves[poolOf(r)] {
		line += fmt.Sprintf(", %d failed", rec.Failed)
		for _, f := range rec.Failures {
			line += fmt.Sprintf(", failure of %s #%d, forgiven %t", f.ID, f.Incarnation, f.Forgiven)
		}
	}
	s["ControllerRevision "+r.Name] = line
}

// frozen notes what is kept of sources; of any other object it does nothing.
func (s state) frozen(o client.Object) {
	if name, ok := o.GetLabels()[v1alpha1.LabelSource]; ok {
		s[o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName()] = "of source " + name
	}
}

// disrupted reports whether the member's disruption is of its present
// incarnation.
func disrupted(m *v1alpha1.Member) bool {
	return m.Spec.Disruption != nil && m.Spec.Disruption.Incarnation == m.Status.Incarnation
}

// unsettled reports whether a stored member is not at rest: a restart alone may
// bring it further.
func unsettled(m *v1alpha1.Member) bool {
	switch m.Status.Phase {
	case v1alpha1.PhasePending, v1alpha1.PhaseFailed:
		return true
	case v1alpha1.PhaseUpdating:
		return disrupted(m)
	default:
		return false
	}
}

// holds checks that each claim is what it was, and that each that is bound still
// has its member.
func (w *world) holds(s *set) {
	w.t.Helper()
	for i := range s.claims {
		was := &s.claims[i]
		now := w.claimed(was)
		if now.Status.Phase != was.Status.Phase || now.Status.Member != was.Status.Member {
			w.t.Errorf("Claim %s was %s with member %q, and is %s with member %q", was.Name, was.Status.Phase, was.Status.Member, now.Status.Phase, now.Status.Member)
		}
		if was.Status.Phase != v1alpha1.ClaimBound || !was.DeletionTimestamp.IsZero() {
			continue
		}
		m := w.member(was.Status.Member)
		stored := s.member(m.Name)
		if m.Spec.Claim == nil || m.Spec.Claim.UID != now.UID || m.Status.Phase != stored.Status.Phase || m.Status.BodyUID != stored.Status.BodyUID {
			w.t.Errorf("Claim %s has lost its member or the body: %s\nstored as %s", was.Name, list([]v1alpha1.Member{*m}), list([]v1alpha1.Member{*stored}))
		}
	}
}

// member is the member as it was stored; an empty one if there was none.
func (s *set) member(name string) *v1alpha1.Member {
	for i := range s.members {
		if s.members[i].Name == name {
			return &s.members[i]
		}
	}
	return &v1alpha1.Member{}
}

// goesOn lets go of what holds bodies in their end, and waits until what was
// under way has come to an end: the body is gone, and where the slot stays, it
// is at its next incarnation.
func (w *world) goesOn(s *set) {
	w.t.Helper()
	for _, o := range s.objects {
		if o.GetLabels()[v1alpha1.LabelMember] == "" || !controllerutil.ContainsFinalizer(o, finalizerKeep) {
			continue
		}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := w.c.Patch(w.t.Context(), o.DeepCopy(), patch); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := range s.members {
		m := &s.members[i]
		if !disrupted(m) || m.Status.Phase == v1alpha1.PhaseFailed || strings.HasPrefix(m.Name, simPrefix) {
			continue // it waits for its next attempt, or for a body that takes its time
		}
		w.eventually("the disruption of "+m.Name+" ends", func() error {
			var now v1alpha1.Member
			err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: m.Name}, &now)
			switch {
			case m.Spec.Disruption.Action == v1alpha1.ActionRemove && apierrors.IsNotFound(err):
				return nil
			case err == nil && now.Status.Incarnation > m.Status.Incarnation && now.Status.BodyUID != "":
				return nil
			}
			return fmt.Errorf("%s: %w", list([]v1alpha1.Member{now}), err)
		})
	}
}

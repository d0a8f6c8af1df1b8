package pool

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/rollout"
)

// versions are the resource versions of everything that Pawl writes.
func (b *bench) versions() string {
	b.t.Helper()
	var members v1alpha1.MemberList
	var revisions appsv1.ControllerRevisionList
	b.must(b.Client.List(b.t.Context(), &members))
	b.must(b.Client.List(b.t.Context(), &revisions))
	all := []string{"pool " + b.pool().ResourceVersion}
	for i := range members.Items {
		all = append(all, members.Items[i].Name+" "+members.Items[i].ResourceVersion)
	}
	for i := range revisions.Items {
		all = append(all, revisions.Items[i].Name+" "+revisions.Items[i].ResourceVersion)
	}
	return strings.Join(all, ", ")
}

// settle makes passes until one more changes nothing.
func (b *bench) settle() {
	b.t.Helper()
	for range 20 {
		before := b.versions()
		b.once()
		if b.versions() == before {
			return
		}
	}
	b.t.Fatal("it never comes to rest")
}

func (b *bench) record(id string) history.Record {
	b.t.Helper()
	for _, rev := range b.revisions() {
		if history.RevisionID(&rev) == id {
			rec, err := history.ReadRecord(&rev)
			b.must(err)
			return rec
		}
	}
	b.t.Fatalf("no revision %s", id)
	return history.Record{}
}

func TestReconciler_saysWhatDiffers(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{Create: identified}, newPool(2))
	b.once()
	b.serve()
	b.edit(func(p *v1alpha1.Pool) {
		p.Spec.Update.Type = new(v1alpha1.UpdateManual)
		p.Spec.Template.Sim = &v1alpha1.Sim{Version: new("2"), Boot: &metav1.Duration{Duration: time.Second}}
	})
	b.settle()
	c := updatedOf(b.member("web-1"))
	if !strings.HasSuffix(c.Message, "it differs in template.sim.boot, template.sim.version") || !strings.Contains(c.Message, b.pool().Status.TargetRevision) {
		t.Errorf("the member says %q", c.Message)
	}
	b.edit(func(p *v1alpha1.Pool) {
		p.Spec.Template.Sim = &v1alpha1.Sim{
			Version: new("1"), Stop: &metav1.Duration{Duration: time.Second}, Boot: &metav1.Duration{Duration: time.Second},
			Drain: &metav1.Duration{Duration: time.Second}, After: &metav1.Duration{Duration: time.Second},
		}
	})
	b.settle()
	c = updatedOf(b.member("web-1"))
	if !strings.HasSuffix(c.Message, "it differs in template.sim.after, template.sim.boot, template.sim.drain and 1 more") ||
		!strings.Contains(c.Message, b.pool().Status.TargetRevision) {
		t.Errorf("after another edit the member says %q", c.Message)
	}
}

// fail has the body of a slot fail before it has served, with its last words.
func (b *bench) fail(name, words string) {
	b.t.Helper()
	m := b.member(name)
	now := &metav1.MicroTime{Time: b.now}
	m.Status = v1alpha1.MemberStatus{
		Phase: v1alpha1.PhaseFailed, Revision: m.Spec.Revision, Incarnation: m.Status.Incarnation + 1, BodyUID: name,
		Exited: true, FailedEarly: true, Message: words, BornAt: now, PhaseSince: now,
	}
	b.must(b.Client.Status().Update(b.t.Context(), m))
}

// halted is a pool whose second revision has halted.
func halted(t *testing.T, onFailure v1alpha1.OnFailure) (b *bench, first, second string) {
	t.Helper()
	b = newBench(t, interceptor.Funcs{Create: identified}, newPool(2))
	b.once()
	b.serve()
	b.once()
	first = b.pool().Status.TargetRevision
	b.edit(func(p *v1alpha1.Pool) {
		p.Spec.Template.Sim.Version, p.Spec.Update.OnFailure, p.Spec.Update.FailureLimit = new("2"), &onFailure, intOrString(1)
	})
	b.once()
	b.fail("web-0", "exit status 9: no such file")
	b.once()
	second = b.member("web-0").Status.Revision
	b.serve()
	b.settle()
	return b, first, second
}

func TestReconciler_retry(t *testing.T) {
	t.Parallel()
	b, _, second := halted(t, v1alpha1.FailureHalt)
	for _, name := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionUpdated} {
		b.condition(name, "UpdateHalted", "exit status 9: no such file", "member 0", second, "pawl undo web", "pawl retry web")
	}
	if rec := b.record(second); !rec.Halted || rec.Failures[0].Message != "exit status 9: no such file" {
		t.Fatalf("its record is %+v", rec)
	}
	ask := func(request string) {
		b.edit(func(p *v1alpha1.Pool) { p.Annotations = map[string]string{v1alpha1.AnnotationRetry: request} })
		b.once()
	}
	ask("nosuchthing@1")
	if !b.record(second).Halted {
		t.Error("a request for something else is granted")
	}
	ask(second + "@1")
	if rec := b.record(second); rec.Halted || rec.Failed != 0 || rec.Retried != second+"@1" {
		t.Errorf("it gets another round, and its record is %+v", rec)
	}
	b.once()
	b.fail("web-0", "exit status 9")
	b.once()
	b.serve()
	b.settle()
	if !b.record(second).Halted {
		t.Error("a round that failed again does not halt")
	}
	before := b.versions()
	b.once()
	if b.versions() != before {
		t.Error("one request is granted twice")
	}
	ask(second + "@2")
	if b.record(second).Halted {
		t.Error("a second request is not granted")
	}
}

// A revision that becomes the target anew starts clean.
func TestReconciler_renew(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{Create: identified}, newPool(2))
	b.once()
	b.serve()
	b.once()
	version := func(v string) string {
		b.edit(func(p *v1alpha1.Pool) { p.Spec.Template.Sim.Version = &v })
		b.once()
		return b.pool().Status.TargetRevision
	}
	second := version("2")
	b.fail("web-0", "exit status 9")
	b.once()
	rec := b.record(second)
	if rec.Failed != 1 {
		t.Fatalf("its record is %+v", rec)
	}
	since := rec.TargetSince.Time
	version("1")
	version("2")
	if rec = b.record(second); rec.Failed != 0 || !rec.TargetSince.After(since) {
		t.Errorf("as the target again its record is %+v", rec)
	}
}

func TestReconciler_rollback(t *testing.T) {
	t.Parallel()
	b, first, second := halted(t, v1alpha1.FailureRollback)
	for _, name := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionUpdated} {
		b.condition(name, "RolledBack", "exit status 9: no such file", second, first)
	}
	for _, name := range []string{"web-0", "web-1"} {
		if m := b.member(name); m.Spec.Revision != first || updatedOf(m).Reason != "OnTarget" {
			t.Errorf("%s is to be of revision %s; %+v", name, m.Spec.Revision, updatedOf(m))
		}
	}
	if st := b.pool().Status; st.TargetRevision != second || st.CurrentRevision != first || st.Rollout.Revision != first {
		t.Errorf("target %s, current %s, rollout to %s", st.TargetRevision, st.CurrentRevision, st.Rollout.Revision)
	}
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Template.Sim.Version = new("3") })
	b.once()
	b.condition(v1alpha1.ConditionUpdated, "RollingUpdate")
	b.edit(func(p *v1alpha1.Pool) {
		p.Spec.Template.Sim.Version, p.Annotations = new("2"), map[string]string{v1alpha1.AnnotationRetry: second + "@1"}
	})
	b.once()
	if rec := b.record(second); rec.RolledBack || rec.Halted {
		t.Errorf("after a request the record is %+v", rec)
	}
}

func TestReconciler_skip(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{Create: identified}, newPool(2))
	b.once()
	b.serve()
	b.once()
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Template.Sim.Version = new("2") })
	id, err := history.ID(&b.pool().Spec.Template)
	b.must(err)
	m := b.member("web-0")
	m.Annotations = map[string]string{v1alpha1.AnnotationSkip: id}
	b.must(b.Client.Update(t.Context(), m))
	for range 5 {
		b.once()
		b.serve()
	}
	if a, z := b.member("web-0"), b.member("web-1"); a.Status.Incarnation != 1 || z.Status.Incarnation != 2 {
		t.Errorf("incarnations %d and %d: one is skipped, the other is not", a.Status.Incarnation, z.Status.Incarnation)
	}
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Template.Sim.Version = new("3") })
	for range 5 {
		b.once()
		b.serve()
	}
	if a := b.member("web-0"); a.Status.Incarnation != 2 {
		t.Error("what was skipped is skipped for ever")
	}
}

// Another version of the hash names new revisions, and changes nothing else.
func TestReconciler_hashVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{Create: identified}, newPool(2))
	b.once()
	b.serve()
	b.edit(func(p *v1alpha1.Pool) {
		p.Spec.Update.Type, p.Spec.Template.Sim.Version = new(v1alpha1.UpdateManual), new("2")
	})
	b.settle()
	before := b.versions()
	for _, version := range []int{2, 1, 2} {
		again := newBench(t, interceptor.Funcs{Create: identified})
		again.Client, again.Reader, again.Roster, again.HashVersion, again.now = b.Client, b.Reader, b.Roster, version, b.now
		b = again
		b.once()
		if b.versions() != before {
			t.Errorf("version %d of the hash changes something: %s instead of %s", version, b.versions(), before)
		}
	}
	second := b.pool().Status.TargetRevision
	for version, want := range map[string]string{"2": second, "1": b.pool().Status.CurrentRevision} {
		b.edit(func(p *v1alpha1.Pool) { p.Spec.Template.Sim.Version = &version })
		b.once()
		if got := b.pool().Status.TargetRevision; got != want {
			t.Errorf("version %s of the template is revision %s, and was %s", version, got, want)
		}
	}
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Template.Sim.Version = new("3") })
	b.once()
	c, err := history.ContentOf(&b.pool().Spec.Template)
	b.must(err)
	id, err := c.ID(2)
	b.must(err)
	if got := b.pool().Status.TargetRevision; got != id {
		t.Errorf("a new revision is called %s instead of %s", got, id)
	}
}

// A path that is declared live changes no revision, nor does what it says.
func TestReconciler_liveFields(t *testing.T) {
	t.Parallel()
	p := newPool(2)
	p.Spec.Template.Sim.Stop = &metav1.Duration{Duration: time.Second}
	b := newBench(t, interceptor.Funcs{Create: identified}, p)
	b.once()
	b.serve()
	b.settle()
	for i, change := range []func(*v1alpha1.Template){
		func(tm *v1alpha1.Template) { tm.LiveFields = []string{"sim.stop"} },
		func(tm *v1alpha1.Template) { tm.Sim.Stop.Duration = time.Minute },
		func(tm *v1alpha1.Template) { tm.Sim.Stop = nil },
		func(tm *v1alpha1.Template) { tm.LiveFields = append(tm.LiveFields, "sim.drain") },
	} {
		b.edit(func(p *v1alpha1.Pool) { change(&p.Spec.Template) })
		b.settle()
		if n, st := len(b.revisions()), b.pool().Status; n != 1 || st.Updated != 2 {
			t.Errorf("edit %d: %d revisions, %d of 2 members updated", i, n, st.Updated)
		}
	}
	var m v1alpha1.MemberList
	b.must(b.Client.List(t.Context(), &m, client.MatchingFields{v1alpha1.FieldPool: "web"}))
	for i := range m.Items {
		if m.Items[i].Status.Incarnation != 1 {
			t.Errorf("%s is replaced", m.Items[i].Name)
		}
	}
}

// Two revisions that differ only in what has become live are one.
func TestReconciler_liveFieldsEndDrift(t *testing.T) {
	t.Parallel()
	p := newPool(2)
	p.Spec.Update.Type = new(v1alpha1.UpdateManual)
	b := newBench(t, interceptor.Funcs{Create: identified}, p)
	b.once()
	b.serve()
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Template.Sim.Stop = &metav1.Duration{Duration: time.Second} })
	b.settle()
	if st := b.pool().Status; st.Stale != 2 {
		t.Fatalf("%d of 2 members are stale", st.Stale)
	}
	b.edit(func(p *v1alpha1.Pool) {
		p.Spec.Template.LiveFields, p.Spec.Update.Type = []string{"sim.stop"}, new(v1alpha1.UpdateRollingUpdate)
	})
	for range 5 {
		b.once()
		b.serve()
	}
	b.settle()
	b.condition(v1alpha1.ConditionUpdated, "AllMembersCurrent")
	for i := range 2 {
		if m := b.member(fmt.Sprintf("web-%d", i)); m.Status.Incarnation != 1 || updatedOf(m).Reason != "OnTarget" {
			t.Errorf("%s: incarnation %d, %+v", m.Name, m.Status.Incarnation, updatedOf(m))
		}
	}
}

// What an undo leaves is stored: a slot that still rolls does not forget it.
func TestReconciler_undo(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{Create: identified}, newPool(1))
	b.once()
	b.serve()
	for _, left := range []rollout.Disruption{{Cause: rollout.Drift, Rolling: true, Incarnation: 0, Since: b.now}, {}} {
		w := &world{pool: b.pool(), now: b.now}
		b.must(b.read(t.Context(), w))
		a := &rollout.Action{Kind: rollout.Undo, Index: 0, Revision: w.snapshot.Target.ID, Disruption: left}
		b.must(b.do(t.Context(), w, w.snapshot.Plan(b.now), a))
		d := b.member("web-0").Spec.Disruption
		if got, want := d != nil && *d.Rolling, left.Rolling; got != want {
			t.Errorf("it is left %+v, and should be left %+v", d, left)
		}
	}
}

// The current revision is kept where the target says the same and members are on
// that: without it, an older one would be the current one.
func TestReconciler_keepsCurrent(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{Create: identified}, newPool(1))
	b.once()
	b.serve()
	b.settle()
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Template.Sim.Stop = &metav1.Duration{Duration: time.Second} })
	for range 4 {
		b.once()
		b.serve()
	}
	b.settle()
	current := b.pool().Status.CurrentRevision
	b.edit(func(p *v1alpha1.Pool) {
		p.Spec.Template.Sim.Stop.Duration, p.Spec.Update.Type = time.Minute, new(v1alpha1.UpdateManual)
	})
	b.settle()
	target := b.pool().Status.TargetRevision
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Template.LiveFields = []string{"sim.stop"} })
	b.settle()
	m := b.member("web-0")
	m.Spec.Revision, m.Annotations = target, nil
	b.must(b.Client.Update(t.Context(), m))
	m.Status.Revision = target
	b.must(b.Client.Status().Update(t.Context(), m))
	b.edit(func(p *v1alpha1.Pool) { p.Spec.RevisionHistoryLimit = new(int32(0)) })
	b.settle()
	var left []string
	for _, rev := range b.revisions() {
		left = append(left, history.RevisionID(&rev))
	}
	slices.Sort(left)
	want := []string{current, target}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("revisions %v are kept instead of %v", left, want)
	}
}

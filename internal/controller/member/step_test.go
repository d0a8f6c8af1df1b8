package member

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/controller/roster/rostertest"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/rollout"
)

// bodies are a kind whose bodies are what the test says. It notes what it is
// asked to do.
type bodies struct {
	// by is what is observed, by the revision that is looked for; of others it
	// is all.
	by  map[string]body.Observation
	all body.Observation
	// failUpdate and so on are what these come to; nil is success.
	failUpdate, failCreate, failLive error
	// slow: an update takes more than one call.
	slow bool
	did  []string
}

func (b *bodies) note(what string, slot body.Slot) {
	b.did = append(b.did, fmt.Sprintf("%s #%d %s", what, slot.Incarnation, slot.Revision))
}

func (b *bodies) become(slot body.Slot) body.Observation {
	b.all = body.Observation{State: body.Ready, UID: "uid", Incarnation: slot.Incarnation, Revision: slot.Revision}
	return b.all
}

func (b *bodies) Create(_ context.Context, slot body.Slot, _ *v1alpha1.Template) (body.Observation, error) {
	b.note("create", slot)
	if b.failCreate != nil {
		return body.Observation{}, b.failCreate
	}
	return b.become(slot), nil
}

func (b *bodies) Observe(_ context.Context, slot body.Slot, _ *v1alpha1.Template) (body.Observation, error) {
	if o, ok := b.by[slot.Revision]; ok {
		return o, nil
	}
	return b.all, nil
}

func (b *bodies) Drain(context.Context, body.Slot, *v1alpha1.Template) (bool, error) {
	return true, nil
}
func (b *bodies) Undrain(context.Context, body.Slot, *v1alpha1.Template) error { return nil }

func (b *bodies) Delete(_ context.Context, slot body.Slot, uid string) error {
	b.note("delete "+uid, slot)
	delete(b.by, slot.Revision)
	return nil
}

func (b *bodies) Update(_ context.Context, slot body.Slot, _ *v1alpha1.Template) (body.Observation, error) {
	b.note("update", slot)
	switch {
	case b.failUpdate != nil:
		return body.Observation{}, b.failUpdate
	case b.slow:
		b.all.State = body.Booting
		return b.all, nil
	}
	return b.become(slot), nil
}

func (b *bodies) CheckLive(t *v1alpha1.Template) error {
	if t.LiveFields[0] == "bad" {
		return fmt.Errorf("%w: template.liveFields[0]: bad", body.ErrRefused)
	}
	return nil
}

func (b *bodies) ApplyLive(_ context.Context, slot body.Slot, t *v1alpha1.Template) error {
	b.note("live "+*t.Sim.Version, slot)
	return b.failLive
}

// bench is a member controller, what it works on, and a clock.
type bench struct {
	*Reconciler
	*bodies

	t        *testing.T
	now      time.Time
	one, two string
	// writes counts those of members.
	writes int
}

var key = types.NamespacedName{Namespace: "ns", Name: "web-0"}

// newBench has a member that serves on revision one, of a pool that knows two.
func newBench(t *testing.T, change func(*bench, *v1alpha1.Pool, *v1alpha1.Member)) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, now: time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC), bodies: &bodies{by: map[string]body.Observation{}}}
	pool := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	objects := []client.Object{pool}
	for i, id := range []*string{&b.one, &b.two} {
		pool.Spec.Template = v1alpha1.Template{Sim: &v1alpha1.Sim{Version: new(fmt.Sprint(i + 1))}}
		c, err := history.ContentOf(&pool.Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		rev, err := history.New(pool, c, 1, int64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		objects, *id = append(objects, rev), history.RevisionID(rev)
	}
	pool.Status.TargetRevision, pool.Status.CurrentRevision = b.two, b.one
	at := metav1.NewMicroTime(b.now.Add(-time.Hour))
	m := &v1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0", UID: "member", Finalizers: []string{v1alpha1.FinalizerBody}},
		Spec:       v1alpha1.MemberSpec{Pool: "web", Revision: b.one},
		Status: v1alpha1.MemberStatus{
			Phase: v1alpha1.PhaseAvailable, Revision: b.one, Incarnation: 1, BodyUID: "uid", BornAt: &at, PhaseSince: &at, ServedSince: &at,
		},
	}
	b.all = body.Observation{State: body.Ready, UID: "uid", Incarnation: 1, Revision: b.one}
	change(b, pool, m)
	count := interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			b.writes++
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			b.writes++
			return c.Update(ctx, o, opts...)
		},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, m)...).
		WithStatusSubresource(&v1alpha1.Pool{}, &v1alpha1.Member{}).WithInterceptorFuncs(count).Build()
	b.Reconciler = &Reconciler{Client: c, Reader: c, Roster: rostertest.Listed{Reader: c}, Kinds: Kinds{Sim: b.bodies}, Now: func() time.Time { return b.now }}
	return b
}

// updates has the member become revision two where it is.
func updates(b *bench, _ *v1alpha1.Pool, m *v1alpha1.Member) {
	m.Spec.Revision = b.two
	m.Spec.Disruption = &v1alpha1.Disruption{Reason: v1alpha1.DisruptionDrift, Action: v1alpha1.ActionUpdate, Incarnation: 1, Rolling: new(true)}
}

// updating has it begun already.
func updating(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member) {
	updates(b, p, m)
	m.Status.Phase = v1alpha1.PhaseUpdating
}

// once reconciles, a minute after the last time, and returns the member.
func (b *bench) once() (*v1alpha1.Member, error) {
	b.t.Helper()
	b.now = b.now.Add(time.Minute)
	_, err := b.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: key})
	return b.member(), err
}

func (b *bench) member() *v1alpha1.Member {
	b.t.Helper()
	var m v1alpha1.Member
	if err := b.Client.Get(b.t.Context(), key, &m); err != nil {
		b.t.Fatal(err)
	}
	return &m
}

// stands is what a member stands for.
func (b *bench) stands(m *v1alpha1.Member) string {
	names := strings.NewReplacer(b.one, "one", b.two, "two")
	return names.Replace(fmt.Sprintf("%s #%d %s %s", m.Status.Phase, m.Status.Incarnation, m.Status.Revision, m.Status.BodyUID))
}

// done is what was done to bodies.
func (b *bench) done() string {
	return strings.NewReplacer(b.one, "one", b.two, "two").Replace(strings.Join(b.did, ", "))
}

func TestReconciler_update(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		change func(*bench, *v1alpha1.Pool, *v1alpha1.Member)
		want   string
		did    string
		writes int
	}{
		"whole": {"that it updates is recorded before, what it is after, and then that it serves", updates, "Available #2 two uid", "update #2 two", 3},
		"done before": {"an update that was not recorded is recorded now", func(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member) {
			updating(b, p, m)
			b.all.Incarnation, b.all.Revision = 2, b.two
		}, "Available #2 two uid", "update #2 two", 2},
		"ends first": {"it goes on, and is waited for", func(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member) {
			updates(b, p, m)
			b.slow = true
		}, "Updating #1 one uid", "update #2 two", 1},
		"a part terminates": {"which is no end of the body", func(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member) {
			updating(b, p, m)
			b.all.State = body.Stopping
		}, "Available #2 two uid", "update #2 two", 2},
		"refused": {"the body stays, and has failed to become that", func(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member) {
			updating(b, p, m)
			b.failUpdate = fmt.Errorf("%w: field is immutable", body.ErrRefused)
		}, "Failed #2 two uid", "update #2 two", 1},
		"gone meanwhile": {"it is born anew", func(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member) {
			updating(b, p, m)
			b.all = body.Observation{State: body.Absent}
		}, "Available #2 two uid", "create #2 two", 2},
		"another kind": {"cannot become this one", func(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member) {
			updating(b, p, m)
			b.all.Incarnation = 1
			m.Spec.Revision = "process"
		}, "Failed #2 process uid", "", 1},
		"the pool's template is invalid": {"nobody knows what it should become", func(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member) {
			updating(b, p, m)
			p.Spec.Template.LiveFields = []string{"bad"}
		}, "Updating #1 one uid", "", 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tt.change)
			if name == "another kind" {
				b.addProcess()
			}
			m, err := b.once()
			if err != nil && name != "the pool's template is invalid" {
				t.Fatal(err)
			}
			if got := b.stands(m); got != tt.want || b.done() != tt.did || b.writes != tt.writes {
				t.Errorf("%s: %s after %q and %d writes; want %s after %q and %d", tt.reason, got, b.done(), b.writes, tt.want, tt.did, tt.writes)
			}
		})
	}
}

// A body is on the target that it was rolled to, though the pool's status, which
// is written later, does not say so yet: to say it twice would cost a write.
func TestStep_aim(t *testing.T) {
	t.Parallel()
	rolled := &v1alpha1.Disruption{Reason: v1alpha1.DisruptionDrift}
	tests := map[string]struct {
		reason   string
		observed int64
		rollout  string
		current  string
		d        *v1alpha1.Disruption
		want     rollout.Revision
	}{
		"at rest":           {"the status says it", 2, "", "", nil, "status"},
		"rolled back":       {"the status says what is aimed at now", 2, "before", "", nil, "before"},
		"rolled, and said":  {"the status is the newer one", 2, "", "", rolled, "status"},
		"rolled, unsaid":    {"the grant is the newer one", 1, "", "", rolled, "granted"},
		"sent back, unsaid": {"what the pool stands on is no target of an edit", 1, "", "granted", rolled, "status"},
		"broken, unsaid":    {"which is granted whatever is current", 1, "", "", &v1alpha1.Disruption{Reason: v1alpha1.DisruptionFailed}, "status"},
		"untouched, unsaid": {"its revision is the old one", 1, "", "", nil, "status"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &step{
				pool:   &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: v1alpha1.PoolStatus{ObservedGeneration: tt.observed, TargetRevision: "status", CurrentRevision: tt.current}},
				member: &v1alpha1.Member{Spec: v1alpha1.MemberSpec{Revision: "granted", Disruption: tt.d}},
			}
			if tt.rollout != "" {
				s.pool.Status.Rollout = &v1alpha1.RolloutStatus{Revision: tt.rollout}
			}
			if got := s.aim(); got != tt.want {
				t.Errorf("%s: it aims at %q, want %q", tt.reason, got, tt.want)
			}
		})
	}
}

// addProcess stores a revision of another kind of body.
func (b *bench) addProcess() {
	b.t.Helper()
	pool := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	pool.Spec.Template = v1alpha1.Template{Process: &v1alpha1.Process{Command: "x"}}
	c, err := history.ContentOf(&pool.Spec.Template)
	if err != nil {
		b.t.Fatal(err)
	}
	rev, err := history.New(pool, c, 1, 9)
	if err != nil {
		b.t.Fatal(err)
	}
	rev.Name = history.Name("web", "process")
	if err := b.Client.Create(b.t.Context(), rev); err != nil {
		b.t.Fatal(err)
	}
}

// TestReconciler_updateAfterCrash: a body became the next incarnation on a revision
// that was granted then, the controller crashed before it recorded that, and another
// revision is granted now. It is not that before it has become it.
func TestReconciler_updateAfterCrash(t *testing.T) {
	t.Parallel()
	b := newBench(t, updating)
	b.all.Incarnation, b.all.Revision = 2, "three"
	b.slow = true
	for range 2 {
		m, err := b.once()
		if err != nil {
			t.Fatal(err)
		}
		if got := b.stands(m); got != "Updating #1 one uid" {
			t.Errorf("while it still ends as what it was, it is %s", got)
		}
	}
	b.slow = false
	m, err := b.once()
	if err != nil {
		t.Fatal(err)
	}
	if got := b.stands(m); !strings.HasPrefix(got, "Updating #2 two ") && !strings.HasPrefix(got, "Available #2 two ") {
		t.Errorf("once it has become that, it is %s", got)
	}
}

// A body that refused to become another revision is the slot's own, as what it
// is, until it becomes the next.
func TestReconciler_refusedUpdate(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member) {
		updating(b, p, m)
		b.failUpdate = fmt.Errorf("%w: field is immutable", body.ErrRefused)
		// In the terms of revision two it is hardly to be seen.
		b.by[b.two] = body.Observation{State: body.Down, UID: "part", Incarnation: 1, Revision: b.one}
	})
	if _, err := b.once(); err != nil {
		t.Fatal(err)
	}
	m, err := b.once()
	if got := b.stands(m); err != nil || got != "Failed #2 two uid" || !strings.Contains(m.Status.Message, "immutable") && m.Status.Message != "" {
		t.Errorf("it is %s: %q, %v", got, m.Status.Message, err)
	}
	m.Spec.Revision = b.one
	m.Spec.Disruption = &v1alpha1.Disruption{Reason: v1alpha1.DisruptionFailed, Action: v1alpha1.ActionUpdate, Incarnation: 2}
	if err := b.Client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	b.failUpdate = nil
	m, err = b.once()
	if got := b.stands(m); err != nil || got != "Available #3 one uid" || b.done() != "update #2 two, update #3 one" {
		t.Errorf("it is %s after %s, %v", got, b.done(), err)
	}
}

// What was begun on a revision that was granted and taken away goes before the
// next body is made.
func TestReconciler_granted(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(b *bench, _ *v1alpha1.Pool, m *v1alpha1.Member) {
		m.Spec.Revision = b.two
		m.Status = v1alpha1.MemberStatus{Phase: v1alpha1.PhasePending, Incarnation: 1}
		m.Annotations = map[string]string{v1alpha1.AnnotationGranted: "1 " + b.one + " gone"}
		b.all = body.Observation{State: body.Absent}
		b.by[b.one] = body.Observation{State: body.Down, UID: "half", Incarnation: 1, Revision: b.one}
	})
	m, err := b.once()
	if got := b.stands(m); err != nil || got != "Pending #1  " || b.done() != "delete half #1 one" {
		t.Errorf("it is %s after %s, %v", got, b.done(), err)
	}
	m, err = b.once()
	if got := b.stands(m); err != nil || got != "Available #1 two uid" || b.done() != "delete half #1 one, create #1 two" {
		t.Errorf("it is %s after %s, %v", got, b.done(), err)
	}
}

// Live fields are applied once, to whoever there is, and again after a failure,
// which is said and keeps the slot from nothing.
func TestReconciler_live(t *testing.T) {
	t.Parallel()
	live := func(_ *bench, p *v1alpha1.Pool, m *v1alpha1.Member) {
		m.Spec.Claim = &v1alpha1.MemberClaim{Name: "c", UID: "c"}
		m.Status.Phase = v1alpha1.PhaseClaimed
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "InService"}}
		p.Spec.Template.LiveFields = []string{"sim.version"}
	}
	b := newBench(t, live)
	for range 2 {
		if _, err := b.once(); err != nil {
			t.Fatal(err)
		}
	}
	if b.done() != "live 2 #1 one" || b.writes != 0 {
		t.Errorf("what the pool says now, once: %s, in %d writes", b.done(), b.writes)
	}

	b = newBench(t, live)
	b.failLive = errors.New("no such luck")
	b.all.Message = "I serve"
	for range 3 {
		m, err := b.once()
		if want := "apply live fields: no such luck; I serve"; err != nil || m.Status.Message != want || b.stands(m) != "Claimed #1 one uid" {
			t.Errorf("%s: %q, %v; want %q", b.stands(m), m.Status.Message, err, want)
		}
	}
	if b.writes != 1 {
		t.Errorf("it was said in %d writes", b.writes)
	}
	b.failLive = nil
	m, err := b.once()
	if err != nil || m.Status.Message != "I serve" || strings.Count(b.done(), "live") != 4 {
		t.Errorf("%q after %s, %v", m.Status.Message, b.done(), err)
	}

	for name, change := range map[string]func(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member){
		"none":    func(_ *bench, p *v1alpha1.Pool, _ *v1alpha1.Member) { p.Spec.Template.LiveFields = nil },
		"invalid": func(_ *bench, p *v1alpha1.Pool, _ *v1alpha1.Member) { p.Spec.Template.LiveFields = []string{"bad"} },
		"other kind": func(_ *bench, p *v1alpha1.Pool, _ *v1alpha1.Member) {
			p.Spec.Template.LiveFields = []string{"process.stop"}
		},
		"absent":      func(b *bench, _ *v1alpha1.Pool, _ *v1alpha1.Member) { b.all = body.Observation{State: body.Absent} },
		"ended":       func(b *bench, _ *v1alpha1.Pool, _ *v1alpha1.Member) { b.all.State = body.Exited },
		"on its way":  func(b *bench, _ *v1alpha1.Pool, _ *v1alpha1.Member) { b.all.State = body.Stopping },
		"not its own": func(b *bench, _ *v1alpha1.Pool, _ *v1alpha1.Member) { b.all.Incarnation = 7 },
	} {
		b := newBench(t, func(b *bench, p *v1alpha1.Pool, m *v1alpha1.Member) { live(b, p, m); change(b, p, m) })
		if _, err := b.once(); err != nil || b.done() != "" {
			t.Errorf("%s: %s, %v", name, b.done(), err)
		}
	}
}

func TestStep_own(t *testing.T) {
	t.Parallel()
	member := func(phase v1alpha1.Phase, uid string, disrupted bool) v1alpha1.Member {
		m := v1alpha1.Member{Status: v1alpha1.MemberStatus{Phase: phase, Incarnation: 5, BodyUID: uid}}
		if disrupted {
			m.Spec.Disruption = &v1alpha1.Disruption{Incarnation: 5}
		}
		return m
	}
	tests := map[string]struct {
		reason string
		m      v1alpha1.Member
		is     int64
		uid    string
		want   bool
	}{
		"the same":            {"of course", member("Available", "a,b", false), 5, "a,b", true},
		"cannot be told":      {"there is nobody else", member("Available", "a,b", false), 0, "a,b", true},
		"later":               {"its birth was not recorded", member("Terminating", "a,b", true), 6, "c", false},
		"later, updating":     {"its update was not recorded", member("Updating", "a,b", true), 6, "c", true},
		"later, updated":      {"the disruption is spent, and so is that", member("Updating", "a,b", false), 6, "c", false},
		"much later":          {"nobody knows what that is", member("Updating", "a,b", true), 7, "a,b", false},
		"later, a known part": {"what was being updated ends", member("Terminating", "a,b", true), 6, "b,c", true},
		"earlier":             {"it could not become this one", member("Failed", "a,b", false), 4, "a", true},
		"earlier, unrecorded": {"there is none", member("Pending", "", false), 4, "a", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &step{member: &tt.m, seen: body.Observation{Incarnation: tt.is, UID: tt.uid}}
			if diff := cmp.Diff(tt.want, s.own()); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tt.reason, diff)
			}
		})
	}
}

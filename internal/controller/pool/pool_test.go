package pool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/controller/roster/rostertest"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/rollout"
)

// bench is a pool controller, a store for it to work on, and a clock.
type bench struct {
	*Reconciler

	t   testing.TB
	now time.Time
}

func newPool(n int32) *v1alpha1.Pool {
	return &v1alpha1.Pool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 1},
		Spec: v1alpha1.PoolSpec{
			Replicas: new(n), Update: &v1alpha1.Update{Type: new(v1alpha1.UpdateRollingUpdate)},
			Template: v1alpha1.Template{Sim: &v1alpha1.Sim{Version: new("1")}},
		},
	}
}

func newBench(t testing.TB, funcs interceptor.Funcs, objects ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, now: time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)}
	create := funcs.Create
	if create == nil {
		create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return c.Create(ctx, o, opts...)
		}
	}
	funcs.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		o.SetCreationTimestamp(metav1.NewTime(b.now)) // as the API server does
		return create(ctx, c, o, opts...)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Pool{}, &v1alpha1.Member{}).WithInterceptorFuncs(funcs).
		WithIndex(&v1alpha1.Member{}, v1alpha1.FieldPool, func(o client.Object) []string { return []string{o.(*v1alpha1.Member).Spec.Pool} }).
		Build()
	right := func(*v1alpha1.Pool) error { return nil }
	b.Reconciler = &Reconciler{
		Client: c, Reader: c, Roster: rostertest.Listed{Reader: c}, Events: events.NewFakeRecorder(1000), Check: right, Validate: func(*v1alpha1.Pool, map[string]any) error { return nil },
		Now:    func() time.Time { return b.now },
		passed: map[types.NamespacedName]time.Time{}, reported: map[types.NamespacedName]time.Time{},
		retries: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](passInterval, longestRetry),
	}
	return b
}

var web = types.NamespacedName{Namespace: "ns", Name: "web"}

// once makes one pass, a second after the last, and returns when the next is due.
func (b *bench) once() time.Duration {
	b.t.Helper()
	b.now = b.now.Add(time.Second)
	result, err := b.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: web})
	if err != nil {
		b.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (b *bench) members() string {
	b.t.Helper()
	var list v1alpha1.MemberList
	if err := b.Client.List(b.t.Context(), &list, client.MatchingFields{v1alpha1.FieldPool: "web"}); err != nil {
		b.t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range list.Items {
		names[m.Name] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), " ")
}

func (b *bench) pool() *v1alpha1.Pool {
	b.t.Helper()
	var p v1alpha1.Pool
	if err := b.Client.Get(b.t.Context(), web, &p); err != nil {
		b.t.Fatal(err)
	}
	return &p
}

// condition expects one of the pool to have the reason, and its message the words.
func (b *bench) condition(name, reason string, words ...string) {
	b.t.Helper()
	p := b.pool()
	c := meta.FindStatusCondition(p.Status.Conditions, name)
	if c == nil || c.Reason != reason || p.Status.ObservedGeneration != p.Generation {
		b.t.Fatalf("%s is %+v instead of %s; observed generation %d", name, c, reason, p.Status.ObservedGeneration)
	}
	for _, word := range words {
		if !strings.Contains(c.Message, word) {
			b.t.Errorf("%q does not name %q", c.Message, word)
		}
	}
}

// stored is the revision of a pool's template.
func stored(t *testing.T, p *v1alpha1.Pool, number int64) *appsv1.ControllerRevision {
	t.Helper()
	c, err := history.ContentOf(&p.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	rev, err := history.New(p, c, 1, number)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func (b *bench) revisions() []appsv1.ControllerRevision {
	b.t.Helper()
	var list appsv1.ControllerRevisionList
	if err := b.Client.List(b.t.Context(), &list); err != nil {
		b.t.Fatal(err)
	}
	return list.Items
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// refuse makes the creation of one object fail.
func refuse(name string, err *error) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if o.GetName() == name && *err != nil {
			return *err
		}
		return c.Create(ctx, o, opts...)
	}}
}

func memberResource() schema.GroupResource {
	return schema.GroupResource{Group: "pawl.dev", Resource: "members"}
}

func TestReconciler_foreignMember(t *testing.T) {
	t.Parallel()
	foreign := &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1"}, Spec: v1alpha1.MemberSpec{Pool: "other", Index: 7}}
	b := newBench(t, interceptor.Funcs{}, newPool(3), foreign)
	b.once()
	if got := b.members(); got != "web-0 web-2" {
		t.Errorf("members are %s: one name that is taken costs that slot only", got)
	}
	b.condition(v1alpha1.ConditionStalled, ApplyFailed, "web-1", "Pool other", "index 7")
	b.must(b.Client.Delete(t.Context(), foreign))
	b.once()
	if got := b.members(); got != "web-0 web-1 web-2" {
		t.Errorf("members are %s after the name has become free", got)
	}
	b.once()
	if c := meta.FindStatusCondition(b.pool().Status.Conditions, v1alpha1.ConditionStalled); c.Status != metav1.ConditionFalse {
		t.Errorf("the complaint stays: %+v", c)
	}
}

func TestReconciler_refused(t *testing.T) {
	t.Parallel()
	refusal := error(apierrors.NewForbidden(memberResource(), "web-0", errors.New("not on a Friday")))
	b := newBench(t, refuse("web-0", &refusal), newPool(3))
	first := b.once()
	if got := b.members(); got != "web-1 web-2" {
		t.Errorf("members are %s: one that is refused costs itself only", got)
	}
	b.condition(v1alpha1.ConditionStalled, ApplyFailed, "web-0", "not on a Friday")
	waits := []time.Duration{first, b.once()}
	version := b.pool().ResourceVersion
	for range 9 {
		waits = append(waits, b.once())
	}
	if waits[0] != passInterval || waits[1] != 2*passInterval || waits[10] != longestRetry {
		t.Errorf("it is retried after %v", waits)
	}
	if now := b.pool().ResourceVersion; now != version {
		t.Error("the same complaint is written again")
	}
	refusal = nil
	b.once()
	if got := b.members(); got != "web-0 web-1 web-2" {
		t.Errorf("members are %s once nobody refuses", got)
	}
}

func TestReconciler_errorsThatPass(t *testing.T) {
	t.Parallel()
	failure := error(apierrors.NewInternalError(errors.New("webhook is down")))
	b := newBench(t, refuse("web-0", &failure), newPool(3))
	b.once()
	if got := b.members(); got != "" {
		t.Errorf("members are %s: what fails without being refused ends the pass", got)
	}
	b.condition(v1alpha1.ConditionReconciling, ApplyFailed, "web-0", "webhook is down")
	if c := meta.FindStatusCondition(b.pool().Status.Conditions, v1alpha1.ConditionStalled); c.Reason == ApplyFailed {
		t.Errorf("what may pass is called stalled: %+v", c)
	}

	failure = apierrors.NewConflict(memberResource(), "web-0", errors.New("somebody was first"))
	b = newBench(t, refuse("web-0", &failure), newPool(3))
	if wait := b.once(); wait != passInterval {
		t.Errorf("a lost race is run again after %s", wait)
	}
	if c := meta.FindStatusCondition(b.pool().Status.Conditions, v1alpha1.ConditionReconciling); c.Reason == ApplyFailed {
		t.Errorf("a lost race is reported: %+v", c)
	}
	for range raceRetries {
		b.once()
	}
	b.condition(v1alpha1.ConditionReconciling, ApplyFailed, "web-0", "somebody was first")
}

// What follows a record relies on it.
func TestReconciler_recordFails(t *testing.T) {
	t.Parallel()
	fail := false
	b := newBench(t, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		if _, ok := o.(*appsv1.ControllerRevision); ok && fail {
			return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, o.GetName(), errors.New("no"))
		}
		return c.Update(ctx, o, opts...)
	}}, newPool(1))
	b.once()
	fail = true
	var m v1alpha1.Member
	b.must(b.Client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "web-0"}, &m))
	m.Status = v1alpha1.MemberStatus{
		Phase: v1alpha1.PhaseFailed, Revision: m.Spec.Revision, Incarnation: 1, FailedEarly: true,
		PhaseSince: &metav1.MicroTime{Time: b.now}, BornAt: &metav1.MicroTime{Time: b.now},
	}
	b.must(b.Client.Status().Update(t.Context(), &m))
	p := b.pool()
	p.Spec.Replicas, p.Generation = new(int32(2)), 2
	b.must(b.Client.Update(t.Context(), p))
	b.once()
	if got := b.members(); got != "web-0" {
		t.Errorf("members are %s although the failure could not be recorded", got)
	}
	b.condition(v1alpha1.ConditionStalled, ApplyFailed, "update ControllerRevision web-")
}

func TestReconciler_unreadableRecord(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{}, newPool(1))
	b.once()
	rev := b.revisions()[0]
	record := rev.Annotations[v1alpha1.AnnotationRecord]
	rev.Annotations[v1alpha1.AnnotationRecord] = `{"failed": "many"}`
	b.must(b.Client.Update(t.Context(), &rev))
	p := b.pool()
	p.Spec.Replicas, p.Generation = new(int32(2)), 2
	b.must(b.Client.Update(t.Context(), p))
	b.once()
	for _, name := range []string{v1alpha1.ConditionStalled, v1alpha1.ConditionUpdated} {
		b.condition(name, string(rollout.SourcesUnresolved), rev.Name, v1alpha1.AnnotationRecord, "remove it")
	}
	if got := b.members(); got != "web-0" {
		t.Errorf("members are %s: nothing is done while a record cannot be read", got)
	}
	rev.Annotations[v1alpha1.AnnotationRecord] = record
	b.must(b.Client.Update(t.Context(), &rev))
	b.once()
	if got := b.members(); got != "web-0 web-1" {
		t.Errorf("members are %s once it can", got)
	}
}

func TestReconciler_revisionName(t *testing.T) {
	t.Parallel()
	p := newPool(1)
	id, err := history.ID(&p.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	foreign := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: history.Name("web", id)}, Revision: 1}
	b := newBench(t, interceptor.Funcs{}, p, foreign)
	b.once()
	b.condition(v1alpha1.ConditionStalled, string(rollout.SourcesUnresolved), foreign.Name, "name is taken")
	b.must(b.Client.Delete(t.Context(), foreign))
	b.once()
	if got := b.members(); got != "web-0" {
		t.Errorf("members are %s", got)
	}
}

func TestReconciler_revisionNumber(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{}, newPool(1))
	b.once()
	rev := b.revisions()[0]
	rev.Revision = math.MaxInt64
	rev.Finalizers = nil
	b.must(b.Client.Update(t.Context(), &rev))
	p := b.pool()
	p.Spec.Template.Sim.Version, p.Generation = new("2"), 2
	b.must(b.Client.Update(t.Context(), p))
	b.once()
	var numbers []int64
	for _, rev := range b.revisions() {
		numbers = append(numbers, rev.Revision)
		if !slices.Contains(rev.Finalizers, v1alpha1.FinalizerRevision) {
			t.Errorf("revision %s may vanish", rev.Name)
		}
	}
	if slices.Sort(numbers); !slices.Equal(numbers, []int64{1, 2}) {
		t.Errorf("revisions have the numbers %v", numbers)
	}
}

func TestReconciler_duplicates(t *testing.T) {
	t.Parallel()
	twin := &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Spec: v1alpha1.MemberSpec{Pool: "web", Index: 0}}
	b := newBench(t, interceptor.Funcs{}, newPool(2))
	b.once()
	b.must(b.Client.Create(t.Context(), twin))
	b.once()
	b.condition(v1alpha1.ConditionStalled, DuplicateMembers, "Member a", "web-0", "delete it")
	if p := b.pool(); p.Status.Replicas != 2 {
		t.Errorf("%d members are counted", p.Status.Replicas)
	}
}

func TestReconciler_deleted(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{}, newPool(0))
	b.once()
	if n := len(b.revisions()); n != 1 {
		t.Fatalf("%d revisions", n)
	}
	b.must(b.Client.Delete(t.Context(), b.pool()))
	b.once()
	if n := len(b.revisions()); n != 0 {
		t.Errorf("%d revisions outlive their pool", n)
	}
	b.once()
	if len(b.passed)+len(b.reported) > 0 {
		t.Errorf("a pool that is gone is remembered: %v %v", b.passed, b.reported)
	}
}

// A pool whose finalizer somebody took away leaves revisions behind.
func TestReconciler_orphans(t *testing.T) {
	t.Parallel()
	m := &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0"}, Spec: v1alpha1.MemberSpec{Pool: "web"}}
	rev := stored(t, newPool(1), 1)
	b := newBench(t, interceptor.Funcs{}, m, rev)
	copies := &sources{frozen: map[string]bool{history.RevisionID(rev): true}}
	b.Sources = copies
	b.must(b.Client.Delete(t.Context(), rev))
	b.once()
	if n := len(b.revisions()); n != 1 || copies.copies() == "" {
		t.Errorf("%d revisions and copies of %q while a member needs them", n, copies.copies())
	}
	b.must(b.Client.Delete(t.Context(), m))
	b.once()
	if n := len(b.revisions()); n != 0 || copies.copies() != "" {
		t.Errorf("%d revisions and copies of %q stay for ever", n, copies.copies())
	}
}

// A revision that somebody deleted serves as long as it is needed.
func TestReconciler_revisionDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{}, newPool(2))
	b.once()
	rev := b.revisions()[0]
	b.must(b.Client.Delete(t.Context(), &rev))
	b.must(b.Client.Delete(t.Context(), &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1"}}))
	b.once()
	if n := len(b.revisions()); n != 1 {
		t.Fatalf("%d revisions", n)
	}
	for _, name := range []string{"web-0", "web-1"} {
		var m v1alpha1.Member
		b.must(b.Client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, &m))
		m.Finalizers = nil
		b.must(b.Client.Update(t.Context(), &m))
		b.must(client.IgnoreNotFound(b.Client.Delete(t.Context(), &m)))
	}
	p := b.pool()
	p.Spec.Template.Sim.Version, p.Spec.Replicas, p.Generation = new("2"), new(int32(1)), 2
	b.must(b.Client.Update(t.Context(), p))
	b.once() // the new revision, while the old one is the current
	var list appsv1.ControllerRevisionList
	b.must(b.Client.List(t.Context(), &list))
	for _, r := range list.Items {
		if r.DeletionTimestamp.IsZero() {
			r.Annotations[v1alpha1.AnnotationRecord] = `{"stood": 2}`
			b.must(b.Client.Update(t.Context(), &r))
		}
	}
	b.once()
	if left := b.revisions(); len(left) != 1 || left[0].UID != "" && left[0].UID == rev.UID || left[0].Name == rev.Name {
		t.Errorf("%d revisions, the first %s", len(left), left[0].Name)
	}
}

func TestReconciler_expiredHold(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{}, newPool(1))
	b.once()
	var m v1alpha1.Member
	b.must(b.Client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "web-0"}, &m))
	for _, tt := range []struct {
		until time.Duration
		want  bool
	}{{-time.Hour, false}, {20 * time.Second, true}} {
		m.Annotations = map[string]string{v1alpha1.AnnotationHold: fmt.Sprintf(`{"until": %q}`, b.now.Add(tt.until).Format(time.RFC3339))}
		b.must(b.Client.Update(t.Context(), &m))
		b.once()
		if wait := b.once(); wait < time.Second || (wait < 20*time.Second) != tt.want {
			t.Errorf("a hold that ends in %s brings the next pass after %s", tt.until, wait)
		}
	}
}

func TestReconciler_unskip(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{}, newPool(1))
	b.once()
	target := b.pool().Status.TargetRevision
	for skipped, want := range map[string]bool{target: true, "gone": false} {
		var m v1alpha1.Member
		b.must(b.Client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "web-0"}, &m))
		m.Annotations = map[string]string{v1alpha1.AnnotationSkip: skipped}
		b.must(b.Client.Update(t.Context(), &m))
		b.once()
		b.once()
		b.must(b.Client.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "web-0"}, &m))
		if _, is := m.Annotations[v1alpha1.AnnotationSkip]; is != want {
			t.Errorf("skipped for %s, and the target is %s: kept is %t", skipped, target, is)
		}
	}
}

func TestRemaining(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
	for since, want := range map[time.Time]time.Duration{
		{}:                           0,
		now.Add(-time.Hour):          0,
		now.Add(-time.Second):        time.Second,
		now:                          2 * time.Second,
		now.Add(time.Hour):           0, // the clock went back
		now.Add(-1500 * 1000 * 1000): 500 * time.Millisecond,
	} {
		if got := remaining(since, 2*time.Second, now); got != want {
			t.Errorf("%s after %s: %s instead of %s", now, since, got, want)
		}
	}
}

func intOrString(n int) *intstr.IntOrString { return new(intstr.FromInt32(int32(n))) }

package pool

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/source"
	"github.com/pawl-dev/pawl/rollout"
)

// sources are one ConfigMap, as the pools of these tests have it.
type sources struct {
	keys map[string]string
	err  error
	// frozen are the ids of which there are copies.
	frozen map[string]bool
	asked  []bool
}

func (s *sources) Resolve(_ context.Context, _ *v1alpha1.Pool, keyed bool) (*source.Content, error) {
	s.asked = append(s.asked, keyed)
	if s.err != nil {
		return nil, s.err
	}
	return &source.Content{Sources: []source.Source{{Name: "boot", Kind: "ConfigMap", Object: "bootstrap", Digests: maps.Clone(s.keys)}}}, nil
}

func (s *sources) Freeze(_ context.Context, _ *v1alpha1.Pool, id string, _ *source.Content) error {
	s.frozen[id] = true
	return nil
}

func (s *sources) Frozen(_ context.Context, _ types.NamespacedName, id string, _ []source.Source) (*source.Values, error) {
	if !s.frozen[id] {
		return nil, source.ErrMissing
	}
	return &source.Values{}, nil
}

func (s *sources) Drop(_ context.Context, _ types.NamespacedName, keep map[string]bool) error {
	maps.DeleteFunc(s.frozen, func(id string, _ bool) bool { return !keep[id] })
	return nil
}

func (s *sources) Forget(types.NamespacedName) {}

func (s *sources) copies() string { return strings.Join(slices.Sorted(maps.Keys(s.frozen)), " ") }

// sourced is a pool with a ConfigMap as its source, whose members serve.
func sourced(t *testing.T) (*bench, *sources) {
	t.Helper()
	p := newPool(2)
	p.Spec.Sources = []v1alpha1.Source{{Name: "boot", ConfigMap: &v1alpha1.KeysSource{Name: "bootstrap"}}}
	b := newBench(t, interceptor.Funcs{Create: identified}, p)
	s := &sources{keys: map[string]string{"install.sh": "sha256:1", "other": "sha256:9"}, frozen: map[string]bool{}}
	b.Sources = s
	b.once()
	b.serve()
	b.settle()
	return b, s
}

func TestReconciler_sourceChanges(t *testing.T) {
	t.Parallel()
	b, s := sourced(t)
	first := b.pool().Status.TargetRevision
	b.condition(v1alpha1.ConditionSourcesResolved, "Resolved")
	if s.copies() != first {
		t.Errorf("copies of %s instead of %s", s.copies(), first)
	}
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Update.Type = new(v1alpha1.UpdateManual) })
	s.keys["install.sh"] = "sha256:2"
	b.settle()
	second := b.pool().Status.TargetRevision
	if c := updatedOf(b.member("web-0")); second == first || !strings.HasSuffix(c.Message, "it differs in ConfigMap bootstrap: install.sh") {
		t.Errorf("a changed key makes revision %s of %s, and the member says %q", second, first, c.Message)
	}
	if !s.frozen[first] || !s.frozen[second] {
		t.Errorf("copies of %s", s.copies())
	}
	s.keys["install.sh"] = "sha256:1"
	b.settle()
	if got := b.pool().Status.TargetRevision; got != first {
		t.Errorf("content that is as it was makes revision %s instead of %s", got, first)
	}
	b.edit(func(p *v1alpha1.Pool) { p.Spec.RevisionHistoryLimit = new(int32(0)) })
	b.settle()
	b.once()
	if s.copies() != first {
		t.Errorf("copies of %s outlive their revision", s.copies())
	}
	b.must(b.Client.Delete(t.Context(), b.pool()))
	for _, name := range []string{"web-0", "web-1"} {
		m := b.member(name)
		m.Finalizers = nil
		b.must(b.Client.Update(t.Context(), m))
		b.must(b.Client.Delete(t.Context(), m))
	}
	b.once()
	if s.copies() != "" {
		t.Errorf("copies of %s outlive the pool", s.copies())
	}
}

// A revision is stored once its copies are there, and copies of the target that
// somebody removed are made again.
func TestReconciler_sourceFrozenFirst(t *testing.T) {
	t.Parallel()
	s := &sources{keys: map[string]string{"install.sh": "sha256:1"}, frozen: map[string]bool{}}
	stored := 0
	b := newBench(t, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if id := o.GetLabels()[v1alpha1.LabelRevision]; id != "" {
			stored++
			if !s.frozen[id] {
				t.Errorf("revision %s is stored without copies", id)
			}
		}
		return identified(ctx, c, o, opts...)
	}}, newPool(1))
	b.Sources = s
	b.once()
	if stored != 1 {
		t.Fatalf("%d revisions are stored", stored)
	}
	clear(s.frozen)
	b.once()
	if s.copies() != b.pool().Status.TargetRevision {
		t.Errorf("copies of %q after they were removed", s.copies())
	}
}

// A source that cannot be read changes nothing.
func TestReconciler_sourceUnread(t *testing.T) {
	t.Parallel()
	b, s := sourced(t)
	first := b.pool().Status.TargetRevision
	for reason, err := range map[string]error{
		"KeyNotFound": &source.Unresolved{Reason: "KeyNotFound", Known: true},
		"Unreachable": &source.Unresolved{Reason: "Unreachable"},
	} {
		s.err, s.keys = err, map[string]string{"install.sh": reason}
		b.edit(func(p *v1alpha1.Pool) { p.Spec.Replicas = new(int32(3)) })
		b.once()
		b.condition(v1alpha1.ConditionSourcesResolved, reason)
		want := map[string]metav1.ConditionStatus{"KeyNotFound": metav1.ConditionFalse, "Unreachable": metav1.ConditionUnknown}[reason]
		if c := meta.FindStatusCondition(b.pool().Status.Conditions, v1alpha1.ConditionSourcesResolved); c.Status != want {
			t.Errorf("%s: SourcesResolved is %s", reason, c.Status)
		}
		b.condition(v1alpha1.ConditionUpdated, "SourcesUnresolved")
		if c := meta.FindStatusCondition(b.pool().Status.Conditions, v1alpha1.ConditionUpdated); c.Status != metav1.ConditionUnknown {
			t.Errorf("%s: Updated is %s", reason, c.Status)
		}
		stalled := meta.FindStatusCondition(b.pool().Status.Conditions, v1alpha1.ConditionStalled)
		if got, want := stalled.Status == metav1.ConditionTrue, reason == "KeyNotFound"; got != want {
			t.Errorf("%s: Stalled is %+v", reason, stalled)
		}
		if got := b.members(); got != "web-0 web-1" || b.pool().Status.TargetRevision != first || len(b.revisions()) != 1 {
			t.Errorf("%s: members %s, target %s, %d revisions", reason, got, b.pool().Status.TargetRevision, len(b.revisions()))
		}
		s.err, s.keys = nil, map[string]string{"install.sh": "sha256:1", "other": "sha256:9"}
		b.edit(func(p *v1alpha1.Pool) { p.Spec.Replicas = new(int32(2)) })
		b.settle()
		b.condition(v1alpha1.ConditionSourcesResolved, "Resolved")
		b.condition(v1alpha1.ConditionUpdated, "AllMembersCurrent")
	}
}

// Digests of secrets are asked for by their key only where some are stored.
func TestReconciler_sourceKeyed(t *testing.T) {
	t.Parallel()
	b, s := sourced(t)
	if slices.Contains(s.asked, true) {
		t.Error("there is no secret")
	}
	b.edit(func(p *v1alpha1.Pool) {
		p.Spec.Sources = []v1alpha1.Source{{Name: "boot", Secret: &v1alpha1.KeysSource{Name: "bootstrap"}}}
	})
	b.once()
	if slices.Contains(s.asked, true) {
		t.Error("no digest of a secret is stored yet")
	}
	b.Sources, s.keys = secretly{s}, map[string]string{"password": "hmac-sha256:1"}
	b.once()
	b.once()
	if !s.asked[len(s.asked)-1] {
		t.Error("a digest of a secret is stored")
	}
}

// secretly are sources that are Secrets.
type secretly struct{ *sources }

func (s secretly) Resolve(ctx context.Context, p *v1alpha1.Pool, keyed bool) (*source.Content, error) {
	c, err := s.sources.Resolve(ctx, p, keyed)
	for i := range c.Sources {
		c.Sources[i].Secret = true
	}
	return c, err
}

// The current revision whose copies are gone is born nowhere.
func TestReconciler_sourceMissing(t *testing.T) {
	t.Parallel()
	b, s := sourced(t)
	first := b.pool().Status.TargetRevision
	s.keys["install.sh"] = "sha256:2"
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Update.Partition = new(int32(2)) })
	b.settle()
	s.frozen[first] = false
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Replicas, p.Spec.Update.Partition = new(int32(3)), new(int32(3)) })
	b.settle()
	if got := b.members(); got != "web-0 web-1" {
		t.Errorf("members %s: what cannot be built is born all the same", got)
	}
	s.frozen[first] = true
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Update.MinReadySeconds = new(int32(1)) })
	b.settle()
	if m := b.member("web-2"); m.Spec.Revision != first {
		t.Errorf("once there are copies again, the new slot is to be of revision %s", m.Spec.Revision)
	}
}

// What the same template is rendered to is part of the revision.
func TestReconciler_renderer(t *testing.T) {
	t.Parallel()
	rendered, failing := "one", error(nil)
	render := func(context.Context, *v1alpha1.Template, map[string]any) (string, error) { return rendered, failing }
	b := newBench(t, interceptor.Funcs{Create: identified}, newPool(2))
	b.Render = render
	b.once()
	b.serve()
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Update.Type = new(v1alpha1.UpdateManual) })
	b.settle()
	first := b.pool().Status.TargetRevision
	failing = errors.New("it takes too long")
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Replicas = new(int32(3)) })
	b.once()
	b.condition(v1alpha1.ConditionUpdated, string(rollout.SourcesUnresolved), "it takes too long")
	if got := b.members(); got != "web-0 web-1" {
		t.Errorf("members %s: what cannot be rendered changes nothing", got)
	}
	failing, rendered = nil, "two"
	b.edit(func(p *v1alpha1.Pool) { p.Spec.Replicas = new(int32(2)) })
	b.settle()
	if c := updatedOf(b.member("web-0")); b.pool().Status.TargetRevision == first || !strings.HasSuffix(c.Message, "it differs in renderer") {
		t.Errorf("of another renderer the target is %s, and the member says %q", b.pool().Status.TargetRevision, c.Message)
	}
	rendered = "one"
	b.settle()
	if got := b.pool().Status.TargetRevision; got != first {
		t.Errorf("back with the first renderer, the target is %s instead of %s", got, first)
	}
}

// A revision of the former format says nothing of its rendering. It takes on
// what is rendered first.
func TestReconciler_formerFormat(t *testing.T) {
	t.Parallel()
	p := newPool(2)
	rev := stored(t, p, 1)
	rev.Data.Raw = []byte(`{"hash":{"version":1},"template":{"sim":{"version":"1"}}}`)
	b := newBench(t, interceptor.Funcs{Create: identified}, p, rev)
	b.once()
	b.serve()
	b.settle()
	id := b.pool().Status.TargetRevision
	for i, rendered := range []string{"one", "one", "two"} {
		again := newBench(t, interceptor.Funcs{Create: identified})
		again.Client, again.Reader, again.Roster, again.now = b.Client, b.Reader, b.Roster, b.now
		again.Render = func(context.Context, *v1alpha1.Template, map[string]any) (string, error) { return rendered, nil }
		b = again
		b.edit(func(p *v1alpha1.Pool) { p.Spec.Update.Type = new(v1alpha1.UpdateManual) })
		b.settle()
		if got, same := b.pool().Status.TargetRevision, rendered == "one"; (got == id) != same {
			t.Errorf("start %d: the target is %s, and was %s", i, got, id)
		}
	}
	if c := updatedOf(b.member("web-0")); !strings.HasSuffix(c.Message, "it differs in renderer") {
		t.Errorf("the member says %q", c.Message)
	}
}

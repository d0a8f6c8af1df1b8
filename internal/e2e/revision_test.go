//go:build integration

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/internal/operator"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// script has a process keep what the source said when it was made.
const script = `echo "${sources.boot["install.sh"]}" > said; exec sleep 3600`

// sourcedPool is a pool of n processes that run what a ConfigMap says, read with
// the rights of an account that may read nothing else.
func (w *world) sourcedPool(name string, n int32, says string) *v1alpha1.Pool {
	w.t.Helper()
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}})
	w.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"bootstrap"}, Verbs: []string{"get", "list", "watch"},
		}},
	})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: w.namespace}},
	})
	w.create(w.bootstrap(says))
	p := w.processPool(name, n, "1")
	p.Spec.ServiceAccountName = &name
	p.Spec.Sources = []v1alpha1.Source{{Name: "boot", ConfigMap: &v1alpha1.KeysSource{Name: "bootstrap", Keys: []string{"install.sh"}}}}
	p.Spec.Template.Process = &v1alpha1.Process{
		Command: "/bin/sh", Args: []string{"-c", script}, Env: map[string]string{envRun: w.run},
		Stop: &v1alpha1.Stop{Signal: new("KILL")},
	}
	return p
}

func (w *world) bootstrap(says string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap", Namespace: w.namespace},
		Data:       map[string]string{"install.sh": says, "notes": says},
	}
}

// say changes what the ConfigMap says.
func (w *world) say(says string) {
	w.t.Helper()
	if err := w.c.Update(w.t.Context(), w.bootstrap(says)); err != nil {
		w.t.Fatal(err)
	}
}

// said are what the members' processes were made from.
func (w *world) said() string {
	w.t.Helper()
	var all []string
	for _, pid := range w.processes() {
		text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "cwd", "said"))
		if err == nil {
			all = append(all, strings.TrimSpace(string(text)))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (w *world) revisions(pool string) []appsv1.ControllerRevision {
	w.t.Helper()
	var list appsv1.ControllerRevisionList
	if err := w.c.List(w.t.Context(), &list, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelPool: pool}); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// condition waits until one of the pool's has the reason, and its message the
// words.
func (w *world) condition(pool, name, reason string, words ...string) metav1.Condition {
	w.t.Helper()
	var c *metav1.Condition
	w.eventually(fmt.Sprintf("%s of %s is %s", name, pool, reason), func() error {
		p := w.pool(pool)
		c = meta.FindStatusCondition(p.Status.Conditions, name)
		if c == nil || c.Reason != reason || p.Status.ObservedGeneration != p.Generation {
			return errors.New(describe(p))
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return fmt.Errorf("%q does not say %q", c.Message, word)
			}
		}
		return nil
	})
	return *c
}

// TestRevision_source: what a ConfigMap says is part of the revision, and what
// it said once is what that revision's bodies are made from for ever.
func TestRevision_source(t *testing.T) {
	w := shared(t)
	p := w.sourcedPool("web", 2, "one")
	w.create(p)
	w.updated("web", 2)
	w.recovered("web")
	first := w.pool("web").Status.TargetRevision

	// Drift is seen, and said by what differs; a key that does not count is none.
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Update.Type = new(v1alpha1.UpdateManual) })
	w.say("two")
	w.condition("web", v1alpha1.ConditionUpdated, "TemplateChanged")
	second := w.pool("web").Status.TargetRevision
	w.eventually("the members say what differs", func() error {
		for _, m := range w.members("web") {
			c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdated)
			if c == nil || !strings.HasSuffix(c.Message, "it differs in ConfigMap bootstrap: install.sh") {
				return fmt.Errorf("%s: %+v", m.Name, c)
			}
		}
		return nil
	})

	// A body of the first revision is made from what was said then.
	w.edit("web", func(p *v1alpha1.Pool) {
		p.Spec.Update.Partition = new(int32(2))
		p.Spec.Update.Type = new(v1alpha1.UpdateRollingUpdate)
	})
	w.condition("web", v1alpha1.ConditionUpdated, "PartitionReached")
	m := w.members("web")[1]
	if err := w.c.Delete(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	w.eventually("the slot is made anew", func() error {
		all := w.members("web")
		if len(all) != 2 || all[1].UID == m.UID || all[1].Status.Phase != v1alpha1.PhaseAvailable || all[1].Status.Revision != first {
			return errors.New(list(all))
		}
		return nil
	})
	w.eventually("it says what the first revision says", func() error {
		if got := w.said(); got != "one, one" {
			return errors.New(got)
		}
		return nil
	})

	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Update.Partition = nil })
	w.updated("web", 2)
	w.eventually("all say what is said now", func() error {
		if got := w.said(); got != "two, two" {
			return errors.New(got)
		}
		return nil
	})
	w.say("one")
	w.eventually("what is said again is the same revision", func() error {
		if st := w.pool("web").Status; st.TargetRevision != first || len(w.revisions("web")) != 2 {
			return errors.New(describe(w.pool("web")))
		}
		return nil
	})
	if first == second {
		t.Error("two contents have one revision")
	}
}

// TestRevision_unresolved: a source that is not there changes nothing.
func TestRevision_unresolved(t *testing.T) {
	w := shared(t)
	w.create(w.sourcedPool("web", 2, "one"))
	w.updated("web", 2)
	target := w.pool("web").Status.TargetRevision
	if err := w.c.Delete(t.Context(), w.bootstrap("one")); err != nil {
		t.Fatal(err)
	}
	c := w.condition("web", v1alpha1.ConditionSourcesResolved, "NotFound", "bootstrap")
	if c.Status != metav1.ConditionFalse {
		t.Errorf("SourcesResolved is %+v", c)
	}
	if c = w.condition("web", v1alpha1.ConditionUpdated, "SourcesUnresolved", "bootstrap"); c.Status != metav1.ConditionUnknown {
		t.Errorf("Updated is %+v", c)
	}
	w.edit("web", func(p *v1alpha1.Pool) {
		p.Spec.Replicas, p.Spec.Template.Process.Args[1] = new(int32(3)), script+" # new"
	})
	w.condition("web", v1alpha1.ConditionUpdated, "SourcesUnresolved")
	if all := w.members("web"); len(all) != 2 || w.pool("web").Status.TargetRevision != target || len(w.revisions("web")) != 1 {
		t.Errorf("something changed: %s", list(all))
	}
	w.create(w.bootstrap("one"))
	w.updated("web", 3)
	w.condition("web", v1alpha1.ConditionSourcesResolved, "Resolved")
}

// TestRevision_notReproducible: a revision whose copies are gone is born
// nowhere, and that is said; a new target ends it.
func TestRevision_notReproducible(t *testing.T) {
	server := pawldtest.Start(t)
	w := newWorld(t, server.Config)
	p := w.sourcedPool("web", 2, "one")
	p.Spec.Update.Partition = new(int32(2))
	w.create(p)
	w.updated("web", 2)
	w.recovered("web")
	first := w.pool("web").Status.TargetRevision
	w.say("two")
	w.condition("web", v1alpha1.ConditionUpdated, "PartitionReached")
	var copies corev1.ConfigMapList
	if err := w.c.List(t.Context(), &copies, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelRevision: first}); err != nil || len(copies.Items) == 0 {
		t.Fatalf("%d copies, %v", len(copies.Items), err)
	}
	for i := range copies.Items {
		c := &copies.Items[i]
		c.Finalizers = nil
		if err := errors.Join(w.c.Update(t.Context(), c), w.c.Delete(t.Context(), c)); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Restart(); err != nil { // what is known of them goes with the process
		t.Fatal(err)
	}
	m := w.members("web")[1]
	if err := w.c.Delete(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	w.eventually("it is said", func() error {
		p := w.pool("web")
		text := describe(p)
		if len(w.members("web")) > 1 || !strings.Contains(text, "RevisionNotReproducible") {
			return errors.New(text)
		}
		return nil
	})
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Update.Partition = nil })
	w.updated("web", 2)
}

// crashing makes the pool's processes end with their last words.
func crashing(p *v1alpha1.Pool) {
	p.Spec.Template.Process.Command = "/bin/sh"
	p.Spec.Template.Process.Args = []string{"-c", "echo starting; echo 'no such database: orders' >&2; exit 9"}
	p.Spec.Update.FailureLimit = intOrString(1)
}

// TestRevision_halt: a halt says what failed, where, in the body's own words,
// what becomes of the rest and what can follow; a retry that was asked for is
// granted once.
func TestRevision_halt(t *testing.T) {
	w := shared(t)
	w.create(w.processPool("web", 3, "1"))
	w.updated("web", 3)
	w.recovered("web")
	first := w.pool("web").Status.TargetRevision
	w.edit("web", crashing)
	words := []string{"member 0", "no such database: orders", "9", first, "pawl undo web", "pawl retry web"}
	halt := w.condition("web", v1alpha1.ConditionUpdated, "UpdateHalted", words...)
	t.Log(halt.Message)
	if c := w.condition("web", v1alpha1.ConditionStalled, "UpdateHalted", words...); c.Status != metav1.ConditionTrue {
		t.Errorf("Stalled is %+v", c)
	}
	second := w.pool("web").Status.TargetRevision
	w.eventually("it is an event", func() error {
		var all eventsv1.EventList
		if err := w.c.List(t.Context(), &all, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for i := range all.Items {
			if e := &all.Items[i]; e.Reason == "UpdateHalted" && strings.Contains(e.Note, "no such database: orders") {
				return nil
			}
		}
		return fmt.Errorf("%d events", len(all.Items))
	})
	w.eventually("all are on the first revision", func() error {
		for _, m := range w.members("web") {
			if m.Status.Phase != v1alpha1.PhaseAvailable || m.Status.Revision != first {
				return errors.New(list(w.members("web")))
			}
		}
		return nil
	})
	failed := func() int64 {
		for _, rev := range w.revisions("web") {
			rec, err := history.ReadRecord(&rev)
			if err != nil {
				t.Fatal(err)
			}
			if history.RevisionID(&rev) == second && len(rec.Failures) > 0 {
				return rec.Failures[0].Incarnation
			}
		}
		return 0
	}
	before := failed()
	w.edit("web", func(p *v1alpha1.Pool) {
		p.Annotations = map[string]string{v1alpha1.AnnotationRetry: second + "@" + time.Now().Format(time.RFC3339)}
	})
	w.eventually("one more body is tried", func() error {
		if failed() <= before {
			return errors.New(describe(w.pool("web")))
		}
		return nil
	})
	w.condition("web", v1alpha1.ConditionUpdated, "UpdateHalted", words...)
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Template.Process = w.processPool("web", 3, "3").Spec.Template.Process })
	w.updated("web", 3)
}

// TestRevision_rollback: with onFailure: Rollback a bad template is taken back,
// until it changes.
func TestRevision_rollback(t *testing.T) {
	w := shared(t)
	p := w.processPool("web", 3, "1")
	p.Spec.Update.OnFailure = new(v1alpha1.FailureRollback)
	w.create(p)
	w.updated("web", 3)
	w.recovered("web")
	first := w.pool("web").Status.TargetRevision
	w.edit("web", crashing)
	c := w.condition("web", v1alpha1.ConditionUpdated, "RolledBack", "no such database: orders", first)
	t.Log(c.Message)
	w.eventually("all are on the first revision, and on target", func() error {
		for _, m := range w.members("web") {
			c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdated)
			if m.Status.Phase != v1alpha1.PhaseAvailable || m.Status.Revision != first || c == nil || c.Status != metav1.ConditionTrue {
				return errors.New(list(w.members("web")))
			}
		}
		return nil
	})
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Template.Process = w.processPool("web", 3, "3").Spec.Template.Process })
	w.updated("web", 3)
}

// TestRevision_refused: a member that the API server will not have changed
// keeps no other from its turn.
func TestRevision_refused(t *testing.T) {
	w := shared(t)
	w.create(w.simPool("web", 3))
	w.updated("web", 3)
	end := w.refuse("web-0")
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Template.Sim.Version = new("2") })
	w.eventually("the others are replaced", func() error {
		if p := w.pool("web"); p.Status.Updated != 2 || p.Status.Free != 3 {
			return errors.New(describe(p))
		}
		return nil
	})
	w.stalled("web", "ApplyFailed", "web-0", "not on a Friday")
	end()
	w.edit("web", func(p *v1alpha1.Pool) {
		p.Annotations = map[string]string{"touched": "yes"}
		p.Spec.Update.MaxInFlight = new(int32(1))
	})
	w.updated("web", 3)
}

// TestRevision_upgrade: controllers with another version of the hash, after ones
// that stored revisions in the first format, roll nothing and write nothing;
// what is stale stays stale.
func TestRevision_upgrade(t *testing.T) {
	server := pawldtest.Start(t, pawldtest.WithoutControllers(), pawldtest.WithSim())
	w := newWorld(t, server.Config)
	dir := t.TempDir()
	run := func(version int) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- operator.Run(ctx, server.Config, operator.Options{
				Sim: true, SimFile: filepath.Join(dir, "sim"), ProcessDir: filepath.Join(dir, "bodies"), MetricsAddr: "0", HealthAddr: "0", HashVersion: version,
			})
		}()
		return func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	w.create(w.simPool("web", 3))
	w.create(w.firstFormat(w.pool("web")))
	stop := run(1)
	w.updated("web", 3)
	w.recovered("web")
	if n := len(w.revisions("web")); n != 1 {
		t.Fatalf("%d revisions of one template", n)
	}
	w.edit("web", func(p *v1alpha1.Pool) {
		p.Spec.Update.Type, p.Spec.Template.Sim.Version = new(v1alpha1.UpdateManual), new("2")
	})
	w.condition("web", v1alpha1.ConditionUpdated, "TemplateChanged")
	m := w.members("web")[0]
	m.Annotations = map[string]string{v1alpha1.AnnotationRecycle: "1"}
	if err := w.c.Update(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	w.eventually("one is on the target", func() error {
		if st := w.pool("web").Status; st.Updated != 1 || st.Stale != 2 || st.Free != 3 {
			return errors.New(describe(w.pool("web")))
		}
		return nil
	})
	w.rest("web")
	stop()
	before := w.versions("web")
	for _, version := range []int{2, 1, 2} {
		stop := run(version)
		w.edit("web", func(p *v1alpha1.Pool) { p.Spec.RevisionHistoryLimit = new(int32(version + 20)) })
		w.eventually("the pool is seen", func() error {
			if p := w.pool("web"); p.Status.ObservedGeneration != p.Generation {
				return errors.New(describe(p))
			}
			return nil
		})
		w.rest("web")
		stop()
		if after := w.versions("web"); after != before {
			t.Errorf("version %d writes:\n%s\ninstead of\n%s", version, after, before)
		}
	}
	stop = run(2)
	defer stop()
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Update.Type = new(v1alpha1.UpdateRollingUpdate) })
	w.updated("web", 3)
	for i, m := range w.members("web") {
		if m.Status.Incarnation != 2 {
			t.Errorf("member %d has incarnation %d", i, m.Status.Incarnation)
		}
	}
}

// firstFormat is the revision of the pool's template as the first release stored
// it.
func (w *world) firstFormat(p *v1alpha1.Pool) *appsv1.ControllerRevision {
	w.t.Helper()
	id, err := history.ID(&p.Spec.Template)
	if err != nil {
		w.t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: history.Name(p.Name, id), Namespace: p.Namespace, Finalizers: []string{v1alpha1.FinalizerRevision},
			Labels: map[string]string{v1alpha1.LabelPool: p.Name, v1alpha1.LabelRevision: id},
		},
		Data:     runtime.RawExtension{Raw: []byte(`{"hash":{"version":1},"template":{"sim":{"version":"1"}}}`)},
		Revision: 1,
	}
}

// versions are the resource versions of the pool's members and revisions.
func (w *world) versions(pool string) string {
	w.t.Helper()
	var all []string
	for _, m := range w.members(pool) {
		all = append(all, m.Name+" "+m.ResourceVersion)
	}
	for _, r := range w.revisions(pool) {
		all = append(all, r.Name+" "+r.ResourceVersion)
	}
	return strings.Join(all, "\n")
}

// rest waits until nothing of the pool has been written for a few passes.
func (w *world) rest(pool string) {
	w.t.Helper()
	last, since := "", time.Time{}
	w.eventually(pool+" comes to rest", func() error {
		if now := w.versions(pool) + w.pool(pool).ResourceVersion; now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return errors.New("it is still written")
		}
		return nil
	})
}

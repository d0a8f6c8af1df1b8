//go:build integration

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// simPool is a pool of n simulated bodies.
func (w *world) simPool(name string, n int32) *v1alpha1.Pool {
	return &v1alpha1.Pool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
		Spec: v1alpha1.PoolSpec{
			Replicas: new(n), Update: &v1alpha1.Update{Type: new(v1alpha1.UpdateRollingUpdate)},
			Template: v1alpha1.Template{Sim: &v1alpha1.Sim{Version: new("1")}},
		},
	}
}

// stalled waits until the pool says that it is, for the reason, with the words.
func (w *world) stalled(pool, reason string, words ...string) {
	w.t.Helper()
	w.eventually(pool+" is stalled", func() error {
		p := w.pool(pool)
		c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStalled)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason || p.Status.ObservedGeneration != p.Generation {
			return errors.New(describe(p))
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return fmt.Errorf("%q does not name %q", c.Message, word)
			}
		}
		return nil
	})
}

// revision is the pool's only one.
func (w *world) revision(pool string) *appsv1.ControllerRevision {
	w.t.Helper()
	var list appsv1.ControllerRevisionList
	if err := w.c.List(w.t.Context(), &list, client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelPool: pool}); err != nil {
		w.t.Fatal(err)
	}
	if len(list.Items) != 1 {
		w.t.Fatalf("%d revisions", len(list.Items))
	}
	return &list.Items[0]
}

// refuse makes the API server refuse the named Member, in the test's namespace.
// It returns how to end that.
func (w *world) refuse(member string) (end func()) {
	w.t.Helper()
	name := w.namespace + "-" + member
	always := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{Operations: always, Rule: admissionv1.Rule{
					APIGroups: []string{"pawl.dev"}, APIVersions: []string{"*"}, Resources: []string{"members"},
				}},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("request.namespace != %q || request.name != %q", w.namespace, member),
				Message:    "not on a Friday",
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	w.create(policy)
	w.create(binding)
	inForce := func(want bool) func() error {
		return func() error {
			m := &v1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Name: member, Namespace: w.namespace}}
			m.Spec.Pool, m.Spec.Index = member[:strings.LastIndex(member, "-")], int32(member[len(member)-1]-'0')
			err := w.c.Create(w.t.Context(), m, client.DryRunAll)
			if refused := apierrors.IsInvalid(err) && strings.Contains(err.Error(), "Friday"); refused != want {
				return fmt.Errorf("a member is refused: %w", err)
			}
			return nil
		}
	}
	w.eventually("the policy is in force", inForce(true))
	return func() {
		if err := errors.Join(w.c.Delete(w.t.Context(), binding), w.c.Delete(w.t.Context(), policy)); err != nil {
			w.t.Error(err)
		}
		w.eventually("the policy is not in force any more", inForce(false))
	}
}

// TestBroken_refused: a member that the API server refuses costs that member,
// is said, and is made once it is not refused any more.
func TestBroken_refused(t *testing.T) {
	w := shared(t)
	end := w.refuse("web-1")
	w.create(w.simPool("web", 3))
	w.stalled("web", "ApplyFailed", "web-1", "not on a Friday")
	w.eventually("the others are free", func() error {
		if p := w.pool("web"); p.Status.Free != 2 {
			return errors.New(describe(p))
		}
		return nil
	})
	// What the pool asks for meanwhile is seen.
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Replicas = new(int32(4)) })
	w.eventually("three are free", func() error {
		if p := w.pool("web"); p.Status.Free != 3 || p.Status.ObservedGeneration != p.Generation {
			return errors.New(describe(p))
		}
		return nil
	})
	end()
	w.updated("web", 4)
	w.eventually("nothing is wrong any more", func() error {
		p := w.pool("web")
		if !meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.ConditionStalled) {
			return errors.New(describe(p))
		}
		return nil
	})
}

// TestBroken_foreignMember: a member of another pool with a slot's name is
// refused by the schema, or, where it is there already, named.
func TestBroken_foreignMember(t *testing.T) {
	w := shared(t)
	foreign := &v1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: w.namespace},
		Spec:       v1alpha1.MemberSpec{Pool: "other", Index: 1},
	}
	err := w.c.Create(t.Context(), foreign)
	if apierrors.IsInvalid(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	w.create(w.simPool("web", 3))
	w.stalled("web", "ApplyFailed", "web-1", "Pool other")
	w.eventually("the others are free", func() error {
		if p := w.pool("web"); p.Status.Free != 2 {
			return errors.New(describe(p))
		}
		return nil
	})
	if err := w.c.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	w.updated("web", 3)
}

// TestBroken_record: a record that somebody made unreadable is named, nothing is
// done meanwhile, and it goes on once it is removed.
func TestBroken_record(t *testing.T) {
	w := shared(t)
	w.create(w.simPool("web", 2))
	w.updated("web", 2)
	annotate := func(change func(map[string]string)) {
		w.eventually("edit the revision", func() error {
			rev := w.revision("web")
			change(rev.Annotations)
			return w.c.Update(t.Context(), rev)
		})
	}
	annotate(func(a map[string]string) { a[v1alpha1.AnnotationRecord] = "{" })
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Replicas = new(int32(3)) })
	w.stalled("web", "SourcesUnresolved", w.revision("web").Name, v1alpha1.AnnotationRecord, "remove it")
	if c := meta.FindStatusCondition(w.pool("web").Status.Conditions, v1alpha1.ConditionUpdated); c.Status != metav1.ConditionUnknown {
		t.Errorf("Updated is %+v", c)
	}
	if n := len(w.members("web")); n != 2 {
		t.Errorf("%d members", n)
	}
	annotate(func(a map[string]string) { delete(a, v1alpha1.AnnotationRecord) })
	w.updated("web", 3)
}

// TestBroken_revisionNumber: the largest number there is, given by hand, does
// not keep the next template from getting one.
func TestBroken_revisionNumber(t *testing.T) {
	w := shared(t)
	w.create(w.simPool("web", 1))
	w.updated("web", 1)
	w.eventually("edit the revision", func() error {
		rev := w.revision("web")
		rev.Revision = 9223372036854775807
		return w.c.Update(t.Context(), rev)
	})
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Template.Sim.Version = new("2") })
	w.updated("web", 1)
}

// TestBroken_revisionDeleted: a revision that somebody deletes stays as long as
// members or the pool need it, and goes with the pool.
func TestBroken_revisionDeleted(t *testing.T) {
	w := shared(t)
	pool := w.processPool("web", 2, "1")
	w.create(pool)
	w.updated("web", 2)
	first := w.revision("web")
	if !slices.Contains(first.Finalizers, v1alpha1.FinalizerRevision) {
		t.Fatalf("finalizers %v", first.Finalizers)
	}
	if err := w.c.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	m := w.members("web")[1]
	if err := w.c.Delete(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	w.eventually("the member is made anew", func() error {
		if all := w.members("web"); len(all) != 2 || all[1].UID == m.UID || all[1].Status.Phase != v1alpha1.PhaseAvailable {
			return errors.New(list(all))
		}
		return nil
	})
	if now := w.revision("web"); now.UID != first.UID {
		t.Error("the revision was made anew")
	}
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Template.Process.Env[envVersion] = "2" })
	w.updated("web", 2)
	if err := w.c.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	w.gone(pool)
	var left appsv1.ControllerRevisionList
	if err := w.c.List(t.Context(), &left, client.InNamespace(w.namespace)); err != nil || len(left.Items) > 0 {
		t.Errorf("%d revisions are left (%v)", len(left.Items), err)
	}
}

// TestBroken_revisionGuard: to delete revisions takes more than the right to
// delete ControllerRevisions; whoever empties namespaces has it.
func TestBroken_revisionGuard(t *testing.T) {
	w := shared(t)
	w.create(w.simPool("web", 1))
	w.updated("web", 1)
	rev := w.revision("web")
	const mallory = "mallory"
	w.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: mallory, Namespace: w.namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: []string{"*"}}},
	})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: mallory, Namespace: w.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: mallory},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: mallory}},
	})
	as := func(user string, options ...client.DeleteOption) error {
		config := rest.CopyConfig(pawldtest.Shared(t).Config)
		config.Impersonate.UserName = user
		c, err := client.New(config, client.Options{Scheme: w.c.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		return c.Delete(t.Context(), rev, options...)
	}
	w.eventually("the guard refuses", func() error {
		if err := as(mallory, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "lacks the verb delete on pools/revisions") {
			return fmt.Errorf("deleted by %s: %w", mallory, err)
		}
		return nil
	})
	if err := as("system:serviceaccount:kube-system:namespace-controller", client.DryRunAll); err != nil {
		t.Errorf("the namespace controller: %v", err)
	}
}

// TestBroken_namespace: a namespace that is deleted goes, with pools, members,
// revisions, claims and processes.
func TestBroken_namespace(t *testing.T) {
	server := pawldtest.Start(t, pawldtest.WithControllerManager(), pawldtest.WithSim())
	w := newWorld(t, server.Config)
	w.create(w.processPool("web", 3, "1"))
	w.create(w.simPool("sim", 3))
	w.updated("web", 3)
	w.updated("sim", 3)
	w.claim("mine", "web")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	if err := w.c.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.gone(namespace)
	if pids := w.processes(); len(pids) > 0 {
		t.Errorf("processes left over: %v", pids)
	}
}

// TestBroken_firstTemplate: a pool whose first template never serves says so, and
// whose body failed and how; there is nothing to go back to, and a template that
// serves is all that it takes.
func TestBroken_firstTemplate(t *testing.T) {
	w := shared(t)
	pool := w.simPool("web", 2)
	pool.Spec.Template.Sim.Outcome = new("CreateError")
	pool.Spec.Update.FailureLimit = intOrString(2)
	w.create(pool)
	w.stalled("web", "UpdateHalted", "of revision ", "in 2 slots", "the last was that of member ", "template.sim.outcome is CreateError", "no body of any revision has recovered")
	p := w.reason("web", v1alpha1.ConditionUpdated, "UpdateHalted")
	for name, want := range map[string]string{v1alpha1.ConditionAvailable: "NeverInService", v1alpha1.ConditionReady: "OutOfService"} {
		if c := meta.FindStatusCondition(p.Status.Conditions, name); c == nil || c.Status != metav1.ConditionFalse || c.Reason != want {
			t.Errorf("%s is %+v", name, c)
		}
	}
	if st := p.Status; st.CurrentRevision != "" || st.Updated != 0 || st.Free != 0 || st.Rollout == nil || !strings.Contains(st.Rollout.Next, "member ") {
		t.Errorf("it says that all is well: %s", describe(p))
	}
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Template.Sim = &v1alpha1.Sim{Version: new("2")} })
	w.updated("web", 2)
	p = w.reason("web", v1alpha1.ConditionAvailable, "EnoughInService")
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionStalled); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("Stalled is %+v", c)
	}
	w.recovered("web")
}

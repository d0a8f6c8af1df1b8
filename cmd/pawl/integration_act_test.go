//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// member reads a member.
func (p *place) member(name string) *v1alpha1.Member {
	p.Helper()
	var m v1alpha1.Member
	if err := p.client.Get(p.Context(), types.NamespacedName{Namespace: p.namespace, Name: name}, &m); err != nil {
		p.Fatal(err)
	}
	return &m
}

// updated waits until the pool's Updated condition has the reason.
func (p *place) updated(pool, reason string) {
	p.Helper()
	p.eventually("pool "+pool+" is "+reason, func() bool {
		o := p.now(pool)
		c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionUpdated)
		return o.Status.ObservedGeneration == o.Generation && c != nil && c.Reason == reason && c.ObservedGeneration == o.Generation
	})
}

// stands has the pool stand on its target, as if its bodies had recovered, and
// waits until the controller says so.
func (p *place) stands(pool string) {
	p.Helper()
	p.eventually("pool "+pool+" stands on its target", func() bool {
		o := p.now(pool)
		if o.Status.TargetRevision == "" || o.Status.CurrentRevision == o.Status.TargetRevision {
			return o.Status.TargetRevision != ""
		}
		var r appsv1.ControllerRevision
		name := types.NamespacedName{Namespace: p.namespace, Name: history.Name(pool, o.Status.TargetRevision)}
		if err := p.client.Get(p.Context(), name, &r); err != nil {
			p.Fatal(err)
		}
		rec, err := history.ReadRecord(&r)
		if err == nil {
			err = history.WriteRecord(&r, rec.Stand(nil, o.CreationTimestamp.Time))
		}
		if err != nil {
			p.Fatal(err)
		}
		_ = p.client.Update(p.Context(), &r) // a conflict is tried again
		return false
	})
}

// quick has bodies fail soon, and the first failure halt the rollout.
func quick(o *v1alpha1.Pool) {
	o.Spec.Template.BootTimeout = &metav1.Duration{Duration: 1e9}
	o.Spec.Update.FailureLimit = new(intstr.FromInt32(1))
}

// TestIntegration_HoldAndRecycle: a held member is not recycled until it is let
// go, nor is a claimed one until it is released.
func TestIntegration_HoldAndRecycle(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pawldtest.Shared(t))
	p.pool("web", 3, nothing)

	p.says(p.must("hold", "web/1", "--reason", "debugging", "--until", "1h"), "web-1 is held until ", ": debugging\n")
	p.says(p.must("recycle", "web/1"), "member web-1 is to get another body\n", "it is held", ": debugging\n")
	p.says(p.must("status", "web"), "│ web-1 is held until ", "│ web-1 is to get another body, as somebody asked\n")
	status, _, problems := p.call(t.Context(), "recycle", "web/1", "--wait", "--timeout", "2s")
	if status != 1 {
		t.Errorf("a held member: exit status %d", status)
	}
	p.says(problems, "member web-1 has no other body in service after 2s, and is Available; it is still asked for")
	if got := p.member("web-1").Status.Incarnation; got != 1 {
		t.Errorf("a held member has had %d bodies", got)
	}
	p.says(p.must("unhold", "web/1"), "member web-1 is no longer held\n", "web-1 is replaced")
	p.says(p.must("recycle", "web/2", "--wait", "--timeout", patience.String()), "web-2  ", "→ Available")
	p.eventually("the one that was held has another body", func() bool {
		m := p.member("web-1")
		return m.Status.Incarnation == 2 && m.Status.Phase == v1alpha1.PhaseAvailable
	})

	p.must("claim", "web", "--name", "mine")
	p.says(p.must("recycle", "web/0"), "it is claimed, and waits until the claim is released")
	p.must("release", "mine")
	p.eventually("the one that was claimed has another body", func() bool {
		m := p.member("web-0")
		return m.Status.Incarnation == 2 && m.Status.Phase == v1alpha1.PhaseAvailable
	})
}

// TestIntegration_UndoAndRetry: a bad template halts; another round halts again;
// it is taken back; and history and diff tell all of it.
func TestIntegration_UndoAndRetry(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pawldtest.Shared(t))
	p.pool("web", 2, quick)
	p.updated("web", "AllMembersCurrent")
	status, _, problems := p.call(t.Context(), "retry", "web")
	if status != 1 {
		t.Errorf("nothing has failed: exit status %d", status)
	}
	p.says(problems, "pool web: there is nothing to retry: revision 1 (", ") has not failed")
	p.stands("web")

	p.revise("web", `{"version":"2","outcome":"NeverReady"}`)
	p.updated("web", "UpdateHalted")
	p.says(p.must("explain", "web"), "UpdateHalted", "pawl undo web", "pawl retry web")
	out := p.must("history", "web")
	p.says(out, "REVISION  ID", "current ", "target, halted ", "template.sim.outcome, template.sim.version")

	p.says(p.must("retry", "web"), "pool web tries revision 2 (", "once more")
	p.eventually("the other round has failed too", func() bool {
		list := p.history("web")
		return list[1].Failed == 1 && strings.Contains(fmt.Sprint(list[1].States), "halted") && p.retried("web")
	})

	status, out, problems = p.call(t.Context(), "diff", "web")
	if status != 1 || problems != "" {
		t.Errorf("two revisions that differ: exit status %d: %s", status, problems)
	}
	p.says(out, "--- revision 1 (", "+++ revision 2 (", `template.sim.version: "1" → "2"`)
	_, out, _ = p.call(t.Context(), "diff", "web", "-o", "yaml")
	p.says(out, "-  version: \"1\"\n", "+  version: \"2\"\n")

	p.says(p.must("undo", "web", "--dry-run"), "would be back (dry run)")
	if got := *p.now("web").Spec.Template.Sim.Version; got != "2" {
		t.Errorf("a dry run has made the version %s", got)
	}
	p.says(p.must("undo", "web"), "pool web: the template of revision 1 (", "is back, in place of 2 (", `template.sim.version: "2" → "1"`)
	p.updated("web", "AllMembersCurrent")
	status, out, _ = p.call(t.Context(), "diff", "web")
	if status != 0 {
		t.Errorf("nothing differs: exit status %d\n%s", status, out)
	}
	if list := p.history("web"); list[1].Number != 3 || list[1].Members != 2 || fmt.Sprint(list[1].States) != "[target current]" {
		t.Errorf("history %+v", list)
	}
}

// retried tells whether the request for another round was granted.
func (p *place) retried(pool string) bool {
	p.Helper()
	var list appsv1.ControllerRevisionList
	if err := p.client.List(p.Context(), &list, client.InNamespace(p.namespace), client.MatchingLabels{v1alpha1.LabelPool: pool}); err != nil {
		p.Fatal(err)
	}
	for _, r := range list.Items {
		if strings.Contains(r.Annotations[v1alpha1.AnnotationRecord], `"retried":`) {
			return true
		}
	}
	return false
}

// history is what the command says.
func (p *place) history(pool string) []entry {
	p.Helper()
	var list []entry
	if err := json.Unmarshal([]byte(p.must("history", pool, "-o", "json")), &list); err != nil {
		p.Fatal(err)
	}
	return list
}

// TestIntegration_Skip: a member whose new body does not come up is given up on:
// it goes back to the current revision, and the others go on.
func TestIntegration_Skip(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pawldtest.Shared(t))
	p.pool("web", 3, nothing)
	p.updated("web", "AllMembersCurrent")
	status, _, problems := p.call(t.Context(), "skip", "web/0")
	if status != 1 {
		t.Errorf("nothing to fall back to: exit status %d", status)
	}
	p.says(problems, "member web-0 cannot be skipped: no body of the pool has recovered yet")
	p.stands("web")
	status, _, problems = p.call(t.Context(), "skip", "web/0")
	if status != 1 {
		t.Errorf("nothing to fall back to: exit status %d", status)
	}
	p.says(problems, "member web-0 cannot be skipped: the target, revision ", "there is nothing to fall back to")

	p.revise("web", `{"version":"2","outcome":"NeverReady"}`)
	p.eventually("a body is stuck", func() bool {
		m := p.member("web-0")
		return m.Status.Incarnation == 2 && m.Status.Phase == v1alpha1.PhaseProvisioning
	})
	p.says(p.must("skip", "web/0"), "member web-0 is skipped: it is not brought to revision ")
	p.eventually("it is back on the current revision", func() bool {
		m, o := p.member("web-0"), p.now("web")
		return m.Status.Phase == v1alpha1.PhaseAvailable && m.Status.Revision == o.Status.CurrentRevision && o.Status.CurrentRevision != o.Status.TargetRevision
	})
	p.eventually("the next one takes its turn", func() bool { return p.member("web-1").Status.Incarnation == 2 })
	p.says(p.must("status", "web"), "│ web-0 is skipped: it is not brought to revision ")
	p.says(p.must("explain", "web/0"), "it is skipped (pawl skip)")

	p.must("skip", "web/1")
	p.must("skip", "web/2")
	p.says(p.must("skip", "web/0", "--undo"), "member web-0 is no longer skipped\n")
	p.revise("web", `{"version":"3","outcome":null}`)
	p.updated("web", "AllMembersCurrent") // a skip is for one target
}

// reader makes an account that may read ConfigMaps.
func (p *place) reader(name string) {
	p.Helper()
	its := metav1.ObjectMeta{Namespace: p.namespace, Name: name}
	p.create(&corev1.ServiceAccount{ObjectMeta: its})
	p.create(&rbacv1.Role{ObjectMeta: its, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}}})
	p.create(&rbacv1.RoleBinding{
		ObjectMeta: its, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: p.namespace, Name: name}},
	})
}

// TestIntegration_UndoSources: content is not brought back by a template, and
// the copy that is named holds it.
func TestIntegration_UndoSources(t *testing.T) {
	t.Parallel()
	p := newPlace(t, pawldtest.Shared(t))
	script := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "script"}, Data: map[string]string{"run.sh": "echo 1\n"}}
	p.create(script)
	p.reader("reader")
	p.pool("web", 1, func(o *v1alpha1.Pool) {
		o.Spec.ServiceAccountName = new("reader")
		o.Spec.Sources = []v1alpha1.Source{{Name: "script", ConfigMap: &v1alpha1.KeysSource{Name: "script"}}}
	})
	p.updated("web", "AllMembersCurrent")
	script.Data["run.sh"] = "echo 2\n"
	if err := p.client.Update(t.Context(), script); err != nil {
		t.Fatal(err)
	}
	p.eventually("a new revision stands", func() bool { return len(p.history("web")) == 2 })
	p.updated("web", "AllMembersCurrent")

	p.says(p.must("history", "web"), "ConfigMap script: run.sh")
	_, out, _ := p.call(t.Context(), "diff", "web", "1")
	p.says(out, `ConfigMap script: run.sh: "echo 1\n" → "echo 2\n"`)
	status, _, problems := p.call(t.Context(), "undo", "web", "--to", "1")
	if status != 1 {
		t.Errorf("exit status %d", status)
	}
	copied := "web-" + p.history("web")[0].ID + "-script"
	p.says(problems, "pool web: nothing was done: ", "ConfigMap script: run.sh, which is kept: `kubectl get configmap "+copied+" -n "+p.namespace+" -o yaml`")
	var kept corev1.ConfigMap
	if err := p.client.Get(t.Context(), types.NamespacedName{Namespace: p.namespace, Name: copied}, &kept); err != nil || kept.Data["run.sh"] != "echo 1\n" {
		t.Errorf("%v, %v", kept.Data, err)
	}
}

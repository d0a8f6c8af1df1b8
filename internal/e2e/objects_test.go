//go:build integration

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// objectsPool is a pool whose bodies are two ConfigMaps each.
func (w *world) objectsPool(name string, n int32, version string) *v1alpha1.Pool {
	manifest := func(suffix string) runtime.RawExtension {
		return runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${member.name}-%s","labels":{"app":"${pool.name}"}},"data":{"version":"%s","index":"no. ${member.index}"}}`, suffix, version)}
	}
	return &v1alpha1.Pool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
		Spec: v1alpha1.PoolSpec{
			Replicas: new(n), ServiceAccountName: new("bodies"),
			Update:   &v1alpha1.Update{Type: new(v1alpha1.UpdateRollingUpdate)},
			Template: v1alpha1.Template{Objects: []runtime.RawExtension{manifest("a"), manifest("b")}},
		},
	}
}

// account makes the bodies' account, and gives it the verbs on ConfigMaps.
func (w *world) account(verbs ...string) {
	w.t.Helper()
	meta := metav1.ObjectMeta{Name: "bodies", Namespace: w.namespace}
	w.create(&corev1.ServiceAccount{ObjectMeta: meta})
	if len(verbs) == 0 {
		return
	}
	w.create(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}}})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "bodies"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "bodies", Namespace: w.namespace}},
	})
}

func (w *world) configMaps() []corev1.ConfigMap {
	w.t.Helper()
	var list corev1.ConfigMapList
	if err := w.c.List(w.t.Context(), &list, client.InNamespace(w.namespace), client.HasLabels{v1alpha1.LabelMember}); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// TestObjects_roll rolls members made of Kubernetes objects. The claimed one's
// objects stay as they are, and nothing owns anything.
func TestObjects_roll(t *testing.T) {
	w := shared(t)
	w.account("get", "list", "watch", "create", "patch", "update", "delete")
	pool := w.objectsPool("pairs", 3, "1")
	w.create(pool)
	w.updated("pairs", 3)
	c := w.claim("mine", "pairs")
	w.edit("pairs", func(p *v1alpha1.Pool) { p.Spec.Template = w.objectsPool("", 0, "2").Spec.Template })
	w.reason("pairs", v1alpha1.ConditionUpdated, "UpdateBlocked")
	maps := w.configMaps()
	if len(maps) != 6 {
		t.Errorf("%d ConfigMaps instead of 6", len(maps))
	}
	for _, m := range maps {
		want := "2"
		if m.Labels[v1alpha1.LabelMember] == c.Status.Member {
			want = "1"
		}
		if m.Data["version"] != want || m.Labels["app"] != "pairs" || !strings.HasPrefix(m.Data["index"], "no. ") || len(m.OwnerReferences) > 0 {
			t.Errorf("ConfigMap %s: %v, owners %v; want version %s", m.Name, m.Data, m.OwnerReferences, want)
		}
	}
	if err := errors.Join(w.c.Delete(t.Context(), c), w.c.Delete(t.Context(), pool)); err != nil {
		t.Fatal(err)
	}
	w.gone(pool)
	if left := w.configMaps(); len(left) > 0 {
		t.Errorf("%d ConfigMaps are left over", len(left))
	}
}

// TestObjects_rights: who may write pools gains no right thereby. Bodies are
// made with the account's rights, and their lack is said.
func TestObjects_rights(t *testing.T) {
	w := shared(t)
	w.account()
	w.create(w.objectsPool("pairs", 1, "1"))
	w.eventually("the member says what is forbidden", func() error {
		members := w.members("pairs")
		if len(members) == 0 {
			return errors.New("no member yet")
		}
		if st := members[0].Status; st.Phase != v1alpha1.PhaseFailed || !strings.Contains(st.Message, "forbidden") || !strings.Contains(st.Message, "bodies") {
			return fmt.Errorf("%s: %s", st.Phase, st.Message)
		}
		return nil
	})
	if maps := w.configMaps(); len(maps) > 0 {
		t.Errorf("%d ConfigMaps were made", len(maps))
	}
}

// TestObjects_deleted: somebody deletes one of a body's objects; the member is
// down, and once both are gone it is made anew.
func TestObjects_deleted(t *testing.T) {
	w := shared(t)
	w.account("get", "list", "watch", "create", "patch", "update", "delete")
	w.create(w.objectsPool("pairs", 1, "1"))
	w.updated("pairs", 1)
	for _, m := range w.configMaps() {
		if err := w.c.Delete(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("the body is made anew", func() error {
		if m := w.members("pairs")[0]; m.Status.Incarnation != 2 || m.Status.Phase != v1alpha1.PhaseAvailable {
			return fmt.Errorf("incarnation %d, %s: %s", m.Status.Incarnation, m.Status.Phase, m.Status.Message)
		}
		return nil
	})
	if maps := w.configMaps(); len(maps) != 2 {
		t.Errorf("%d ConfigMaps instead of 2", len(maps))
	}
}

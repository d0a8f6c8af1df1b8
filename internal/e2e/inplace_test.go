//go:build integration

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

// inPlace has a pool update its members where they are.
func inPlace(p *v1alpha1.Pool) *v1alpha1.Pool {
	p.Spec.Update.Method = new(v1alpha1.MethodInPlace)
	return p
}

// manifest is a ConfigMap of a member, of that suffix.
func manifest(suffix, rest string) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${member.name}-%s"},%s}`, suffix, rest)}
}

// configMap reads a ConfigMap; nil if it is not there.
func (w *world) configMap(name string) *corev1.ConfigMap {
	w.t.Helper()
	var c corev1.ConfigMap
	err := w.c.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &c)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return &c
}

func (w *world) uids(names ...string) map[string]types.UID {
	w.t.Helper()
	all := map[string]types.UID{}
	for _, n := range names {
		if c := w.configMap(n); c != nil {
			all[n] = c.UID
		}
	}
	return all
}

// writes watches a pool's members, and tells how often each was written.
func (w *world) writes(pool string) func() map[string][]string {
	w.t.Helper()
	events, err := w.c.Watch(w.t.Context(), &v1alpha1.MemberList{}, client.InNamespace(w.namespace), client.MatchingFields{"spec.pool": pool})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(events.Stop)
	first := map[string]bool{}
	for _, m := range w.members(pool) {
		first[m.ResourceVersion] = true
	}
	return func() map[string][]string {
		w.t.Helper()
		counts, last := map[string][]string{}, w.members(pool)
		for {
			e, ok := <-events.ResultChan()
			m, isMember := e.Object.(*v1alpha1.Member)
			if !ok || !isMember {
				w.t.Fatalf("the watch has ended: %v", e.Object)
			}
			if !first[m.ResourceVersion] {
				counts[m.Name] = append(counts[m.Name], written(m))
			}
			done := true
			for i := range last {
				if last[i].Name == m.Name && last[i].ResourceVersion == m.ResourceVersion {
					last[i].Name = ""
				}
				done = done && (last[i].Name == "" || first[last[i].ResourceVersion])
			}
			if done {
				return counts
			}
		}
	}
}

// written says in what a Member was written.
func written(m *v1alpha1.Member) string {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUpdated)
	return fmt.Sprintf("%s #%d to %s, disrupted %t, %s: %q", m.Status.Phase, m.Status.Incarnation, m.Spec.Revision, m.Spec.Disruption != nil, c.Reason, m.Status.Message)
}

// TestInPlace_objects updates objects where they are: they keep their UIDs and
// what others wrote, and what the template does not name any more goes.
func TestInPlace_objects(t *testing.T) {
	w := shared(t)
	w.account("get", "list", "watch", "create", "patch", "update", "delete")
	w.create(inPlace(w.objectsPool("pairs", 3, "1")))
	w.updated("pairs", 3)
	kept := w.uids("pairs-0-a", "pairs-1-a", "pairs-2-a")
	for name := range kept {
		c := w.configMap(name)
		c.Data["data"] = "precious"
		if err := w.c.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	writes := w.writes("pairs")
	w.edit("pairs", func(p *v1alpha1.Pool) {
		p.Spec.Template.Objects = []runtime.RawExtension{manifest("a", `"data":{"version":"2"}`), manifest("c", `"data":{"version":"2"}`)}
	})
	w.updated("pairs", 3)
	for name, uid := range kept {
		if c := w.configMap(name); c == nil || c.UID != uid || c.Data["version"] != "2" || c.Data["index"] != "" || c.Data["data"] != "precious" {
			t.Errorf("%s: %+v, UID was %s", name, c, uid)
		}
	}
	for _, m := range w.members("pairs") {
		if w.configMap(m.Name+"-b") != nil || w.configMap(m.Name+"-c") == nil {
			t.Errorf("%s has not the objects that its template names", m.Name)
		}
		if m.Status.Incarnation != 2 || !strings.Contains(m.Status.BodyUID, "-c/") {
			t.Errorf("%s: %+v", m.Name, m.Status)
		}
	}
	for name, list := range writes() {
		// The decision, that it updates, that it did, that it serves, and the
		// pool's word that it is stale.
		if len(list) > 5 {
			t.Errorf("%s was written %d times: %q", name, len(list), list)
		}
	}
}

// TestInPlace_refused: what the API server refuses is not applied to anything,
// halts the rollout with the server's words, and destroys nothing: the member
// goes on as what it was.
func TestInPlace_refused(t *testing.T) {
	w := shared(t)
	w.account("get", "list", "watch", "create", "patch", "update", "delete")
	p := inPlace(w.objectsPool("pairs", 2, "1"))
	p.Spec.Update.FailureLimit = intOrString(1)
	frozen := `"immutable":true,"data":{"version":"%s"}`
	p.Spec.Template.Objects = []runtime.RawExtension{manifest("a", `"data":{"version":"1"}`), manifest("b", fmt.Sprintf(frozen, "1"))}
	w.create(p)
	w.updated("pairs", 2)
	w.recovered("pairs")
	kept := w.uids("pairs-0-a", "pairs-1-a", "pairs-0-b", "pairs-1-b")
	w.edit("pairs", func(p *v1alpha1.Pool) {
		p.Spec.Template.Objects = []runtime.RawExtension{manifest("a", `"data":{"version":"2"}`), manifest("b", fmt.Sprintf(frozen, "2"))}
	})
	w.reason("pairs", v1alpha1.ConditionUpdated, "UpdateHalted")
	w.eventually("both serve as what they were", func() error {
		for _, m := range w.members("pairs") {
			if m.Status.Phase != v1alpha1.PhaseAvailable || m.Status.Revision != w.pool("pairs").Status.CurrentRevision {
				return fmt.Errorf("%+v", m.Status)
			}
		}
		return nil
	})
	for name, uid := range kept {
		if c := w.configMap(name); c == nil || c.UID != uid || c.Data["version"] != "1" {
			t.Errorf("%s: %+v, UID was %s", name, c, uid)
		}
	}
	if m := w.pool("pairs").Status.Conditions; !strings.Contains(fmt.Sprint(m), "field is immutable") {
		t.Errorf("the server's words are not in the conditions: %v", m)
	}
}

// directory is the working directory of a member's process.
func (w *world) directory(m *v1alpha1.Member) string {
	w.t.Helper()
	a, err := ask(w.t.Context(), m.Status.Address)
	if err != nil {
		w.t.Fatal(err)
	}
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", a.PID))
	if err != nil {
		w.t.Fatal(err)
	}
	return dir
}

// TestInPlace_process updates processes where they are: each keeps its
// directory with what is in it, and its port.
func TestInPlace_process(t *testing.T) {
	w := shared(t)
	w.create(inPlace(w.processPool("web", 2, "1")))
	w.updated("web", 2)
	before := w.members("web")
	for i := range before {
		if err := os.WriteFile(filepath.Join(w.directory(&before[i]), "data"), []byte(before[i].Name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writes := w.writes("web")
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Template.Process.Env[envVersion] = "2" })
	w.updated("web", 2)
	for i, m := range w.members("web") {
		a, err := ask(t.Context(), m.Status.Address)
		if err != nil || a.Version != "2" || m.Status.Address != before[i].Status.Address || m.Status.Incarnation != 2 || m.Status.BodyUID == before[i].Status.BodyUID || m.Status.BootTook == nil {
			t.Errorf("%s: %+v, %v; %+v, was %+v", m.Name, a, err, m.Status, before[i].Status)
		}
		if data, err := os.ReadFile(filepath.Join(w.directory(&m), "data")); err != nil || string(data) != m.Name {
			t.Errorf("%s: its data is %q, %v", m.Name, data, err)
		}
	}
	if pids := w.processes(); len(pids) != 2 {
		t.Errorf("%d processes instead of 2", len(pids))
	}
	for name, list := range writes() {
		if len(list) > 5 {
			t.Errorf("%s was written %d times: %q", name, len(list), list)
		}
	}
}

// TestInPlace_kill kills pawld with SIGKILL again and again while it updates
// processes where they are: none loses its data, and none is made anew.
func TestInPlace_kill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	server := pawldtest.Start(t)
	w := newWorld(t, server.Config)
	const n, kills = 3, 6
	w.create(inPlace(w.processPool("fleet", n, "1")))
	w.updated("fleet", n)
	var dirs []string
	for _, m := range w.members("fleet") {
		dir := w.directory(&m)
		dirs = append(dirs, dir)
		if err := os.WriteFile(filepath.Join(dir, "data"), []byte(m.Name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for version := 2; version < 2+kills; version++ {
		w.edit("fleet", func(p *v1alpha1.Pool) { p.Spec.Template.Process.Env[envVersion] = fmt.Sprint(version) })
		// The instant is what the test varies; nothing waits for it.
		time.Sleep(time.Duration(random.Int64N(int64(900 * time.Millisecond))))
		server.Kill()
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	w.updated("fleet", n)
	for i, m := range w.members("fleet") {
		if dir := w.directory(&m); dir != dirs[i] {
			t.Errorf("%s is in %s, and was in %s", m.Name, dir, dirs[i])
		}
		if data, err := os.ReadFile(filepath.Join(dirs[i], "data")); err != nil || string(data) != m.Name {
			t.Errorf("%s: its data is %q, %v", m.Name, data, err)
		}
		if a, err := ask(t.Context(), m.Status.Address); err != nil || a.Version != fmt.Sprint(1+kills) {
			t.Errorf("%s answers %+v, %v", m.Name, a, err)
		}
	}
	if pids := w.processes(); len(pids) != n {
		t.Errorf("%d processes instead of %d", len(pids), n)
	}
}

// TestCutShort: a birth is cut short, pawld dies, and the template names other
// objects meanwhile. What was made is found and goes.
func TestCutShort(t *testing.T) {
	server := pawldtest.Start(t)
	w := newWorld(t, server.Config)
	w.account("get", "list", "watch", "create", "patch", "update", "delete")
	w.unreachableWebhook("b")
	p := w.objectsPool("pairs", 2, "1")
	p.Spec.RevisionHistoryLimit = new(int32(0))
	p.Spec.Template.Objects = []runtime.RawExtension{manifest("a", `"data":{}`), manifest("b", `"data":{}`)}
	w.create(p)
	w.eventually("half a body each", func() error {
		if n := len(w.configMaps()); n != 2 {
			return fmt.Errorf("%d ConfigMaps", n)
		}
		return nil
	})
	server.Kill()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	w.edit("pairs", func(p *v1alpha1.Pool) {
		p.Spec.Template.Objects = []runtime.RawExtension{manifest("c", `"data":{}`)}
	})
	w.updated("pairs", 2)
	if names := fmt.Sprint(w.uids("pairs-0-a", "pairs-1-a", "pairs-0-b", "pairs-1-b")); names != "map[]" {
		t.Errorf("left over: %s", names)
	}
	if n := len(w.configMaps()); n != 2 {
		t.Errorf("%d ConfigMaps", n)
	}
}

// unreachableWebhook has every write of ConfigMaps of that suffix fail, as it
// does when nobody can tell.
func (w *world) unreachableWebhook(suffix string) {
	w.t.Helper()
	raw := fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"%s"},"webhooks":[{
		"name":"nobody.example.com","clientConfig":{"url":"https://127.0.0.1:1/"},"sideEffects":"None","admissionReviewVersions":["v1"],"failurePolicy":"Fail","timeoutSeconds":1,
		"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}],
		"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"%s"}},
		"matchConditions":[{"name":"suffix","expression":"object.metadata.name.endsWith('-%s')"}]}]}`, w.namespace, w.namespace, suffix)
	o := w.parse(raw)
	w.create(o)
	w.eventually("the webhook is in force", func() error {
		probe := &corev1.ConfigMap{}
		probe.Namespace, probe.Name = w.namespace, "probe-"+suffix
		err := w.c.Create(w.t.Context(), probe, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "nobody.example.com") {
			return errors.New("not yet")
		}
		return nil
	})
}

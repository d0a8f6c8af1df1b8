//go:build integration

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

func (w *world) parse(manifest string) *unstructured.Unstructured {
	w.t.Helper()
	var o unstructured.Unstructured
	if err := o.UnmarshalJSON([]byte(manifest)); err != nil {
		w.t.Fatal(err)
	}
	return &o
}

func versions(members []v1alpha1.Member) string {
	var all []string
	for _, m := range members {
		all = append(all, m.Name+" "+m.ResourceVersion)
	}
	return strings.Join(all, ", ")
}

// TestLive_process: a live file reaches every process, also one that is claimed,
// stale or both, and changes nothing else: no revision, no body, not even a
// Member is written.
func TestLive_process(t *testing.T) {
	w := shared(t)
	p := w.processPool("web", 3, "1")
	p.Spec.Update.Type = new(v1alpha1.UpdateManual)
	p.Spec.Template.Process.Files = []v1alpha1.File{{Path: "config", Content: new("one")}, {Path: "fixed", Content: new("${member.name}")}}
	p.Spec.Template.LiveFields = []string{"process.files[0].content", "process.stop"}
	w.create(p)
	w.updated("web", 3)
	w.claim("mine", "web")
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Template.Process.Env[envVersion] = "2" })
	w.reason("web", v1alpha1.ConditionUpdated, "TemplateChanged")
	w.edit("web", func(p *v1alpha1.Pool) { p.Spec.Replicas = new(int32(4)) })
	w.eventually("one more, on what the template says now", func() error {
		if st := w.pool("web").Status; st.Updated != 1 || st.Stale != 3 || st.Free != 3 {
			return errors.New(describe(w.pool("web")))
		}
		return nil
	})
	before, revisions := w.members("web"), len(w.revisions("web"))

	content := "two of ${member.index}"
	w.edit("web", func(p *v1alpha1.Pool) {
		p.Spec.Template.Process.Files[0].Content = &content
		p.Spec.Template.Process.Stop = nil
	})
	for i := range before {
		m := &before[i]
		dir := w.directory(m)
		w.eventually("the file of "+m.Name, func() error {
			got, err := os.ReadFile(filepath.Join(dir, "config"))
			if want := fmt.Sprintf("two of %d", m.Spec.Index); err != nil || string(got) != want {
				return fmt.Errorf("it is %q, %w", got, err)
			}
			return nil
		})
		if got, err := os.ReadFile(filepath.Join(dir, "fixed")); err != nil || string(got) != m.Name {
			t.Errorf("%s: what is not live is %q, %v", m.Name, got, err)
		}
	}
	w.reason("web", v1alpha1.ConditionUpdated, "TemplateChanged")
	if after := w.members("web"); versions(after) != versions(before) {
		t.Errorf("members were written: %s, and before %s", versions(after), versions(before))
	}
	if n := len(w.revisions("web")); n != revisions {
		t.Errorf("there are %d revisions, and were %d", n, revisions)
	}

	// That more is live is no other revision, either.
	w.edit("web", func(p *v1alpha1.Pool) {
		p.Spec.Template.LiveFields = []string{"process.files[0]", "process.stop", "process.readiness"}
	})
	w.reason("web", v1alpha1.ConditionUpdated, "TemplateChanged")
	if n := len(w.revisions("web")); n != revisions {
		t.Errorf("there are %d revisions, and were %d", n, revisions)
	}

	// A body that is born has them, too, whatever its revision.
	if err := w.c.Delete(t.Context(), &before[2]); err != nil {
		t.Fatal(err)
	}
	w.eventually("the slot is made anew", func() error {
		m := w.members("web")[2]
		if m.UID == before[2].UID || m.Status.Phase != v1alpha1.PhaseAvailable {
			return errors.New(list([]v1alpha1.Member{m}))
		}
		if got, err := os.ReadFile(filepath.Join(w.directory(&m), "config")); err != nil || string(got) != "two of 2" {
			return fmt.Errorf("its file is %q, %w", got, err)
		}
		return nil
	})
}

// TestLive_refused: a path that cannot be live is named, and changes nothing;
// so does a value that one body cannot take.
func TestLive_refused(t *testing.T) {
	w := shared(t)
	p := w.processPool("web", 1, "1")
	p.Spec.Template.Process.Files = []v1alpha1.File{{Path: "config", Content: new("one")}}
	p.Spec.Template.LiveFields = []string{"process.files[0].content"}
	w.create(p)
	w.updated("web", 1)
	m := w.members("web")[0]
	dir := w.directory(&m)
	w.edit("web", func(p *v1alpha1.Pool) {
		p.Spec.Template.LiveFields = []string{"process.files[0].content", "process.args[0]", "process.env." + envVersion}
		p.Spec.Template.Process.Files[0].Content = new("two")
	})
	said := meta.FindStatusCondition(w.reason("web", v1alpha1.ConditionStalled, "InvalidTemplate").Status.Conditions, v1alpha1.ConditionStalled).Message
	for _, want := range []string{"process.args", "process.env." + envVersion, "only files, readiness and stop"} {
		if !strings.Contains(said, want) {
			t.Errorf("the message does not say %q: %s", want, said)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "config")); err != nil || string(got) != "one" {
		t.Errorf("the file is %q, %v", got, err)
	}

	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.edit("web", func(p *v1alpha1.Pool) {
		p.Spec.Template.LiveFields = []string{"process.files[0]"}
		p.Spec.Template.Process.Files[0] = v1alpha1.File{Path: "taken", Content: new("two")}
	})
	w.eventually("its member says what it cannot take", func() error {
		m := w.members("web")[0]
		if said := m.Status.Message; !strings.Contains(said, "live fields") || !strings.Contains(said, "template.process.files[0].path") || m.Status.Incarnation != 1 {
			return fmt.Errorf("incarnation %d: %q", m.Status.Incarnation, said)
		}
		return nil
	})
	if err := os.Remove(filepath.Join(dir, "taken")); err != nil {
		t.Fatal(err)
	}
	w.eventually("it is tried again", func() error {
		got, err := os.ReadFile(filepath.Join(dir, "taken"))
		if m := w.members("web")[0]; err != nil || string(got) != "two" || m.Status.Message != "" || m.Status.Phase != v1alpha1.PhaseAvailable {
			return fmt.Errorf("%q, %w; %s: %s", got, err, m.Status.Phase, m.Status.Message)
		}
		return nil
	})
}

// TestLive_objects: live labels reach claimed and stale members' objects, which
// keep what whoever holds them has made of them.
func TestLive_objects(t *testing.T) {
	w := shared(t)
	w.account("get", "list", "watch", "create", "patch", "update", "delete")
	pool := w.objectsPool("pairs", 2, "1")
	pool.Spec.Update.Type = new(v1alpha1.UpdateManual)
	pool.Spec.Template.LiveFields = []string{"objects[0].metadata.labels.tier"}
	w.create(pool)
	w.updated("pairs", 2)
	w.claim("mine", "pairs")
	w.edit("pairs", func(p *v1alpha1.Pool) {
		p.Spec.Template.Objects = w.objectsPool("", 0, "2").Spec.Template.Objects
	})
	w.reason("pairs", v1alpha1.ConditionUpdated, "TemplateChanged")
	kept := w.uids("pairs-0-a", "pairs-1-a")
	for name := range kept {
		c := w.configMap(name)
		c.Data["index"] = "changed"
		if err := w.c.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	before := w.members("pairs")
	w.edit("pairs", func(p *v1alpha1.Pool) {
		raw := strings.Replace(string(p.Spec.Template.Objects[0].Raw), `"labels":{`, `"labels":{"tier":"gold",`, 1)
		p.Spec.Template.Objects[0] = runtime.RawExtension{Raw: []byte(raw)}
	})
	for name, uid := range kept {
		w.eventually("the label of "+name, func() error {
			if c := w.configMap(name); c.Labels["tier"] != "gold" || c.UID != uid || c.Data["version"] != "1" || c.Data["index"] != "changed" {
				return fmt.Errorf("%s, labels %v, data %v", c.UID, c.Labels, c.Data)
			}
			return nil
		})
	}
	w.reason("pairs", v1alpha1.ConditionUpdated, "TemplateChanged")
	if after := w.members("pairs"); versions(after) != versions(before) {
		t.Errorf("members were written: %s, and before %s", versions(after), versions(before))
	}
}

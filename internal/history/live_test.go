package history

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

func objects(list ...string) *v1alpha1.Template {
	t := &v1alpha1.Template{}
	for _, o := range list {
		t.Objects = append(t.Objects, runtime.RawExtension{Raw: []byte(o)})
	}
	return t
}

func filesOf(pairs ...string) *v1alpha1.Template {
	p := &v1alpha1.Process{Command: "x"}
	for i := 0; i < len(pairs); i += 2 {
		p.Files = append(p.Files, v1alpha1.File{Path: pairs[i], Content: &pairs[i+1]})
	}
	return &v1alpha1.Template{Process: p}
}

// Live fields are laid over what is the same in both templates, and nothing
// else: what a place was is not what it is.
func TestTemplateFor_same(t *testing.T) {
	t.Parallel()
	const (
		config = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1"}}`
		three  = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":3}}`
		five   = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":5}}`
		other  = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"e"},"spec":{"replicas":5}}`
		beta   = `{"apiVersion":"apps/v1beta1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":5}}`
		unsaid = `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":3}}`
		plain  = `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":5}}`
		none   = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{}}`
		pod    = `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"main","image":"m:1"},{"name":"side","image":"s:1"}]}}`
		pod2   = `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"main","image":"m:2"},{"name":"side","image":"s:2"}]}}`
		mixed  = `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"main","image":"m:2"},{"name":"side","image":"s:1"}]}}`
		front  = `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"new","image":"n:2"},{"name":"main","image":"m:2"}]}}`
	)
	tests := map[string]struct {
		reason      string
		stored, now *v1alpha1.Template
		live        []string
		want        *v1alpha1.Template
		wantLive    []string
	}{
		"the same":               {"it is today's", objects(config, three), objects(config, five), []string{"objects[1].spec.replicas"}, objects(config, five), []string{"objects[1].spec.replicas"}},
		"not named":              {"as there is no other name", objects(unsaid), objects(plain), []string{"objects[0].spec.replicas"}, objects(plain), []string{"objects[0].spec.replicas"}},
		"gone":                   {"what the same object says no more", objects(three), objects(none), []string{"objects[0].spec.replicas"}, objects(none), []string{"objects[0].spec.replicas"}},
		"another in front":       {"what was there is elsewhere now", objects(three), objects(config, five), []string{"objects[0].spec.replicas"}, objects(three), nil},
		"another in front, live": {"nor has it the place of now", objects(three), objects(config, five), []string{"objects[1].spec.replicas"}, objects(three), nil},
		"another name":           {"another object", objects(three), objects(other), []string{"objects[0].spec.replicas"}, objects(three), nil},
		"another version":        {"of the API", objects(three), objects(beta), []string{"objects[0].spec.replicas"}, objects(three), nil},
		"containers":             {"known by name", objects(pod), objects(pod2), []string{"objects[0].spec.containers[0].image"}, objects(mixed), []string{"objects[0].spec.containers[0].image"}},
		"a container in front":   {"is another one", objects(pod), objects(front), []string{"objects[0].spec.containers[0].image", "objects[0].spec.nodeName"}, objects(pod), []string{"objects[0].spec.nodeName"}},
		"all of a list":          {"is what it is", objects(pod), objects(front), []string{"objects[0].spec.containers"}, objects(front), []string{"objects[0].spec.containers"}},
		"a file":                 {"known by its path", filesOf("a", "1", "b", "1"), filesOf("a", "2", "b", "2"), []string{"process.files[1].content"}, filesOf("a", "1", "b", "2"), []string{"process.files[1].content"}},
		"a file in front":        {"is another one", filesOf("a", "1"), filesOf("b", "2", "a", "2"), []string{"process.files[0].content"}, filesOf("a", "1"), nil},
		"a whole file":           {"may move", filesOf("a", "1", "b", "1"), filesOf("c", "2", "b", "1"), []string{"process.files[0]"}, filesOf("c", "2", "b", "1"), []string{"process.files[0]"}},
		"a whole file in front":  {"takes nobody's place", filesOf("a", "1", "b", "1"), filesOf("c", "2", "a", "1", "b", "1"), []string{"process.files[0]"}, filesOf("a", "1", "b", "1"), nil},
		"whole files, swapped":   {"one of them is not live", filesOf("a", "1", "b", "1"), filesOf("b", "2", "a", "1"), []string{"process.files[0]"}, filesOf("a", "1", "b", "1"), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rev := store(t, tt.stored, nil)
			tt.now.LiveFields = tt.live
			got, err := TemplateFor(rev, tt.now)
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal(tt.want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.wantLive, got.LiveFields, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: live (-want +got)\n%s", tt.reason, diff)
			}
			got.LiveFields = nil
			is, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sorted(t, want), sorted(t, is)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tt.reason, diff)
			}
		})
	}
}

func sorted(t *testing.T, text []byte) any {
	t.Helper()
	tree, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

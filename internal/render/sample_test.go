package render

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

func objectsOf(manifests ...string) *v1alpha1.Template {
	t := &v1alpha1.Template{}
	for _, m := range manifests {
		t.Objects = append(t.Objects, raw(m))
	}
	return t
}

func TestSample(t *testing.T) {
	sources := map[string]any{"a": map[string]any{"k": "12", "b": []byte{0xff}}}
	type side struct {
		template *v1alpha1.Template
		sources  map[string]any
		variant  string
	}
	one := side{objectsOf(`{"a": "${member.name}"}`), nil, ""}
	none := side{objectsOf(`{"a": "b", "n": 1}`), nil, ""}
	args := func(list ...string) *v1alpha1.Template {
		return &v1alpha1.Template{Process: &v1alpha1.Process{Command: "x", Args: list, Ports: []string{"http"}}}
	}
	cases := map[string]struct {
		reason string
		a, b   side
		same   bool
	}{
		"Itself":       {"the same renders the same", one, side{objectsOf(`{"a": "${member.name}"}`), sources, ""}, true},
		"Another":      {"it is what comes out that counts", one, side{objectsOf(`{"a": "${pool.name}"}`), nil, ""}, false},
		"Equal output": {"however it was written", side{objectsOf(`{"a": "${1 + 1}"}`), nil, ""}, side{objectsOf(`{"a": "${2}"}`), nil, ""}, true},
		"Type":         {"a number is no text", side{objectsOf(`{"a": "${2}"}`), nil, ""}, side{objectsOf(`{"a": "${'2'}"}`), nil, ""}, false},
		"Process":      {"of a process all is text", side{args("${2}"), nil, ""}, side{args("${'2'}"), nil, ""}, true},
		"Ports":        {"a process has ports", side{args("${ports.http}"), nil, ""}, side{args("${10001}"), nil, ""}, true},
		"Variant":      {"a changed renderer shows", one, side{one.template, nil, "changed"}, false},
		"Plain":        {"even where nothing is rendered", none, side{none.template, nil, "changed"}, false},
		"Not rendered": {"what is not rendered needs no sample", none, side{objectsOf(`{"other": 1}`), nil, ""}, true},
		"Sources":      {"sources are rendered", side{objectsOf(`{"a": "${sources.a.k}"}`), sources, ""}, side{objectsOf(`{"a": "${'12'}"}`), nil, ""}, true},
		"Bytes":        {"what is no text is base64", side{objectsOf(`{"a": "${sources.a.b}"}`), sources, ""}, side{objectsOf(`{"a": "${'/w=='}"}`), nil, ""}, true},
		"Failed":       {"what cannot be rendered is that, whatever the reason", side{objectsOf(`{"a": "${1 / 0}"}`), nil, ""}, side{objectsOf(`{"a": "${sources.a.x}"}`), sources, ""}, true},
		"Failed part":  {"and the rest is rendered all the same", side{objectsOf(`{"a": "${1 / 0}", "b": "${1}"}`), nil, ""}, side{objectsOf(`{"a": "${1 / 0}", "b": "${2}"}`), nil, ""}, false},
		"Not failed":   {"nothing else looks like it", side{objectsOf(`{"a": "${1 / 0}"}`), nil, ""}, side{objectsOf(`{"a": "${'\\x00unrendered'}"}`), nil, ""}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got [2]string
			for i, s := range []side{c.a, c.b} {
				var err error
				if got[i], err = Sample(context.Background(), s.template, s.sources, s.variant); err != nil {
					t.Fatal(err)
				}
			}
			if (got[0] == got[1]) != c.same {
				t.Errorf("%s: got %q and %q", c.reason, got[0], got[1])
			}
		})
	}
	if got, err := Sample(context.Background(), none.template, nil, ""); got != "" || err != nil {
		t.Errorf("what is not rendered has no sample: got %q, %v", got, err)
	}
}

func TestSample_Errors(t *testing.T) {
	if got, err := Sample(context.Background(), objectsOf(`{"a": "${nobody}"}`), nil, ""); err == nil {
		t.Errorf("a template that does not compile has no sample: got %q", got)
	}
	if got, err := Sample(context.Background(), &v1alpha1.Template{Objects: []runtime.RawExtension{raw(`[]`)}}, nil, ""); err == nil {
		t.Errorf("nor has one that is none: got %q", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got, err := Sample(ctx, objectsOf(`{"a": "${1}"}`), nil, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("that the time was up says nothing about the template: got %q, %v", got, err)
	}
}

package render

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

func vars() map[string]any {
	return map[string]any{
		"member": map[string]any{"name": "web-3", "namespace": "shop", "index": int32(3), "incarnation": int64(7)},
		"pool":   map[string]any{"name": "web", "namespace": "shop"},
	}
}

func processVars() map[string]any {
	v := vars()
	v["ports"] = map[string]int32{"http": 4711, "admin": 4712}
	return v
}

func TestManifests(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     any
		want   any
	}{
		"Number":      {"a single expression keeps its type", "${member.index}", int64(3)},
		"Double":      {"doubles stay doubles", "${1.5}", 1.5},
		"Bool":        {"bools stay bools", "${member.index > 2}", true},
		"Null":        {"null stays null", "${null}", nil},
		"Uint":        {"unsigned numbers are numbers", "${3u}", int64(3)},
		"List":        {"lists stay lists", "${[member.name, 1]}", []any{"web-3", int64(1)}},
		"Map":         {"maps stay maps", "${ {'a': {'b': pool.name}} }", map[string]any{"a": map[string]any{"b": "web"}}},
		"Struct":      {"a variable may be used whole", "${pool}", map[string]any{"name": "web", "namespace": "shop"}},
		"Bytes":       {"bytes become base64, as a Secret's data wants them", "${b'hi'}", "aGk="},
		"Duration":    {"durations are written in seconds", "${duration('90s')}", "90s"},
		"Timestamp":   {"times are written as RFC 3339", "${timestamp('2030-01-02T03:04:05Z')}", "2030-01-02T03:04:05Z"},
		"String":      {"strings are strings", "${member.name}", "web-3"},
		"Mixed":       {"a part of a text becomes text", "${member.name}-${member.incarnation} ${1.5} ${true} ${2u}", "web-3-7 1.5 true 2"},
		"Space":       {"anything beside the expression makes it a text", " ${member.index}", " 3"},
		"Macro":       {"variables of macros have types too", "${[member].map(m, m.index + 1)[0]}", int64(4)},
		"Escape":      {"escapes are resolved", "$${HOME}/${member.name}", "${HOME}/web-3"},
		"OnlyEscape":  {"also where no expression is", "$${HOME}", "${HOME}"},
		"Brace":       {"braces inside of the expression are its own", `${ {"a": "}"}["a"] }`, "}"},
		"Key":         {"keys are not rendered", map[string]any{"${a}": "${member.index}"}, map[string]any{"${a}": int64(3)}},
		"Scalars":     {"what is no string is left alone", []any{int64(1), 2.5, true, nil}, []any{int64(1), 2.5, true, nil}},
		"Has":         {"has() works on the variables", "${has(member.name)}", true},
		"EmptyString": {"an empty string stays", "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Manifests(context.Background(), "f", c.in, vars())
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestManifests_Errors(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     any
		want   string
	}{
		"Undeclared": {"an unknown variable is found without running anything", "${nobody.name}",
			"f: line 1, column 3: undeclared reference to 'nobody' (for a literal ${ write $${)"},
		"Shell":     {"a shell's variable gets the cure", "echo ${HOME}", "f: line 1, column 8: undeclared reference to 'HOME' (for a literal ${ write $${)"},
		"Field":     {"so is an unknown field", "${member.nme}", "f: line 1, column 9: undefined field 'nme'"},
		"Ports":     {"objects have no ports", "${ports.http}", "f: line 1, column 3: undeclared reference to 'ports'"},
		"Type":      {"and an operator that does not fit", "${member.name + member.index}", "f: line 1, column 15: found no matching overload for '_+_' applied to '(string, int)'"},
		"Line":      {"the place is that in the string", "a\nbc${\n x}", "f: line 3, column 2: undeclared reference to 'x'"},
		"Syntax":    {"errors of syntax fit on one line", "${1 +}", "f: line 1, column 6: Syntax error: mismatched input '<EOF>' expecting"},
		"Empty":     {"an empty expression is an error", "a${ }", "f: line 1, column 4: there is no expression"},
		"Open":      {"so is an open one", "a${b", "f: line 1, column 2: the ${ that starts here has no closing }"},
		"Path":      {"the field is named", map[string]any{"spec": map[string]any{"a b": []any{"x", "${y}"}}}, `f.spec["a b"][1]: line 1, column 3: undeclared`},
		"MapInText": {"a map cannot be text", "a${ {'b': 1} }", "f: ${{'b': 1}}: a value of type map cannot be a part of a text"},
		"Zero":      {"errors of evaluation name the expression", "${1 / (member.index - 3)}", "f: ${1 / (member.index - 3)}: division by zero"},
		"IntKey":    {"JSON's keys are strings", "${ {1: 2} }", "f: ${{1: 2}}: a map's keys have to be strings, not int"},
		"TypeValue": {"a type is no value", "${type(1)}", "f: ${type(1)}: a value of type"},
		"Infinite":  {"infinity is no number for JSON", "${1.0 / 0.0}", "f: ${1.0 / 0.0}: the number +Inf has no place"},
		"LargeUint": {"a number has to fit", "${18446744073709551615u}", "f: ${18446744073709551615u}: the number 18446744073709551615 is too large"},
		"Long":      {"an expression has a length", "${" + strings.Repeat("1+", 2048) + "1}", "f: line 1, column 3: the expression is too long: 4097 characters"},
		"Several":   {"all errors are reported", []any{"${a}${b}", "${c}"}, "f[0]: line 1, column 3: undeclared reference to 'a' (for a literal ${ write $${); f[0]: line 1, column 7: undeclared reference to 'b' (for a literal ${ write $${); f[1]: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Manifests(context.Background(), "f", c.in, vars())
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s:\ngot  %v, %v\nwant error %s…", c.reason, got, err, c.want)
			}
		})
	}
}

func TestManifests_MissingVariable(t *testing.T) {
	v := vars()
	delete(v["member"].(map[string]any), "index")
	_, err := Manifests(context.Background(), "f", "${member.index}", v)
	if err == nil || !strings.Contains(err.Error(), "pawl.Member.index is not set") {
		t.Errorf("a variable that the caller left out is an error, never a zero: got %v", err)
	}
}

// TestManifests_SameOutput: Go walks maps in another order each time; what is
// rendered must not.
func TestManifests_SameOutput(t *testing.T) {
	in := []any{
		`${ {"d": 1, "a": 2, "c": 3, "b": 4, "e": 5}.map(k, k) }`,
		`${ {3: 1, 1: 2, 2: 3}.map(k, k) }`,
		`${ [{"d": 1, "a": 2, "c": 3}].map(m, m.filter(k, true)) }`,
		`${ [member].map(m, dyn(m).map(k, k)) }`,
	}
	want := []any{
		[]any{"a", "b", "c", "d", "e"},
		[]any{int64(1), int64(2), int64(3)},
		[]any{[]any{"a", "c", "d"}},
		[]any{[]any{"incarnation", "index", "name", "namespace"}},
	}
	for range 50 {
		got, err := Manifests(context.Background(), "f", in, vars())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
	for range 50 {
		got, err := Text(`${ports.map(p, p)[0]}`, processVars())
		if err != nil || got != "admin" {
			t.Fatalf("ports in their order: got %q, %v", got, err)
		}
	}
}

func TestTree_RenderSharesNothing(t *testing.T) {
	tree, err := CompileTree(Objects, "f", map[string]any{"a": map[string]any{"b": []any{"${member.index}", "c"}}})
	if err != nil {
		t.Fatal(err)
	}
	first, err := tree.Render(context.Background(), vars())
	if err != nil {
		t.Fatal(err)
	}
	first.(map[string]any)["a"].(map[string]any)["b"].([]any)[1] = "changed"
	second, err := tree.Render(context.Background(), vars())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": map[string]any{"b": []any{int64(3), "c"}}}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("a rendered tree that is changed leaves the next one alone (-want +got):\n%s", diff)
	}
}

func TestText(t *testing.T) {
	cases := map[string]struct{ reason, in, want, wantErr string }{
		"Port":    {reason: "ports are numbers by name", in: "${ports.http}", want: "4711"},
		"Sum":     {reason: "that can be calculated with", in: ":${ports.http + member.index}", want: ":4714"},
		"Bool":    {reason: "a single expression is a text too", in: "${true}", want: "true"},
		"Plain":   {reason: "a plain text needs no variables", in: "abc", want: "abc"},
		"NoPort":  {reason: "a port that is not there is an error", in: "${ports.dns}", wantErr: "${ports.dns}: no such key: dns"},
		"Map":     {reason: "a map is no text", in: "${ports}", wantErr: "${ports}: a value of type map cannot be a part of a text"},
		"Null":    {reason: "nor is null", in: "${null}", wantErr: "${null}: a value of type null_type cannot be a part of a text"},
		"Unknown": {reason: "it is checked like any other", in: "${port}", wantErr: "line 1, column 3: undeclared reference to 'port'"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Text(c.in, processVars())
			if c.wantErr != "" {
				if err == nil || !strings.HasPrefix(err.Error(), c.wantErr) {
					t.Errorf("%s: got %q, %v, want error %q", c.reason, got, err, c.wantErr)
				}
				return
			}
			if err != nil || got != c.want {
				t.Errorf("%s: got %q, %v, want %q", c.reason, got, err, c.want)
			}
		})
	}
}

func TestReady(t *testing.T) {
	pod := map[string]any{"metadata": map[string]any{"name": "a"}, "status": map[string]any{
		"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}, "n": int64(2)}}
	objects := []any{pod, map[string]any{"metadata": map[string]any{"name": "b"}}}
	cases := map[string]struct {
		reason, in string
		want       bool
		why, err   string
	}{
		"True":       {reason: "conditions hold", in: `objects[0].status.conditions.exists(c, c.type == "Ready" && c.status == "True")`, want: true},
		"Number":     {reason: "numbers compare", in: "objects[0].status.n >= 2", want: true},
		"False":      {reason: "or do not", in: "objects[0].status.n > 2"},
		"All":        {reason: "all objects are there, in order", in: `objects.map(o, o.metadata.name) == ["a", "b"]`, want: true},
		"Has":        {reason: "has() looks before it leaps", in: "has(objects[1].status)"},
		"Missing":    {reason: "a status that is not there yet is not ready", in: "objects[1].status.n == 1", why: "no such key: status"},
		"OutOfRange": {reason: "nor is an object that is not there", in: "objects[2].status.n == 1", why: "index out of bounds: 2"},
		"NoBool":     {reason: "a number is no condition, and that is known before", in: "1", err: "line 1, column 1: it is no condition: it comes to a value of type int, not bool"},
		"DynNoBool":  {reason: "a number out of an object is none either", in: "objects[0].status.n", err: "it is no condition: it comes to a value of type int, not bool"},
		"NoCompile":  {reason: "what does not compile cannot be told", in: "member.name == 'a'", err: "line 1, column 1: undeclared reference to 'member'"},
		"Limit":      {reason: "nor what runs into a limit", in: "[[1,1,1,1,1,1,1,1,1,1]].all(a, [[a,a,a,a,a,a,a,a,a,a]].all(b, [[b,b,b,b,b,b,b,b,b,b]].all(c, [[c,c,c,c,c,c,c,c,c,c]].all(d, d == d))))", err: "limit exceeded: more than 10000 values"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ok, why, err := Ready(context.Background(), c.in, objects)
			if c.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), c.err) {
					t.Errorf("%s: got %v, %q, %v, want error %q", c.reason, ok, why, err, c.err)
				}
				return
			}
			if err != nil || ok != c.want || !strings.HasPrefix(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("%s: got %v, %q, %v, want %v, %q", c.reason, ok, why, err, c.want, c.why)
			}
		})
	}
}

func raw(s string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(s)} }

func TestCheck(t *testing.T) {
	content, path := "${ports.web}", "/${d}"
	cases := map[string]struct {
		reason   string
		template v1alpha1.Template
		sources  []v1alpha1.Source
		want     []string
	}{
		"Fine": {reason: "a template without mistakes passes, whatever its expressions come to for one member",
			template: v1alpha1.Template{Objects: []runtime.RawExtension{raw(`{"a": "${1 / member.index}"}`)}, Ready: []string{"objects[0].x"}}},
		"Sim": {reason: "a simulated body has no expressions", template: v1alpha1.Template{Sim: &v1alpha1.Sim{}}},
		"Objects": {reason: "each mistake is named with its field, in the template's order",
			template: v1alpha1.Template{
				Objects: []runtime.RawExtension{raw(`{"a": "${x}", "b": ["c", "${y"]}`), raw(`[]`), raw(`null`), raw(`{"spec": {"containers": [{"args": ["", "${z}"]}]}}`)},
				Ready:   []string{"true", "member.name"},
			},
			want: []string{
				"template.objects[0].a: line 1, column 3: undeclared reference to 'x'",
				"template.objects[0].b[1]: line 1, column 1: the ${ that starts here",
				"template.objects[1]: json: cannot unmarshal array",
				"template.objects[2]: there is no manifest",
				"template.objects[3].spec.containers[0].args[1]: line 1, column 3: undeclared reference to 'z'",
				"template.ready[1]: line 1, column 1: undeclared reference to 'member'",
			}},
		"Process": {reason: "ports are known by name",
			template: v1alpha1.Template{Process: &v1alpha1.Process{
				Command:   "${a}",
				Args:      []string{"-p=${ports.http}", "${ports['dns']}", "${has(ports.opt) ? 1 : 2}"},
				Env:       map[string]string{"B": "${b}", "A-1": "${member.a}"},
				Files:     []v1alpha1.File{{Path: "x"}, {Path: "y", Content: &content}},
				Ports:     []string{"http"},
				Readiness: &v1alpha1.Readiness{HTTP: &v1alpha1.HTTPProbe{Path: &path}, Exec: &v1alpha1.ExecProbe{Command: []string{"${c}"}}, Output: &v1alpha1.OutputProbe{Match: "a$${b}${c}"}},
			}},
			want: []string{
				"template.process.command: line 1, column 3: undeclared reference to 'a'",
				"template.process.args[1]: ports.dns: the process has no such port; template.process.ports has http",
				"template.process.env.A-1: line 1, column 9: undefined field 'a'",
				"template.process.env.B: line 1, column 3: undeclared reference to 'b'",
				"template.process.files[1].content: ports.web: the process has no such port",
				"template.process.readiness.http.path: line 1, column 4: undeclared reference to 'd'",
				"template.process.readiness.exec.command[0]: line 1, column 3: undeclared reference to 'c'",
				"template.process.readiness.output.match: line 1, column 9: undeclared reference to 'c'",
			}},
		"Sources": {reason: "so are sources, and keys where it is said which there are",
			template: v1alpha1.Template{Objects: []runtime.RawExtension{raw(`{"a": "${sources.boot['b.sh']}", "b": "${sources['boot'].c}",
				"c": "${sources.bot['a']}", "d": "${sources.all.x} ${sources.image} ${sources.image.tag[0]}", "e": "${has(sources.opt)}",
				"f": "${sources.tls.key + sources[pool.name].x}", "g": "${[1].map(x, sources['no \"such'])}"}`)}},
			sources: []v1alpha1.Source{
				{Name: "boot", ConfigMap: &v1alpha1.KeysSource{Keys: []string{"b.sh", "d"}}}, {Name: "all", Secret: &v1alpha1.KeysSource{}},
				{Name: "tls", Secret: &v1alpha1.KeysSource{Keys: []string{"crt"}}}, {Name: "image", Object: &v1alpha1.ObjectSource{}},
			},
			want: []string{
				`template.objects[0].b: sources.boot["c"]: this key is not among the source's; sources[0] has b.sh, d`,
				"template.objects[0].c: sources.bot: the pool has no such source; sources has boot, all, tls, image",
				`template.objects[0].f: sources.tls["key"]: this key is not among the source's; sources[2] has crt`,
				`template.objects[0].g: sources["no \"such"]: the pool has no such source`,
			}},
		"No sources": {reason: "a process has sources too, if the pool has",
			template: v1alpha1.Template{Process: &v1alpha1.Process{Command: "a", Args: []string{"${sources.a.b}"}}},
			want:     []string{"template.process.args[0]: sources.a: the pool has no such source; sources has none"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := Check(&v1alpha1.PoolSpec{Template: c.template, Sources: c.sources})
			var errs Errors
			if err != nil && !errors.As(err, &errs) {
				t.Fatalf("%s: the error is a %T", c.reason, err)
			}
			if len(errs) != len(c.want) {
				t.Fatalf("%s: got %d errors, want %d: %v", c.reason, len(errs), len(c.want), err)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(errs[i].Error(), want) {
					t.Errorf("%s:\ngot  %s\nwant %s…", c.reason, errs[i], want)
				}
			}
		})
	}
}

func TestErrors_Error(t *testing.T) {
	var errs Errors
	for i := range 20 {
		errs = append(errs, fmt.Errorf("e%d", i))
	}
	if got, want := errs.Error(), "e0; e1; e2; e3; e4; e5; e6; e7; e8; e9; and 10 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := errs[:11].Error(), "e0; e1; e2; e3; e4; e5; e6; e7; e8; e9; e10"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

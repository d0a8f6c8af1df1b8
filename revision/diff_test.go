package revision_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/revision"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		a, b   string
		want   []string
	}{
		"nothing": {
			reason: "another spelling is not a difference",
			a:      `{"a":[1,{}],"b":null}`,
			b:      `{"a":[1.0,null]}`,
		},
		"an argument": {
			reason: "the path leads to the element",
			a:      `{"process":{"args":["a","b","c"]}}`,
			b:      `{"process":{"args":["a","b","d"]}}`,
			want:   []string{"template.process.args[2]"},
		},
		"added and removed": {
			reason: "a whole subtree is one difference, and paths are sorted",
			a:      `{"process":{"command":"x"},"z":1}`,
			b:      `{"a":{"b":{"c":1}},"process":{"command":"x"}}`,
			want:   []string{"template.a", "template.z"},
		},
		"longer": {
			reason: "indexes are sorted as numbers, not as text",
			a:      `[0,1,2,3,4,5,6,7,8]`,
			b:      `[0,1,9,3,4,5,6,7,8,9,10]`,
			want:   []string{"template[2]", "template[9]", "template[10]"},
		},
		"an empty element more": {
			reason: "an element counts even when it is empty",
			a:      `[1]`,
			b:      `[1,null]`,
			want:   []string{"template[1]"},
		},
		"another type": {
			reason: "1 is not \"1\", and a list is not an object",
			a:      `{"a":1,"b":[1],"c":{"x":1},"d":true}`,
			b:      `{"a":"1","b":{"x":1},"c":"x","d":[true]}`,
			want:   []string{"template.a", "template.b", "template.c", "template.d"},
		},
		"odd keys": {
			reason: "keys that are not plain words are quoted",
			a:      `{"metadata":{"labels":{"app.kubernetes.io/name":"a","":"x","plain-key_1":1}}}`,
			b:      `{"metadata":{"labels":{"app.kubernetes.io/name":"b","":"y","plain-key_1":2}}}`,
			want: []string{
				`template.metadata.labels[""]`,
				`template.metadata.labels["app.kubernetes.io/name"]`,
				`template.metadata.labels.plain-key_1`,
			},
		},
		"all": {
			reason: "the only path of an empty document is its root",
			a:      `{}`,
			b:      `{"a":1}`,
			want:   []string{"template"},
		},
		"not JSON": {
			reason: "an invalid document differs as a whole",
			a:      `{"a":1}`,
			b:      `{"a":1`,
			want:   []string{"template"},
		},
		"not JSON twice": {
			reason: "equal bytes do not differ, even if they are invalid",
			a:      `{"a":1`,
			b:      `{"a":1`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, revision.Diff([]byte(tt.a), []byte(tt.b))); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(tt.want, revision.Diff([]byte(tt.b), []byte(tt.a))); diff != "" {
				t.Errorf("%s, with a and b swapped: (-want +got)\n%s", tt.reason, diff)
			}
		})
	}
}

func TestDiff_bounded(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range 100 {
		list = append(list, fmt.Sprint(i))
	}
	got := revision.Diff([]byte(`[`+strings.Join(list, ",")+`]`), []byte(`["x"]`))
	if len(got) != revision.MaxDiff {
		t.Fatalf("got %d paths, want %d", len(got), revision.MaxDiff)
	}
	if want := "and 85 more"; got[len(got)-1] != want {
		t.Errorf("the last one is %q, want %q", got[len(got)-1], want)
	}

	got = revision.Diff([]byte(`{"`+strings.Repeat("é", 1000)+`":1}`), []byte(`{}x`[:2]))
	if len(got) != 1 || got[0] != "template" {
		t.Errorf("got %q", got)
	}
	got = revision.Diff([]byte(`{"a":1,"x`+strings.Repeat("é", 1000)+`":1}`), []byte(`{"a":1}`))
	if len(got) != 1 || len(got[0]) > 256 || !utf8.ValidString(got[0]) || !strings.HasSuffix(got[0], "…") {
		t.Errorf("got %q, want one path, cut between characters", got)
	}
}

// TestDiff_agrees: Diff returns paths exactly if the canonical forms differ.
func TestDiff_agrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		a := spell(r, document().Draw(t, "a"))
		b := spell(r, document().Draw(t, "b"))
		same := canonical(t, a) == canonical(t, b)
		if got := revision.Diff([]byte(a), []byte(b)); same != (len(got) == 0) {
			t.Fatalf("same canonical form: %v, but Diff returns %q", same, got)
		}
	})
}

func TestChanges(t *testing.T) {
	t.Parallel()
	got, err := revision.Changes(
		[]byte(`{"process":{"command":"x","args":["a","b"],"env":{"B":"2","A":"1"}}}`),
		[]byte(`{"process":{"args":["a","c","d"],"command":"x","env":{"A":{"is":"new"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []revision.Change{
		{Path: "template.process.args[1]", Before: []byte(`"b"`), After: []byte(`"c"`)},
		{Path: "template.process.args[2]", After: []byte(`"d"`)},
		{Path: "template.process.env.A", Before: []byte(`"1"`), After: []byte(`{"is":"new"}`)},
		{Path: "template.process.env.B", Before: []byte(`"2"`)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, pair := range [][2]string{{`{`, `{}`}, {`{}`, `{`}} {
		if got, err := revision.Changes([]byte(pair[0]), []byte(pair[1])); err == nil {
			t.Errorf("%q and %q: got %v, want an error", pair[0], pair[1], got)
		}
	}
}

// TestChanges_areDiff: Changes returns the paths of Diff, and those beyond MaxDiff.
func TestChanges_areDiff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		a := []byte(spell(r, document().Draw(t, "a")))
		b := []byte(spell(r, document().Draw(t, "b")))
		changes, err := revision.Changes(a, b)
		if err != nil {
			t.Fatal(err)
		}
		paths := revision.Diff(a, b)
		if len(paths) < revision.MaxDiff && len(changes) != len(paths) {
			t.Fatalf("%d changes, but Diff returns %q", len(changes), paths)
		}
		for i, c := range changes[:min(len(changes), revision.MaxDiff-1)] {
			if c.Path != paths[i] {
				t.Fatalf("change %d is %s, but Diff returns %q", i, c.Path, paths)
			}
		}
	})
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"a":[1,2]}`), []byte(`{"a":[1,3],"b":{}}`))
	f.Add([]byte(`[[[]]]`), []byte(`x`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if got := revision.Diff(a, a); got != nil {
			t.Fatalf("%q differs from itself in %q", a, got)
		}
		paths, swapped := revision.Diff(a, b), revision.Diff(b, a)
		if diff := cmp.Diff(paths, swapped); diff != "" {
			t.Fatalf("Diff is not symmetric:\n%s", diff)
		}
		if len(paths) > revision.MaxDiff {
			t.Fatalf("got %d paths, want at most %d", len(paths), revision.MaxDiff)
		}
	})
}

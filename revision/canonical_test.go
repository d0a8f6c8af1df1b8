package revision_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/revision"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason   string
		in, want string
	}{
		"keys are sorted": {
			reason: "the order of keys means nothing in JSON",
			in:     `{"b":1,"a":{"d":2,"c":3}}`,
			want:   `{"a":{"c":3,"d":2},"b":1}`,
		},
		"keys are sorted by code point": {
			reason: "sorting by UTF-16 code unit would put U+FB01 behind U+1F600",
			in:     `{"😀":1,"ﬁ":2,"z":3}`,
			want:   `{"z":3,"ﬁ":2,"😀":1}`,
		},
		"white space": {
			reason: "white space outside of strings means nothing",
			in:     " { \"a\" :\t[ 1 ,\n2 ] } ",
			want:   `{"a":[1,2]}`,
		},
		"empty members": {
			reason: "absent, null, [] and {} are the same member",
			in:     `{"a":null,"b":[],"c":{},"d":1}`,
			want:   `{"d":1}`,
		},
		"empty members only": {
			reason: "an object whose members are all empty is empty itself",
			in:     `{"a":{"b":{"c":null,"d":[]}}}`,
			want:   `null`,
		},
		"empty document": {
			reason: "an empty document is null, like an empty member",
			in:     `{}`,
			want:   `null`,
		},
		"empty elements": {
			reason: "an empty element keeps its place, and all kinds of empty are the same",
			in:     `[null,[],{},{"a":null}]`,
			want:   `[null,null,null,null]`,
		},
		"values that look empty": {
			reason: "an empty environment variable differs from an absent one",
			in:     `{"a":"","b":0,"c":false}`,
			want:   `{"a":"","b":0,"c":false}`,
		},
		"order and duplicates of elements": {
			reason: "arguments are positional, and may be repeated",
			in:     `["b","a","a"]`,
			want:   `["b","a","a"]`,
		},
		"one number": {
			reason: "numbers are compared by value",
			in:     `[1,1.0,1e0,10e-1,0.1E+1,0.01e2]`,
			want:   `[1,1,1,1,1,1]`,
		},
		"zero": {
			reason: "zero has one form, whatever its sign and exponent",
			in:     `[0,-0,0.0,-0.0e5,0e999999999999999999999]`,
			want:   `[0,0,0,0,0]`,
		},
		"numbers that no float64 holds": {
			reason: "neighbouring integers beyond 2^53 stay different",
			in:     `[9007199254740992,9007199254740993,-9223372036854775808,18446744073709551615]`,
			want:   `[9007199254740992,9007199254740993,-9223372036854775808,18446744073709551615]`,
		},
		"numbers with a fraction": {
			reason: "no digit is lost",
			in:     `[1.5,-1.50,0.000001,0.0000001,123456.789e3,0.1000000000000000055511151231257827]`,
			want:   `[1.5,-1.5,0.000001,1e-7,123456789,0.1000000000000000055511151231257827]`,
		},
		"long numbers": {
			reason: "an exponent keeps a small document small",
			in:     `[100000000000000000000,1000000000000000000000,1e1000,-1.25e-1000,1234567890123456789012345]`,
			want:   `[100000000000000000000,1e+21,1e+1000,-1.25e-1000,1.234567890123456789012345e+24]`,
		},
		"spellings of a string": {
			reason: "an escape means the same as the character that it encodes",
			in:     `["\u0041\/\ud83d\ude00\u00e9","A/😀é"]`,
			want:   `["A/😀é","A/😀é"]`,
		},
		"characters that must be escaped": {
			reason: "the result is valid JSON, with one spelling for each character",
			in:     `"\"\\\b\f\n\r\t\u0000\u001F<>&\u2028"`,
			want:   `"\"\\\u0008\u000c\u000a\u000d\u0009\u0000\u001f<>&` + "\u2028" + `"`,
		},
		"a backslash before u": {
			reason: "an escaped backslash begins no escape",
			in:     `["\\ud800","\\\\ud800"]`,
			want:   `["\\ud800","\\\\ud800"]`,
		},
		"normal forms": {
			reason: "é in one code point and in two are different strings",
			in:     `["\u00e9","e\u0301"]`,
			want:   "[\"\u00e9\",\"e\u0301\"]",
		},
		"numbers and strings": {
			reason: "a quoted value is a string",
			in:     `[1,"1",true,"true",null,"null"]`,
			want:   `[1,"1",true,"true",null,"null"]`,
		},
		"a scalar": {
			reason: "any JSON value is a document",
			in:     `"a"`,
			want:   `"a"`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := revision.Canonical([]byte(tt.in))
			if err != nil {
				t.Fatalf("%s: %v", tt.reason, err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tt.reason, diff)
			}
		})
	}
}

func TestCanonical_refused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		in     string
		want   string // part of the message
	}{
		"nothing":                {"no input is not an empty document", ``, "unexpected end"},
		"two values":             {"the second would be ignored", `{} {}`, "after top-level value"},
		"a comma too many":       {"JSON has no trailing comma", `{"a":[1,]}`, "invalid character"},
		"a leading zero":         {"some parsers read it as octal", `{"a":01}`, "invalid character"},
		"not a number":           {"JSON has no NaN", `{"a":NaN}`, "invalid character"},
		"duplicate key":          {"parsers disagree about which value counts", `{"a":{"b":1,"b":1}}`, "template.a.b: duplicate key"},
		"duplicate by escape":    {"keys are compared after decoding", `{"a":1,"\u0061":2}`, "template.a: duplicate key"},
		"duplicate, one empty":   {"a dropped member is still a member", `{"a":1,"a":null}`, "template.a: duplicate key"},
		"duplicate in a list":    {"the message names the path", `{"a":[{},{"x.y":1,"x.y":2}]}`, `template.a[1]["x.y"]: duplicate key`},
		"invalid UTF-8":          {"replacing bad bytes would make different documents equal", "{\"a\":\"\xff\"}", "invalid UTF-8"},
		"half a surrogate pair":  {"a high half alone is not a character", `{"a":"\ud800"}`, "half a surrogate pair at offset 6"},
		"the other half":         {"a low half alone is not a character", `{"a":"\udc00x"}`, "half a surrogate pair"},
		"two first halves":       {"two high halves are not a pair", `"\ud800\ud800"`, "half a surrogate pair"},
		"halves apart":           {"separated halves are not a pair", `"\ud800 \udc00"`, "half a surrogate pair"},
		"an exponent too great":  {"it is beyond MaxExponent", `{"a":1e1001}`, "template.a: number 1e1001: beyond"},
		"an exponent too small":  {"it is beyond MaxExponent", `[1e-1001]`, "template[0]: number 1e-1001: beyond"},
		"an exponent no int has": {"its exponent overflows an int", `1e99999999999999999999`, "beyond"},
		"too deep":               {"readers recurse, and their stack is finite", nest(revision.MaxDepth + 1), "nested more than 128 deep"},
		"far too deep":           {"the syntax check has a limit of its own", nest(1_000_000), "max depth"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := revision.Canonical([]byte(tt.in))
			if err == nil {
				t.Fatalf("%s: got %q, want an error", tt.reason, got)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: got error %q, want one with %q", tt.reason, err, tt.want)
			}
			if len(err.Error()) > 500 {
				t.Errorf("the message has %d bytes, want at most 500", len(err.Error()))
			}
		})
	}
}

func TestCanonical_depth(t *testing.T) {
	t.Parallel()
	if _, err := revision.Canonical([]byte(nest(revision.MaxDepth))); err != nil {
		t.Errorf("a document of MaxDepth is refused: %v", err)
	}
}

// TestCanonical_spelling writes one document in two random spellings.
func TestCanonical_spelling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := document().Draw(t, "document")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		a, b := canonical(t, spell(r, v)), canonical(t, spell(r, v))
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("two spellings of one document differ:\n%s", diff)
		}
		if again := canonical(t, a); again != a {
			t.Fatalf("the canonical form %s is not its own canonical form, but %s", a, again)
		}
		if !json.Valid([]byte(a)) {
			t.Fatalf("not JSON: %s", a)
		}
	})
}

// TestCanonical_injective: two documents have one canonical form exactly if
// prune, an independent definition of sameness, finds them the same.
func TestCanonical_injective(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v, w := document().Draw(t, "one"), document().Draw(t, "other")
		r := rand.New(rand.NewPCG(1, 1))
		a, b := canonical(t, spell(r, v)), canonical(t, spell(r, w))
		if want := cmp.Equal(prune(v), prune(w)); want != (a == b) {
			t.Fatalf("documents are the same: %v, but their canonical forms are\n%s\n%s", want, a, b)
		}
	})
}

func TestCanonical_number(t *testing.T) {
	t.Parallel()
	literal := rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := literal.Draw(t, "a"), literal.Draw(t, "b")
		if rapid.Bool().Draw(t, "near") {
			b = a + "1" // a neighbour, or ten times as much
		}
		x, errX := revision.Canonical([]byte(a))
		y, errY := revision.Canonical([]byte(b))
		if errX != nil || errY != nil {
			t.Skip("beyond the exponent's limit")
		}
		if rational(t, a).Cmp(rational(t, string(x))) != 0 {
			t.Fatalf("%s became %s", a, x)
		}
		if same := rational(t, a).Cmp(rational(t, b)) == 0; same != bytes.Equal(x, y) {
			t.Fatalf("%s and %s became %s and %s", a, b, x, y)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{"a":[1,1.0,-0e7,{"b":null}],"":"\ud83d\ude00\\"}`, `{"a":1,"a":2}`, `"\ud800"`, `[[[]]]`,
		`[123456789012345678901234567890e-12]`, "\"\xff\"", `[-0,0]`, `{"process":{"command":"serve","args":["--port","${ports.http}"]}}`,
	} {
		f.Add([]byte(seed), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		got, err := revision.Canonical(in)
		if err != nil {
			return
		}
		var v any
		dec := json.NewDecoder(bytes.NewReader(in))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("accepted, but encoding/json says: %v", err)
		}
		r := rand.New(rand.NewPCG(seed, 0))
		for _, same := range []string{string(got), spell(r, v)} {
			again, err := revision.Canonical([]byte(same))
			if err != nil || !bytes.Equal(got, again) {
				t.Fatalf("canonical form of %q: %q\nspelled as        %q: %q (%v)", in, got, same, again, err)
			}
		}
	})
}

func BenchmarkCanonical(b *testing.B) {
	item := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"${member.name}","labels":{"app":"web","tier":null}},` +
		`"spec":{"containers":[{"name":"web","image":"web:1.2.3","args":["--port","8080"],"resources":{}}]}}`
	in := []byte(`{"objects":[` + strings.Repeat(item+",", 31) + item + `]}`)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := revision.Canonical(in); err != nil {
			b.Fatal(err)
		}
	}
}

// document generates what a JSON document decodes to. Few keys and few values
// make equal and nearly equal documents likely.
func document() *rapid.Generator[any] {
	number := rapid.SampledFrom([]json.Number{"0", "1", "-1", "1.5", "9007199254740993", "9007199254740992", "1e30"})
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "1", "\u2028<\x00\"\\"}), rapid.String())
	leaf := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		number.AsAny(),
		text.Filter(func(s string) bool { return strings.ToValidUTF8(s, "") == s }).AsAny(),
	)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return leaf
		}
		inner := rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) })
		key := rapid.SampledFrom([]string{"a", "b", "", "é", "x.y"})
		return rapid.OneOf(leaf, rapid.SliceOfN(inner, 0, 3).AsAny(), rapid.MapOfN(key, inner, 0, 3).AsAny())
	}
	return value(4)
}

// spell writes a value as JSON: keys in random order, empty members added,
// numbers and strings spelled in random ways.
func spell(r *rand.Rand, v any) string {
	space := func() string { return []string{"", "", " ", "\n"}[r.IntN(4)] }
	var parts []string
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			parts = append(parts, spellString(r, key)+space()+":"+space()+spell(r, member))
		}
		if r.IntN(2) == 0 {
			parts = append(parts, `"absent":`+[]string{"null", "[]", "{}", `{"x":null}`}[r.IntN(4)])
		}
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return "{" + space() + strings.Join(parts, space()+",") + space() + "}"
	case []any:
		for _, element := range v {
			parts = append(parts, spell(r, element))
		}
		return "[" + space() + strings.Join(parts, space()+","+space()) + "]"
	case string:
		return spellString(r, v)
	case json.Number:
		return spellNumber(r, v.String())
	case nil:
		return []string{"null", "{}", "[]"}[r.IntN(3)]
	default:
		return fmt.Sprint(v)
	}
}

func spellString(r *rand.Rand, s string) string {
	if r.IntN(2) == 0 {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	var b strings.Builder
	for _, c := range s {
		if c > 0xffff {
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+c>>10, 0xdc00+c&0x3ff)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, c)
	}
	return `"` + b.String() + `"`
}

// spellNumber moves the exponent of a number that has neither a fraction nor
// an exponent.
func spellNumber(r *rand.Rand, s string) string {
	if strings.ContainsAny(s, ".eE") {
		return s
	}
	switch r.IntN(4) {
	case 0:
		return s + ".000"
	case 1:
		return s + "E+0"
	case 2:
		if s == "0" || s == "-0" {
			return "-0e7"
		}
		return s + "00e-2"
	}
	return s
}

// prune is an independent definition of sameness: two values mean the same if
// they are equal after pruning.
func prune(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, member := range v {
			if m := prune(member); m != nil {
				out[key] = m
			}
		}
		if len(out) > 0 {
			return out
		}
		return nil
	case []any:
		var out []any
		for _, element := range v {
			out = append(out, prune(element))
		}
		if len(out) > 0 {
			return out
		}
		return nil
	default:
		return v
	}
}

func canonical(t *rapid.T, in string) string {
	got, err := revision.Canonical([]byte(in))
	if err != nil {
		t.Fatalf("%s: %v", in, err)
	}
	return string(got)
}

func rational(t *rapid.T, literal string) *big.Rat {
	x, ok := new(big.Rat).SetString(literal)
	if !ok {
		t.Fatalf("%s is not a number", literal)
	}
	return x
}

func nest(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

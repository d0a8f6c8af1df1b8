package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func text(s string) segment { return segment{text: s} }

func expr(at int, s string) segment { return segment{text: s, expr: true, at: at} }

func TestScan(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     string
		want   []segment
	}{
		"Empty":       {"an empty string has no segments", "", nil},
		"Plain":       {"text stands for itself", "a $ b { c } $(D)", []segment{text("a $ b { c } $(D)")}},
		"Whole":       {"one expression", "${a}", []segment{expr(2, "a")}},
		"Mixed":       {"text and expressions take turns", "x${a}y${b}", []segment{text("x"), expr(3, "a"), text("y"), expr(8, "b")}},
		"Neighbours":  {"two expressions need nothing between them", "${a}${b}", []segment{expr(2, "a"), expr(6, "b")}},
		"Escape":      {"the escape is text, and no expression begins in it", "$${a}", []segment{text("${a}")}},
		"EscapeTwice": {"each dollar sign more is one in the text", "$$${a}", []segment{text("$${a}")}},
		"Dollar":      {"a dollar sign as an expression may stand before one", `${"$"}${a}`, []segment{expr(2, `"$"`), expr(8, "a")}},
		"DollarAtEnd": {"dollar signs at the end are text", "a$$", []segment{text("a$$")}},
		"Map":         {"braces nest", "${{'a': {'b': 1}}.a.b}", []segment{expr(2, "{'a': {'b': 1}}.a.b")}},
		"BraceInText": {"a brace in a string closes nothing", `${ {"a": "}"}["a"] }`, []segment{expr(2, ` {"a": "}"}["a"] `)}},
		"BraceOpen":   {"a brace in a string opens nothing", `${'{'}`, []segment{expr(2, `'{'`)}},
		"Escaped":     {"an escaped quote does not end a string", `${"\"}"}`, []segment{expr(2, `"\"}"`)}},
		"Raw":         {"a backslash is nothing special in a raw string", `${r"\"}`, []segment{expr(2, `r"\"`)}},
		"RawBytes":    {"nor in raw bytes", `${bR'\'}`, []segment{expr(2, `bR'\'`)}},
		"NotRaw":      {"a word that ends in r makes no raw string", `${bar"\"}"}`, []segment{expr(2, `bar"\"}"`)}},
		"Triple":      {"quotes and ends of lines may stand in a triple string", "${'''a'}\n'''}", []segment{expr(2, "'''a'}\n'''")}},
		"EmptyString": {"an empty string is not the start of a triple one", `${""+"}"}`, []segment{expr(2, `""+"}"`)}},
		"Comment":     {"a brace in a comment closes nothing", "${a // }\n}", []segment{expr(2, "a // }\n")}},
		"Nothing":     {"an empty expression is one, for the compiler to refuse", "${}", []segment{expr(2, "")}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := scan(c.in)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(segment{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestScan_Unterminated(t *testing.T) {
	cases := map[string]struct{ reason, in, want string }{
		"Open":    {"the place is where the expression starts", "ab${c", "line 1, column 3: the ${ that starts here has no closing }"},
		"Line":    {"lines count", "a\nbö${", "line 2, column 3: the ${ that starts here has no closing }"},
		"Brace":   {"a brace inside needs its own", "${ {} ", "line 1, column 1: the ${ that starts here has no closing }"},
		"String":  {"an open string is named itself", `${"a}`, "line 1, column 3: the string that starts here does not end"},
		"Newline": {"a simple string ends with its line", "${'a\n'}", "line 1, column 3: the string that starts here does not end"},
		"Comment": {"a comment swallows the brace", "${a // }", "line 1, column 1: the ${ that starts here has no closing }"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := scan(c.in)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: got error %v, want %q…", c.reason, err, c.want)
			}
		})
	}
}

// escape is what a person does to a text that is to stand for itself.
func escape(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// FuzzCompile: no input makes the scanner or the compiler panic, what was
// scanned is all there, and every text can be escaped.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{"", "a", "${a}", "$${", "$$${", "${'}'}", `${r"\"}`, "${{}}", "${'''", "${//\n}", "\xff${\xff}",
		"${member.name}-${string(member.index)}", "${[1].map(x, x)}", "${a.`b-c`}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if segments, err := scan(s); err == nil {
			var again strings.Builder
			for _, seg := range segments {
				if seg.expr {
					again.WriteString("${" + seg.text + "}")
				} else {
					again.WriteString(escape(seg.text))
				}
			}
			if again.String() != s {
				t.Errorf("scan(%q) put together again is %q", s, again.String())
			}
		}
		_, _ = Compile(Objects, s)
		got, err := Text(escape(s), nil)
		if err != nil || got != s {
			t.Errorf("Text(escape(%q)) = %q, %v", s, got, err)
		}
	})
}

package render

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// nested is an expression in which each of n levels holds the one before ten
// times: it is short, and stands for 10ⁿ values.
func nested(n int, inner string) string {
	var b strings.Builder
	b.WriteString("[[1,1,1,1,1,1,1,1,1,1]].map(v0, ")
	for i := 1; i < n; i++ {
		v := fmt.Sprintf("v%d", i-1)
		fmt.Fprintf(&b, "[[%s]].map(v%d, ", strings.TrimSuffix(strings.Repeat(v+",", 10), ","), i)
	}
	b.WriteString(strings.ReplaceAll(inner, "X", fmt.Sprintf("v%d", n-1)))
	b.WriteString(strings.Repeat(")", n))
	return b.String()
}

// doubled is an expression for a text of 2ⁿ characters.
func doubled(n int, inner string) string {
	var b strings.Builder
	b.WriteString("['a'].map(v0, ")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "[v%d + v%d].map(v%d, ", i-1, i-1, i)
	}
	b.WriteString(strings.ReplaceAll(inner, "X", fmt.Sprintf("v%d", n)))
	b.WriteString(strings.Repeat(")", n+1))
	return b.String()
}

func loop(depth int) string {
	s := "1"
	for range depth {
		s = "[1,2,3,4,5,6,7,8,9,10].map(x, " + s + ")"
	}
	return s
}

// TestLimits: whatever a template does, it is told in bounded time that it does
// too much, and always in the same words.
func TestLimits(t *testing.T) {
	cases := map[string]struct{ reason, in, want string }{
		"Loop":     {"loops in loops cost", loop(7), "it costs more than 100000"},
		"Output":   {"what is small to write may be large to print", nested(8, "X"), "come to more than 1048576 bytes"},
		"Equal":    {"or to compare", nested(9, "X == X"), "more than 10000 values would be compared"},
		"NotEqual": {"the other way round too", nested(9, "X != X"), "more than 10000 values would be compared"},
		"In":       {"or to search", nested(9, "X in [X]"), "more than 10000 values would be compared"},
		"Compares": {"many small comparisons cost as well",
			nested(3, "[1,2,3,4,5,6,7,8,9,10].map(i, [1,2,3,4,5,6,7,8,9,10].map(j, X == X))"), "it costs more than 100000"},
		"Text":  {"a text cannot be doubled for ever", doubled(30, "X"), "it costs more than 100000"},
		"Bytes": {"nor in disguise", doubled(17, "[1,2,3,4,5,6,7,8,9,10].map(i, bytes(X))"), "it costs more than 100000"},
		"Match": {"a pattern of thousands of characters is none", doubled(11, "X.matches(v10)"), "the length of the text times that of the pattern"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				start := time.Now()
				_, err := Manifests(context.Background(), "f", "${"+c.in+"}", vars())
				if err == nil || !errors.Is(err, errLimit) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: got %.300v, want an error with %q", c.reason, err, c.want)
				}
				if d := time.Since(start); d > 10*time.Second {
					t.Errorf("%s: it took %s", c.reason, d)
				}
			}
		})
	}
}

func TestLimits_Total(t *testing.T) {
	var tree []any
	for range 200 {
		tree = append(tree, "${size("+loop(3)+")}")
	}
	_, err := Manifests(context.Background(), "f", tree, vars())
	if want := "the template's expressions together cost more than 1000000"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("many expressions that each cost little are too much together: got %v, want %q", err, want)
	}
}

func TestLimits_Expressions(t *testing.T) {
	var tree []any
	for range maxExpressions {
		tree = append(tree, "${1}")
	}
	if _, err := CompileTree(Objects, "f", tree); err != nil {
		t.Errorf("as many as there may be: %v", err)
	}
	_, err := CompileTree(Objects, "f", append(tree, "${1}", "${1}"))
	if want := "f[1024]: this is one expression too many: a template has at most 1024"; err == nil || err.Error() != want {
		t.Errorf("one more is said once, where it stands: got %v, want %s", err, want)
	}
}

// TestLimits_Normal: what a template may want to do costs next to nothing.
func TestLimits_Normal(t *testing.T) {
	for _, in := range []string{
		`${member.name.matches("^[a-z]+-[0-9]+$") && member.name in ["web-1", "web-3"]}`,
		`${ {"a": [1, 2, {"b": "c"}]} == {"a": [1, 2, {"b": "c"}]} }`,
		`${ [1, 2] != [1, 3] && !("a" in {"b": 1}) && "b" in {"b": 1} }`,
		`${ string(member.index) + string(b"x") == "3x" }`,
	} {
		got, err := Manifests(context.Background(), "f", in, vars())
		if err != nil || got != true {
			t.Errorf("%s: got %v, %v, want true", in, got, err)
		}
	}
}

func TestRender_StoppedIsNoVerdict(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Manifests(ctx, "f", "${member.index}", vars())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an end of the caller's context says nothing about the template: got %v", err)
	}
	_, _, err = Ready(ctx, loopCondition, nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("nor about readiness: got %v", err)
	}
}

const loopCondition = "[1,2,3].all(x, x > 0)"

// TestRender_Interrupt: the clock stops a loop that goes on.
func TestRender_Interrupt(t *testing.T) {
	p, err := compile(Objects, loop(4), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx := &lateContext{Context: context.Background(), done: make(chan struct{})}
	close(ctx.done)
	_, err = p.eval(ctx, newBudget(), vars())
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "took too long") {
		t.Errorf("got %v", err)
	}
}

// lateContext is one that ends between eval's first look and the loop's.
type lateContext struct {
	context.Context
	done  chan struct{}
	looks int
}

func (c *lateContext) Done() <-chan struct{} { return c.done }

func (c *lateContext) Err() error {
	if c.looks++; c.looks == 1 {
		return nil
	}
	return context.DeadlineExceeded
}

func BenchmarkManifests(b *testing.B) {
	tree := map[string]any{"metadata": map[string]any{"name": "${member.name}", "labels": map[string]any{"i": "${string(member.index)}"}},
		"spec": map[string]any{"args": []any{"--pool=${pool.name}", "--index=${member.index}", "plain"}}}
	for b.Loop() {
		if _, err := Manifests(context.Background(), "f", tree, vars()); err != nil {
			b.Fatal(err)
		}
	}
}

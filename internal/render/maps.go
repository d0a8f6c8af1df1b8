package render

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// adapter turns Go values into CEL's as its registry does, except that maps are
// walked in the order of their keys: CEL leaves the order to Go, which draws it
// anew each time, and a macro over a map would give another list at each call.
type adapter struct{ *types.Registry }

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case ordered:
		return v
	case map[ref.Val]ref.Val:
		return ordered{types.NewRefValMap(a, v)}
	case map[string]any:
		return ordered{types.NewStringInterfaceMap(a, v)}
	case []any:
		return types.NewDynamicList(a, v)
	case []ref.Val:
		return types.NewRefValList(a, v)
	}
	result := a.Registry.NativeToValue(value)
	if m, ok := result.(traits.Mapper); ok {
		return ordered{m}
	}
	return result
}

// ordered is a map whose iterator follows the order of its keys: by type, then
// by value. It does not pass on Fold, which would go past that order.
type ordered struct{ traits.Mapper }

// Iterator implements traits.Iterable.
func (o ordered) Iterator() traits.Iterator {
	keys := make([]ref.Val, 0, 8)
	for it := o.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, compareKeys)
	return types.NewRefValList(types.DefaultTypeAdapter, keys).Iterator()
}

// literal is a map that an expression writes out, {…}, which CEL does not pass
// through the adapter.
type literal struct {
	interpreter.InterpretableConstructor
}

// Exec implements interpreter.InterpretableV2.
func (l literal) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := l.InterpretableConstructor.Exec(frame)
	if m, ok := v.(traits.Mapper); ok {
		return ordered{m}
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (l literal) Eval(vars interpreter.Activation) ref.Val {
	return l.Exec(interpreter.AsFrame(vars))
}

// orderLiterals is a decorator for programs.
func orderLiterals(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if c, ok := i.(interpreter.InterpretableConstructor); ok && c.Type() == types.MapType {
		return literal{c}, nil
	}
	return i, nil
}

func compareKeys(a, b ref.Val) int {
	if c := strings.Compare(a.Type().TypeName(), b.Type().TypeName()); c != 0 {
		return c
	}
	comparer, ok := a.(traits.Comparer)
	if !ok {
		return 0
	}
	c, _ := comparer.Compare(b).(types.Int)
	return int(c)
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

package render

import (
	"errors"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// The limits. Costs are in CEL's units, less than 1 µs each. Every limit but
// maxTime gives the same answer on every machine.
const (
	// maxExpression is the length of one expression in characters.
	maxExpression = 4096
	// maxExpressions is the number of expressions in one template.
	maxExpressions = 1024
	// maxCost is what one expression may cost, maxTotalCost all of a template.
	maxCost, maxTotalCost = 100_000, 1_000_000
	// maxSize is the size of all that a template's expressions come to: bytes
	// of text, and 16 for each value.
	maxSize = 1 << 20
	// maxCompared is how many values one comparison may look at.
	maxCompared = 10_000
	// maxMatch bounds the length of a text times that of the pattern it is
	// matched with.
	maxMatch = 1 << 20
	// maxTime is the time that rendering one template may take.
	maxTime = 10 * time.Second
	// interruptEvery is the number of loop steps between two looks at the clock.
	interruptEvery = 64
)

// errLimit is wrapped by errors of expressions that run into a limit.
var errLimit = errors.New("limit exceeded")

// guards are the program options that bound what one step of an expression may
// do. CEL counts the cost of a step after it, by the size of the outermost list
// or map only; a list of lists of the same list, ten levels deep, is small to
// write and takes for ever to compare.
func guards() []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.CostLimit(maxCost),
		cel.CostTracking(costs{}),
		cel.CustomDecoratorV2(guard),
		cel.InterruptCheckFrequency(interruptEvery),
	}
}

// guard replaces the calls that may do too much in one step.
func guard(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	var f func(a, b ref.Val) ref.Val
	switch call.Function() {
	case operators.Equals:
		f = types.Equal
	case operators.NotEquals:
		f = func(a, b ref.Val) ref.Val { return types.Bool(types.Equal(a, b) != types.True) }
	case operators.In:
		f = contains
	case overloads.Matches:
		return guardMatch(call), nil
	default:
		return i, nil
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(),
		func(args ...ref.Val) ref.Val {
			if weigh(maxCompared, args...) > maxCompared {
				return types.NewErr("%w: more than %d values would be compared in one step", errLimit, maxCompared)
			}
			return f(args[0], args[1])
		}), nil
}

func contains(element, container ref.Val) ref.Val {
	c, ok := container.(traits.Container)
	if !ok {
		return types.MaybeNoSuchOverloadErr(container)
	}
	return c.Contains(element)
}

func guardMatch(call interpreter.InterpretableCall) interpreter.InterpretableV2 {
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(),
		func(args ...ref.Val) ref.Val {
			text, ok := args[0].(types.String)
			if !ok {
				return types.MaybeNoSuchOverloadErr(args[0])
			}
			if pattern, ok := args[1].(types.String); ok && (len(text)+1)*len(pattern) > maxMatch {
				return types.NewErr("%w: the length of the text times that of the pattern is more than %d", errLimit, maxMatch)
			}
			return text.Match(args[1])
		})
}

// costs charges what CEL charges too little for: comparisons by all values that
// are looked at, and calls that make text by its length.
type costs struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (costs) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	var cost uint64
	switch function {
	case operators.Equals, operators.NotEquals, operators.In:
		cost = uint64(weigh(maxCompared, args...))
	case overloads.TypeConvertString, overloads.TypeConvertBytes:
		cost = 1 + length(result)/10
	default:
		return nil
	}
	return &cost
}

func length(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	}
	return 0
}

// weigh counts the values in vs, those inside of lists and maps included and
// 100 bytes of text as one, and stops counting beyond limit.
func weigh(limit int, vs ...ref.Val) int {
	n := 0
	for _, v := range vs {
		if n > limit {
			return n
		}
		n += 1 + int(length(v)/100)
		switch v := v.(type) {
		case traits.Mapper:
			for it := v.Iterator(); n <= limit && it.HasNext() == types.True; {
				key := it.Next()
				n += weigh(limit-n, key, v.Get(key))
			}
		case traits.Lister:
			for it := v.Iterator(); n <= limit && it.HasNext() == types.True; {
				n += weigh(limit-n, it.Next())
			}
		}
	}
	return n
}

package render

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

var errSize = fmt.Errorf("%w: the template's expressions come to more than %d bytes", errLimit, maxSize)

// budget is what is left for the rendering of one template.
type budget struct {
	cost uint64
	size int
}

func newBudget() *budget { return &budget{cost: maxTotalCost, size: maxSize} }

// take charges for one value with n bytes of text.
func (b *budget) take(n int) error {
	b.size -= n + 16
	if b.size < 0 {
		return errSize
	}
	return nil
}

// native returns a value as JSON has it: nil, bool, int64, float64, string,
// []any and map[string]any. Bytes become base64, times RFC 3339, durations
// seconds ("1.5s"), as protobuf's JSON has them.
func (b *budget) native(value ref.Val) (any, error) {
	switch v := value.(type) {
	case types.Null:
		return nil, b.take(0)
	case types.Bool:
		return bool(v), b.take(0)
	case types.Int:
		return int64(v), b.take(0)
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("the number %d is too large", uint64(v))
		}
		return int64(v), b.take(0)
	case types.Double:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("the number %v has no place in a manifest", float64(v))
		}
		return float64(v), b.take(0)
	case types.String:
		return string(v), b.take(len(v))
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), b.take(base64.StdEncoding.EncodedLen(len(v)))
	case types.Timestamp:
		return v.Format(time.RFC3339Nano), b.take(0)
	case types.Duration:
		return b.native(v.ConvertToType(types.StringType))
	case traits.Mapper:
		return b.nativeMap(v)
	case traits.Lister:
		return b.nativeList(v)
	}
	return nil, fmt.Errorf("a value of type %s has no place in a manifest", value.Type().TypeName())
}

func (b *budget) nativeList(list traits.Lister) (any, error) {
	result := []any{}
	if err := b.take(0); err != nil {
		return nil, err
	}
	for it := list.Iterator(); it.HasNext() == types.True; {
		v, err := b.native(it.Next())
		if err != nil {
			return nil, err
		}
		result = append(result, v)
	}
	return result, nil
}

func (b *budget) nativeMap(m traits.Mapper) (any, error) {
	result := map[string]any{}
	if err := b.take(0); err != nil {
		return nil, err
	}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("a map's keys have to be strings, not %s", key.Type().TypeName())
		}
		if err := b.take(len(name)); err != nil {
			return nil, err
		}
		v, err := b.native(m.Get(key))
		if err != nil {
			return nil, err
		}
		result[string(name)] = v
	}
	return result, nil
}

// text returns a value as a part of a text, as CEL's string() has it.
func (b *budget) text(value ref.Val) (string, error) {
	switch value.(type) {
	case types.String, types.Int, types.Uint, types.Double, types.Bool:
	default:
		return "", fmt.Errorf("a value of type %s cannot be a part of a text", value.Type().TypeName())
	}
	s, ok := value.ConvertToType(types.StringType).(types.String)
	if !ok {
		return "", errors.New("it cannot be made a text")
	}
	return string(s), b.take(len(s))
}

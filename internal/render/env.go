package render

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// Scope says which variables an expression may refer to.
type Scope int

// The scopes. Values are given as map[string]any: {"member": {"name": …}, …},
// whole numbers in any of Go's signed types.
const (
	// Objects has member {name, index, incarnation, namespace} and pool {name,
	// namespace}; index and incarnation are numbers. And it has sources: by name,
	// a map of texts for the keys of a ConfigMap or Secret (bytes for a key that
	// is no text), the value itself for a field of an object.
	Objects Scope = iota + 1
	// Process has, beyond that, ports: numbers by name.
	Process
	// Readiness has objects only: a list of what stands in the cluster.
	Readiness
)

// The fields of the variables that are structs.
var structs = map[string]map[string]*types.Type{
	"pawl.Member": {
		"name":        types.StringType,
		"namespace":   types.StringType,
		"index":       types.IntType,
		"incarnation": types.IntType,
	},
	"pawl.Pool": {
		"name":      types.StringType,
		"namespace": types.StringType,
	},
}

var environments = map[Scope]func() (*cel.Env, error){
	Objects:   sync.OnceValues(func() (*cel.Env, error) { return newEnv(variables()...) }),
	Process:   sync.OnceValues(func() (*cel.Env, error) { return newEnv(append(variables(), ports())...) }),
	Readiness: sync.OnceValues(func() (*cel.Env, error) { return newEnv(objects()) }),
}

func variables() []cel.EnvOption {
	return []cel.EnvOption{
		cel.Variable("member", cel.ObjectType("pawl.Member")),
		cel.Variable("pool", cel.ObjectType("pawl.Pool")),
		cel.Variable("sources", cel.MapType(cel.StringType, cel.DynType)),
	}
}

func ports() cel.EnvOption {
	return cel.Variable("ports", cel.MapType(cel.StringType, cel.IntType))
}

func objects() cel.EnvOption {
	return cel.Variable("objects", cel.ListType(cel.DynType))
}

func newEnv(options ...cel.EnvOption) (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	return cel.NewEnv(append([]cel.EnvOption{
		cel.CustomTypeProvider(provider{registry}),
		cel.CustomTypeAdapter(adapter{registry}),
		cel.ParserExpressionSizeLimit(maxExpression),
	}, options...)...)
}

// provider adds to CEL's types the structs whose values are maps, so that a
// misspelt field is found when the expression is checked.
type provider struct{ *types.Registry }

// FindStructType implements types.Provider.
func (p provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := structs[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Registry.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	if fields, ok := structs[name]; ok {
		return sortedKeys(fields), true
	}
	return p.Registry.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider.
func (p provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	fields, ok := structs[name]
	if !ok {
		return p.Registry.FindStructFieldType(name, field)
	}
	t, ok := fields[field]
	if !ok {
		return nil, false
	}
	return &types.FieldType{
		Type: t,
		IsSet: func(target any) bool {
			_, ok := asMap(target)[field]
			return ok
		},
		GetFrom: func(target any) (any, error) {
			if v, ok := asMap(target)[field]; ok {
				return v, nil
			}
			return nil, fmt.Errorf("%s.%s is not set", name, field)
		},
	}, true
}

func asMap(target any) map[string]any {
	m, _ := target.(map[string]any)
	return m
}

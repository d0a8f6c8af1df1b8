package simulate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/pawl-dev/pawl/rollout"
)

// The types in expressions. Fields are checked when a file is parsed, and read
// without reflection when it is played.
var (
	poolType      = cel.ObjectType("pawl.Pool")
	memberType    = cel.ObjectType("pawl.Member", traits.IndexerType)
	claimType     = cel.ObjectType("pawl.Claim", traits.IndexerType)
	conditionType = cel.ObjectType("pawl.Condition", traits.IndexerType)
	budgetType    = cel.ObjectType("pawl.Budget")
	groupType     = cel.ObjectType("pawl.Group")
	holderType    = cel.ObjectType("pawl.Holder")
)

// access returns a field type that reads with get.
func access[T any](t *cel.Type, get func(T) any) *types.FieldType {
	return &types.FieldType{
		Type:  t,
		IsSet: func(any) bool { return true },
		GetFrom: func(target any) (any, error) {
			v, ok := target.(T)
			if !ok {
				return nil, fmt.Errorf("unexpected %T", target)
			}
			return get(v), nil
		},
	}
}

var poolFields = func() map[string]*types.FieldType {
	f := map[string]*types.FieldType{
		"target":     access(cel.StringType, func(p *poolPicture) any { return p.target }),
		"current":    access(cel.StringType, func(p *poolPicture) any { return p.current }),
		"m":          access(cel.MapType(cel.IntType, memberType), func(p *poolPicture) any { return memberTable(p) }),
		"conditions": access(cel.MapType(cel.StringType, conditionType), func(p *poolPicture) any { return conditionTable(p) }),
		"next":       access(cel.StringType, func(p *poolPicture) any { return p.next }),
		"status":     access(cel.MapType(cel.StringType, cel.DynType), func(p *poolPicture) any { return p.status() }),
		"blockers":   access(cel.MapType(cel.StringType, cel.IntType), func(p *poolPicture) any { return blockerTable(p) }),
	}
	for i, name := range tallyNames {
		f[name] = access(cel.IntType, func(p *poolPicture) any { return int64(p.tallies[i]) })
	}
	return f
}()

var memberFields = map[string]*types.FieldType{
	"phase":       access(cel.StringType, func(m memberPicture) any { return m.phase }),
	"revision":    access(cel.StringType, func(m memberPicture) any { return m.revision }),
	"wants":       access(cel.StringType, func(m memberPicture) any { return m.wants }),
	"claim":       access(cel.StringType, func(m memberPicture) any { return m.claim }),
	"occupancy":   access(cel.StringType, func(m memberPicture) any { return m.occupancy }),
	"role":        access(cel.StringType, func(m memberPicture) any { return m.role }),
	"blocker":     access(cel.StringType, func(m memberPicture) any { return m.blocker }),
	"incarnation": access(cel.IntType, func(m memberPicture) any { return m.incarnation }),
}

var claimFields = map[string]*types.FieldType{
	"phase":    access(cel.StringType, func(c claimPicture) any { return c.phase }),
	"member":   access(cel.IntType, func(c claimPicture) any { return int64(c.member) }),
	"revision": access(cel.StringType, func(c claimPicture) any { return c.revision }),
}

var conditionFields = map[string]*types.FieldType{
	"status":  access(cel.StringType, func(c rollout.Condition) any { return string(c.Status) }),
	"reason":  access(cel.StringType, func(c rollout.Condition) any { return c.Reason }),
	"message": access(cel.StringType, func(c rollout.Condition) any { return c.Message }),
}

// budgetFields have no values yet: scenarios with budgets are not played.
var budgetFields = func() map[string]*types.FieldType {
	f := map[string]*types.FieldType{}
	for _, name := range []string{"used", "limit", "waiting", "stalled"} {
		f[name] = access(cel.IntType, func(any) any { return int64(0) })
	}
	f["holders"] = access(cel.ListType(cel.StringType), func(any) any { return []string{} })
	return f
}()

// groupFields are those of a pool, and holder, the member that rolls. They have
// no values yet: scenarios with groups are not played.
var groupFields = func() map[string]*types.FieldType {
	f := maps.Clone(poolFields)
	f["holder"] = access(holderType, func(any) any { return nil })
	return f
}()

var holderFields = map[string]*types.FieldType{
	"name":    access(cel.StringType, func(any) any { return "" }),
	"stalled": access(cel.BoolType, func(any) any { return false }),
}

// provider adds the types above to those of the language.
type provider struct {
	*types.Registry
	structs map[string]map[string]*types.FieldType
	named   map[string]*cel.Type
}

func newProvider() *provider {
	r, err := types.NewRegistry()
	if err != nil {
		panic(err) // an empty registry causes no error
	}
	return &provider{
		Registry: r,
		structs: map[string]map[string]*types.FieldType{
			poolType.TypeName(): poolFields, memberType.TypeName(): memberFields, claimType.TypeName(): claimFields,
			conditionType.TypeName(): conditionFields, budgetType.TypeName(): budgetFields,
			groupType.TypeName(): groupFields, holderType.TypeName(): holderFields,
		},
		named: map[string]*cel.Type{
			poolType.TypeName(): poolType, memberType.TypeName(): memberType, claimType.TypeName(): claimType,
			conditionType.TypeName(): conditionType, budgetType.TypeName(): budgetType,
			groupType.TypeName(): groupType, holderType.TypeName(): holderType,
		},
	}
}

func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if t, ok := p.named[name]; ok {
		return types.NewTypeTypeWithParam(t), true
	}
	return p.Registry.FindStructType(name)
}

func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	if f, ok := p.structs[name]; ok {
		return slices.Sorted(maps.Keys(f)), true
	}
	return p.Registry.FindStructFieldNames(name)
}

func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if f, ok := p.structs[name]; ok {
		t, ok := f[field]
		return t, ok
	}
	return p.Registry.FindStructFieldType(name, field)
}

// celObject is a value of one of the types above.
type celObject struct {
	t      *cel.Type
	fields map[string]*types.FieldType
	v      any
}

func (o celObject) Type() ref.Type { return o.t }
func (o celObject) Value() any     { return o.v }

func (o celObject) Equal(other ref.Val) ref.Val {
	p, ok := other.(celObject)
	return types.Bool(ok && o.t == p.t && reflect.DeepEqual(o.v, p.v))
}

func (o celObject) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s is not a %s", o.t.TypeName(), t)
}

func (o celObject) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return o.t
	}
	return types.NewErr("%s is not a %s", o.t.TypeName(), t.TypeName())
}

// Get reads a field by name.
func (o celObject) Get(name ref.Val) ref.Val {
	s, ok := name.(types.String)
	f := o.fields[string(s)]
	if !ok || f == nil {
		return types.NewErr("no such field %v", name)
	}
	v, err := f.GetFrom(o.v)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}

// table is a map with a find function, which may return empty values for missing
// keys.
type table struct {
	find func(key ref.Val) (ref.Val, bool)
	keys func() []ref.Val
}

func (t table) Type() ref.Type        { return types.MapType }
func (t table) Value() any            { return t }
func (t table) Equal(ref.Val) ref.Val { return types.False }
func (t table) Size() ref.Val         { return types.Int(len(t.keys())) }

func (t table) Find(key ref.Val) (ref.Val, bool) { return t.find(key) }

func (t table) Get(key ref.Val) ref.Val {
	if v, ok := t.find(key); ok {
		return v
	}
	return types.NewErr("no such key: %v", key)
}

func (t table) Contains(key ref.Val) ref.Val {
	return types.Bool(slices.ContainsFunc(t.keys(), func(k ref.Val) bool { return k.Equal(key) == types.True }))
}

func (t table) Iterator() traits.Iterator {
	return types.NewDynamicList(types.DefaultTypeAdapter, t.keys()).Iterator()
}

func (t table) ConvertToNative(n reflect.Type) (any, error) {
	return nil, fmt.Errorf("a map is not a %s", n)
}

func (t table) ConvertToType(n ref.Type) ref.Val {
	switch n {
	case types.MapType:
		return t
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("a map is not a %s", n.TypeName())
}

// byName returns a table with string keys.
func byName(find func(name string) (ref.Val, bool), names func() []string) table {
	return table{
		find: func(k ref.Val) (ref.Val, bool) {
			s, ok := k.(types.String)
			if !ok {
				return nil, false
			}
			return find(string(s))
		},
		keys: func() []ref.Val {
			var list []ref.Val
			for _, n := range names() {
				list = append(list, types.String(n))
			}
			return list
		},
	}
}

func memberTable(p *poolPicture) table {
	return table{
		find: func(k ref.Val) (ref.Val, bool) {
			i, ok := k.(types.Int)
			if !ok {
				return nil, false
			}
			return celObject{memberType, memberFields, p.member(int(i))}, true
		},
		keys: func() []ref.Val {
			var list []ref.Val
			for _, m := range p.members() {
				list = append(list, types.Int(m.index))
			}
			return list
		},
	}
}

func conditionTable(p *poolPicture) table {
	return byName(
		func(name string) (ref.Val, bool) {
			return celObject{conditionType, conditionFields, p.conditions.named(name)}, true
		},
		func() []string { return conditionNames },
	)
}

func blockerTable(p *poolPicture) table {
	return byName(
		func(name string) (ref.Val, bool) { return types.Int(p.blocker(name)), true },
		func() []string {
			var list []string
			for _, b := range p.blockers {
				list = append(list, string(b.Reason))
			}
			return list
		},
	)
}

func claimTable(p picture) table {
	return byName(
		func(name string) (ref.Val, bool) { return celObject{claimType, claimFields, p.claim(name)}, true },
		p.claimNames,
	)
}

func poolTable(p picture) table {
	return byName(
		func(name string) (ref.Val, bool) {
			q := p.pool(name)
			return celObject{poolType, poolFields, q}, q != nil
		},
		p.poolNames,
	)
}

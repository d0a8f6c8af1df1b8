package simulate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/snapshot"
)

// spec is a pool's spec as JSON, so that merge patches work as in the API.
type spec map[string]any

// decode converts the spec to the API's type.
func (s spec) decode() (v1alpha1.PoolSpec, error) {
	var out v1alpha1.PoolSpec
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	return out, err
}

// merge returns doc with a merge patch (RFC 7386); it changes neither argument.
func merge(doc, patch map[string]any) map[string]any {
	out := maps.Clone(doc)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(out, k)
		case map[string]any:
			inner, _ := out[k].(map[string]any)
			out[k] = merge(inner, v)
		default:
			out[k] = v
		}
	}
	return out
}

// plannedFields are fields of the format that the API does not have yet, by path. A
// scenario with such a field waits.
var plannedFields = map[string]bool{
	"autoscale": true, "occupancy": true, "drain": true, "hooks": true, "update.roles": true, "update.handover": true,
}

// asDefault reports whether a planned field has its default value.
func asDefault(path string, n *yaml.Node) bool {
	switch {
	case n.Tag == "!!null" || n.Kind == yaml.MappingNode && len(n.Content) == 0:
		return true
	case path == "occupancy":
		return n.Kind == yaml.ScalarNode && n.Value == "claims"
	case path == "hooks":
		return n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "onFailure" && n.Content[1].Value == "Replace"
	}
	return false
}

// plannedField reads a field that the API does not have yet, as far as the format
// defines its content.
func (p *parser) plannedField(path string, n *yaml.Node) {
	if asDefault(path, n) {
		return
	}
	p.need(path)
	switch path {
	case "update.roles":
		p.roles(n, path)
	case "update.handover":
		p.handover(n, path)
	}
}

func anyValue(*yaml.Node) {}

// roles reads the order in which the roles of a pool or group are rolled.
func (p *parser) roles(n *yaml.Node, what string) {
	p.fields(n, what, map[string]func(*yaml.Node){
		"order":      func(v *yaml.Node) { p.words(v, what+".order") },
		"shardBy":    func(v *yaml.Node) { p.word(v, what+".shardBy") },
		"expression": anyValue, "probe": anyValue,
	})
}

// handover reads the handover before a primary is disrupted.
func (p *parser) handover(n *yaml.Node, what string) {
	p.fields(n, what, map[string]func(*yaml.Node){
		"before":  func(v *yaml.Node) { p.word(v, what+".before") },
		"timeout": func(v *yaml.Node) { p.duration(v, what+".timeout") },
		"exec":    anyValue, "http": anyValue, "job": anyValue, "done": anyValue,
	})
}

// words reads a list of strings that are not empty.
func (p *parser) words(n *yaml.Node, what string) {
	for _, c := range p.list(n, what) {
		p.word(c, what)
	}
}

// labels reads the labels of a pool, a group or a namespace. Only selectors use
// them.
func (p *parser) labels(n *yaml.Node, what string) {
	for _, f := range p.mapping(n, what) {
		p.text(f.value, what+"."+f.name)
	}
}

// allowedValues are the values of fields with a fixed list of words.
var allowedValues = map[string][]string{
	"sizing":           {"Total", "Warm"},
	"update.type":      {"Manual", "RollingUpdate"},
	"update.method":    {"Replace", "InPlace"},
	"update.order":     {"LowestIndex", "OldestFirst"},
	"update.unknown":   {"Adopt", "Replace"},
	"update.onFailure": {"Halt", "Rollback"},
	"update.onClaimed": {"Wait", "Notify"},
	"claims.onRelease": {"Replace", "Reuse"},
	"claims.prefer":    {"Updated"},
}

// minValue and maxValue are the API's limits of numbers.
var minValue = map[string]int64{"refillBelow": 1, "update.maxInFlight": 1, "update.failureLimit": 1}

var maxValue = map[string]int64{
	"replicas": maxMembers, "refillBelow": maxMembers, "maxMembers": 2 * maxMembers, "revisionHistoryLimit": 1000,
	"update.maxUnavailable": maxMembers, "update.maxSurge": maxMembers, "update.minAvailable": maxMembers,
	"update.maxInFlight": maxMembers, "update.failureLimit": maxMembers, "update.partition": maxMembers,
	"update.minReadySeconds": 31536000,
}

// spec reads a pool's spec, or a merge patch on one.
func (p *parser) spec(n *yaml.Node) spec {
	lines := map[string]*yaml.Node{}
	out, _ := p.object(n, reflect.TypeFor[v1alpha1.PoolSpec](), "", lines).(map[string]any)
	decoded, err := spec(out).decode()
	if err != nil {
		return out // errors are reported already, by field
	}
	if err := validateSpec(&decoded); err != nil {
		p.fail(nearest(lines, err, n), "%v", err)
	}
	return out
}

// nearest returns the node of the field with which the error begins, or else of the
// nearest field around it.
func nearest(lines map[string]*yaml.Node, err error, otherwise *yaml.Node) *yaml.Node {
	field, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "spec."), ":")
	for field != "" && lines[field] == nil {
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return cmp.Or(lines[field], otherwise)
}

// validateSpec returns the error for which the API would refuse the spec; nil if it
// would accept it. The error begins with the field.
func validateSpec(s *v1alpha1.PoolSpec) error {
	if _, err := snapshot.Policy(s); err != nil {
		return err
	}
	if err := validateUpdate(s.Update); err != nil {
		return err
	}
	c := s.Claims
	if c == nil {
		c = &v1alpha1.Claims{}
	}
	switch {
	case tooShort(c.DefaultTTL, 1):
		return errors.New("spec.claims.defaultTTL: must be more than 0s")
	case tooShort(c.MaxTTL, 1):
		return errors.New("spec.claims.maxTTL: must be more than 0s")
	case tooShort(c.Heartbeat, time.Second):
		return errors.New("spec.claims.heartbeat: must be 1s or more")
	}
	return nil
}

func validateUpdate(u *v1alpha1.Update) error {
	if u == nil {
		return nil
	}
	if tooShort(u.ProgressDeadline, 1) {
		return errors.New("spec.update.progressDeadline: must be more than 0s")
	}
	if surge := u.MaxSurge; u.Method != nil && *u.Method == v1alpha1.MethodInPlace && surge != nil &&
		surge.String() != "0" && surge.String() != "0%" {
		return errors.New("spec.update.maxSurge: method InPlace keeps every body, and so allows no maxSurge: remove it, or set it to 0")
	}
	for i := range u.Windows {
		v, at := &u.Windows[i], fmt.Sprintf("spec.update.windows[%d]", i)
		if v.Schedule == "" {
			return errors.New(at + ".schedule: must not be empty")
		}
		if v.Duration == nil || tooShort(v.Duration, 1) {
			return errors.New(at + ".duration: must be more than 0s")
		}
	}
	return nil
}

// tooShort reports whether a duration is present and less than the least.
func tooShort(d *metav1.Duration, least time.Duration) bool { return d != nil && d.Duration < least }

// object reads a struct of the API as JSON, and refuses unknown fields.
func (p *parser) object(n *yaml.Node, t reflect.Type, path string, lines map[string]*yaml.Node) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	lines[path] = n
	switch {
	case n.Tag == "!!null":
		return nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		out := []any{}
		for i, c := range p.list(n, path) {
			out = append(out, p.object(c, t.Elem(), fmt.Sprintf("%s[%d]", path, i), lines))
		}
		return out
	case t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return p.leaf(n, t, path)
	}
	out := map[string]any{}
	for _, f := range p.mapping(n, cmp.Or(path, "pool")) {
		at := strings.TrimPrefix(path+"."+f.name, ".")
		ft, ok := field(t, f.name)
		switch {
		case at == "template":
			p.fail(f.key, "template must not be given: bodies are simulated, see world")
		case at == "labels":
			p.labels(f.value, at)
		case ok:
			out[f.name] = p.object(f.value, ft, at, lines)
		case plannedFields[at]:
			p.plannedField(at, f.value)
		default:
			p.fail(f.key, "unknown field %q", at)
		}
	}
	return out
}

// field finds the type of a struct's field by its JSON name.
func field(t reflect.Type, name string) (reflect.Type, bool) {
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name && name != "" {
			return f.Type, true
		}
	}
	return nil, false
}

// leaf reads a value and checks it against the type and the limits of the API.
func (p *parser) leaf(n *yaml.Node, t reflect.Type, path string) any {
	var v any
	if err := n.Decode(&v); err != nil {
		p.fail(n, "%s: %v", path, err)
		return nil
	}
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	if err != nil {
		p.fail(n, "%s: %q has the wrong type", path, n.Value)
		return nil
	}
	switch v := v.(type) {
	case int:
		p.inRange(n, path, int64(v))
	case string:
		if words := allowedValues[path]; words != nil && !slices.Contains(words, v) {
			p.fail(n, "%s must be one of %s, not %q", path, strings.Join(words, ", "), v)
		}
	}
	return v
}

func (p *parser) inRange(n *yaml.Node, path string, v int64) {
	high, ok := maxValue[path]
	if !ok {
		high = math.MaxInt32
	}
	if low := minValue[path]; v < low || v > high {
		p.fail(n, "%s must be from %d to %d, not %d", path, low, high, v)
	}
}

// groups reads groups, which are not played yet, and returns their names.
func (p *parser) groups(n *yaml.Node) (names []string) {
	p.need("groups")
	for _, f := range p.mapping(n, "groups") {
		names = append(names, f.name)
		p.group(f.value, "groups."+f.name)
	}
	return names
}

// group reads a group's spec, or a merge patch on one.
func (p *parser) group(n *yaml.Node, what string) {
	p.fields(n, what, map[string]func(*yaml.Node){
		"labels":   func(v *yaml.Node) { p.labels(v, what+".labels") },
		"selector": anyValue,
		"mode":     func(v *yaml.Node) { p.oneOf(v, "mode", "Hold", "Permit") },
		"update":   func(v *yaml.Node) { p.groupUpdate(v, what+".update") },
	})
}

func (p *parser) groupUpdate(n *yaml.Node, what string) {
	whole := func(name string, least int) func(*yaml.Node) {
		return func(v *yaml.Node) {
			if v.Tag != "!!null" {
				p.number(v, what+"."+name, least, math.MaxInt32)
			}
		}
	}
	p.fields(n, what, map[string]func(*yaml.Node){
		"paused":           func(v *yaml.Node) { p.truth(v, what+".paused") },
		"maxInFlight":      whole("maxInFlight", 1),
		"minReadySeconds":  whole("minReadySeconds", 0),
		"failureLimit":     anyValue,
		"windows":          anyValue,
		"progressDeadline": func(v *yaml.Node) { p.patchSpan(v, what+".progressDeadline", 0) },
		"roles":            func(v *yaml.Node) { p.unlessNull(v, what+".roles", p.roles) },
		"handover":         func(v *yaml.Node) { p.unlessNull(v, what+".handover", p.handover) },
	})
}

func (p *parser) unlessNull(n *yaml.Node, what string, read func(*yaml.Node, string)) {
	if n.Tag != "!!null" {
		read(n, what)
	}
}

// budgets reads budgets, which are not played yet, and returns their names.
func (p *parser) budgets(n *yaml.Node) (names []string) {
	p.need("budgets")
	for _, f := range p.mapping(n, "budgets") {
		names = append(names, f.name)
		p.budget(f.value, "budgets."+f.name)
	}
	return names
}

// budget reads a budget's spec, or a merge patch on one.
func (p *parser) budget(n *yaml.Node, what string) {
	p.fields(n, what, map[string]func(*yaml.Node){
		"namespaceSelector": anyValue, "selector": anyValue, "windows": anyValue,
		"maxRolling": func(v *yaml.Node) { p.unlessNull(v, what+".maxRolling", p.share) },
		"per":        func(v *yaml.Node) { p.oneOf(v, "per", "Namespace", "Budget") },
	})
}

// share reads a number, or a percentage such as 25%.
func (p *parser) share(n *yaml.Node, what string) {
	if n.Tag == "!!int" {
		p.number(n, what, 0, math.MaxInt32)
		return
	}
	digits, ok := strings.CutSuffix(p.text(n, what), "%")
	if i, err := strconv.Atoi(digits); !ok || err != nil || i < 0 || i > 100 {
		p.fail(n, "%s must be a number, or a percentage such as 25%%, not %q", what, n.Value)
	}
}

// namespaces reads the namespace of each pool or group: its name, or {name, labels}.
func (p *parser) namespaces(n *yaml.Node) {
	p.need("namespaces")
	for _, f := range p.mapping(n, "namespaces") {
		what := "namespaces." + f.name
		if f.value.Kind != yaml.MappingNode {
			p.word(f.value, what)
			continue
		}
		p.fields(f.value, what, map[string]func(*yaml.Node){
			"name":   func(v *yaml.Node) { p.word(v, what+".name") },
			"labels": func(v *yaml.Node) { p.labels(v, what+".labels") },
		})
	}
}

func orZero(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

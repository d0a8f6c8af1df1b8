//go:build integration

package apitest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	claimA = `{"claim":{"name":"a","uid":"1"}}`
	claimB = `{"claim":{"name":"b","uid":"2"}}`
)

// The states that members are brought into before a test's own write.
var (
	fresh       = []write{}
	available   = []write{status(`{"phase":"Available","incarnation":1}`)}
	claimed     = append(available[:1:1], spec(claimA), status(`{"phase":"Claimed"}`))
	released    = append(claimed[:3:3], spec(`{"claim":null}`))
	drifting    = append(available[:1:1], spec(`{"disruption":{"reason":"Drift","action":"Replace","incarnation":1}}`))
	draining    = append(drifting[:2:2], status(`{"phase":"Draining"}`))
	terminating = append(drifting[:2:2], status(`{"phase":"Terminating"}`))
	updating    = append(available[:1:1], spec(`{"disruption":{"reason":"Drift","action":"Update","incarnation":1}}`), status(`{"phase":"Updating"}`))
	updated     = append(updating[:3:3], status(`{"phase":"Updating","incarnation":2}`))
	spent       = append(terminating[:3:3], status(`{"phase":"Available","incarnation":2}`))
)

// phase is an undisturbed member in a phase.
func phase(name string) []write {
	return []write{status(fmt.Sprintf(`{"phase":%q,"incarnation":1}`, name))}
}

func TestMember_Rules(t *testing.T) {
	cases := map[string]struct {
		reason string
		before []write
		write  write
		want   string
	}{
		"claim available":    {"a free member can be claimed", available, spec(claimA), ""},
		"claim pending":      {"there is no body to give", phase("Pending"), spec(claimA), "only an Available, undisturbed member"},
		"claim booting":      {"its body does not serve yet", phase("Provisioning"), spec(claimA), "only an Available, undisturbed member"},
		"claim preparing":    {"it was not ready for long enough", phase("Preparing"), spec(claimA), "only an Available, undisturbed member"},
		"claim unready":      {"its body is down", phase("Unready"), spec(claimA), "only an Available, undisturbed member"},
		"claim failed":       {"its body has failed", phase("Failed"), spec(claimA), "only an Available, undisturbed member"},
		"claim no status":    {"nobody has said that it is available", fresh, spec(claimA), "only an Available, undisturbed member"},
		"claim released":     {"the phase is still that of the last claim", released, spec(claimB), "only an Available, undisturbed member"},
		"claim drifting":     {"a claim does not take the place of a disruption", drifting, spec(`{"disruption":null,"claim":{"name":"a","uid":"1"}}`), "only an Available, undisturbed member"},
		"claim draining":     {"a draining member goes back into service first", draining, spec(`{"disruption":null,"claim":{"name":"a","uid":"1"}}`), "only an Available, undisturbed member"},
		"claim terminated":   {"its body is going", terminating, spec(`{"disruption":null,"claim":{"name":"a","uid":"1"}}`), "a disruption is not withdrawn"},
		"claim after spent":  {"a disruption of an earlier incarnation gives way", spent, spec(`{"disruption":null,"claim":{"name":"a","uid":"1"}}`), ""},
		"claim beside spent": {"a spent disruption is cleared by the write that claims", spent, spec(claimA), "never has both a claim and a disruption"},
		"claim no incarnation": {"without an incarnation no disruption is spent",
			[]write{status(`{"phase":"Available"}`), spec(`{"disruption":{"reason":"Drift","action":"Replace","incarnation":0}}`)},
			spec(`{"disruption":null,"claim":{"name":"a","uid":"1"}}`), "only an Available, undisturbed member"},
		"claim cordoned":   {"a cordon keeps claims away", append(available[:1:1], spec(`{"cordoned":true}`)), spec(claimA), "a cordoned member cannot be claimed"},
		"claim uncordoned": {"cordoned: false is no cordon", append(available[:1:1], spec(`{"cordoned":false}`)), spec(claimA), ""},
		"cordon claimed":   {"a cordon leaves a claim alone", claimed, spec(`{"cordoned":true}`), ""},

		"both at once":    {"never both", available, spec(`{"claim":{"name":"a","uid":"1"},"disruption":{"reason":"Drift","action":"Replace","incarnation":1}}`), "never has both a claim and a disruption"},
		"disrupt claimed": {"a claimed member is not disrupted", claimed, spec(`{"disruption":{"reason":"Drift","action":"Replace","incarnation":1}}`), "never has both a claim and a disruption"},
		"steal for drift": {"a rollout does not drop a claim", claimed, spec(`{"claim":null,"disruption":{"reason":"Drift","action":"Replace","incarnation":1}}`), "a claimed member is not disrupted for drift"},
		"end of claim":    {"the end of a claim may replace the body in the same write", claimed, spec(`{"claim":null,"disruption":{"reason":"ClaimEnded","action":"Replace","incarnation":1}}`), ""},
		"lost body":       {"a claim whose body is gone ends with the decision to replace it", claimed, spec(`{"claim":null,"disruption":{"reason":"Failed","action":"Replace","incarnation":1}}`), ""},
		"drop claim":      {"a claim can be dropped alone", claimed, spec(`{"claim":null}`), ""},
		"swap name":       {"a claim is not swapped", claimed, spec(`{"claim":{"name":"b"}}`), "a claim is never swapped"},
		"swap uid":        {"a namesake is another claim", claimed, spec(`{"claim":{"uid":"2"}}`), "a claim is never swapped"},
		"extend claim":    {"the expiry of a claim may move", claimed, spec(`{"claim":{"expiresAt":"2030-01-01T00:00:00.000000Z"}}`), ""},

		"other pool":  {"a member stays in its pool", available, spec(`{"pool":"other"}`), "pool and index are immutable"},
		"other index": {"a member keeps its index", available, spec(`{"index":7}`), "pool and index are immutable"},

		"terminate claimed":  {"a claimed member never terminates", claimed, status(`{"phase":"Terminating"}`), "a claimed member never terminates"},
		"terminate drifting": {"a disrupted one does", drifting, status(`{"phase":"Terminating"}`), ""},
		"withdraw draining":  {"a draining member may go back", draining, spec(`{"disruption":null}`), ""},
		"withdraw late":      {"there is no way back from termination", terminating, spec(`{"disruption":null}`), "a disruption is not withdrawn"},
		"backdate":           {"a disruption is not made a spent one", terminating, spec(`{"disruption":{"incarnation":0}}`), "a disruption is not withdrawn"},
		"remove instead":     {"a terminating member may lose its slot", terminating, spec(`{"disruption":{"reason":"ScaleDown","action":"Remove"}}`), ""},
		"clear spent":        {"a spent disruption is cleared", spent, spec(`{"disruption":null}`), ""},
		"back to available":  {"the phase is not set back", terminating, status(`{"phase":"Available"}`), "Terminating ends only in a new incarnation"},
		"back to pending":    {"nor to the start", terminating, status(`{"phase":"Pending"}`), "Terminating ends only in a new incarnation"},
		"no phase":           {"nor taken away", terminating, status(`{"phase":null}`), "Terminating ends only in a new incarnation"},
		"no status":          {"nor with the whole status", terminating, write{"status", `{"status":null}`}, "Terminating ends only in a new incarnation"},
		"new incarnation":    {"a new incarnation ends it", terminating, status(`{"phase":"Pending","incarnation":2}`), ""},
		"update claimed":     {"nor is it updated", claimed, status(`{"phase":"Updating"}`), "a claimed member never terminates, nor is it updated"},
		"claim updating":     {"what becomes another revision is no one's", updating, spec(`{"disruption":null,"claim":{"name":"a","uid":"1"}}`), "only an Available, undisturbed member can be claimed"},
		"claim updated":      {"nor before it is in service again", updated, spec(`{"disruption":null,"claim":{"name":"a","uid":"1"}}`), "only an Available, undisturbed member can be claimed"},
		"withdraw update":    {"there is no way back from an update", updating, spec(`{"disruption":null}`), "an update is not withdrawn"},
		"backdate update":    {"an update is not made a spent one", updating, spec(`{"disruption":{"incarnation":0}}`), "an update is not withdrawn"},
		"remove updating":    {"a member may lose its slot meanwhile", updating, spec(`{"disruption":{"reason":"ScaleDown","action":"Remove"}}`), ""},
		"end updating":       {"or its body", updating, status(`{"phase":"Terminating"}`), ""},
		"update undone":      {"the phase is not set back", updating, status(`{"phase":"Available"}`), "Updating ends only in a new incarnation"},
		"update drained":     {"nor to the drain", updating, status(`{"phase":"Draining"}`), "Updating ends only in a new incarnation"},
		"no update":          {"nor with the whole status", updating, write{"status", `{"status":null}`}, "Updating ends only in a new incarnation"},
		"update done":        {"a new incarnation ends it", updating, status(`{"incarnation":2}`), ""},
		"update refused":     {"also one that has failed", updating, status(`{"phase":"Failed","incarnation":2}`), ""},
		"in service again":   {"then it goes its way", updated, status(`{"phase":"Available"}`), ""},
		"clear update":       {"and the disruption is spent", updated, spec(`{"disruption":null}`), ""},
		"message only":       {"other fields of the status may change", terminating, status(`{"message":"going"}`), ""},
		"lower incarnation":  {"incarnations only count up", available, status(`{"incarnation":0}`), "status.incarnation never goes back"},
		"no incarnation":     {"nor are they forgotten", available, status(`{"incarnation":null}`), "status.incarnation never goes back"},
		"status gone":        {"nor with the whole status", available, write{"status", `{"status":null}`}, "status.incarnation never goes back"},
		"negative":           {"incarnations start at 0", fresh, status(`{"incarnation":-1}`), "status.incarnation"},
		"unknown phase":      {"phases are those of the design", available, status(`{"phase":"Sleeping"}`), "status.phase: Unsupported value"},
		"unknown reason":     {"reasons are those of the design", available, spec(`{"disruption":{"reason":"Whim","action":"Replace","incarnation":1}}`), "spec.disruption.reason: Unsupported value"},
		"unknown action":     {"actions are those that work", available, spec(`{"disruption":{"reason":"Drift","action":"Restart","incarnation":1}}`), "spec.disruption.action: Unsupported value"},
		"no uid":             {"a claim is told by its UID", available, spec(`{"claim":{"name":"a"}}`), "spec.claim.uid: Required value"},
		"coarse time":        {"a time that clients of this API cannot read is refused", available, spec(`{"disruption":{"reason":"Drift","action":"Replace","incarnation":1,"since":"2030-01-01T00:00:00Z"}}`), "spec.disruption.since"},
		"fine time":          {"a time in microseconds is read", available, spec(`{"disruption":{"reason":"Drift","action":"Replace","incarnation":1,"since":"2030-01-01T00:00:00.000000Z"}}`), ""},
	}
	a := admin(t)
	ns := a.namespace()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := admin(t)
			m := a.member(ns, c.before)
			_, err := a.patch(members, ns, m, c.write)
			expect(t, c.reason, err, c.want)
		})
	}
}

// member makes a member and brings it into a state.
func (a api) member(namespace string, before []write) string {
	a.t.Helper()
	pool := unique("m")
	name := pool + "-0"
	a.create(members, namespace, fmt.Sprintf(`{apiVersion: pawl.dev/v1alpha1, kind: Member, metadata: {name: %s}, spec: {pool: %s, index: 0}}`, name, pool))
	a.apply(members, namespace, name, before)
	return name
}

func TestMember_Create(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"plain":          {"a slot needs a pool and an index", `{pool: p, index: 0}`, ""},
		"disrupted":      {"a slot may be made only to be removed", `{pool: p, index: 0, disruption: {reason: ScaleDown, action: Remove, incarnation: 0}}`, ""},
		"claimed":        {"no member is born claimed", `{pool: p, index: 0, claim: {name: a, uid: "1"}}`, "a member is created unclaimed"},
		"to come":        {"no incarnation has been yet", `{pool: p, index: 0, disruption: {reason: Requested, action: Replace, incarnation: 7}}`, "a disruption is of an incarnation that there is"},
		"other name":     {"a slot is found by its name", `{pool: p, index: 1}`, "metadata.name must be the pool's name, a dash and the index"},
		"no pool":        {"a member belongs to a pool", `{index: 0}`, "spec.pool: Required value"},
		"no index":       {"a member has a place", `{pool: p}`, "spec.index: Required value"},
		"negative index": {"places start at 0", `{pool: p, index: -1}`, "spec.index"},
		"huge index":     {"places fit the type that clients have", `{pool: p, index: 3000000000}`, "spec.index"},
		"unknown field":  {"a field that is not there is not ignored", `{pool: p, index: 0, colour: red}`, `unknown field "spec.colour"`},
	}
	ns := admin(t).namespace()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			pool := unique("m")
			spec := strings.ReplaceAll(c.spec, "pool: p", "pool: "+pool)
			_, err := admin(t).tryCreate(members, ns, fmt.Sprintf(`{apiVersion: pawl.dev/v1alpha1, kind: Member, metadata: {name: %s-0}, spec: %s}`, pool, spec))
			expect(t, c.reason, err, c.want)
		})
	}
}

// Each endpoint leaves the other half of a member as it is.
func TestMember_Endpoints(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	name := a.member(ns, available)

	if _, err := a.patch(members, ns, name, write{"status", `{"spec":` + claimA + `}`}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.patch(members, ns, name, write{"", `{"status":{"phase":"Failed","incarnation":9}}`}); err != nil {
		t.Fatal(err)
	}
	o, err := a.client.Resource(members).Namespace(ns).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, found, _ := unstructured.NestedMap(o.Object, "spec", "claim"); found {
		t.Error("the status endpoint has stored a claim")
	}
	if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase != "Available" {
		t.Errorf("the main endpoint has stored the phase %s", phase)
	}
}

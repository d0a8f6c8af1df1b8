//go:build integration

package apitest

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	hold         = "pawl.dev/hold"
	deleteClaims = "a claimed member is not deleted: release its claim first (kubectl delete claim a -n "
	driftNow     = `{"disruption":{"reason":"Drift","action":"Replace","incarnation":1,"since":"2030-06-01T00:00:00.000000Z"}}`
	notHeld      = "a held member is not disrupted for drift"
)

// held is an available member with a hold.
func held(value string) []write { return append(available[:1:1], annotate(hold, value)) }

func TestMemberGuard_Hold(t *testing.T) {
	cases := map[string]struct {
		reason string
		before []write
		write  write
		want   string
	}{
		"drift":            {"a hold keeps drift away", held(""), spec(driftNow), notHeld},
		"any value":        {"whatever it says", held("please"), spec(driftNow), notHeld},
		"no end":           {"a hold with a reason and no end holds", held(`{"reason":"debugging"}`), spec(driftNow), notHeld},
		"before its end":   {"a hold holds until its end", held(`{"reason":"x","until":"2030-07-01T00:00:00Z"}`), spec(driftNow), notHeld},
		"after its end":    {"and no longer", held(`{"until" : "2030-05-01T00:00:00Z"}`), spec(driftNow), ""},
		"at its end":       {"the end is the first instant without it", held(`{"until":"2030-06-01T02:00:00+02:00"}`), spec(driftNow), ""},
		"undated decision": {"a decision without a time is not after the end", held(`{"until":"2020-05-01T00:00:00Z"}`), spec(`{"disruption":{"reason":"Drift","action":"Replace","incarnation":1}}`), notHeld},
		"end in reason":    {"the words of the reason are no end", held(`{"reason":"\"until\":\"2020-05-01T00:00:00Z\""}`), spec(driftNow), notHeld},
		"other reason":     {"a hold is only about drift", held(""), spec(`{"disruption":{"reason":"Failed","action":"Replace","incarnation":1}}`), ""},
		"turned to drift":  {"a disruption does not become one for drift", append(held("")[:2:2], spec(`{"disruption":{"reason":"Failed","action":"Replace","incarnation":1}}`)), spec(`{"disruption":{"reason":"Drift"}}`), notHeld},
		"next incarnation": {"a disruption of another incarnation is a new one", append(spent[:4:4], annotate(hold, "")), spec(`{"disruption":{"incarnation":2}}`), notHeld},
		"hold too late":    {"a disruption that came before the hold goes on", append(drifting[:2:2], annotate(hold, "")), spec(`{"disruption":{"rolling":true}}`), ""},
		"withdrawn":        {"or is withdrawn", append(drifting[:2:2], annotate(hold, "")), spec(`{"disruption":null}`), ""},
		"in one write":     {"a hold is not taken away by the write that it forbids", held(""), write{"", `{"metadata":{"annotations":{"pawl.dev/hold":null}},"spec":` + driftNow + `}`}, notHeld},
		"claim":            {"a held member can be claimed", held(""), spec(claimA), ""},
		"status":           {"its status goes on", held(""), status(`{"message":"x"}`), ""},
		"hold in drift":    {"a hold and a disruption do not come together", available, write{"", `{"metadata":{"annotations":{"pawl.dev/hold":""}},"spec":` + driftNow + `}`}, notHeld},
	}
	ns := admin(t).namespace()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := admin(t)
			_, err := a.patch(members, ns, a.member(ns, c.before), c.write)
			expect(t, c.reason, err, c.want)
		})
	}
}

// TestMemberGuard_Frees: only who writes for Pawl takes a claim off a member
// whose body stays, since somebody has used that.
func TestMemberGuard_Frees(t *testing.T) {
	root := admin(t)
	ns := root.namespace()
	name := root.member(ns, claimed)
	root.grant(ns, "editor", right{verb: "patch", group: "pawl.dev", resource: "members"}, right{verb: "get", group: "pawl.dev", resource: "members"})
	root.grant(ns, "pawl", right{verb: "patch", group: "pawl.dev", resource: "members"}, right{verb: "get", group: "pawl.dev", resource: "members"}, right{verb: "create", group: "pawl.dev", resource: "pools", subresource: "revisions"})
	free := spec(`{"claim":null}`)
	_, err := as(t, "editor").patch(members, ns, name, free)
	expect(t, "a person with the right to edit members does not free a used body", err, "a claim is ended by deleting it")
	_, err = as(t, "editor").patch(members, ns, name, spec(`{"claim":null,"disruption":{"reason":"ClaimEnded","action":"Replace","incarnation":1}}`))
	expect(t, "to have its body replaced with the claim is another matter", err, "")
	other := root.member(ns, claimed)
	_, err = as(t, "pawl").patch(members, ns, other, free)
	expect(t, "who may record revisions does", err, "")
}

func (a api) delete(namespace, name string) error {
	return a.client.Resource(members).Namespace(namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
}

func TestMemberGuard_Delete(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	name := a.member(ns, claimed)

	expect(t, "a claimed member stays", a.delete(ns, name), deleteClaims+ns)
	a.apply(members, ns, name, []write{spec(`{"claim":null}`)})
	expect(t, "a released one goes", a.delete(ns, name), "")
	expect(t, "so does a disrupted one", a.delete(ns, a.member(ns, terminating)), "")
	expect(t, "and a held one", a.delete(ns, a.member(ns, held(""))), "")
}

// A namespace that goes deletes its members as one collection.
func TestMemberGuard_DeleteCollection(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	kept := a.member(ns, claimed)
	for range 3 {
		a.member(ns, available)
	}
	collection := a.client.Resource(members).Namespace(ns)
	err := collection.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
	expect(t, "the claimed member stays", err, deleteClaims+ns)
	eventually(t, "the others go", func() error {
		// The API server stops at the first refusal, and is asked again.
		_ = collection.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name!=" + kept})
		list, err := collection.List(context.Background(), metav1.ListOptions{})
		if err == nil && (len(list.Items) != 1 || list.Items[0].GetName() != kept) {
			t.Errorf("%d members are left, want only %s", len(list.Items), kept)
		}
		return err
	})
}

func TestMemberGuard_ClaimDeleted(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	finalizer := write{"", `{"metadata":{"finalizers":["pawl.dev/body"]}}`}
	name := a.member(ns, append(available[:1:1], finalizer))
	if err := a.delete(ns, name); err != nil {
		t.Fatal(err)
	}
	_, err := a.patch(members, ns, name, spec(claimA))
	expect(t, "nobody gets a member that is being deleted", err, "a member that is being deleted cannot be claimed")
	_, err = a.patch(members, ns, name, spec(`{"disruption":{"reason":"Requested","action":"Remove","incarnation":1}}`))
	expect(t, "it can be disrupted", err, "")
	_, err = a.patch(members, ns, name, write{"", `{"metadata":{"finalizers":null}}`})
	expect(t, "and goes in the end", err, "")
}

// The revisions that bodies are made from are not for everybody to write.
func TestRevisionGuard(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	const mallory = "mallory"
	a.grant(ns, mallory,
		right{"create", "apps", "controllerrevisions", "", ""},
		right{"update", "apps", "controllerrevisions", "", ""},
		right{"get", "apps", "controllerrevisions", "", ""})
	const forged = `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: p-1, labels: {pawl.dev/pool: p}}, revision: 1, data: {a: b}}`
	const other = `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: s-1}, revision: 1, data: {a: b}}`
	const lacks = "lacks the verb create on pools/revisions (API group pawl.dev)"

	_, err := as(t, mallory).tryCreate(revisions, ns, forged)
	expect(t, "a pool's revision is not forged", err, lacks)
	o, err := as(t, mallory).tryCreate(revisions, ns, other)
	expect(t, "those of others are not Pawl's", err, "")
	if o != nil {
		o.SetLabels(map[string]string{"pawl.dev/pool": "p"})
		_, err = as(t, mallory).client.Resource(revisions).Namespace(ns).Update(context.Background(), o, metav1.UpdateOptions{})
		expect(t, "nor made one afterwards", err, lacks)
	}
	a.grant(ns, mallory, right{"create", "pawl.dev", "pools", "revisions", ""})
	_, err = as(t, mallory).tryCreate(revisions, ns, forged)
	expect(t, "whoever has the right writes it", err, "")
}

func TestClaim_Rules(t *testing.T) {
	bound := []write{status(`{"phase":"Bound","member":"m-0"}`)}
	cases := map[string]struct {
		reason string
		before []write
		write  write
		want   string
	}{
		"other pool":    {"a claim is for one pool", nil, spec(`{"pool":"other"}`), "pool is immutable"},
		"other holder":  {"a claim is not given away", nil, spec(`{"holder":"root"}`), "holder is immutable"},
		"no holder":     {"nor made nobody's", nil, spec(`{"holder":null}`), "holder is immutable"},
		"ttl":           {"its time to live may change", nil, spec(`{"ttl":"5m"}`), ""},
		"zero ttl":      {"to more than nothing", nil, spec(`{"ttl":"0s"}`), "ttl must be a duration of more than 0s"},
		"no duration":   {"to a duration", nil, spec(`{"ttl":"soon"}`), "ttl must be a duration"},
		"bind":          {"a claim gets a member", nil, bound[0], ""},
		"other member":  {"and keeps it", bound, status(`{"member":"m-1"}`), "status.member never changes"},
		"no member":     {"for good", bound, status(`{"member":null}`), "status.member never changes"},
		"no status":     {"also when its status is taken away", bound, write{"status", `{"status":null}`}, "status.member never changes"},
		"release":       {"a bound claim ends", bound, status(`{"phase":"Released"}`), ""},
		"unrelease":     {"once", []write{status(`{"phase":"Released"}`)}, status(`{"phase":"Bound"}`), "a claim that has ended does not come back"},
		"unexpire":      {"also by its time", []write{status(`{"phase":"Expired"}`)}, status(`{"phase":"Pending"}`), "a claim that has ended does not come back"},
		"unfail":        {"or by the loss of its member", []write{status(`{"phase":"Failed"}`)}, status(`{"phase":null}`), "a claim that has ended does not come back"},
		"forget":        {"whatever is done to its status", []write{status(`{"phase":"Failed"}`)}, write{"status", `{"status":null}`}, "a claim that has ended does not come back"},
		"unknown phase": {"phases are those of the design", nil, status(`{"phase":"Lost"}`), "status.phase: Unsupported value"},
		"coarse time":   {"times are in microseconds", nil, status(`{"boundAt":"2030-01-01T00:00:00Z"}`), "status.boundAt"},
	}
	ns := admin(t).namespace()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := admin(t)
			o := a.create(claims, ns, `{apiVersion: pawl.dev/v1alpha1, kind: Claim, metadata: {generateName: c-}, spec: {pool: p}}`)
			a.apply(claims, ns, o.GetName(), c.before)
			_, err := a.patch(claims, ns, o.GetName(), c.write)
			expect(t, c.reason, err, c.want)
		})
	}
}

func holder(o *unstructured.Unstructured) string {
	s, _, _ := unstructured.NestedString(o.Object, "spec", "holder")
	return s
}

func TestClaimHolder(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	const alice = "alice"
	a.grant(ns, alice, right{"create", "pawl.dev", "claims", "", ""}, right{"patch", "pawl.dev", "claims", "", ""})
	cases := map[string]struct{ reason, manifest string }{
		"stamped": {"the holder is who asks", `{apiVersion: pawl.dev/v1alpha1, kind: Claim, metadata: {name: stamped}, spec: {pool: p}}`},
		"forged":  {"not who one says one is", `{apiVersion: pawl.dev/v1alpha1, kind: Claim, metadata: {name: forged}, spec: {pool: p, holder: root}}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := holder(as(t, alice).create(claims, ns, c.manifest)); got != alice {
				t.Errorf("%s: holder is %q", c.reason, got)
			}
		})
	}
}

// Whoever may write claims does not therefore keep somebody else's alive, or
// end it.
func TestClaimHolder_Renew(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	const alice, bob, boss = "alice", "bob", "boss"
	for _, user := range []string{alice, bob, boss} {
		a.grant(ns, user, right{"create", "pawl.dev", "claims", "", ""}, right{"patch", "pawl.dev", "claims", "", ""})
	}
	a.grant(ns, boss, right{"update", "pawl.dev", "claims", "holder", ""})
	const lacks = "only its holder, alice, renews a claim or changes its ttl: bob lacks the verb update on claims/holder"
	as(t, alice).create(claims, ns, `{apiVersion: pawl.dev/v1alpha1, kind: Claim, metadata: {name: c}, spec: {pool: p, ttl: 1h}}`)
	for _, c := range []struct {
		reason, user string
		write        write
		want         string
	}{
		{"the holder renews it", alice, spec(`{"renewTime":"2030-01-01T00:00:00.000000Z"}`), ""},
		{"nobody else does", bob, spec(`{"renewTime":"2030-01-01T00:01:00.000000Z"}`), lacks},
		{"nor takes that back", bob, spec(`{"renewTime":null}`), lacks},
		{"the holder changes its ttl", alice, spec(`{"ttl":"2h"}`), ""},
		{"nobody else does", bob, spec(`{"ttl":"1s"}`), lacks},
		{"nor takes it away", bob, spec(`{"ttl":null}`), lacks},
		{"what is not about its time is as before", bob, write{"", `{"metadata":{"labels":{"team":"b"}}}`}, ""},
		{"whoever has the right does", boss, spec(`{"ttl":"3h","renewTime":"2030-01-01T00:02:00.000000Z"}`), ""},
	} {
		_, err := as(t, c.user).patch(claims, ns, "c", c.write)
		expect(t, c.reason, err, c.want)
	}
}

// Server-side apply of the same claim twice changes nothing the second time,
// although the holder is not in what is applied.
func TestClaimHolder_Apply(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	o := a.parse(`{apiVersion: pawl.dev/v1alpha1, kind: Claim, metadata: {name: c}, spec: {pool: p}}`)
	var versions []string
	for range 2 {
		got, err := a.client.Resource(claims).Namespace(ns).Apply(context.Background(), "c", o, metav1.ApplyOptions{FieldManager: "test"})
		if err != nil {
			t.Fatal(err)
		}
		if holder(got) == "" {
			t.Error("no holder")
		}
		versions = append(versions, got.GetResourceVersion())
	}
	if versions[0] != versions[1] {
		t.Errorf("the second apply wrote version %s after %s", versions[1], versions[0])
	}
}

// A mutation of somebody else's cannot give a claim another holder.
func TestClaimHolder_Mutated(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	a.inNamespace(ns, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: zz-forge}
spec:
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  matchConstraints:
    resourceRules: [{apiGroups: [pawl.dev], apiVersions: ["*"], operations: [CREATE], resources: [claims]}]
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "add", path: "/spec/holder", value: "root"}, JSONPatch{op: "add", path: "/spec/ttl", value: "9m"}]
`, `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: zz-forge}
spec: {policyName: zz-forge}
`)
	eventually(t, "the mutation is in force", func() error {
		o, err := a.tryCreate(claims, ns, `{apiVersion: pawl.dev/v1alpha1, kind: Claim, metadata: {generateName: c-}, spec: {pool: p}}`)
		if err != nil {
			expect(t, "a forged holder is refused", err, "spec.holder is stamped by the API server")
			return nil
		}
		if holder(o) == "root" {
			t.Fatal("a forged holder was stored")
		}
		if ttl, _, _ := unstructured.NestedString(o.Object, "spec", "ttl"); ttl != "9m" {
			return context.DeadlineExceeded // not yet
		}
		return nil
	})
}

//go:build integration

package apitest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/pawl-dev/pawl/config"
	"github.com/pawl-dev/pawl/internal/pawldtest"
)

func TestMemberAnnotations(t *testing.T) {
	const (
		cost    = "pawl.dev/disruption-cost"
		recycle = "pawl.dev/recycle"
		skip    = "pawl.dev/skip"

		integer     = "must be an integer from -999999999 to 999999999"
		incarnation = "must be the incarnation of the body that is to go, a number of at most 2 (status.incarnation)"
		noTime      = `"until" must be a time such as "2031-05-01T18:00:00Z"`
		noRevision  = "must be the name of the revision to give up on"
	)
	cases := map[string]struct {
		reason     string
		key, value string
		want       string
	}{
		"cost":                 {"any integer orders members", cost, "-7", ""},
		"cost, signed":         {"as Go writes and reads them", cost, "+7", ""},
		"cost, none":           {"nothing is no number", cost, "", integer},
		"cost, fraction":       {"nor is a fraction", cost, "1.5", integer},
		"cost, words":          {"nor a word", cost, "high", integer},
		"cost, enormous":       {"nor what overflows", cost, "99999999999999999999", integer},
		"hold":                 {"a hold may be empty", hold, "", ""},
		"hold, any words":      {"or say anything", hold, "please", ""},
		"hold, reason":         {"or why", hold, `{"reason":"debugging"}`, ""},
		"hold, until":          {"and until when", hold, `{"reason":"x","until":"2031-05-01T18:00:00+02:00"}`, ""},
		"hold, fraction":       {"to the fraction of a second", hold, `{"until" : "2031-05-01T18:00:00.5Z"}`, ""},
		"hold, reason only":    {"words of the reason are no end", hold, `{"reason":"not \"until\": tomorrow"}`, ""},
		"hold, no time":        {"an end that is no time would never come", hold, `{"until":"tomorrow"}`, noTime},
		"hold, duration":       {"a duration has no beginning", hold, `{"until":"4h"}`, noTime},
		"hold, no zone":        {"a time without a zone is none", hold, `{"until":"2031-05-01T18:00:00"}`, noTime},
		"hold, noon":           {"nor is one in words", hold, `{"until":"2020-05-01Tnoon"}`, noTime},
		"hold, number":         {"nor a number", hold, `{"until":1900000000}`, noTime},
		"hold, no such month":  {"nor a month that there is not", hold, `{"until":"2020-13-01T00:00:00Z"}`, noTime},
		"hold, no such day":    {"nor a day that there is not", hold, `{"until":"2031-04-31T00:00:00Z"}`, noTime},
		"hold, no leap year":   {"not even in February", hold, `{"until":"2031-02-29T00:00:00Z"}`, "pawl-member-annotations"},
		"hold, other case":     {"JSON as Go reads it has no case, and the guard has", hold, `{"Until":"2031-05-01T18:00:00Z"}`, noTime},
		"recycle":              {"the body that there is goes", recycle, "2", ""},
		"recycle, spent":       {"an earlier one has gone", recycle, "1", ""},
		"recycle, later":       {"one that comes later is not asked for in advance", recycle, "3", incarnation},
		"recycle, words":       {"a body has a number", recycle, "true", incarnation},
		"recycle, none":        {"nothing is no number", recycle, "", incarnation},
		"recycle, negative":    {"numbers begin at 0", recycle, "-1", incarnation},
		"recycle, zeros":       {"and are written in one way", recycle, "02", incarnation},
		"recycle, enormous":    {"and are in range", recycle, "99999999999999999999", incarnation},
		"skip":                 {"a revision is given up on", skip, "9pddxxgw7rvz", ""},
		"skip, none":           {"by its name", skip, "", noRevision},
		"skip, words":          {"which is one word", skip, "the new one", noRevision},
		"skip, upper case":     {"as revisions are named", skip, "True", noRevision},
		"skip, too long":       {"and not longer than they are", skip, strings.Repeat("a", 64), noRevision},
		"others":               {"what is not Pawl's is nobody's business here", "example.com/skip", "The New One", ""},
		"others, like Pawl's":  {"nor what Pawl does not read", "pawl.dev/recycle-me", "yes", ""},
		"others, other object": {"nor what is read on Pools only", "pawl.dev/retry", "yes", ""},
	}
	ns := admin(t).namespace()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := admin(t)
			_, err := a.patch(members, ns, a.member(ns, spent), annotate(c.key, c.value))
			expect(t, c.reason, err, c.want)
		})
	}
}

func TestMemberAnnotations_Create(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	const manifest = `{apiVersion: pawl.dev/v1alpha1, kind: Member, metadata: {name: p-%d, annotations: {%s}}, spec: {pool: p, index: %[1]d}}`
	_, err := a.tryCreate(members, ns, fmt.Sprintf(manifest, 1, `pawl.dev/hold: "", pawl.dev/disruption-cost: "1"`))
	expect(t, "a member may be made with annotations", err, "")
	_, err = a.tryCreate(members, ns, fmt.Sprintf(manifest, 2, `pawl.dev/disruption-cost: a`))
	expect(t, "that mean something", err, "must be an integer")
	_, err = a.tryCreate(members, ns, fmt.Sprintf(manifest, 3, `pawl.dev/recycle: "1"`))
	expect(t, "and no body goes before there is one", err, "a number of at most 0")
}

func TestPoolAnnotations(t *testing.T) {
	cases := map[string]struct{ reason, value, want string }{
		"retry":       {"a revision is tried once more", "9pddxxgw7rvz@2031-05-01T12:00:00Z", ""},
		"any token":   {"anything tells one request from another", "9pddxxgw7rvz@please", ""},
		"no token":    {"something has to", "9pddxxgw7rvz@", "annotation pawl.dev/retry must be the revision"},
		"no revision": {"the revision is named", "@now", "annotation pawl.dev/retry must be the revision"},
		"a word":      {"nothing else is a request", "true", "annotation pawl.dev/retry must be the revision"},
	}
	ns := admin(t).namespace()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := admin(t)
			o := a.create(pools, ns, pool(unique("p"), `{replicas: 0, template: {sim: {version: "1"}}}`))
			_, err := a.patch(pools, ns, o.GetName(), annotate("pawl.dev/retry", c.value))
			expect(t, c.reason, err, c.want)
		})
	}
}

// What is stored already keeps nobody from writing the object: values that an
// earlier version took, or that came while the policy was away.
func TestMemberAnnotations_Stored(t *testing.T) {
	s := pawldtest.Start(t, pawldtest.WithoutControllers())
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	a := api{t, client}
	set, err := config.ClusterPolicies()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range set {
		if o.GetKind() != "ValidatingAdmissionPolicyBinding" || o.GetName() != "pawl-member-annotations" {
			continue
		}
		r, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if err := client.Resource(r).Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		name := a.member("default", available)
		bad := annotate("pawl.dev/disruption-cost", "high")
		bad.patch = strings.Replace(bad.patch, "{\"pawl", "{\"pawl.dev/hold\":\"{\\\"until\\\":1}\",\"pawl.dev/recycle\":\"x\",\"pawl.dev/skip\":\"\",\"pawl", 1)
		eventually(t, "bad values are stored", func() error {
			_, err := a.patch(members, "default", name, bad)
			return err
		})
		if _, err := client.Resource(r).Create(context.Background(), &o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the policy is back", func() error {
			if _, err := a.patch(members, "default", a.member("default", available), bad); err == nil {
				return fmt.Errorf("bad values are still taken")
			}
			return nil
		})
		_, err := a.patch(members, "default", name, spec(driftNow))
		expect(t, "a member with bad values is written", err, notHeld)
		_, err = a.patch(members, "default", name, spec(`{"cordoned":true}`))
		expect(t, "and so is the rest of it", err, "")
		_, err = a.patch(members, "default", name, annotate("pawl.dev/skip", "Also Bad"))
		expect(t, "but no other bad value", err, "pawl.dev/skip must be")
		_, err = a.patch(members, "default", name, write{"", `{"metadata":{"annotations":null}}`})
		expect(t, "they can be taken away", err, "")
		return
	}
	t.Fatal("the policy's binding is not installed")
}

// Whoever edits pools in a namespace may hold, recycle and skip members, and
// retry; whoever views them may not.
func TestUserRights(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	rights, err := config.RBAC()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range rights {
		if !strings.HasPrefix(o.GetName(), "pawl-view") && !strings.HasPrefix(o.GetName(), "pawl-edit") {
			continue
		}
		r, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if _, err := a.client.Resource(r).Apply(context.Background(), o.GetName(), &o, metav1.ApplyOptions{FieldManager: "test"}); err != nil {
			t.Fatal(err)
		}
		user := strings.TrimPrefix(o.GetName(), "pawl-") + "or"
		a.create(bindings, ns, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: %s},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}, subjects: [{kind: User, name: %s}]}`, o.GetName(), o.GetName(), user))
	}
	eventually(t, "editors edit", func() error { return a.allowed(ns, "editor", right{"patch", "pawl.dev", "members", "", ""}) })
	p := a.create(pools, ns, pool(unique("p"), `{replicas: 0, template: {sim: {version: "1"}}}`))
	member := a.member(ns, available)
	for key, value := range map[string]string{"pawl.dev/hold": "", "pawl.dev/recycle": "1", "pawl.dev/skip": "abc", "pawl.dev/disruption-cost": "5"} {
		_, err := as(t, "editor").patch(members, ns, member, annotate(key, value))
		expect(t, "an editor sets "+key, err, "")
		_, err = as(t, "viewor").patch(members, ns, member, annotate(key, value))
		expect(t, "a viewer does not set "+key, err, "cannot patch resource")
	}
	_, err = as(t, "editor").patch(pools, ns, p.GetName(), annotate("pawl.dev/retry", "abc@now"))
	expect(t, "an editor retries", err, "")
	_, err = as(t, "editor").patch(members, ns, a.member(ns, claimed), annotate("pawl.dev/recycle", "1"))
	expect(t, "asking for a claimed member is no more than asking", err, "")
}

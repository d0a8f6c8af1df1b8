//go:build integration

package apitest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pawl-dev/pawl/config"
)

// pool is a Pool's manifest with the given spec.
func pool(name, spec string) string {
	return fmt.Sprintf(`{apiVersion: pawl.dev/v1alpha1, kind: Pool, metadata: {name: %s}, spec: %s}`, name, spec)
}

const (
	simPool     = `{template: {sim: {}}}`
	processPool = `{template: {process: {command: sleep}}}`
	objectsPool = `{serviceAccountName: builder, template: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: "${member.name}"}}]}}`
)

// TestPool_Spec is bad input: each is refused with words that name the field.
func TestPool_Spec(t *testing.T) {
	const number, limit = "must be a number from 0 to 100000, or a percentage from 0% to 100%", "must be a number from 1 to 100000, or a percentage from 1% to 100%"
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"sim":     {"the smallest pool", simPool, ""},
		"process": {"a process needs a command only", processPool, ""},
		"objects": {"objects need an account", objectsPool, ""},
		"full": {"every field at once", `{replicas: 4, sizing: Total, revisionHistoryLimit: 0, template: {bootTimeout: 1m, process: {
			command: /bin/server, args: [-v], env: {A: b}, files: [{path: conf/a.txt, content: x, mode: "600"}], ports: [http],
			readiness: {http: {port: http, path: /ready}, period: 100ms}, stop: {signal: INT, grace: 1s}}},
			update: {type: RollingUpdate, method: Replace, maxUnavailable: 100%, maxSurge: 0, minAvailable: 0%, maxInFlight: 1, paused: false,
			partition: 0, order: OldestFirst, minReadySeconds: 0, progressDeadline: 1h, failureLimit: 1%, unknown: Replace},
			claims: {defaultTTL: 1h, maxTTL: 2h, onRelease: Reuse, prefer: Updated}}`, ""},

		"unknown field":       {"a field that is not there is not ignored", `{template: {sim: {}}, replica: 3}`, `unknown field "spec.replica"`},
		"unknown in template": {"nor deep down", `{template: {process: {command: a, comand: b}}}`, `unknown field "spec.template.process.comand"`},
		"of a later version":  {"nor one of the design that does not work yet", `{template: {sim: {}}, update: {roles: {}}}`, `unknown field "spec.update.roles"`},
		"no template":         {"a pool is made from something", `{replicas: 1}`, "spec.template: Required value"},
		"empty template":      {"and not from nothing", `{template: {}}`, "exactly one of objects, process and sim must be set"},
		"two kinds":           {"nor from two things", `{template: {sim: {}, process: {command: a}}}`, "exactly one of objects, process and sim must be set"},
		"no objects":          {"an empty list is nothing", `{serviceAccountName: a, template: {objects: []}}`, "spec.template.objects"},
		"no account":          {"objects are applied with somebody's rights", `{template: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}`, "template.objects needs serviceAccountName"},
		"no kind":             {"an object has a kind", `{serviceAccountName: a, template: {objects: [{apiVersion: v1, metadata: {name: a}}]}}`, "each of spec.template.objects needs apiVersion and kind"},
		"no version":          {"of a version", `{serviceAccountName: a, template: {objects: [{kind: ConfigMap, metadata: {name: a}}]}}`, "each of spec.template.objects needs apiVersion and kind"},
		"odd kind":            {"a kind is a word", `{serviceAccountName: a, template: {objects: [{apiVersion: v1, kind: 7, metadata: {name: a}}]}}`, "each of spec.template.objects needs apiVersion and kind"},
		"no name":             {"it has a name, one by one", `{serviceAccountName: a, template: {objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}, {apiVersion: v1, kind: ConfigMap, metadata: {generateName: a}}]}}`, "each of spec.template.objects needs metadata.name"},
		"no metadata":         {"where names are", `{serviceAccountName: a, template: {objects: [{apiVersion: v1, kind: ConfigMap, name: a}]}}`, "each of spec.template.objects needs metadata.name"},
		"ready of process":    {"expressions are about objects", `{template: {process: {command: a}, ready: ["true"]}}`, "ready needs objects"},
		"no command":          {"a process runs something", `{template: {process: {args: [a]}}}`, "spec.template.process.command: Required value"},
		"empty command":       {"with a name", `{template: {process: {command: ""}}}`, "spec.template.process.command"},
		"bad variable":        {"names of variables have no equals sign", `{template: {process: {command: a, env: {"A=B": c}}}}`, "names of environment variables"},
		"no variable":         {"nor are they empty", `{template: {process: {command: a, env: {"": c}}}}`, "names of environment variables"},
		"file above":          {"files stay in their directory", `{template: {process: {command: a, files: [{path: ../a}]}}}`, "path must be relative"},
		"file inside out":     {"by whatever way", `{template: {process: {command: a, files: [{path: a/../../b}]}}}`, "path must be relative"},
		"file at root":        {"not at the root", `{template: {process: {command: a, files: [{path: /etc/passwd}]}}}`, "path must be relative"},
		"file twice":          {"no file twice", `{template: {process: {command: a, files: [{path: a}, {path: a}]}}}`, "Duplicate value"},
		"file mode":           {"modes are octal", `{template: {process: {command: a, files: [{path: a, mode: "888"}]}}}`, "spec.template.process.files[0].mode"},
		"port name":           {"ports have names that expressions can say", `{template: {process: {command: a, ports: [web-1]}}}`, "spec.template.process.ports[0]"},
		"port twice":          {"each its own", `{template: {process: {command: a, ports: [web, web]}}}`, "Duplicate value"},
		"no such port":        {"a probe asks a port that there is", `{template: {process: {command: a, ports: [web], readiness: {tcp: {port: wep}}}}}`, "readiness.tcp.port must be one of ports"},
		"no port":             {"and that at all", `{template: {process: {command: a, readiness: {http: {port: web}}}}}`, "readiness.http.port must be one of ports"},
		"two probes":          {"one probe", `{template: {process: {command: a, ports: [web], readiness: {tcp: {port: web}, output: {match: ready}}}}}`, "exactly one of tcp, http, exec and output"},
		"no probe":            {"not none", `{template: {process: {command: a, readiness: {period: 1s}}}}`, "exactly one of tcp, http, exec and output"},
		"quick probe":         {"not too often", `{template: {process: {command: a, readiness: {exec: {command: [a]}, period: 1ms}}}}`, "period must be a duration of 10ms or more"},
		"bad signal":          {"signals by their names", `{template: {process: {command: a, stop: {signal: SIGTERM}}}}`, "spec.template.process.stop.signal"},
		"negative grace":      {"time does not run backwards", `{template: {process: {command: a, stop: {grace: -1s}}}}`, "grace must be a duration of 0s or more"},
		"no boot time":        {"a boot takes time", `{template: {sim: {}, bootTimeout: 0s}}`, "bootTimeout must be a duration of more than 0s"},
		"no duration":         {"time has a unit", `{template: {sim: {}, bootTimeout: "5"}}`, "bootTimeout must be a duration of more than 0s, such as 90s or 1h30m"},
		"days":                {"a unit that Go knows", `{template: {sim: {}, bootTimeout: 1d}}`, "bootTimeout must be a duration"},
		"too long a duration": {"time fits into 63 bits", `{template: {sim: {}, bootTimeout: 9999999999h}}`, "spec.template.bootTimeout"},
		"sim outcome":         {"outcomes that can be simulated", `{template: {sim: {outcome: Explode}}}`, "spec.template.sim.outcome"},
		"sim boot":            {"not into the past", `{template: {sim: {boot: -1s}}}`, "boot must be a duration of 0s or more"},
		"sim stop":            {"neither end", `{template: {sim: {stop: -1s}}}`, "stop must be a duration of 0s or more"},
		"sim drain":           {"nor drain", `{template: {sim: {drain: -1s}}}`, "drain must be a duration of 0s or more"},
		"sim after":           {"nor crash", `{template: {sim: {after: -1s}}}`, "after must be a duration of 0s or more"},

		"negative size":        {"no fewer than none", `{replicas: -1, template: {sim: {}}}`, "spec.replicas"},
		"huge size":            {"nor more than it is built for", `{replicas: 100001, template: {sim: {}}}`, "spec.replicas"},
		"unknown sizing":       {"sizings that work", `{sizing: Cold, template: {sim: {}}}`, `spec.sizing: Unsupported value: "Cold"`},
		"history":              {"no negative history", `{revisionHistoryLimit: -1, template: {sim: {}}}`, "spec.revisionHistoryLimit"},
		"unavailable 150%":     {"not more than all", `{template: {sim: {}}, update: {maxUnavailable: 150%}}`, number},
		"unavailable -1":       {"not fewer than none", `{template: {sim: {}}, update: {maxUnavailable: -1}}`, number},
		"unavailable many":     {"the word is no number", `{template: {sim: {}}, update: {maxUnavailable: many}}`, number},
		"unavailable 5":        {"a number in quotes is none", `{template: {sim: {}}, update: {maxUnavailable: "5"}}`, number},
		"unavailable 3e9":      {"a number that clients of this API can read", `{template: {sim: {}}, update: {maxUnavailable: 3000000000}}`, number},
		"surge 101%":           {"surge likewise", `{template: {sim: {}}, update: {maxSurge: 101%}}`, number},
		"floor -5%":            {"the floor likewise", `{template: {sim: {}}, update: {minAvailable: -5%}}`, number},
		"limit 0":              {"a limit lets something through", `{template: {sim: {}}, update: {failureLimit: 0}}`, limit},
		"limit 0%":             {"in percent too", `{template: {sim: {}}, update: {failureLimit: 0%}}`, limit},
		"in flight 0":          {"something must fly", `{template: {sim: {}}, update: {maxInFlight: 0}}`, "spec.update.maxInFlight"},
		"partition -1":         {"no negative partition", `{template: {sim: {}}, update: {partition: -1}}`, "spec.update.partition"},
		"min ready -1":         {"no negative time", `{template: {sim: {}}, update: {minReadySeconds: -1}}`, "spec.update.minReadySeconds"},
		"min ready 1000 years": {"nor one without an end", `{template: {sim: {}}, update: {minReadySeconds: 3000000000}}`, "spec.update.minReadySeconds"},
		"deadline 0":           {"progress takes time", `{template: {sim: {}}, update: {progressDeadline: 0s}}`, "progressDeadline must be a duration of more than 0s"},
		"type":                 {"types that work", `{template: {sim: {}}, update: {type: OnDelete}}`, `spec.update.type: Unsupported value`},
		"method":               {"methods that work", `{template: {sim: {}}, update: {method: Recreate}}`, `spec.update.method: Unsupported value`},
		"order":                {"orders that work", `{template: {sim: {}}, update: {order: Random}}`, `spec.update.order: Unsupported value`},
		"unknown":              {"policies that work", `{template: {sim: {}}, update: {unknown: Guess}}`, `spec.update.unknown: Unsupported value`},
		"default ttl":          {"a claim lasts", `{template: {sim: {}}, claims: {defaultTTL: 0s}}`, "defaultTTL must be a duration of more than 0s"},
		"max ttl":              {"at least a moment", `{template: {sim: {}}, claims: {maxTTL: -1s}}`, "maxTTL must be a duration of more than 0s"},
		"on release":           {"ends that work", `{template: {sim: {}}, claims: {onRelease: Burn}}`, "spec.claims.onRelease: Unsupported value"},
		"prefer":               {"preferences that work", `{template: {sim: {}}, claims: {prefer: Oldest}}`, "spec.claims.prefer: Unsupported value"},
	}
	ns := admin(t).namespace()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := admin(t).tryCreate(pools, ns, pool(unique("p"), c.spec))
			expect(t, c.reason, err, c.want)
		})
	}
}

func TestPool_Name(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	_, err := a.tryCreate(pools, ns, pool(strings.Repeat("p", 52), simPool))
	expect(t, "members' names have room for their index", err, "")
	_, err = a.tryCreate(pools, ns, pool(strings.Repeat("p", 53), simPool))
	expect(t, "and no more", err, "metadata.name must have at most 52 characters")
}

func TestPool_Scale(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	a.create(pools, ns, pool("p", `{replicas: 2, template: {sim: {}}}`))
	if _, err := a.patch(pools, ns, "p", write{"scale", `{"spec":{"replicas":5}}`}); err != nil {
		t.Fatal(err)
	}
	o, err := a.client.Resource(pools).Namespace(ns).Get(context.Background(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas"); n != 5 {
		t.Errorf("replicas = %d after a scale to 5", n)
	}
}

// writer is a user that may write Pools, and nothing else.
func (a api) writer(namespace string) string {
	user := unique("user")
	a.grant(namespace, user,
		right{"create", "pawl.dev", "pools", "", ""},
		right{"patch", "pawl.dev", "pools", "", ""},
		right{"update", "pawl.dev", "pools", "status", ""})
	return user
}

func TestProcessRight(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	user := a.writer(ns)
	lacks := "grant " + user + " the verb create on pools/process (API group pawl.dev) in namespace " + ns
	a.create(pools, ns, pool("theirs", processPool))

	_, err := as(t, user).tryCreate(pools, ns, pool("mine", processPool))
	expect(t, "a process is not for everybody to run", err, lacks)
	_, err = as(t, user).patch(pools, ns, "theirs", spec(`{"template":{"process":{"args":["1"]}}}`))
	expect(t, "nor to change", err, lacks)
	_, err = as(t, user).patch(pools, ns, "theirs", spec(`{"replicas":3}`))
	expect(t, "the rest of the pool is", err, "")
	_, err = as(t, user).tryCreate(pools, ns, pool("sim", simPool))
	expect(t, "pools of other kinds are", err, "")
	_, err = as(t, user).patch(pools, ns, "sim", spec(`{"template":{"sim":null,"process":{"command":"sleep"}}}`))
	expect(t, "unless they turn into one of processes", err, lacks)

	a.grant(ns, user, right{"create", "pawl.dev", "pools", "process", ""})
	_, err = as(t, user).tryCreate(pools, ns, pool("mine", processPool))
	expect(t, "with the right it is", err, "")
	other := a.namespace()
	a.grant(other, user, right{"create", "pawl.dev", "pools", "", ""})
	_, err = as(t, user).tryCreate(pools, other, pool("mine", processPool))
	expect(t, "in that namespace", err, "in namespace "+other)
}

func TestAccountRight(t *testing.T) {
	a := admin(t)
	ns := a.namespace()
	user := a.writer(ns)
	lacks := func(account string) string {
		return "grant " + user + " the verb impersonate on serviceaccounts/" + account + " in namespace " + ns
	}
	a.create(pools, ns, pool("theirs", objectsPool))

	_, err := as(t, user).tryCreate(pools, ns, pool("mine", objectsPool))
	expect(t, "an account's rights are not for everybody", err, lacks("builder"))
	_, err = as(t, user).patch(pools, ns, "theirs", spec(`{"template":{"objects":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}]}}`))
	expect(t, "not by other objects either", err, lacks("builder"))
	_, err = as(t, user).patch(pools, ns, "theirs", spec(`{"serviceAccountName":"root"}`))
	expect(t, "nor by another account", err, lacks("root"))
	_, err = as(t, user).patch(pools, ns, "theirs", spec(`{"replicas":3,"template":{"bootTimeout":"5m"}}`))
	expect(t, "the rest of the pool is", err, "")

	a.grant(ns, user, right{"impersonate", "", "serviceaccounts", "", "builder"})
	_, err = as(t, user).tryCreate(pools, ns, pool("mine", objectsPool))
	expect(t, "whoever may act as the account may use it", err, "")
	_, err = as(t, user).patch(pools, ns, "mine", spec(`{"serviceAccountName":"root"}`))
	expect(t, "that account", err, lacks("root"))
}

// policies applies those policies of a set that have a name, in one namespace.
func (a api) policies(namespace, name string, set []unstructured.Unstructured) {
	a.t.Helper()
	var policy, binding string
	for _, o := range set {
		if o.GetName() != name {
			continue
		}
		data, err := o.MarshalJSON()
		if err != nil {
			a.t.Fatal(err)
		}
		if strings.HasSuffix(o.GetKind(), "Binding") {
			binding = string(data)
		} else {
			policy = string(data)
		}
	}
	if policy == "" || binding == "" {
		a.t.Fatalf("there is no policy %s", name)
	}
	a.inNamespace(namespace, policy, binding)
}

func TestKindsOff(t *testing.T) {
	cluster, err := config.ClusterPolicies()
	if err != nil {
		t.Fatal(err)
	}
	nosim, err := config.PawldPolicies(false)
	if err != nil {
		t.Fatal(err)
	}
	const onlyPawld, onlySim = "template.process exists only in pawld", "template.sim exists only in pawld with --sim"
	cases := map[string]struct {
		reason       string
		policy       string
		set          []unstructured.Unstructured
		process, sim string
	}{
		"cluster": {"a cluster runs neither", "pawl-kinds-off", cluster, onlyPawld, onlySim},
		"no sim":  {"pawld runs processes, and simulates on request", "pawl-sim-off", nosim, "", "template.sim is switched off here: start pawld with --sim"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := admin(t)
			ns := a.namespace()
			a.create(pools, ns, pool("old", simPool))
			a.policies(ns, c.policy, c.set)
			eventually(t, "the policy is in force", func() error {
				_, err := a.tryCreate(pools, ns, pool(unique("sim"), simPool))
				if err == nil {
					return fmt.Errorf("%s: accepted", c.reason)
				}
				expect(t, c.reason, err, c.sim)
				return nil
			})
			_, err := a.tryCreate(pools, ns, pool("process", processPool))
			expect(t, c.reason, err, c.process)
			_, err = a.tryCreate(pools, ns, pool("objects", objectsPool))
			expect(t, "objects work everywhere", err, "")
			_, err = a.patch(pools, ns, "objects", spec(`{"template":{"objects":null,"sim":{}}}`))
			expect(t, "a pool does not turn into one that is off", err, c.sim)
			_, err = a.patch(pools, ns, "old", write{"", `{"metadata":{"finalizers":["pawl.dev/members"]},"spec":{"replicas":0}}`})
			expect(t, "a pool from before can be wound up", err, "")
			_, err = a.patch(pools, ns, "old", write{"", `{"metadata":{"finalizers":null}}`})
			expect(t, "to its end", err, "")
		})
	}
}

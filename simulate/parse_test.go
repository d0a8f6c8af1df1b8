package simulate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// good is a file in which everything is right; tests add lines to it.
const good = `name: story
why: a test
pool: {replicas: 2, update: {type: RollingUpdate}}
`

func TestParse_Wrong(t *testing.T) {
	cases := map[string]struct {
		reason, text, want string
	}{
		"empty":               {"a file says something", "", "x.yaml: the file is empty"},
		"not yaml":            {"the YAML parser's line is kept", "name: story\nwhy: [\n", "x.yaml:2: did not find"},
		"two documents":       {"one file, one story", good + "---\nname: other\n", "more than one YAML document"},
		"alias":               {"an alias could make a small file large", "name: &n story\nwhy: *n\n", "x.yaml:2: aliases"},
		"no name":             {"a story has a name", "why: x\npool: {}\n", "x.yaml:1: scenario: name is missing"},
		"name":                {"names are in kebab-case", "name: Story One\npool: {}\n", "x.yaml:1: name must be in kebab-case"},
		"other name":          {"a file is found by its name", "name: other\npool: {}\n", `x.yaml:1: name "other" differs from the file's name`},
		"no pool":             {"a story is about something", "name: x\n", "pool, pools or groups is missing"},
		"pool and pools":      {"pool is short for pools", "name: x\npool: {}\npools: {a: {}}\n", "x.yaml:3: pool and pools exclude"},
		"unknown field":       {"a typo is no wish", "name: x\npool: {}\nbegin: {}\n", `x.yaml:3: scenario: unknown field "begin"`},
		"field twice":         {"which one is meant?", "name: x\npool: {}\npool: {}\n", `x.yaml:3: scenario: "pool" is given twice`},
		"spec field":          {"the spec is the API's", "name: x\npool:\n  replica: 3\n", `x.yaml:3: unknown field "replica"`},
		"deep spec field":     {"at any depth", "name: x\npool:\n  update:\n    maxUnavailabel: 3\n", `x.yaml:4: unknown field "update.maxUnavailabel"`},
		"template":            {"bodies are simulated", "name: x\npool:\n  template: {}\n", "x.yaml:3: template must not be given"},
		"negative":            {"the API's limits hold", "name: x\npool:\n  replicas: -1\n", "x.yaml:3: replicas must be from 0 to 100000, not -1"},
		"150 %":               {"the API's limits hold", "name: x\npool:\n  update:\n    maxSurge: 150%\n", "x.yaml:4: spec.update.maxSurge"},
		"word":                {"the API's words hold", "name: x\npool:\n  update: {type: Rolling}\n", "update.type must be one of Manual, RollingUpdate"},
		"kind":                {"a number is a number", "name: x\npool:\n  replicas: many\n", `x.yaml:3: replicas: "many" is not what it takes`},
		"surge in place":      {"an update in place keeps every body", "name: x\npool:\n  update:\n    method: InPlace\n    maxSurge: 1\n", "x.yaml:5: spec.update.maxSurge: method InPlace keeps every body"},
		"window field":        {"a list's fields are the API's", "name: x\npool:\n  update:\n    windows:\n      - {schedul: x}\n", `x.yaml:5: unknown field "update.windows[0].schedul"`},
		"window without end":  {"a window has an end", "name: x\npool:\n  update:\n    windows:\n      - {schedule: '@daily'}\n", "x.yaml:5: spec.update.windows[0].duration: must be more than 0s"},
		"windows":             {"windows are a list", "name: x\npool:\n  update:\n    windows: {}\n", "x.yaml:4: update.windows must be a list"},
		"heartbeat":           {"the API's limits hold", "name: x\npool:\n  claims:\n    heartbeat: 10ms\n", "x.yaml:4: spec.claims.heartbeat: must be 1s or more"},
		"ttl of 0":            {"the API's limits hold", "name: x\npool:\n  claims: {maxTTL: 0s}\n", "x.yaml:3: spec.claims.maxTTL: must be more than 0s"},
		"refill at 0":         {"the API's limits hold", "name: x\npool:\n  refillBelow: 0\n", "x.yaml:3: refillBelow must be from 1 to 100000, not 0"},
		"ceiling":             {"the API's limits hold", "name: x\npool:\n  maxMembers: 200001\n", "x.yaml:3: maxMembers must be from 0 to 200000"},
		"sizing":              {"the API's words hold", "name: x\npool:\n  sizing: Hot\n", "x.yaml:3: sizing must be one of Total, Warm"},
		"on failure":          {"the API's words hold", "name: x\npool:\n  update: {onFailure: Panic}\n", "update.onFailure must be one of Halt, Rollback"},
		"upgrade to nothing":  {"an upgrade changes something", "name: x\npool: {}\ntimeline:\n  - {at: 1s, upgrade: {}}\n", "x.yaml:4: upgrade needs hashVersion or renderer"},
		"duration":            {"times have units", "name: x\npool: {}\nworld:\n  boot: 30\n", `x.yaml:4: world.boot must be a duration`},
		"negative duration":   {"time goes on", "name: x\npool: {}\nrun: -1s\n", "x.yaml:3: run must be a duration"},
		"outcome":             {"bodies do what bodies do", "name: x\npool: {}\nworld:\n  revisions:\n    B: {outcome: Explode}\n", "x.yaml:5: world.revisions.B.outcome must be one of"},
		"index twice":         {"a slot is one member", "name: x\npool: {}\nstart:\n  members:\n    - {index: 1}\n    - {index: 1}\n", "x.yaml:6: start.members: index 1 is given twice"},
		"index out of range":  {"the API's limits hold", "name: x\npool: {}\nstart:\n  members:\n    - {index: 100000}\n", "x.yaml:5: index must be a number from 0 to 99999"},
		"claim twice":         {"no claim holds two", "name: x\npool: {}\nstart:\n  members:\n    - {state: Claimed, claim: c}\n    - {state: Claimed, claim: c}\n", `claim "c" holds two members`},
		"claim for many":      {"no claim holds two", "name: x\npool: {}\nstart:\n  members:\n    - {count: 2, state: Claimed, claim: c}\n", `x.yaml:5: member: claim "c" cannot hold 2 members`},
		"claim of a free one": {"who claims, holds", "name: x\npool: {}\nstart:\n  members:\n    - {claim: c}\n", "x.yaml:5: member: a claim needs state: Claimed"},
		"busy without a body": {"work needs a body that serves", "name: x\npool: {}\nstart:\n  members:\n    - {state: Terminating, occupancy: Busy}\n", "x.yaml:5: member: a Terminating body has no work"},
		"state":               {"states are few", "name: x\npool: {}\nstart:\n  members:\n    - {state: Pending}\n", "x.yaml:5: state must be one of"},
		"hold":                {"a hold's end is a time", "name: x\npool: {}\nstart:\n  members:\n    - {hold: until noon}\n", "x.yaml:5: hold:"},
		"too many bodies":     {"they have to fit", "name: x\npool: {}\nworld: {capacity: 1}\nstart:\n  members:\n    - {count: 2}\n", "2 bodies do not fit a capacity of 1"},
		"no such pool":        {"pools have names", "name: x\npools: {a: {}}\nstart:\n  members:\n    b: []\n", `x.yaml:5: start.members: there is no pool or group "b"`},
		"neither at nor when": {"things happen at some time", "name: x\npool: {}\ntimeline:\n  - {revise: B}\n", "x.yaml:4: timeline entry: exactly one of at and when"},
		"two verbs":           {"an entry is one thing", "name: x\npool: {}\ntimeline:\n  - {at: 1s, revise: B, claim: c}\n", "x.yaml:4: timeline entry: exactly one of"},
		"no verb":             {"an entry is one thing", "name: x\npool: {}\ntimeline:\n  - {at: 1s}\n", "x.yaml:4: timeline entry: exactly one of"},
		"foreign field":       {"ttl is for claims", "name: x\npool: {}\ntimeline:\n  - {at: 1s, revise: B, ttl: 1m}\n", `x.yaml:4: timeline entry: field "ttl" does not belong here`},
		"repeat with at":      {"an instant comes once", "name: x\npool: {}\ntimeline:\n  - {at: 1s, revise: B, repeat: 2}\n", `field "repeat" does not belong here`},
		"nothing about it":    {"what about it?", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 1}\n", "x.yaml:4: timeline entry: what about member 1?"},
		"which pool":          {"there are two", "name: x\npools: {a: {}, b: {}}\ntimeline:\n  - {at: 1s, revise: B}\n", "x.yaml:4: timeline entry: which pool?"},
		"lose":                {"losses have names", "name: x\npool: {}\ntimeline:\n  - {at: 1s, lose: hope}\n", "x.yaml:4: lose must be one of"},
		"patch":               {"a patch is checked, too", "name: x\npool: {}\ntimeline:\n  - {at: 1s, set: {update: {paus: true}}}\n", `x.yaml:4: unknown field "update.paus"`},
		"recycle a pool":      {"the cure is named", "name: x\npool: {}\ntimeline:\n  - {at: 1s, do: recycle}\n", "x.yaml:4: do: recycle is for one member: add member"},
		"retry a member":      {"the cure is named", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, do: retry}\n", "x.yaml:4: do: retry is for a whole pool: leave member out"},
		"do":                  {"commands are few", "name: x\npool: {}\ntimeline:\n  - {at: 1s, do: pray}\n", "x.yaml:4: do must be one of retry, undo"},
		"do to a member":      {"commands are few", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, do: pray}\n", "x.yaml:4: do with a member must be one of recycle, skip"},
		"undo to what":        {"the cure is named", "name: x\npool: {}\ntimeline:\n  - {at: 1s, do: undo}\n", "x.yaml:4: do: undo needs the revision to go back to"},
		"retry to":            {"to is for undo", "name: x\npool: {}\ntimeline:\n  - {at: 1s, do: retry, to: A}\n", `x.yaml:4: timeline entry: field "to" does not belong here`},
		"source":              {"what does it say?", "name: x\npool: {}\ntimeline:\n  - {at: 1s, source: s}\n", "x.yaml:4: source needs content"},
		"clock":               {"which way?", "name: x\npool: {}\ntimeline:\n  - {at: 1s, clock: {}}\n", "x.yaml:4: clock needs jump"},
		"jump":                {"a jump is a duration", "name: x\npool: {}\ntimeline:\n  - {at: 1s, clock: {jump: far}}\n", `x.yaml:4: clock.jump must be a duration such as -1h or 30m, not "far"`},
		"create":              {"only pools are created", "name: x\npool: {}\ntimeline:\n  - {at: 1s, create: member}\n", "x.yaml:4: create must be one of pool"},
		"stop":                {"an end is a time", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, stop: later}\n", `x.yaml:4: stop must be never or a duration such as 10s, not "later"`},
		"flap":                {"the cure is named", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, health: Flap, up: 1s}\n", "x.yaml:4: health: Flap needs up and down, such as"},
		"flap at once":        {"it would never end", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, health: Flap, up: 0s, down: 1s}\n", "x.yaml:4: up must be more than 0s"},
		"up without":          {"up is for flaps", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, health: Down, up: 1s}\n", `field "up" does not belong here`},
		"flapping":            {"the cure is named", "name: x\npool: {}\nworld: {revisions: {B: {outcome: Flap}}}\n", "x.yaml:3: world.revisions.B: outcome Flap needs up and down"},
		"date":                {"a date is a time", "name: x\npool: {}\nworld: {date: soon}\n", `x.yaml:3: world.date must be a time such as 2026-03-28T23:00:00Z, not "soon"`},
		"date later":          {"the cure is named", "name: x\npool: {}\ntimeline:\n  - {at: 1s, world: {date: 2026-03-28}}\n", "x.yaml:4: world.date is for the start of the story; say clock"},
		"no such group":       {"groups have names", "name: x\ngroups: {a: {}}\ntimeline:\n  - {at: 1s, group: b, revise: B}\n", `x.yaml:4: there is no group "b"`},
		"which group":         {"there is none", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, roll: owner}\n", "x.yaml:4: timeline entry: which group?"},
		"no such budget":      {"budgets have names", "name: x\npool: {}\ntimeline:\n  - {at: 1s, budget: b, delete: budget}\n", `x.yaml:4: there is no budget "b"`},
		"budget verb":         {"the cure is named", "name: x\npool: {}\nbudgets: {b: {}}\ntimeline:\n  - {at: 1s, budget: b, revise: B}\n", "x.yaml:5: timeline entry: a budget needs exactly one of set, delete, create"},
		"namespace verb":      {"the cure is named", "name: x\npool: {}\ntimeline:\n  - {at: 1s, namespace: n, create: namespace}\n", "x.yaml:4: timeline entry: a namespace can only be deleted"},
		"no group in it":      {"groups have names", "name: x\ngroups: {a: {}}\nexpect:\n  never: [ \"groups.b.free > 0\" ]\n", `there is no group "b"`},
		"no budget in it":     {"budgets have names", "name: x\npool: {}\nexpect:\n  never: [ \"budgets.b.used > 0\" ]\n", `there is no budget "b"`},
		"expression":          {"expressions are compiled", "name: x\npool: {}\nexpect:\n  always: [ \"free >=\" ]\n", `x.yaml:4: expression "free >=": Syntax error`},
		"no truth":            {"an expectation is true or false", "name: x\npool: {}\nexpect:\n  always: [ \"free + 1\" ]\n", "is a int and not true or false"},
		"no such variable":    {"names are checked", "name: x\npool: {}\nexpect:\n  always: [ \"fre > 1\" ]\n", "undeclared reference to 'fre'"},
		"no such member field": {"fields are checked", "name: x\npool: {}\nexpect:\n  always:\n    - \"m[0].phas == 'Failed'\"\n",
			"x.yaml:5: expression"},
		"no such condition":    {"a typo would hold for ever", "name: x\npool: {}\nexpect:\n  never: [ \"conditions.Updted.status == 'True'\" ]\n", `there is no condition "Updted"`},
		"no such blocker":      {"a typo would hold for ever", "name: x\npool: {}\nexpect:\n  never: [ \"blockers.Bussy > 0\" ]\n", `there is no blocker "Bussy"`},
		"no such pool in it":   {"pools have names", "name: x\npools: {a: {}}\nexpect:\n  never: [ \"pools.b.free > 0\" ]\n", `there is no pool "b"`},
		"which pool's members": {"there are two", "name: x\npools: {a: {}, b: {}}\nexpect:\n  never: [ \"m[0].phase == ''\" ]\n", "m is that of one pool: say pools.NAME.m"},
		"loops":                {"an expression costs little", "name: x\npool: {}\nexpect:\n  never: [ \"m.exists(a, m.exists(b, m.exists(c, a == b)))\" ]\n", "loops are nested more than 2 deep"},
		"within":               {"deadlines are times", "name: x\npool: {}\nexpect:\n  within: {soon: [\"true\"]}\n", `x.yaml:4: within: "soon" is not a time`},
		"range":                {"a range has an order", "name: x\npool: {}\nexpect:\n  creates: {min: 3, max: 2}\n", "x.yaml:4: creates: min is more than max"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(c.text))
			if err == nil {
				t.Fatalf("%s: nothing is wrong with\n%s", c.reason, c.text)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got\n%v\nwant %q", c.reason, err, c.want)
			}
			if e := new(Error); !errors.As(err, &e) {
				t.Errorf("%s: %T is no Error", c.reason, err)
			}
		})
	}
}

func TestParse_AllErrors(t *testing.T) {
	_, err := Parse("x.yaml", []byte("name: x\nexpect: {always: [\"fre\"]}\npool: {replica: 1}\nrun: 1\n"))
	var lines []int
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		t.Fatalf("%v is one error, want three", err)
	}
	for _, e := range joined.Unwrap() {
		if wrong, ok := errors.AsType[*Error](e); ok {
			lines = append(lines, wrong.Line)
		}
	}
	if diff := cmp.Diff([]int{2, 3, 4}, lines); diff != "" {
		t.Errorf("all errors, by line: %s", diff)
	}
}

func TestParse_Needs(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"autoscale":               {"name: x\npool: {autoscale: {minFree: 1}}\n", "autoscale"},
		"occupancy":               {"name: x\npool: {occupancy: {expression: x}}\n", "occupancy"},
		"roles":                   {"name: x\npool: {update: {roles: {order: [primary]}}}\n", "update.roles"},
		"patch":                   {"name: x\npool: {}\ntimeline: [{at: 1s, set: {hooks: {reset: x}}}]\n", "hooks"},
		"budgets":                 {"name: x\npool: {}\nbudgets: {cell: {maxRolling: 1}}\n", "budgets"},
		"groups":                  {"name: x\ngroups: {g: {mode: Hold}}\nstart: {members: {g: [{role: primary}]}}\n", "groups"},
		"occupancy as by default": {"name: x\npool: {occupancy: claims, hooks: {onFailure: Replace}, autoscale: null, drain: {}}\n", ""},
		"leader":                  {"name: x\npool: {}\ntimeline: [{at: 1s, leader: {overlap: 5s}}]\n", "leader"},
		"restore":                 {"name: x\npool: {}\ntimeline: [{at: 1s, restore: {without: status}}]\n", "restore"},
		"namespace":               {"name: x\npool: {labels: {tier: gpu}}\nnamespaces: {pool: {name: n, labels: {a: b}}}\ntimeline: [{at: 1s, namespace: n, delete: namespace}]\n", "namespaces"},
		"handover":                {"name: x\npool: {update: {handover: {before: primary, timeout: 1m}}}\nworld: {handover: {takes: 3s, outcome: Lies, s1: {outcome: Fails}}}\n", "update.handover"},
		"one group": {`name: x
groups: {g: {mode: Hold, update: {maxInFlight: 2, windows: [], roles: {order: [replica, primary], shardBy: shard}, handover: {before: primary}}}}
start: {target: A, members: [{role: primary, shard: s1, synced: true}]}
timeline:
  - {at: 1s, revise: B}
  - {at: 1s, set: {update: {paused: true, roles: null}}}
  - {at: 1s, group: g, member: 0, roll: owner}
  - {at: 1s, member: 0, synced: false}
  - {at: 1s, member: 0, health: Down}
  - {at: 1s, do: retry}
  - {when: "updated == 1 && conditions.Held.status == 'True' && groups.g.holder.name == ''", crash: {for: 1s}}
  - {at: 2s, lose: roles, for: 1m}
`, "groups"},
		"budget": {`name: x
pools: {a: {}, b: {}}
budgets: {cell: {per: Budget, maxRolling: "25%"}}
timeline:
  - {at: 1s, budget: cell, set: {maxRolling: 1}}
  - {at: 2s, budget: cell, delete: ledger}
  - {at: 3s, budget: cell, delete: budget}
  - {at: 4s, budget: cell, create: budget}
expect: {always: ["budgets.cell.used <= budgets.cell.limit && !('a-0' in budgets.cell.holders)"]}
`, "budgets"},
		"grants": {"name: x\npool: {}\nexpect: {grants: 3}\n", "expect.grants"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := Parse("x.yaml", []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, strings.Join(s.Needs, ", ")); diff != "" {
				t.Errorf("needs: %s", diff)
			}
		})
	}
}

func TestParse_Start(t *testing.T) {
	s, err := Parse("", []byte(good+`start:
  target: B
  members:
    - {count: 2, revision: A}
    - {index: 7, revision: "", state: Claimed}
    - {state: Unready, hold: until 1h}
`))
	if err != nil {
		t.Fatal(err)
	}
	p := s.pools[0]
	want := []memberSetup{
		{index: 0, revision: "A", state: stateFree},
		{index: 1, revision: "A", state: stateFree},
		{index: 7, state: stateClaimed, claim: "pool-7-holder"},
		{index: 8, revision: "A", state: stateUnready, held: true, holdUntil: time.Hour},
	}
	if diff := cmp.Diff(want, p.members, cmp.AllowUnexported(memberSetup{})); diff != "" {
		t.Errorf("indexes go on, claims get names: %s", diff)
	}
	if p.target != "B" || p.current != "A" {
		t.Errorf("target %s, current %s: want B and what most members have", p.target, p.current)
	}
}

func TestLoad_NoFile(t *testing.T) {
	_, err := Load("nosuch.yaml")
	if e := new(Error); !errors.As(err, &e) || err.Error() != "nosuch.yaml: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

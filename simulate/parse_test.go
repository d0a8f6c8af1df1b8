package simulate

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// minimalScenario is a valid file; tests add lines to it.
const minimalScenario = `name: story
why: a test
pool: {replicas: 2, update: {type: RollingUpdate}}
`

func TestParse_Wrong(t *testing.T) {
	cases := map[string]struct {
		reason, text, want string
	}{
		"empty":               {"a file must not be empty", "", "x.yaml: the file is empty"},
		"not yaml":            {"the YAML parser's line is kept", "name: story\nwhy: [\n", "x.yaml:2: did not find"},
		"two documents":       {"a file has one scenario", minimalScenario + "---\nname: other\n", "more than one YAML document"},
		"alias":               {"an alias could make a small file large", "name: &n story\nwhy: *n\n", "x.yaml:2: aliases"},
		"no name":             {"a scenario needs a name", "why: x\npool: {}\n", "x.yaml:1: scenario: name is missing"},
		"name":                {"names are in kebab-case", "name: Story One\npool: {}\n", "x.yaml:1: name must be in kebab-case"},
		"other name":          {"a file has the name of its scenario", "name: other\npool: {}\n", `x.yaml:1: name "other" differs from the file's name`},
		"no pool":             {"a scenario needs a pool or a group", "name: x\n", "pool, pools or groups is missing"},
		"pool and pools":      {"pool is short for pools", "name: x\npool: {}\npools: {a: {}}\n", "x.yaml:3: pool and pools exclude"},
		"unknown field":       {"a typo is reported", "name: x\npool: {}\nbegin: {}\n", `x.yaml:3: scenario: unknown field "begin"`},
		"field twice":         {"only one of the values could count", "name: x\npool: {}\npool: {}\n", `x.yaml:3: scenario: "pool" is given twice`},
		"spec field":          {"the fields of the spec are those of the API", "name: x\npool:\n  replica: 3\n", `x.yaml:3: unknown field "replica"`},
		"deep spec field":     {"nested fields are checked, too", "name: x\npool:\n  update:\n    maxUnavailabel: 3\n", `x.yaml:4: unknown field "update.maxUnavailabel"`},
		"template":            {"bodies are simulated", "name: x\npool:\n  template: {}\n", "x.yaml:3: template must not be given"},
		"negative":            {"a number is within the limits of the API", "name: x\npool:\n  replicas: -1\n", "x.yaml:3: replicas must be from 0 to 100000, not -1"},
		"150 %":               {"a number is within the limits of the API", "name: x\npool:\n  update:\n    maxSurge: 150%\n", "x.yaml:4: spec.update.maxSurge"},
		"word":                {"a field has the values of the API", "name: x\npool:\n  update: {type: Rolling}\n", "update.type must be one of Manual, RollingUpdate"},
		"kind":                {"replicas is a number", "name: x\npool:\n  replicas: many\n", `x.yaml:3: replicas: "many" has the wrong type`},
		"surge in place":      {"an update in place keeps every body", "name: x\npool:\n  update:\n    method: InPlace\n    maxSurge: 1\n", "x.yaml:5: spec.update.maxSurge: method InPlace keeps every body"},
		"window field":        {"fields in lists are checked, too", "name: x\npool:\n  update:\n    windows:\n      - {schedul: x}\n", `x.yaml:5: unknown field "update.windows[0].schedul"`},
		"window without end":  {"a window needs a duration", "name: x\npool:\n  update:\n    windows:\n      - {schedule: '@daily'}\n", "x.yaml:5: spec.update.windows[0].duration: must be more than 0s"},
		"windows":             {"windows are a list", "name: x\npool:\n  update:\n    windows: {}\n", "x.yaml:4: update.windows must be a list"},
		"heartbeat":           {"a number is within the limits of the API", "name: x\npool:\n  claims:\n    heartbeat: 10ms\n", "x.yaml:4: spec.claims.heartbeat: must be 1s or more"},
		"ttl of 0":            {"a number is within the limits of the API", "name: x\npool:\n  claims: {maxTTL: 0s}\n", "x.yaml:3: spec.claims.maxTTL: must be more than 0s"},
		"refill at 0":         {"a number is within the limits of the API", "name: x\npool:\n  refillBelow: 0\n", "x.yaml:3: refillBelow must be from 1 to 100000, not 0"},
		"ceiling":             {"a number is within the limits of the API", "name: x\npool:\n  maxMembers: 200001\n", "x.yaml:3: maxMembers must be from 0 to 200000"},
		"sizing":              {"a field has the values of the API", "name: x\npool:\n  sizing: Hot\n", "x.yaml:3: sizing must be one of Total, Warm"},
		"on failure":          {"a field has the values of the API", "name: x\npool:\n  update: {onFailure: Panic}\n", "update.onFailure must be one of Halt, Rollback"},
		"upgrade to nothing":  {"an upgrade changes something", "name: x\npool: {}\ntimeline:\n  - {at: 1s, upgrade: {}}\n", "x.yaml:4: upgrade needs hashVersion or renderer"},
		"duration":            {"a duration needs a unit", "name: x\npool: {}\nworld:\n  boot: 30\n", `x.yaml:4: world.boot must be a duration`},
		"negative duration":   {"a run cannot be negative", "name: x\npool: {}\nrun: -1s\n", "x.yaml:3: run must be a duration"},
		"outcome":             {"outcomes are a fixed list", "name: x\npool: {}\nworld:\n  revisions:\n    B: {outcome: Explode}\n", "x.yaml:5: world.revisions.B.outcome must be one of"},
		"index twice":         {"an index is unique", "name: x\npool: {}\nstart:\n  members:\n    - {index: 1}\n    - {index: 1}\n", "x.yaml:6: start.members: index 1 is given twice"},
		"index out of range":  {"a number is within the limits of the API", "name: x\npool: {}\nstart:\n  members:\n    - {index: 100000}\n", "x.yaml:5: index must be a number from 0 to 99999"},
		"claim twice":         {"a claim holds one member", "name: x\npool: {}\nstart:\n  members:\n    - {state: Claimed, claim: c}\n    - {state: Claimed, claim: c}\n", `claim "c" holds two members`},
		"claim for many":      {"a claim holds one member", "name: x\npool: {}\nstart:\n  members:\n    - {count: 2, state: Claimed, claim: c}\n", `x.yaml:5: member: claim "c" cannot hold 2 members`},
		"claim of a free one": {"only a claimed member has a claim", "name: x\npool: {}\nstart:\n  members:\n    - {claim: c}\n", "x.yaml:5: member: a claim needs state: Claimed"},
		"busy without a body": {"work needs a body that serves", "name: x\npool: {}\nstart:\n  members:\n    - {state: Terminating, occupancy: Busy}\n", "x.yaml:5: member: a Terminating body has no work"},
		"state":               {"states are a fixed list", "name: x\npool: {}\nstart:\n  members:\n    - {state: Pending}\n", "x.yaml:5: state must be one of"},
		"hold":                {"the end of a hold is a duration", "name: x\npool: {}\nstart:\n  members:\n    - {hold: until noon}\n", "x.yaml:5: hold:"},
		"too many bodies":     {"the members at the start must fit the capacity", "name: x\npool: {}\nworld: {capacity: 1}\nstart:\n  members:\n    - {count: 2}\n", "2 bodies do not fit a capacity of 1"},
		"no such pool":        {"the pool must exist", "name: x\npools: {a: {}}\nstart:\n  members:\n    b: []\n", `x.yaml:5: start.members: there is no pool or group "b"`},
		"neither at nor when": {"an entry needs a time or an expression", "name: x\npool: {}\ntimeline:\n  - {revise: B}\n", "x.yaml:4: timeline entry: exactly one of at and when"},
		"two verbs":           {"an entry has one verb", "name: x\npool: {}\ntimeline:\n  - {at: 1s, revise: B, claim: c}\n", "x.yaml:4: timeline entry: exactly one of"},
		"no verb":             {"an entry has one verb", "name: x\npool: {}\ntimeline:\n  - {at: 1s}\n", "x.yaml:4: timeline entry: exactly one of"},
		"foreign field":       {"ttl belongs to claims", "name: x\npool: {}\ntimeline:\n  - {at: 1s, revise: B, ttl: 1m}\n", `x.yaml:4: timeline entry: field "ttl" does not belong here`},
		"repeat with at":      {"a fixed time cannot repeat", "name: x\npool: {}\ntimeline:\n  - {at: 1s, revise: B, repeat: 2}\n", `field "repeat" does not belong here`},
		"nothing about it":    {"an entry about a member needs a change", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 1}\n", "x.yaml:4: timeline entry: nothing changes for member 1; add one of"},
		"which pool":          {"with two pools the entry must name one", "name: x\npools: {a: {}, b: {}}\ntimeline:\n  - {at: 1s, revise: B}\n", "x.yaml:4: timeline entry: there are several pools; add pool"},
		"lose":                {"losses are a fixed list", "name: x\npool: {}\ntimeline:\n  - {at: 1s, lose: hope}\n", "x.yaml:4: lose must be one of"},
		"patch":               {"a patch is checked, too", "name: x\npool: {}\ntimeline:\n  - {at: 1s, set: {update: {paus: true}}}\n", `x.yaml:4: unknown field "update.paus"`},
		"recycle a pool":      {"the message names the cure", "name: x\npool: {}\ntimeline:\n  - {at: 1s, do: recycle}\n", "x.yaml:4: do: recycle is for one member: add member"},
		"retry a member":      {"the message names the cure", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, do: retry}\n", "x.yaml:4: do: retry is for a whole pool: leave member out"},
		"do":                  {"commands are a fixed list", "name: x\npool: {}\ntimeline:\n  - {at: 1s, do: pray}\n", "x.yaml:4: do must be one of retry, undo"},
		"do to a member":      {"commands are a fixed list", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, do: pray}\n", "x.yaml:4: do with a member must be one of recycle, skip"},
		"undo to what":        {"the message names the cure", "name: x\npool: {}\ntimeline:\n  - {at: 1s, do: undo}\n", "x.yaml:4: do: undo needs the revision to go back to"},
		"retry to":            {"to belongs to undo", "name: x\npool: {}\ntimeline:\n  - {at: 1s, do: retry, to: A}\n", `x.yaml:4: timeline entry: field "to" does not belong here`},
		"source":              {"a source needs content", "name: x\npool: {}\ntimeline:\n  - {at: 1s, source: s}\n", "x.yaml:4: source needs content"},
		"clock":               {"the clock needs a jump", "name: x\npool: {}\ntimeline:\n  - {at: 1s, clock: {}}\n", "x.yaml:4: clock needs jump"},
		"jump":                {"a jump is a duration", "name: x\npool: {}\ntimeline:\n  - {at: 1s, clock: {jump: far}}\n", `x.yaml:4: clock.jump must be a duration such as -1h or 30m, not "far"`},
		"create":              {"only pools are created", "name: x\npool: {}\ntimeline:\n  - {at: 1s, create: member}\n", "x.yaml:4: create must be one of pool"},
		"stop":                {"stop is a duration or never", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, stop: later}\n", `x.yaml:4: stop must be never or a duration such as 10s, not "later"`},
		"flap":                {"the message names the cure", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, health: Flap, up: 1s}\n", "x.yaml:4: health: Flap needs up and down, such as"},
		"flap at once":        {"a flap without a length would never end", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, health: Flap, up: 0s, down: 1s}\n", "x.yaml:4: up must be more than 0s"},
		"up without":          {"up belongs to Flap", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, health: Down, up: 1s}\n", `field "up" does not belong here`},
		"flapping":            {"the message names the cure", "name: x\npool: {}\nworld: {revisions: {B: {outcome: Flap}}}\n", "x.yaml:3: world.revisions.B: outcome Flap needs up and down"},
		"date":                {"a date is a time", "name: x\npool: {}\nworld: {date: soon}\n", `x.yaml:3: world.date must be a time such as 2026-03-28T23:00:00Z, not "soon"`},
		"date later":          {"the message names the cure", "name: x\npool: {}\ntimeline:\n  - {at: 1s, world: {date: 2026-03-28}}\n", "x.yaml:4: world.date is for the start; write clock"},
		"no such group":       {"the group must exist", "name: x\ngroups: {a: {}}\ntimeline:\n  - {at: 1s, group: b, revise: B}\n", `x.yaml:4: there is no group "b"`},
		"which group":         {"the file has no group", "name: x\npool: {}\ntimeline:\n  - {at: 1s, member: 0, roll: owner}\n", "x.yaml:4: timeline entry: there is not exactly one group; add group"},
		"no such budget":      {"the budget must exist", "name: x\npool: {}\ntimeline:\n  - {at: 1s, budget: b, delete: budget}\n", `x.yaml:4: there is no budget "b"`},
		"budget verb":         {"the message names the cure", "name: x\npool: {}\nbudgets: {b: {}}\ntimeline:\n  - {at: 1s, budget: b, revise: B}\n", "x.yaml:5: timeline entry: a budget needs exactly one of set, delete, create"},
		"namespace verb":      {"the message names the cure", "name: x\npool: {}\ntimeline:\n  - {at: 1s, namespace: n, create: namespace}\n", "x.yaml:4: timeline entry: a namespace can only be deleted"},
		"no group in it":      {"the group must exist", "name: x\ngroups: {a: {}}\nexpect:\n  never: [ \"groups.b.free > 0\" ]\n", `there is no group "b"`},
		"no budget in it":     {"the budget must exist", "name: x\npool: {}\nexpect:\n  never: [ \"budgets.b.used > 0\" ]\n", `there is no budget "b"`},
		"expression":          {"expressions are compiled", "name: x\npool: {}\nexpect:\n  always: [ \"free >=\" ]\n", `x.yaml:4: expression "free >=": Syntax error`},
		"no truth":            {"an expectation is true or false", "name: x\npool: {}\nexpect:\n  always: [ \"free + 1\" ]\n", "must be true or false, but is a int"},
		"no such variable":    {"names are checked", "name: x\npool: {}\nexpect:\n  always: [ \"fre > 1\" ]\n", "undeclared reference to 'fre'"},
		"no such member field": {"fields are checked", "name: x\npool: {}\nexpect:\n  always:\n    - \"m[0].phas == 'Failed'\"\n",
			"x.yaml:5: expression"},
		"no such condition":    {"with a typo, never would always hold", "name: x\npool: {}\nexpect:\n  never: [ \"conditions.Updted.status == 'True'\" ]\n", `there is no condition "Updted"`},
		"no such blocker":      {"with a typo, never would always hold", "name: x\npool: {}\nexpect:\n  never: [ \"blockers.Bussy > 0\" ]\n", `there is no blocker "Bussy"`},
		"no such pool in it":   {"the pool must exist", "name: x\npools: {a: {}}\nexpect:\n  never: [ \"pools.b.free > 0\" ]\n", `there is no pool "b"`},
		"which pool's members": {"with two pools the expression must name one", "name: x\npools: {a: {}, b: {}}\nexpect:\n  never: [ \"m[0].phase == ''\" ]\n", "m belongs to one pool: write pools.NAME.m"},
		"loops":                {"the cost of an expression is bounded", "name: x\npool: {}\nexpect:\n  never: [ \"m.exists(a, m.exists(b, m.exists(c, a == b)))\" ]\n", "loops are nested more than 2 deep"},
		"within":               {"deadlines are times", "name: x\npool: {}\nexpect:\n  within: {soon: [\"true\"]}\n", `x.yaml:4: within: "soon" is not a time`},
		"range":                {"min comes before max", "name: x\npool: {}\nexpect:\n  creates: {min: 3, max: 2}\n", "x.yaml:4: creates: min is more than max"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(c.text))
			if err == nil {
				t.Fatalf("%s: no error for\n%s", c.reason, c.text)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got\n%v\nwant %q", c.reason, err, c.want)
			}
			if e := new(Error); !errors.As(err, &e) {
				t.Errorf("%s: %T is not an Error", c.reason, err)
			}
		})
	}
}

func TestParse_AllErrors(t *testing.T) {
	_, err := Parse("x.yaml", []byte("name: x\nexpect: {always: [\"fre\"]}\npool: {replica: 1}\nrun: 1\n"))
	var lines []int
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		t.Fatalf("got one error, want three: %v", err)
	}
	for _, e := range joined.Unwrap() {
		if wrong, ok := errors.AsType[*Error](e); ok {
			lines = append(lines, wrong.Line)
		}
	}
	if diff := cmp.Diff([]int{2, 3, 4}, lines); diff != "" {
		t.Errorf("lines of all errors: %s", diff)
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
	s, err := Parse("", []byte(minimalScenario+`start:
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
		t.Errorf("indexes continue, and claims get default names: %s", diff)
	}
	if p.target != "B" || p.current != "A" {
		t.Errorf("target %s, current %s: want B, and A as most members have it", p.target, p.current)
	}
}

func TestLoad_NoFile(t *testing.T) {
	_, err := Load("nosuch.yaml")
	if e := new(Error); !errors.As(err, &e) || err.Error() != "nosuch.yaml: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

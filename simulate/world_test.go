package simulate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// play parses and runs a story.
func play(t *testing.T, seed int64, text string) *Result {
	t.Helper()
	s, err := Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Needs) > 0 {
		t.Fatalf("needs %v", s.Needs)
	}
	return s.Run(seed, true)
}

// begin sets a story up without playing it.
func begin(t *testing.T, seed int64, text string) *world {
	t.Helper()
	s, err := Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return newWorld(s, seed)
}

func TestQueue_Order(t *testing.T) {
	var q queue
	var got []string
	add := func(at time.Duration, tie uint32, name string) {
		q.push(event{at: at, tie: tie, do: func() { got = append(got, name) }})
	}
	add(2, 1, "later")
	add(1, 2, "second tie")
	add(1, 1, "first of a tie")
	add(1, 1, "next of a tie")
	add(1, 0, "edit")
	add(0, 9, "now")
	for len(q.heap) > 0 {
		e := q.pop()
		e.do()
	}
	want := []string{"now", "edit", "first of a tie", "next of a tie", "second tie", "later"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPool_Put_LoserChangesNothing(t *testing.T) {
	w := begin(t, 1, minimalScenario)
	p := w.pools[0]
	old := p.slots.get(0)
	first, second := *old, *old
	first.Cost, second.Cost = 1, 2
	if !p.put(byPlanner, old, &first, nil) {
		t.Fatal("the first write on a version failed")
	}
	if p.put(byKeeper, old, &second, nil) {
		t.Error("the second write on the same version succeeded, want a conflict")
	}
	if p.put(byPlanner, nil, &slot{Member: rollout.Member{Index: 0}}, nil) {
		t.Error("a slot that exists was made again")
	}
	if got := p.slots.get(0).Cost; got != 1 {
		t.Errorf("cost %d is stored, want 1 from the first write", got)
	}
}

// A cache receives the writes to one object in order and within the lag, and
// hasUnseenWrites reports the controller's own writes in flight.
func TestCache_Lag(t *testing.T) {
	for seed := range int64(20) {
		w := begin(t, seed+1, minimalScenario+"world: {lag: 5s}\n")
		p := w.pools[0]
		p.boot()
		for w.step(10 * time.Second) {
		}
		w.now = 10 * time.Second
		var seen []int
		c := &p.planner.cache
		c.notify = func(int) { seen = append(seen, int(c.slots.get(0).Cost)) }
		for i := 1; i <= 3; i++ {
			next := *p.slots.get(0)
			next.Cost = int32(i)
			p.put(byPlanner, p.slots.get(0), &next, nil)
		}
		if len(seen) < 3 && !c.hasUnseenWrites() {
			t.Fatalf("seed %d: writes are in flight, but hasUnseenWrites is false", seed)
		}
		for w.step(15 * time.Second) {
		}
		if !slices.Equal(seen, []int{1, 2, 3}) {
			t.Errorf("seed %d: saw %v within the lag, want 1, 2, 3", seed, seen)
		}
		if c.hasUnseenWrites() {
			t.Errorf("seed %d: no write is in flight, but hasUnseenWrites is true", seed)
		}
	}
}

// Crashed controllers do nothing and lose their caches, while bodies go on.
func TestWorld_Crash(t *testing.T) {
	r := play(t, 1, `name: crash
why: a test
pool: {replicas: 1, update: {type: RollingUpdate}}
world: {boot: 30s, stop: 10s}
timeline:
  - {at: 10s, revise: B}
  - {at: 15s, crash: {for: 1m}}
expect:
  at:
    1m14s: ["bodies == 0 && m[0].phase == 'Terminating'"]
    1m15s: ["bodies == 1 && m[0].phase == 'Provisioning'"]
  finally: ["updated == 1 && free == 1"]
  creates: 1
`)
	for _, f := range r.Failures {
		t.Error(f.short(), f.State)
	}
	for _, l := range r.Narrative {
		at := time.Duration(l.At)
		if at > 15*time.Second && at < 75*time.Second && l.Who != "world" {
			t.Errorf("%v: %s %s after the crash", l.At, l.Who, l.Text)
		}
	}
}

// A crash that waits for an expression comes between two writes of one pass.
func TestWorld_CrashInTheMiddle(t *testing.T) {
	r := play(t, 1, `name: middle
why: a test
pool: {replicas: 0}
timeline:
  - {at: 1s, set: {replicas: 4}}
  - {when: "members == 2", crash: {for: 1m}}
expect:
  at: {30s: ["members == 2 && bodies == 0"]}
  finally: ["members == 4 && free == 4"]
  creates: 4
`)
	for _, f := range r.Failures {
		t.Error(f.short(), f.State)
	}
}

func TestJudge_Failures(t *testing.T) {
	cases := map[string]struct{ reason, expect, want string }{
		"always":  {"it breaks when the roll begins", `{always: ["free == 2"]}`, "10s always: free == 2"},
		"never":   {"it breaks when the roll begins", `{never: ["rolling > 0"]}`, "10s never: rolling > 0"},
		"at":      {"the member is still booting", `{at: {30s: ["free == 2"]}}`, "30s at 30s: free == 2"},
		"at ends": {"the end of an instant counts", `{at: {10s: ["rolling == 0"]}}`, "10s at 10s: rolling == 0"},
		"within":  {"two replacements take longer", `{within: {59s: ["updated == 2"]}}`, "59s within 59s: updated == 2"},
		"within starts": {"true before the last entry is not enough", `{within: {20s: ["t < 10"]}}`,
			"20s within 20s: t < 10"},
		"finally": {"finally is checked at the end", `{finally: ["stale == 2"]}`, "finally: stale == 2"},
		"creates": {"bodies are counted", `{creates: 3}`, "creates: 3: there were 2"},
		"deletes": {"bodies are counted", `{deletes: {min: 3}}`, "deletes: from 3 to 2147483647: there were 2"},
		"order":   {"disruptions have an order", `{order: [1]}`, "order: [1]: it was [0 1]"},
		"time":    {"time alone may break it", `{always: ["t < 15"]}`, "15s always: t < 15"},
		"error":   {"an expression that cannot be evaluated does not hold", `{always: ["10 / rolling > 3"]}`, "0s always: 10 / rolling > 3: division by zero"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := play(t, 1, minimalScenario+"timeline: [{at: 10s, revise: B}]\nexpect: "+c.expect+"\n")
			if len(r.Failures) != 1 {
				t.Fatalf("%s: %d failures, want 1", c.reason, len(r.Failures))
			}
			f := &r.Failures[0]
			if got := f.At.String() + " " + f.short(); !strings.HasSuffix(got, c.want) {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
			if f.Line != 5 {
				t.Errorf("line %d, want 5", f.Line)
			}
		})
	}
}

// The judge reports disruptions that break a promise.
func TestJudge_Promises(t *testing.T) {
	const drift, recycle, removal = rollout.Drift, rollout.Requested, rollout.ScaleDown
	cases := map[string]struct {
		cause        rollout.Cause
		member, want string
	}{
		"claimed":              {drift, "{index: 0, state: Claimed, claim: c}", "although c holds it"},
		"busy":                 {drift, "{index: 0, occupancy: Busy}", "although it is Busy"},
		"unsure":               {drift, "{index: 0, occupancy: Unknown}", "although it is Unknown"},
		"held":                 {drift, "{index: 0, hold: by hand}", "although it is held"},
		"ledger":               {drift, "{index: 0}, {index: 1, state: Unready}", "although it cannot be spared"},
		"rolling":              {drift, "{index: 0}, {index: 1, state: Draining}", "although 1 may roll at once"},
		"fine":                 {drift, "{index: 0}, {index: 1}", ""},
		"unsettled":            {drift, "{index: 0}, {index: 1}, {index: 2, revision: B, state: Unready}", "although pool-2 went down before it had recovered"},
		"recycled, held":       {recycle, "{index: 0, hold: by hand}, {index: 1}", "for Requested although it is held"},
		"recycled":             {recycle, "{index: 0}, {index: 1}", ""},
		"removed, held":        {removal, "{index: 0, hold: by hand}, {index: 1}, {index: 2}", "for ScaleDown although it is held"},
		"removed, busy":        {removal, "{index: 0, occupancy: Busy}, {index: 1}, {index: 2}", "for ScaleDown although it is Busy"},
		"removed, needed":      {removal, "{index: 0}, {index: 1}", "which leaves 1 in service, but the size asks for 2"},
		"removed, one is down": {removal, "{index: 0}, {index: 1}, {index: 2, state: Unready}", "which leaves 1 in service, but the size asks for 2"},
		"removed, too many":    {removal, "{index: 0}, {index: 1}, {index: 2}", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := begin(t, 1, minimalScenario+"start: {target: B, current: A, members: ["+c.member+"]}\n")
			p := w.pools[0]
			if s := p.slots.get(2); s != nil && s.Runs == "B" {
				s.watch.shaken, s.watch.up = w.now, never
			}
			old := p.slots.get(0)
			next := *old
			next.Disruption = rollout.Disruption{Cause: c.cause, Incarnation: 1, Rolling: c.cause == drift, Remove: c.cause == removal}
			a := &rollout.Action{Kind: rollout.Disrupt, Revision: "B", Disruption: next.Disruption}
			w.judge.checkDisruption(p, a, old, p.slots, p.spec)
			p.put(byPlanner, old, &next, nil)
			var got []string
			for _, f := range w.judge.failures {
				got = append(got, f.Text)
			}
			all := strings.Join(got, "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("got %q, want %q", all, c.want)
			}
		})
	}
}

// The judge reports a current revision that is halted, and a halt that ends by itself.
func TestJudge_Records(t *testing.T) {
	halted := rollout.Record{ID: "B", Halted: true}
	cases := map[string]struct {
		old, next stateRecord
		want      string
	}{
		"current is halted":      {stateRecord{}, stateRecord{current: "B", records: []rollout.Record{halted}}, "although it is the current revision"},
		"current is rolled back": {stateRecord{}, stateRecord{current: "B", records: []rollout.Record{{ID: "B", RolledBack: true}}}, "although it is the current revision"},
		"target is halted":       {stateRecord{}, stateRecord{current: "A", records: []rollout.Record{halted}}, ""},
		"ends by itself": {
			stateRecord{current: "A", records: []rollout.Record{halted}}, stateRecord{current: "A", records: []rollout.Record{{ID: "B"}}},
			"is not halted any more",
		},
		"is tried again": {
			stateRecord{current: "A", records: []rollout.Record{halted}},
			stateRecord{current: "A", retried: retryRequest{"B", 1}, records: []rollout.Record{{ID: "B"}}}, "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := begin(t, 1, minimalScenario)
			w.judge.checkRecords(w.pools[0], &c.old, &c.next)
			checkPromise(t, w, c.want)
		})
	}
}

func TestPlay_Reports(t *testing.T) {
	list := Play([]string{"../scenarios/claims-prefer-current.yaml", "nosuch.yaml", "../scenarios/stuck-holder-named.yaml"},
		Options{Seeds: []int64{3, 1}})
	var got []Verdict
	for i := range list {
		got = append(got, list[i].Verdict())
	}
	if !slices.Equal(got, []Verdict{Passed, Wrong, Waiting}) {
		t.Errorf("verdicts %v", got)
	}
	if r := list[0].Results; len(r) != 2 || r[0].Seed != 3 || r[1].Seed != 1 {
		t.Errorf("results are in the order of the seeds")
	}
}

func TestStories(t *testing.T) {
	cases := map[string]struct{ reason, rest string }{
		"ttl": {"a claim expires after its ttl, and its member is replaced", `pool: {replicas: 1}
timeline: [{at: 10s, claim: c, ttl: 1m}]
expect:
  at:
    1m9s: ["claims.c.phase == 'Bound' && claims.c.member == 0"]
    1m10s: ["claims.c.phase == 'Expired' && claimed == 0 && free == 0"]
  finally: ["free == 1"]
  creates: 1
`},
		"max ttl": {"maxTTL limits claims without a ttl, even after a restart", `pool: {replicas: 1, claims: {maxTTL: 1m, onRelease: Reuse}}
timeline: [{at: 10s, claim: c}, {at: 20s, crash: {for: 5s}}]
expect:
  at: {1m9s: ["claimed == 1"], 1m10s: ["claimed == 0 && free == 1"]}
  creates: 0
`},
		"this member": {"a claim may ask for a particular member, and waits for it", `pool: {replicas: 2, claims: {onRelease: Reuse}}
timeline: [{at: 1s, claim: a, member: 1}, {at: 2s, claim: b, member: 1}, {at: 9s, release: a}]
expect:
  at: {8s: ["claims.a.member == 1 && claims.b.phase == 'Pending' && claims.b.member == -1"]}
  finally: ["claims.b.member == 1 && claims.a.phase == 'Released'"]
`},
		"pool deleted": {"a claimed member stays until it is released", `pool: {replicas: 2}
start: {members: [{state: Claimed, claim: c}, {}]}
timeline: [{at: 1s, delete: pool}, {at: 1m, release: c}]
expect:
  at: {50s: ["members == 1 && claimed == 1"]}
  finally: ["members == 0 && bodies == 0"]
`},
		"slot deleted": {"the pool makes the slot again", `pool: {replicas: 1}
timeline: [{at: 1s, member: 0, delete: slot}]
expect:
  finally: ["members == 1 && free == 1"]
  creates: 1
  deletes: 1
`},
		"refused": {"refused births are retried", `pool: {replicas: 1}
timeline:
  - {at: 1s, member: 0, refuse: {for: 1m}}
  - {at: 2s, member: 0, delete: body}
expect:
  at: {30s: ["m[0].phase == 'Failed' && bodies == 0"]}
  finally: ["free == 1"]
  creates: 1
`},
		"missing": {"members and claims that do not exist have empty values", `pool: {replicas: 1}
expect:
  finally: ["m[7].phase == '' && claims.nobody.phase == '' && blockers.Busy == 0 && conditions.SourcesResolved.status == ''", "m.exists(i, m[i].phase == 'Available') && size(m) == 1"]
`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for seed := range int64(3) {
				r := play(t, seed+1, "name: story\n"+c.rest)
				for i := range r.Failures {
					t.Errorf("%s: seed %d: %s\n%s", c.reason, r.Seed, r.Failures[i].short(), r.Failures[i].State)
				}
			}
		})
	}
}

package simulate

import (
	"strings"
	"testing"
	"time"
)

// Commands of pawl, and other edits of pools, work as on a real API server, and the
// narrative describes each in a sentence.
func TestVerbs(t *testing.T) {
	const head = "name: story\nwhy: a test\n"
	cases := map[string]struct {
		reason, text string
		narrative    []string
	}{
		"recycle": {"the member gets another body, within the rollout's limits", `
pool: {replicas: 3, update: {type: RollingUpdate}}
timeline:
  - {at: 10s, member: 1, do: recycle}
  - {at: 10s, member: 5, do: recycle}
expect: {finally: ["free == 3 && m[1].incarnation == 2 && m[0].incarnation == 1"], creates: 1, deletes: 1}
`, []string{"asks for another body of pool-1", "another body was asked for"}},
		"recycle without a body": {"pawl refuses a member without a body", `
pool: {replicas: 1}
world: {capacity: 0}
start: {members: []}
timeline: [{at: 10s, member: 0, do: recycle}]
run: 20s
`, []string{"cannot recycle pool-0: it has no body to replace"}},
		"skip": {"the slot stays on the current revision until the target changes", `
pool: {replicas: 2, update: {type: RollingUpdate}}
timeline:
  - {at: 10s, set: {update: {paused: true}}}
  - {at: 10s, revise: B}
  - {at: 20s, member: 0, do: skip}
  - {at: 30s, set: {update: {paused: false}}}
  - {at: 10m, revise: C}
expect:
  at: {9m: ["m[0].revision == 'A' && m[1].revision == 'B'", "m[0].blocker == 'Held'"]}
  finally: ["updated == 2 && target == 'C'"]
`, []string{"skips the target in pool-0"}},
		"skip nothing": {"without a former revision there is nothing to fall back to", `
pool: {replicas: 1}
timeline: [{at: 10s, member: 0, do: skip}]
`, []string{"cannot skip pool-0: the target A is the current revision"}},
		"cordon": {"no claim gets the member until it is uncordoned", `
pool: {replicas: 1}
timeline:
  - {at: 10s, member: 0, do: cordon}
  - {at: 20s, claim: c}
  - {at: 1m, member: 0, do: uncordon}
expect:
  at: {50s: ["claims.c.phase == 'Pending' && waiting == 1 && free == 0"]}
  finally: ["claims.c.phase == 'Bound' && waiting == 0"]
`, []string{"cordons pool-0", "uncordons pool-0"}},
		"retry": {"one more round works after a cause outside the template is fixed", `
pool: {replicas: 2, update: {type: RollingUpdate, failureLimit: 1}}
world: {boot: 10s, bootTimeout: 1m, revisions: {B: {outcome: NeverReady}}}
timeline:
  - {at: 5s, do: retry}
  - {at: 10s, revise: B}
  - {at: 10m, world: {revisions: {B: null}}}
  - {at: 11m, do: retry}
expect:
  at: {10m30s: ["conditions.Updated.reason == 'UpdateHalted'"]}
  finally: ["updated == 2 && target == 'B'"]
`, []string{"asks pool to retry revision A, which has not halted: nothing to do", "asks pool to retry revision B", "grants B one more round"}},
		"undo": {"undo restores the template of a revision", `
pool: {replicas: 2, update: {type: RollingUpdate}}
timeline:
  - {at: 10s, revise: B}
  - {at: 10m, do: undo, to: A}
  - {at: 20m, do: undo, to: A}
  - {at: 20m, do: undo, to: Z}
expect: {finally: ["target == 'A' && updated == 2"]}
`, []string{"edits the template of pool from B to A", "cannot undo to A: pool has this template already", "cannot undo to Z: pool has no such revision"}},
		"source": {"other content is another revision, and the same content the same one", `
pool: {replicas: 1, update: {type: RollingUpdate}}
timeline:
  - {at: 10s, source: scripts, content: "2"}
  - {at: 10m, do: undo, to: A}
  - {at: 20m, source: scripts, content: "3"}
  - {at: 30m, source: scripts, content: "1"}
expect:
  at:
    5m: ["target == \"A'\" && updated == 1"]
    15m: ["target == \"A'\""]
    25m: ["target == \"A''\" && updated == 1"]
    35m: ["target == 'A' && updated == 1"]
`, []string{`changes the content of source scripts to "2"`, "cannot undo to A: it was made with other content of sources"}},
		"clock back": {"stored times stay valid, and nothing is disrupted", `
pool: {replicas: 2, update: {type: RollingUpdate}, claims: {heartbeat: 10m}}
timeline:
  - {at: 10s, claim: c}
  - {at: 5m, clock: {jump: -24h}}
  - {at: 6m, revise: B}
  - {at: 9m, renew: c}
run: 15m
expect: {finally: ["claims.c.phase == 'Bound' && updated == 1 && inService == 2"]}
`, []string{"sets the controllers' clock back by 24h0m0s"}},
		"clock forward": {"a hold ends by the controllers' clock", `
pool: {replicas: 1, update: {type: RollingUpdate}}
timeline:
  - {at: 1s, member: 0, hold: until 2h}
  - {at: 10s, revise: B}
  - {at: 5m, clock: {jump: 2h}}
  - {at: 6m, set: {update: {minReadySeconds: 1}}}
run: 10m
expect:
  at: {5m: ["stale == 1"]}
  finally: ["updated == 1"]
`, []string{"sets the controllers' clock forward by 2h0m0s"}},
		"stop": {"the body hangs until its stop time is set again", `
pool: {replicas: 2, update: {type: RollingUpdate}}
timeline:
  - {at: 5s, member: 0, stop: never}
  - {at: 10s, revise: B}
  - {at: 30m, member: 0, stop: 10s}
expect:
  at: {29m: ["m[0].phase == 'Terminating'"]}
  finally: ["updated == 2"]
`, []string{"body pool-0#1 does not stop from now on", "body pool-0#1 stops within 10s from now on"}},
		"flap": {"the body is up and down in turn until a time, and up after it", `
pool: {replicas: 1}
timeline: [{at: 1m, member: 0, health: Flap, up: 20s, down: 10s, until: 3m}]
expect:
  at: {1m19s: ["inService == 1"], 1m25s: ["inService == 0"], 1m35s: ["inService == 1"]}
  finally: ["inService == 1"]
`, []string{"body pool-0#1 goes up for 20s and down for 10s, in turn", "body pool-0#1 goes Down", "body pool-0#1 goes Up"}},
		"create again": {"the pool is created once the former one is gone", `
pool: {replicas: 2}
timeline:
  - {at: 10s, create: pool}
  - {at: 1m, delete: pool}
  - {at: 1m5s, create: pool}
expect:
  at: {1m4s: ["members == 2"]}
  finally: ["members == 2 && free == 2 && m[0].incarnation == 1"]
  creates: 2
`, []string{"cannot create pool: it exists", "cannot create pool: the former one is not gone yet; tries again", "creates pool again"}},
		"a claimed slot": {"the API refuses to delete a claimed member", `
pool: {replicas: 1}
timeline:
  - {at: 1s, claim: c}
  - {at: 2s, member: 0, delete: slot}
expect: {always: ["members == 1"]}
`, []string{"cannot delete pool-0: it is claimed; release the claim first"}},
		"a date": {"windows depend on the date and the time of day", `
pool: {replicas: 1, update: {type: RollingUpdate, windows: [{schedule: "30 0 * * *", duration: 1h}]}}
world: {date: 2026-03-28T23:00:00Z}
timeline: [{at: 1s, revise: B}]
run: 3h
expect:
  at: {1h29m: ["stale == 1 && blockers.OutsideWindow == 1"]}
  finally: ["updated == 1"]
`, nil},
		"refused": {"refused births are counted, but not as creates", `
pool: {replicas: 1}
world: {revisions: {A: {outcome: CreateError}}}
start: {members: []}
run: 5m
expect: {finally: ["refused > 1 && creates == 0"]}
`, nil},
		"what the status says": {"the map has the fields of the API", `
pool: {replicas: 2, update: {type: RollingUpdate}}
timeline: [{at: 10s, revise: B}]
run: 20s
expect:
  finally:
    - "status.replicas == 2 && status.free == 1 && status.rolling == 1 && status.waitingClaims == 0"
    - "status.targetRevision == 'B' && status.currentRevision == 'A' && status.rollout.next == next"
    - "status.rollout.blockers.exists(b, b.reason == 'UnavailableLimit' && b.count == 1 && b.example == 'pool-1')"
    - "status.conditions.exists(c, c.type == 'Updated' && c.reason == 'RollingUpdate')"
    - "status.observedGeneration == 2 && next.contains('1')"
`, nil},
		"writes": {"the first body of each slot takes three writes", `
pool: {replicas: 2}
start: {members: []}
timeline: [{at: 2m, member: 0, hold: reason}]
expect: {finally: ["writes == 6"]}
`, nil},
		"none is current": {"before a member has served there is no current revision", `
pool: {replicas: 1}
start: {members: []}
run: 1s
expect: {always: ["current == '' || free == 1"]}
`, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := play(t, 1, head+strings.TrimPrefix(c.text, "\n"))
			for i := range r.Failures {
				t.Errorf("%s: %v: %s\n%s", c.reason, r.Failures[i].At, r.Failures[i].short(), r.Failures[i].State)
			}
			for _, text := range c.narrative {
				if !strings.Contains(r.String(), text) {
					t.Errorf("%s: the narrative does not have %q:\n%s", c.reason, text, r)
				}
			}
		})
	}
}

// No controller sees half of an edit that changes several objects, even with lag.
func TestWorld_EditIsWhole(t *testing.T) {
	for seed := range int64(30) {
		r := play(t, seed+1, minimalScenario+`world: {lag: 20s}
timeline:
  - {at: 10s, revise: B}
  - {at: 10s, member: 0, hold: reason}
  - {at: 10s, member: 1, hold: reason}
run: 10m
expect: {always: ["rolling == 0 && inService == 2"]}
`)
		if !r.Passed() {
			t.Fatalf("seed %d: %s\n%s", seed+1, r.Failures[0].short(), r)
		}
	}
}

// Claims that are made together are bound together, in their order, even by a binder
// that sees its own writes late.
func TestBinder_ManyAtOnce(t *testing.T) {
	r := play(t, 1, `name: many
why: a test
pool: {replicas: 3}
world: {lag: 5s}
timeline: [{at: 10s, claims: 4}]
run: 1m
expect:
  at: {15s: ["claimed == 3"]}
  finally: ["claims.c0.phase == 'Bound' && claims.c1.phase == 'Bound' && claims.c2.phase == 'Bound' && claims.c3.phase == 'Pending'"]
`)
	if !r.Passed() {
		t.Errorf("%s\n%s", r.Failures[0].short(), r)
	}
}

// A change of a source concerns the pools that name it.
func TestWorld_Reading(t *testing.T) {
	w := begin(t, 1, `name: sources
why: a test
pools:
  a: {replicas: 1, sources: [{name: scripts, configMap: {name: x}}]}
  b: {replicas: 1}
`)
	if list := w.reading("scripts", nil); len(list) != 1 || list[0].name != "a" {
		t.Errorf("scripts is read by %d pools, want only a", len(list))
	}
	if list := w.reading("other", nil); len(list) != 2 {
		t.Errorf("a source that no spec names is read by %d pools, want both", len(list))
	}
	if list := w.reading("other", w.pools[1]); len(list) != 1 || list[0].name != "b" {
		t.Error("with a given pool, want only that pool")
	}
}

// Unlive gives the reason for which a real API server cannot play a scenario.
func TestScenario_Unlive(t *testing.T) {
	cases := map[string]string{
		"":              "",
		"live: false\n": "it says live: false",
		"timeline: [{at: 1s, claim: c, member: 0}]\n":                    "a Claim cannot ask for a particular member",
		"timeline: [{at: 1s, source: s, content: x}]\n":                  "digests of sources",
		"timeline: [{at: 1s, clock: {jump: 1h}}, {at: 2s, do: retry}]\n": "",
	}
	for text, want := range cases {
		s, err := Parse("", []byte(minimalScenario+text))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Unlive(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestBody_StopWhileStopping(t *testing.T) {
	w := begin(t, 1, minimalScenario)
	b := w.pools[0].bodies[0]
	b.stopOnce()
	b.setStopTime(-1)
	for w.step(time.Hour) {
		continue
	}
	if b.gone() {
		t.Fatal("a body that hangs is gone")
	}
	b.setStopTime(time.Second)
	for w.step(2 * time.Hour) {
		continue
	}
	if !b.gone() {
		t.Error("the body still exists after its stop time was set again")
	}
}

package simulate

import (
	"strings"
	"testing"
	"time"
)

// What people do with pawl, and what else the format adds for pools, happens as
// it does on a real API server, and is told in a sentence.
func TestVerbs(t *testing.T) {
	const head = "name: story\nwhy: a test\n"
	cases := map[string]struct {
		reason, text string
		told         []string
	}{
		"recycle": {"another body, through the gates of a rollout", `
pool: {replicas: 3, update: {type: RollingUpdate}}
timeline:
  - {at: 10s, member: 1, do: recycle}
  - {at: 10s, member: 5, do: recycle}
expect: {finally: ["free == 3 && m[1].incarnation == 2 && m[0].incarnation == 1"], creates: 1, deletes: 1}
`, []string{"asks for another body of pool-1", "another body was asked for"}},
		"recycle without a body": {"pawl refuses it", `
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
`, []string{"gives up on bringing to the target pool-0"}},
		"skip nothing": {"there is nothing to fall back to", `
pool: {replicas: 1}
timeline: [{at: 10s, member: 0, do: skip}]
`, []string{"cannot skip pool-0: the target A is the current revision"}},
		"cordon": {"nobody gets the member until it is uncordoned", `
pool: {replicas: 1}
timeline:
  - {at: 10s, member: 0, do: cordon}
  - {at: 20s, claim: c}
  - {at: 1m, member: 0, do: uncordon}
expect:
  at: {50s: ["claims.c.phase == 'Pending' && waiting == 1 && free == 0"]}
  finally: ["claims.c.phase == 'Bound' && waiting == 0"]
`, []string{"cordons pool-0", "uncordons pool-0"}},
		"retry": {"one more round, where what was wrong lay elsewhere", `
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
`, []string{"asks pool to retry revision A, which has not halted: nothing is done", "asks pool to retry revision B", "grants B one more round"}},
		"undo": {"the template of a revision is back", `
pool: {replicas: 2, update: {type: RollingUpdate}}
timeline:
  - {at: 10s, revise: B}
  - {at: 10m, do: undo, to: A}
  - {at: 20m, do: undo, to: A}
  - {at: 20m, do: undo, to: Z}
expect: {finally: ["target == 'A' && updated == 2"]}
`, []string{"edits the template of pool: A, and it was B", "cannot undo to A: the template of pool is that already", "cannot undo to Z: pool has no such revision"}},
		"source": {"content makes a revision, and the same content the same one", `
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
`, []string{`changes the content of source scripts to "2"`, "cannot undo to A: sources said something else then"}},
		"clock back": {"what is stored stays, and nothing happens because of it", `
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
		"stop": {"the body hangs, and then it does not", `
pool: {replicas: 2, update: {type: RollingUpdate}}
timeline:
  - {at: 5s, member: 0, stop: never}
  - {at: 10s, revise: B}
  - {at: 30m, member: 0, stop: 10s}
expect:
  at: {29m: ["m[0].phase == 'Terminating'"]}
  finally: ["updated == 2"]
`, []string{"body pool-0#1 does not stop from now on", "body pool-0#1 stops within 10s from now on"}},
		"flap": {"up and down until a time, and up after it", `
pool: {replicas: 1}
timeline: [{at: 1m, member: 0, health: Flap, up: 20s, down: 10s, until: 3m}]
expect:
  at: {1m19s: ["inService == 1"], 1m25s: ["inService == 0"], 1m35s: ["inService == 1"]}
  finally: ["inService == 1"]
`, []string{"body pool-0#1 goes up for 20s and down for 10s, in turn", "body pool-0#1 goes Down", "body pool-0#1 goes Up"}},
		"create again": {"once the former one is gone", `
pool: {replicas: 2}
timeline:
  - {at: 10s, create: pool}
  - {at: 1m, delete: pool}
  - {at: 1m5s, create: pool}
expect:
  at: {1m4s: ["members == 2"]}
  finally: ["members == 2 && free == 2 && m[0].incarnation == 1"]
  creates: 2
`, []string{"cannot create pool: it is there", "cannot create pool before the former one is gone, and tries again", "creates pool again"}},
		"a claimed slot": {"the API forbids that it is deleted", `
pool: {replicas: 1}
timeline:
  - {at: 1s, claim: c}
  - {at: 2s, member: 0, delete: slot}
expect: {always: ["members == 1"]}
`, []string{"cannot delete pool-0: a claimed member is not deleted"}},
		"a date": {"windows are at times of the day", `
pool: {replicas: 1, update: {type: RollingUpdate, windows: [{schedule: "30 0 * * *", duration: 1h}]}}
world: {date: 2026-03-28T23:00:00Z}
timeline: [{at: 1s, revise: B}]
run: 3h
expect:
  at: {1h29m: ["stale == 1 && blockers.OutsideWindow == 1"]}
  finally: ["updated == 1"]
`, nil},
		"refused": {"births that were refused are counted, and are no births", `
pool: {replicas: 1}
world: {revisions: {A: {outcome: CreateError}}}
start: {members: []}
run: 5m
expect: {finally: ["refused > 1 && creates == 0"]}
`, nil},
		"what the status says": {"the map is what the API has", `
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
		"writes": {"three for a first body", `
pool: {replicas: 2}
start: {members: []}
timeline: [{at: 2m, member: 0, hold: reason}]
expect: {finally: ["writes == 6"]}
`, nil},
		"none is current": {"where nothing has served there is nothing to go back to", `
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
			for _, text := range c.told {
				if !strings.Contains(r.String(), text) {
					t.Errorf("%s: it is not told that %q in\n%s", c.reason, text, r)
				}
			}
		})
	}
}

// Of an edit that changes several things nobody sees a half, however late each
// of them reads.
func TestWorld_EditIsWhole(t *testing.T) {
	for seed := range int64(30) {
		r := play(t, seed+1, good+`world: {lag: 20s}
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

// Claims that arrive together are served together, the first one first, also by
// a binder that sees its own writes late.
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

// What a source says is that of the pools that name it.
func TestWorld_Reading(t *testing.T) {
	w := begin(t, 1, `name: sources
why: a test
pools:
  a: {replicas: 1, sources: [{name: scripts, configMap: {name: x}}]}
  b: {replicas: 1}
`)
	if list := w.reading("scripts", nil); len(list) != 1 || list[0].name != "a" {
		t.Errorf("scripts is read by %d pools, want by a alone", len(list))
	}
	if list := w.reading("other", nil); len(list) != 2 {
		t.Errorf("a source that no spec names is read by %d pools, want by both", len(list))
	}
	if list := w.reading("other", w.pools[1]); len(list) != 1 || list[0].name != "b" {
		t.Error("the pool that is meant is not the one that reads it")
	}
}

// A scenario that a real API server cannot play says why.
func TestScenario_Unlive(t *testing.T) {
	cases := map[string]string{
		"":              "",
		"live: false\n": "it says live: false",
		"timeline: [{at: 1s, claim: c, member: 0}]\n":                    "a Claim cannot ask for one certain member",
		"timeline: [{at: 1s, source: s, content: x}]\n":                  "digests of sources",
		"timeline: [{at: 1s, clock: {jump: 1h}}, {at: 2s, do: retry}]\n": "",
	}
	for text, want := range cases {
		s, err := Parse("", []byte(good+text))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Unlive(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestBody_StopWhileStopping(t *testing.T) {
	w := begin(t, 1, good)
	b := w.pools[0].bodies[0]
	b.tell()
	b.stopsIn(-1)
	for w.step(time.Hour) {
		continue
	}
	if b.gone() {
		t.Fatal("a body that hangs is gone")
	}
	b.stopsIn(time.Second)
	for w.step(2 * time.Hour) {
		continue
	}
	if !b.gone() {
		t.Error("a body that does not hang any more is not gone")
	}
}

package simulate

import (
	"errors"
	"os"
	"testing"
	"time"
)

// everything is a file with every field that the simulator plays.
const everything = `name: everything
why: a seed
seen: ["project#1"]
pool:
  replicas: 3
  sizing: Warm
  refillBelow: 2
  maxMembers: 9
  serviceAccountName: reader
  sources: [{name: bootstrap, configMap: {name: scripts, keys: [install]}}, {name: image, object: {apiVersion: v1, kind: Pod, name: p, fieldPath: spec.x}}]
  revisionHistoryLimit: 3
  update:
    type: RollingUpdate
    method: Replace
    maxUnavailable: 34%
    maxSurge: 1
    minAvailable: 1
    maxInFlight: 2
    paused: false
    partition: 1
    order: OldestFirst
    minReadySeconds: 5
    progressDeadline: 5m
    failureLimit: 50%
    onFailure: Rollback
    unknown: Replace
    windows: [{schedule: "*/10 * * * *", duration: 5m, timeZone: Europe/Berlin}, {schedule: "@daily", duration: 1h}]
    onClaimed: Notify
  claims: {defaultTTL: 5m, maxTTL: 10m, heartbeat: 1m, onRelease: Reuse, prefer: Updated}
world:
  {boot: 10s, stop: 5s, drain: 1s, bootTimeout: 1m, capacity: 12, lag: 2s, date: 2026-03-28T23:00:00Z,
   revisions: {bad: {outcome: Crash, after: 5s, boot: 1s, stop: 1s}, worse: {outcome: Flap, up: 5s, down: 3s}}}
start:
  target: A
  current: A
  members:
    - {count: 2, revision: A, cost: 1, role: primary, shard: s1}
    - {index: 4, revision: "", state: Claimed, claim: c, occupancy: Busy, hold: until 1h}
timeline:
  - {at: 1s, revise: bad}
  - {at: 2s, claim: d, ttl: 1m, wait: 30s, member: 1}
  - {at: 3s, claims: 2, every: 1s, prefix: e, ttl: 1m, wait: 0s}
  - {at: 4s, churn: {claims: 1, hold: 1m, until: 10m}}
  - {at: 5s, renew: c}
  - {at: 6s, release: c}
  - {at: 7s, set: {update: {method: InPlace, maxSurge: null}, maxMembers: null}}
  - {at: 8s, member: 0, health: Down, occupancy: Unknown, role: replica, hold: "", cost: 2, revision: "", refuse: {for: 1m}, delete: body}
  - {at: 8s, member: 1, health: Flap, up: 4s, down: 3s, until: 5m, do: recycle, stop: never}
  - {at: 8s, member: 1, do: cordon, stop: 3s}
  - {at: 8s, member: 1, do: uncordon}
  - {at: 8s, member: 2, do: skip}
  - {at: 9s, do: retry}
  - {at: 9s, do: undo, to: A}
  - {at: 9s, source: scripts, content: "2"}
  - {at: 9s, clock: {jump: -1h}}
  - {at: 9s, crash: {for: 5s}}
  - {at: 10s, lose: all, for: 10s}
  - {when: "failed > 0", repeat: 2, crash: {for: 0s}}
  - {at: 5m, upgrade: {hashVersion: 2}}
  - {at: 6m, upgrade: {renderer: changed}}
  - {at: 7m, world: {capacity: null, revisions: {bad: null}}}
  - {at: 8m, delete: pool}
  - {at: 9m, create: pool}
live: false
run: 1h
expect:
  always: ["m.all(i, m[i].phase != '')", "conditions.Updated.status != 'x' && blockers.Busy >= 0"]
  never: ["claims.exists(c, claims[c].member > 100)", "t < 0"]
  at: {5m: ["pools.pool.free >= 0"]}
  within: {1h: ["true"]}
  finally: ["next != 'x' && status.free >= 0 && waiting + refused + writes >= 0", "target == current || inService + surge + repairing >= 0"]
  creates: {min: 0, max: 1000}
  deletes: {min: 0}
  order: []
`

func FuzzParse(f *testing.F) {
	f.Add([]byte(everything))
	for _, name := range files(f) {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("", data)
		if (s == nil) == (err == nil) {
			t.Fatalf("got %v and %v, want either a scenario or an error", s, err)
		}
		if err != nil {
			if e := new(Error); !errors.As(err, &e) {
				t.Fatalf("%T is not an Error: %v", err, err)
			}
			return
		}
		if len(s.Needs) == 0 && small(s) {
			s.Run(2, false)
		}
	})
}

// The seed of FuzzParse can be played, so that fuzzing starts from every field.
func TestEverything(t *testing.T) {
	s, err := Parse("everything.yaml", []byte(everything))
	if err != nil || len(s.Needs) > 0 || !small(s) {
		t.Fatal(err, s.Needs)
	}
	for _, f := range s.Run(2, false).Failures {
		t.Error(f.short(), f.State)
	}
}

// small reports whether a scenario is fast enough to be played while fuzzing.
func small(s *Scenario) bool {
	n := len(s.timeline)
	for i := range s.pools {
		n += len(s.pools[i].members)
		if large(s.pools[i].spec) {
			return false
		}
	}
	for _, e := range s.timeline {
		if e.repeat > 10 {
			return false
		}
		switch e := e.edit.(type) {
		case setEdit:
			if large(e.patch) {
				return false
			}
		case claimsEdit:
			n += e.count
		case churnEdit:
			if e.claims > 5 || e.hold < time.Minute {
				return false
			}
		}
	}
	return n < 50 && s.run < 10*time.Hour
}

func large(s spec) bool {
	n, _ := s["replicas"].(int)
	return n > 50
}

// An expression that compiles evaluates to true, false or an error, and always to
// the same.
func FuzzExpression(f *testing.F) {
	for _, name := range files(f) {
		s, err := Load(name)
		if err != nil {
			f.Fatal(err)
		}
		x := &s.expect
		for _, l := range [][]*expression{x.always, x.never, x.finally} {
			for _, e := range l {
				f.Add(e.text)
			}
		}
	}
	f.Add("m.all(i, claims.exists(c, claims[c].member == i || m[i].claim == '')) && size(pools) == 1")
	f.Add("conditions.Updated.message.contains('x') ? t > 5 : 7 / rolling == 2")
	s, err := Parse("", []byte(everything))
	if err != nil {
		f.Fatal(err)
	}
	w := newWorld(s, 1)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := compile(text, s)
		if (e == nil) == (err == nil) {
			t.Fatalf("got %v and %v, want either an expression or an error", e, err)
		}
		if e == nil {
			return
		}
		first, err := e.holds(w)
		second, errSecond := e.holds(w)
		if first != second || (err == nil) != (errSecond == nil) {
			t.Errorf("first %v, %v, then %v, %v", first, err, second, errSecond)
		}
	})
}

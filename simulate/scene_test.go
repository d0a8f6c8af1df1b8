package simulate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-dev/pawl/rollout"
)

// judgeFailures returns the failures of a judge that sees a pool with the given
// number of free members from each time on.
func judgeFailures(t *testing.T, expect string, slack time.Duration, free map[time.Duration]int, order ...time.Duration) []string {
	t.Helper()
	s, err := Parse("", []byte("name: n\npool: {replicas: 3}\nrun: 1h\nexpect: "+expect))
	if err != nil {
		t.Fatal(err)
	}
	j := s.NewJudge(slack)
	look := func(at time.Duration, n int) {
		p := &PoolScene{Desired: 3}
		for i := range 3 {
			p.Members = append(p.Members, MemberScene{Member: rollout.Member{Index: i, Phase: rollout.Available}, Serves: i < n})
		}
		j.Look(at, &Scene{Pools: map[string]*PoolScene{"pool": p}})
	}
	moments, n := j.Moments(), 0
	for _, at := range order {
		for len(moments) > 0 && moments[0] < at {
			look(moments[0], n)
			moments = moments[1:]
		}
		n = free[at]
		look(at, n)
	}
	for _, at := range moments {
		look(at, n)
	}
	var words []string
	for _, f := range j.Finish(time.Hour, 0, 0, nil) {
		words = append(words, f.Words(""))
	}
	return words
}

// An expectation with a time may hold within the slack; one without must hold
// always.
func TestJudge_Slack(t *testing.T) {
	t.Parallel()
	free := map[time.Duration]int{0: 0, 10 * time.Minute: 1, 20 * time.Minute: 2}
	order := []time.Duration{0, 10 * time.Minute, 20 * time.Minute}
	tests := map[string]struct {
		reason string
		expect string
		slack  time.Duration
		holds  bool
	}{
		"at, in time":          {"the state is exact", `{at: {10m: ["free == 1"]}}`, 0, true},
		"at, exact":            {"the state comes a second later", `{at: {9m59s: ["free == 1"]}}`, 0, false},
		"at, a little early":   {"the state comes within the slack", `{at: {9m59s: ["free == 1"]}}`, time.Second, true},
		"at, too early":        {"the state comes after the slack", `{at: {9m58s: ["free == 1"]}}`, time.Second, false},
		"at, a little late":    {"the state ended within the slack", `{at: {20m1s: ["free == 1"]}}`, 2 * time.Second, true},
		"at, too late":         {"the state ended before the slack", `{at: {20m3s: ["free == 1"]}}`, 2 * time.Second, false},
		"within, in time":      {"the state comes in time", `{within: {10m: ["free == 1"]}}`, 0, true},
		"within, late":         {"the state comes later", `{within: {9m50s: ["free == 1"]}}`, 0, false},
		"within, allowed":      {"the state comes within the slack", `{within: {9m50s: ["free == 1"]}}`, 10 * time.Second, true},
		"within, too late":     {"the state comes after the slack", `{within: {9m50s: ["free == 1"]}}`, 9 * time.Second, false},
		"t, exact":             {"one is free until 20m", `{always: ["t < 1195 || free == 2"]}`, 0, false},
		"t, allowed":           {"20m is within the slack of 19m55s", `{always: ["t < 1195 || free == 2"]}`, 5 * time.Second, true},
		"t, too late":          {"20m is not within the slack of 19m54s", `{always: ["t < 1194 || free == 2"]}`, 5 * time.Second, false},
		"never with t":         {"the slack holds for never, too", `{never: ["t >= 1195 && free == 1"]}`, 5 * time.Second, true},
		"always, without time": {"the slack is only for times", `{always: ["free >= 1"]}`, time.Hour, false},
		"finally":              {"finally has no slack", `{finally: ["free == 1"]}`, time.Hour, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := judgeFailures(t, tt.expect, tt.slack, free, order...); len(got) == 0 != tt.holds {
				t.Errorf("%s: got failures %q, want none: %t", tt.reason, got, tt.holds)
			}
		})
	}
}

// A scene of the simulated world has the same tallies as the world.
func TestScene_Tallies(t *testing.T) {
	t.Parallel()
	s, err := Parse("", []byte(`
name: n
pool: {replicas: 6}
start:
  target: B
  members:
    - {revision: A}
    - {revision: B, state: Claimed, claim: c}
    - {revision: A, state: Provisioning}
    - {revision: B, state: Unready}
    - {revision: A, state: Draining}
    - {revision: "", state: Failed}
    - {revision: A, state: Terminating}
`))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(s, 1)
	world := w.pool("pool")
	p := &PoolScene{Desired: 6, Target: "B"}
	for _, m := range s.Stage().Pools[0].Members {
		up := !m.Sick && !m.Stopping && m.Phase != rollout.Provisioning
		p.Members = append(p.Members, MemberScene{Member: m.Member, Claim: m.Claim, Serves: up && Serving(&m.Member)})
		p.Bodies = append(p.Bodies, string(m.Runs))
	}
	scene := (&Scene{Pools: map[string]*PoolScene{"pool": p}}).pool("pool")
	for i, name := range tallyNames {
		if scene.tallies[i] != world.tallies[i] {
			t.Errorf("%s is %d, want %d as in the simulated world", name, scene.tallies[i], world.tallies[i])
		}
	}
}

// A stage has everything of the file.
func TestScenario_Stage(t *testing.T) {
	t.Parallel()
	s, err := Parse("", []byte(`
name: n
pool: {replicas: 2, update: {maxUnavailable: 1}}
world: {boot: 20s, capacity: 3, lag: 2s, revisions: {bad: {outcome: NeverReady, stop: 1s}}}
start:
  members: [{revision: A, hold: "until 1h", cost: 4, occupancy: Busy}, {revision: A, state: Claimed, claim: c}]
timeline:
  - {at: 10s, revise: bad}
  - {at: 10s, set: {replicas: 3}}
  - {at: 20s, claims: 2, every: 1s, prefix: x, ttl: 5m}
  - {at: 30s, churn: {claims: 3, hold: 40s, until: 30m}}
  - {at: 40s, release: c}
  - {at: 50s, crash: {for: 20s}}
  - {at: 60s, lose: members, for: 30s}
  - {at: 70s, upgrade: {hashVersion: 2}}
  - {at: 80s, member: 1, health: Down, hold: forever, delete: body}
  - {at: 90s, world: {capacity: 0, revisions: {bad: {outcome: Ready}}}}
  - {at: 100s, delete: pool}
  - {at: 110s, create: pool}
  - {at: 120s, do: retry}
  - {at: 130s, do: undo, to: A}
  - {at: 140s, clock: {jump: -1h}}
  - {at: 150s, member: 0, health: Flap, up: 3s, down: 2s, until: 1h, do: cordon, stop: never}
  - {when: "free == 0", crash: {for: 1s}}
`))
	if err != nil {
		t.Fatal(err)
	}
	st := s.Stage()
	never := time.Duration(-1)
	want := []Instant{
		{10 * time.Second, []Edit{{Pool: "pool", Revise: "bad"}, {Pool: "pool", Set: map[string]any{"replicas": 3}}}},
		{20 * time.Second, []Edit{{Pool: "pool", Claims: &Claims{Names: []string{"x0", "x1"}, Every: time.Second, Member: -1, TTL: 5 * time.Minute}}}},
		{30 * time.Second, []Edit{{Pool: "pool", Churn: &Churn{Claims: 3, Hold: 40 * time.Second, Until: 30 * time.Minute}}}},
		{40 * time.Second, []Edit{{Pool: "pool", Release: "c"}}},
		{50 * time.Second, []Edit{{Pool: "pool", Crash: new(20 * time.Second)}}},
		{60 * time.Second, []Edit{{Pool: "pool", Lose: &Loss{What: "members", For: 30 * time.Second}}}},
		{70 * time.Second, []Edit{{Pool: "pool", Upgrade: &Upgrade{HashVersion: 2}}}},
		{80 * time.Second, []Edit{{Pool: "pool", Member: &MemberChange{Index: 1, Health: "Down", Hold: &never, Delete: "body"}}}},
		{90 * time.Second, []Edit{{Pool: "pool", World: &WorldChange{}}}},
		{100 * time.Second, []Edit{{Pool: "pool", DeletePool: true}}},
		{110 * time.Second, []Edit{{Pool: "pool", CreatePool: true}}},
		{120 * time.Second, []Edit{{Pool: "pool", Retry: true}}},
		{130 * time.Second, []Edit{{Pool: "pool", Undo: "A"}}},
		{140 * time.Second, []Edit{{Pool: "pool", Jump: -time.Hour}}},
		{150 * time.Second, []Edit{{Pool: "pool", Member: &MemberChange{
			Health: "Flap", Flap: &Flap{3 * time.Second, 2 * time.Second, time.Hour}, Do: "cordon", Stop: &never,
		}}}},
	}
	if diff := cmp.Diff(want, st.Timeline, cmpopts.IgnoreUnexported(WorldChange{})); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
	first, second := st.Pools[0].Members[0], st.Pools[0].Members[1]
	if !first.Held || !first.HoldUntil.Equal(st.Start.Add(time.Hour)) || first.Cost != 4 || first.Occupancy != rollout.Busy || second.Claim != "c" {
		t.Errorf("members start as %+v and %+v", first, second)
	}
	n := st.Nature
	if got, want := n.Of("bad"), (Breed{Boot: 20 * time.Second, Stop: time.Second, Outcome: "NeverReady"}); got != want {
		t.Errorf("bad is %+v, want %+v", got, want)
	}
	if n.Capacity() != 3 || n.Shortest() != time.Second || n.Lag() != 2*time.Second || n.BootTimeout() != 10*time.Minute {
		t.Errorf("capacity %d, shortest %s, lag %s, timeout %s", n.Capacity(), n.Shortest(), n.Lag(), n.BootTimeout())
	}
	n.Change(st.Timeline[8].Edits[0].World)
	if n.Capacity() != -1 || n.Of("bad").Outcome != "Ready" || s.Stage().Nature.Capacity() != 3 {
		t.Error("a change must affect this Nature only")
	}
}

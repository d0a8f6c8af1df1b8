package simulate

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/rollout"
)

// Stories that no scenario file covers.
func TestStories_Policy(t *testing.T) {
	cases := map[string]struct{ reason, rest string }{
		"wait": {"a claim with wait 1m fails after a minute without a member", `pool: {replicas: 1, claims: {onRelease: Reuse}}
start: {members: [{state: Claimed, claim: a}]}
timeline: [{at: 10s, claim: b, wait: 1m}, {at: 10s, claim: c, wait: 5m}, {at: 2m, release: a}]
expect:
  at:
    1m9s: ["claims.b.phase == 'Pending'"]
    1m10s: ["claims.b.phase == 'Failed' && claims.b.member == -1 && claims.c.phase == 'Pending'"]
  finally: ["claims.c.phase == 'Bound' && claims.a.phase == 'Released' && claimed == 1"]
`},
		"no wait": {"a claim with wait 0s gets a free member at once or fails", `pool: {replicas: 1}
timeline: [{at: 10s, claim: a, wait: 0s}, {at: 20s, claim: b, wait: 0s}]
expect:
  at:
    10s: ["claims.a.phase == 'Bound'"]
    20s: ["claims.b.phase == 'Failed'"]
`},
		"asking again": {"a second claim of the same name makes no claim until the first is deleted, even after it has ended", `pool: {replicas: 2}
timeline:
  - {at: 1s, claim: a, ttl: 10s}
  - {at: 5s, claim: a}
  - {at: 2m, claim: a}
  - {at: 3m, release: a}
  - {at: 4m, claim: a}
expect:
  at:
    6s: ["claimed == 1"]
    2m30s: ["claimed == 0 && claims.a.phase == 'Expired'"]
    3m30s: ["claims.a.phase == 'Expired'"]
  finally: ["claimed == 1 && claims.a.phase == 'Bound'"]
  never: ["claimed > 1"]
`},
		"heartbeat": {"a claim that is renewed in time stays bound, another one expires", `pool: {replicas: 2, claims: {heartbeat: 1m}}
timeline:
  - {at: 0s, claim: a}
  - {at: 0s, claim: b}
  - {at: 50s, renew: a}
  - {at: 1m40s, renew: a}
  - {at: 3m, renew: nobody}
expect:
  at:
    59s: ["claims.b.phase == 'Bound'"]
    1m: ["claims.b.phase == 'Expired' && claims.a.phase == 'Bound'"]
    2m39s: ["claims.a.phase == 'Bound'"]
    2m40s: ["claims.a.phase == 'Expired' && claimed == 0"]
`},
		"grace": {"after a restart every claim has one whole heartbeat", `pool: {replicas: 1, claims: {heartbeat: 1m}}
timeline:
  - {at: 0s, claim: a}
  - {at: 30s, crash: {for: 2m}}
expect:
  at:
    3m29s: ["claims.a.phase == 'Bound'"]
    3m30s: ["claims.a.phase == 'Expired'"]
`},
		"late heartbeat": {"a renewal that the binder has not seen yet prevents expiry", `pool: {replicas: 1, claims: {heartbeat: 1m}}
world: {lag: 20s}
timeline: [{at: 0s, claim: a}, {at: 1m10s, renew: a}]
expect:
  at: {1m50s: ["claims.a.phase == 'Bound'"]}
  finally: ["claims.a.phase == 'Expired' && claimed == 0 && free == 1"]
`},
		"warm demand": {"waiting claims add members to a warm pool, which are removed once they are free", `pool: {replicas: 1, sizing: Warm, claims: {onRelease: Reuse}}
timeline: [{at: 1s, claims: 3, every: 0s}, {at: 5m, release: c0}, {at: 5m, release: c1}, {at: 5m, release: c2}]
expect:
  at: {4m: ["claimed == 3 && free == 1 && members == 4"]}
  finally: ["claimed == 0 && free == 1 && members == 1"]
  never: ["members > 4"]
  creates: 3
`},
		"ceiling": {"waiting claims add no member above maxMembers", `pool: {replicas: 2, sizing: Warm, maxMembers: 3, update: {type: RollingUpdate, maxUnavailable: 0, maxSurge: 2}}
timeline: [{at: 1s, claims: 3, every: 0s}, {at: 10m, revise: B}, {at: 20m, release: c0}, {at: 20m, release: c1}]
expect:
  always: ["bodies <= 3"]
  at: {9m: ["claimed == 3 && free == 0"]}
  finally: ["claimed == 1 && free == 2"]
`},
		"refill": {"missing members are made only once fewer than refillBelow are free", `pool: {replicas: 4, refillBelow: 2, sizing: Warm}
timeline: [{at: 1m, claim: a}, {at: 2m, claim: b}, {at: 10m, claim: c}]
expect:
  always: ["t >= 600 || creates == 0"]
  finally: ["free == 4 && claimed == 3"]
  creates: 3
`},
		"refill for drift": {"waiting drift starts the refill, too", `pool: {replicas: 4, refillBelow: 2, sizing: Warm, update: {type: RollingUpdate}}
timeline: [{at: 1m, claim: a}, {at: 2m, revise: B}]
expect:
  always: ["t >= 120 || creates == 0"]
  finally: ["free == 4 && updated == 4 && stale == 1"]
`},
		"used body": {"a body that was claimed never serves again, even if the size grows", `pool: {replicas: 1, sizing: Warm}
world: {drain: 20s}
start: {members: [{}, {state: Claimed, claim: c}]}
timeline: [{at: 1s, release: c}, {at: 5s, set: {replicas: 2}}]
expect:
  finally: ["free == 2 && members == 2"]
  creates: 1
  deletes: 1
`},
		"lost claim": {"a scale-in removes a member without a body before one that serves", `pool: {replicas: 1, sizing: Warm}
start: {members: [{}, {state: Claimed, claim: c}]}
timeline: [{at: 1m, member: 1, delete: body}]
expect:
  always: ["m[0].phase == 'Available'"]
  finally: ["members == 1 && claims.c.phase == 'Failed'"]
  creates: 0
`},
		"lower ceiling": {"members above a lowered maxMembers are removed and not born again", `pool: {replicas: 4, update: {type: RollingUpdate, maxUnavailable: 3, maxSurge: 1}}
start: {members: [{count: 3}, {state: Claimed, claim: c}]}
timeline: [{at: 1m, set: {maxMembers: 2}}, {at: 2m, revise: B}, {at: 5m, release: c}]
expect:
  always: ["t < 90 || bodies <= 2"]
  finally: ["members == 2 && free == 2 && updated == 2"]
`},
		"deleted while busy": {"a busy member without a body does not delay the deletion of its pool", `pool: {replicas: 2}
start: {members: [{occupancy: Busy}, {}]}
timeline: [{at: 1s, delete: pool}, {at: 1m, member: 0, delete: body}]
expect:
  finally: ["members == 0 && bodies == 0"]
`},
		"in place, refused": {"a body whose update is refused stays and goes back to its revision", `pool: {replicas: 2, update: {type: RollingUpdate, method: InPlace, failureLimit: 1}}
world: {revisions: {bad: {outcome: CreateError}}}
timeline: [{at: 1s, revise: bad}]
expect:
  always: ["bodies == 2"]
  finally: ["free == 2 && stale == 2 && conditions.Updated.reason == 'UpdateHalted'"]
  creates: 0
  deletes: 0
`},
		"in place, crash": {"after a crash in the middle no body is updated twice", `pool: {replicas: 2, update: {type: RollingUpdate, method: InPlace}}
timeline: [{at: 1s, revise: B}, {when: "m[0].revision == 'B'", crash: {for: 5s}}, {when: "m[1].phase == 'Updating'", crash: {for: 0s}}]
expect:
  finally: ["free == 2 && updated == 2 && m[0].incarnation == 2 && m[1].incarnation == 2"]
  creates: 0
  deletes: 0
`},
		"rolled back": {"a rollback lasts until the template changes; then the new target starts clean", `pool: {replicas: 2, update: {type: RollingUpdate, failureLimit: 1, onFailure: Rollback}}
world: {bootTimeout: 1m, revisions: {bad: {outcome: NeverReady}}}
timeline: [{at: 1s, revise: bad}, {at: 10m, crash: {for: 1m}}, {at: 15m, set: {replicas: 3}}, {at: 20m, revise: B}]
expect:
  at: {19m: ["free == 3 && target == 'A' && stale == 0 && conditions.Updated.reason == 'RolledBack'"]}
  finally: ["free == 3 && updated == 3 && target == 'B' && current == 'B'"]
`},
		"window of a day": {"missing and failed members are not drift, and wait for no window", `pool: {replicas: 2, update: {type: RollingUpdate, windows: [{schedule: "0 3 * * *", duration: 1h}]}}
timeline: [{at: 1m, revise: B}, {at: 2m, member: 1, delete: body}, {at: 3m, set: {replicas: 3}}]
run: 5h
expect:
  always: ["t >= 10800 || m[0].revision == 'A'"]
  at: {10m: ["free == 3"]}
  finally: ["updated == 3 && free == 3"]
`},
		"bad window": {"an invalid window never opens, and the pool reports it", `pool: {replicas: 2, update: {type: RollingUpdate, windows: [{schedule: "often", duration: 1h}]}}
timeline: [{at: 1m, revise: B}]
run: 48h
expect:
  finally: ["stale == 2 && blockers.OutsideWindow == 2 && conditions.Stalled.reason == 'InvalidWindow'", "conditions.Updated.message.contains('often')"]
  creates: 0
`},
		"hash": {"a new hash algorithm is not drift", `pool: {replicas: 2, update: {type: RollingUpdate}}
timeline: [{at: 1m, upgrade: {hashVersion: 2}}, {at: 2m, upgrade: {hashVersion: 3}}]
expect:
  always: ["updated == 2 && free == 2"]
`},
		"renderer": {"a renderer that makes other bodies is drift, and its revisions have an apostrophe", `pool: {replicas: 2, update: {type: RollingUpdate}}
world: {boot: 10s, revisions: {B: {boot: 50s}}}
timeline: [{at: 1m, upgrade: {renderer: changed}}, {at: 10m, revise: B}]
expect:
  at:
    1m5s: ["stale > 0 && target == \"A'\""]
    9m: ["updated == 2 && m[0].revision == \"A'\""]
    10m30s: ["free == 1"]
  finally: ["updated == 2 && target == \"B'\""]
  creates: 4
`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for seed := range int64(3) {
				r := play(t, seed+1, "name: story\n"+c.rest)
				for i := range r.Failures {
					f := &r.Failures[i]
					t.Errorf("%s: seed %d, %v: %s\n%s", c.reason, r.Seed, f.At, f.short(), f.State)
				}
				if t.Failed() {
					t.Fatal(r)
				}
			}
		})
	}
}

// The holder of a stale member is asked once to release it. The request is withdrawn
// when the member is not stale any more.
func TestBinder_Notify(t *testing.T) {
	r := play(t, 1, `name: notify
pool: {replicas: 2, update: {type: RollingUpdate, onClaimed: Notify}}
start: {members: [{state: Claimed, claim: a}, {}]}
timeline: [{at: 1m, revise: B}, {at: 5m, revise: A}, {at: 9m, set: {update: {onClaimed: Wait}}}, {at: 10m, revise: B}]
`)
	var got []string
	for _, l := range r.Narrative {
		if l.Who == "claim" {
			got = append(got, l.At.String()+" "+l.Text)
		}
	}
	want := "1m0s a is asked to release pool-0, which is stale\n5m0s a may keep pool-0, which is not stale any more"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// The judge reports slots that must not be made.
func TestJudge_Births(t *testing.T) {
	cases := map[string]struct {
		pool, want string
		a          rollout.Action
	}{
		"ceiling":        {"{replicas: 3, maxMembers: 2}", "is made as number 3, but maxMembers is 2", rollout.Action{}},
		"below":          {"{replicas: 3, maxMembers: 3}", "", rollout.Action{}},
		"warm":           {"{replicas: 1, sizing: Warm}", "", rollout.Action{}},
		"warm, too many": {"{replicas: 0, sizing: Warm}", "is made as number 2, but 1 are enough", rollout.Action{}},
		"surge":          {"{replicas: 2, update: {maxSurge: 1}}", "", rollout.Action{Surge: true}},
		"shut": {
			"{replicas: 2, update: {maxSurge: 1, windows: [{schedule: '@yearly', duration: 1m}]}}",
			"is made for drift outside the windows", rollout.Action{Surge: true},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := begin(t, 1, "name: story\npool: "+c.pool+"\nstart: {members: [{}, {state: Claimed}]}\n")
			w.now = time.Hour
			p := w.pools[0]
			p.claims.put(99, &claim{Claim: rollout.Claim{Phase: rollout.ClaimPending}, name: "waits", uid: 99, wanted: -1, member: -1})
			p.updateUnserved(99)
			p.planner.cache.spec = p.spec
			c.a.Kind, c.a.Index, c.a.Revision = rollout.CreateSlot, 2, "A"
			w.judge.checkCreateSlot(p, &c.a, p.slots, 1)
			checkPromise(t, w, c.want)
		})
	}
}

func TestJudge_Windows(t *testing.T) {
	for name, c := range map[string]struct {
		at   time.Duration
		want string
	}{
		"open": {3*time.Hour + time.Minute, ""},
		"shut": {2 * time.Hour, "outside the windows"},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, 1, "name: story\npool: {replicas: 1, update: {windows: [{schedule: '0 3 * * *', duration: 1h}]}}\n")
			w.now = c.at
			p := w.pools[0]
			old := p.slots.get(0)
			a := &rollout.Action{Kind: rollout.Disrupt, Disruption: rollout.Disruption{Cause: rollout.Drift, Incarnation: 1}}
			w.judge.checkDisruption(p, a, old, p.slots, p.spec)
			checkPromise(t, w, c.want)
		})
	}
}

// checkPromise checks that the promise with the text was broken, or none if it is
// empty.
func checkPromise(t *testing.T, w *world, want string) {
	t.Helper()
	var got []string
	for _, f := range w.judge.failures {
		got = append(got, f.Text)
	}
	all := strings.Join(got, "\n")
	if want == "" && all != "" || !strings.Contains(all, want) {
		t.Errorf("got %q, want %q", all, want)
	}
}

package simulate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A random world is drawn as the text of a scenario file, so that one that
// fails can be saved as it is.
func TestRandomWorlds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &drawing{t: rt}
		text := d.world()
		s, err := Parse("random-world.yaml", []byte(text))
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		if len(s.Needs) > 0 {
			rt.Fatalf("needs %v\n%s", s.Needs, text)
		}
		r := s.Run(rapid.Int64Range(1, 1000).Draw(rt, "seed"), false)
		for i := range r.Failures {
			f := &r.Failures[i]
			rt.Errorf("seed %d, %v: %s\n%s", r.Seed, f.At, f.short(), f.State)
		}
		if !r.Passed() {
			rt.Fatalf("save this as random-world.yaml and play it with --seed %d:\n%s", r.Seed, text)
		}
	})
}

// drawing draws a world.
type drawing struct {
	t *rapid.T
	b strings.Builder

	replicas  int
	claims    []string
	bad       []string
	boot      time.Duration
	stop      time.Duration
	drain     time.Duration
	minReady  int
	timeout   time.Duration
	lag       time.Duration
	slow      time.Duration
	partition int
	limits    limits
}

// limits are the policy's, as they are written; "" for not at all.
type limits struct{ unavailable, surge, floor string }

func (d *drawing) line(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func (d *drawing) yes(name string, percent int) bool {
	return rapid.IntRange(1, 100).Draw(d.t, name) > 100-percent // what is drawn smaller is simpler
}

func (d *drawing) number(name string, least, most int) int {
	return rapid.IntRange(least, most).Draw(d.t, name)
}

func (d *drawing) pick(name string, words ...string) string {
	return rapid.SampledFrom(words).Draw(d.t, name)
}

func (d *drawing) seconds(name string, list ...int) time.Duration {
	return time.Duration(rapid.SampledFrom(list).Draw(d.t, name)) * time.Second
}

func (d *drawing) world() string {
	d.line("name: random-world")
	d.line("why: drawn at random")
	d.replicas = d.number("replicas", 0, 6)
	d.line("pool:")
	d.line("  replicas: %d", d.replicas)
	if d.yes("reuse", 40) {
		d.line("  claims: {onRelease: Reuse}")
	}
	d.line("  update: {%s}", d.policy())
	d.nature()
	d.start()
	quiet := d.timeline()
	d.line("run: %v", quiet+d.bound())
	return d.b.String()
}

func (d *drawing) policy() string {
	f := []string{"type: RollingUpdate"}
	if d.yes("manual", 5) {
		f[0] = "type: Manual"
	}
	d.limits = d.drawLimits()
	f = append(f, d.limits.fields()...)
	if d.yes("inFlight", 20) {
		f = append(f, fmt.Sprintf("maxInFlight: %d", d.number("maxInFlight", 1, 4)))
	}
	if d.yes("partitioned", 15) {
		d.partition = d.number("partition", 0, 4)
		f = append(f, fmt.Sprintf("partition: %d", d.partition))
	}
	if d.yes("minReady", 25) {
		d.minReady = d.number("minReadySeconds", 0, 30)
		f = append(f, fmt.Sprintf("minReadySeconds: %d", d.minReady))
	}
	if d.yes("failureLimit", 40) {
		f = append(f, "failureLimit: "+d.pick("limit", "1", "2", "3", "50%"))
	}
	if d.yes("oldest", 20) {
		f = append(f, "order: OldestFirst")
	}
	if d.yes("unknownReplace", 30) {
		f = append(f, "unknown: Replace")
	}
	if d.yes("startsPaused", 10) {
		f = append(f, "paused: true")
	}
	if d.yes("deadline", 20) {
		f = append(f, "progressDeadline: "+d.pick("progressDeadline", "30s", "2m", "5m"))
	}
	return strings.Join(f, ", ")
}

func (d *drawing) drawLimits() limits {
	var l limits
	if d.yes("unavailable", 80) {
		l.unavailable = d.pick("maxUnavailable", "1", "2", "0", "3", "20%", "50%", "100%")
	}
	if d.yes("surge", 50) {
		l.surge = d.pick("maxSurge", "1", "2", "0", "3", "25%", "100%")
	}
	if d.yes("floor", 20) {
		l.floor = d.pick("minAvailable", "1", "0", "2", "3", "50%")
	}
	return l
}

func (l limits) fields() (f []string) {
	for _, v := range [][2]string{{"maxUnavailable", l.unavailable}, {"maxSurge", l.surge}, {"minAvailable", l.floor}} {
		if v[1] != "" {
			f = append(f, fmt.Sprintf("%s: %s", v[0], v[1]))
		}
	}
	return f
}

func (d *drawing) nature() {
	d.boot = d.seconds("boot", 10, 30, 60, 1)
	d.stop = d.seconds("stop", 5, 10, 0, 60)
	d.drain = d.seconds("drain", 0, 0, 20)
	d.timeout = d.seconds("bootTimeout", 120, 300, 90)
	d.lag = d.seconds("lag", 0, 0, 1, 5, 20)
	d.line("world:")
	d.line("  {boot: %v, stop: %v, drain: %v, bootTimeout: %v, lag: %v}", d.boot, d.stop, d.drain, d.timeout, d.lag)
	d.bad = nil
	var revisions []string
	for _, r := range []string{"B", "C"} {
		switch d.pick("outcome of "+r, "Ready", "Ready", "NeverReady", "Crash", "CreateError", "Slow") {
		case "NeverReady":
			revisions = append(revisions, r+": {outcome: NeverReady}")
		case "Crash":
			revisions = append(revisions, fmt.Sprintf("%s: {outcome: Crash, after: %v}", r, d.seconds("after", 5, 40, 90)))
		case "CreateError":
			revisions = append(revisions, r+": {outcome: CreateError}")
		case "Slow":
			d.slow = 80 * time.Second
			revisions = append(revisions, r+": {boot: 80s}")
		}
	}
	if len(revisions) > 0 {
		d.b.WriteString("")
		s := strings.TrimSuffix(strings.TrimRight(d.b.String(), "\n"), "}")
		d.b.Reset()
		d.line("%s, revisions: {%s}}", s, strings.Join(revisions, ", "))
	}
}

func (d *drawing) start() {
	d.line("start:")
	d.line("  target: %s", d.pick("target", "A", "A", "B"))
	d.line("  members:")
	n := d.replicas
	if d.yes("other number", 20) {
		n = d.number("members", 0, 7)
	}
	if n == 0 {
		d.line("    []")
	}
	for i := range n {
		d.line("    - {%s}", d.member(i))
	}
}

func (d *drawing) member(i int) string {
	f := []string{fmt.Sprintf("index: %d", i)}
	f = append(f, "revision: "+d.pick("revision", "A", "A", "A", "B", `""`))
	if d.yes("cost", 10) {
		f = append(f, fmt.Sprintf("cost: %d", d.number("cost of it", -2, 2)))
	}
	if d.yes("free", 70) {
		if d.yes("busy", 10) {
			f = append(f, "occupancy: "+d.pick("occupancy", "Busy", "Unknown"))
		}
		if d.yes("held", 5) {
			f = append(f, fmt.Sprintf("hold: until %v", d.seconds("hold", 60, 600)))
		}
		return strings.Join(f, ", ")
	}
	state := d.pick("state", "Claimed", "Provisioning", "Unready", "Failed", "Draining", "Terminating")
	f = append(f, "state: "+state)
	if state == "Claimed" {
		name := fmt.Sprintf("s%d", i)
		d.claims = append(d.claims, name)
		f = append(f, "claim: "+name)
	}
	return strings.Join(f, ", ")
}

// timeline draws what happens, and then, in most worlds, has everything come
// to rest: nothing in the way of the good revision G any more. It returns when
// that is.
func (d *drawing) timeline() time.Duration {
	d.line("timeline:")
	now := time.Duration(0)
	for range d.number("entries", 0, 10) {
		now += d.seconds("later", 0, 1, 7, 20, 45, 100, 300)
		d.line("  - {at: %v, %s}", now, d.edit())
	}
	now += 10 * time.Minute // losses, refusals and crashes are over
	if d.yes("restless", 20) {
		d.line("  - {at: %v, claim: last}", now)
		return now
	}
	d.rest(now)
	return now
}

func (d *drawing) edit() string {
	m := d.number("member of the edit", 0, 7)
	switch d.pick("edit", "revise", "revise", "claim", "release", "replicas", "limits", "pause", "health", "occupancy",
		"hold", "body", "slot", "refuse", "crash", "lose", "world", "churn", "upgrade", "unknown", "claims") {
	case "revise":
		return "revise: " + d.pick("to", "A", "B", "C")
	case "claim":
		name := fmt.Sprintf("c%d", d.number("claim", 0, 5))
		d.claims = append(d.claims, name)
		return "claim: " + name
	case "claims":
		for i := range 3 {
			d.claims = append(d.claims, fmt.Sprintf("m%d", i))
		}
		return "claims: 3, every: 2s, prefix: m"
	case "release":
		if len(d.claims) == 0 {
			return "release: nobody"
		}
		return "release: " + d.pick("released", d.claims...)
	case "replicas":
		d.replicas = d.number("scaled to", 0, 7)
		return fmt.Sprintf("set: {replicas: %d}", d.replicas)
	case "limits":
		l := d.drawLimits()
		set := func(name, v string, to *string) string {
			*to = v
			if v == "" {
				v = "null"
			}
			return name + ": " + v
		}
		return fmt.Sprintf("set: {update: {%s, %s, %s}}",
			set("maxUnavailable", l.unavailable, &d.limits.unavailable),
			set("maxSurge", l.surge, &d.limits.surge),
			set("minAvailable", l.floor, &d.limits.floor))
	case "pause":
		return fmt.Sprintf("set: {update: {paused: %v}}", d.yes("paused", 60))
	case "health":
		return fmt.Sprintf("member: %d, health: %s", m, d.pick("health", "Down", "Up"))
	case "occupancy":
		return fmt.Sprintf("member: %d, occupancy: %s", m, d.pick("becomes", "Busy", "Idle", "Unknown"))
	case "hold":
		return fmt.Sprintf("member: %d, hold: %q", m, d.pick("hold", "", "reason", "until 10m"))
	case "body", "slot":
		return fmt.Sprintf("member: %d, delete: %s", m, d.pick("deleted", "body", "slot"))
	case "refuse":
		return fmt.Sprintf("member: %d, refuse: {for: 2m}", m)
	case "crash":
		return fmt.Sprintf("crash: {for: %v}", d.seconds("down", 0, 1, 30))
	case "lose":
		return fmt.Sprintf("lose: %s, for: %v", d.pick("lost", lossNames...), d.seconds("lost for", 10, 60))
	case "world":
		return fmt.Sprintf("world: {capacity: %d}", d.number("capacity", 0, 9))
	case "churn":
		return fmt.Sprintf("churn: {claims: %d, hold: 30s, until: 10m}", d.number("chairs", 1, 3))
	case "upgrade":
		return "upgrade: {hashVersion: 2}"
	default:
		return fmt.Sprintf(`member: %d, revision: ""`, m)
	}
}

// rest ends all that is in the way, and says what then has to come.
func (d *drawing) rest(now time.Duration) {
	at := fmt.Sprintf("  - {at: %v, ", now)
	for _, c := range d.claims {
		d.line("%srelease: %s}", at, c)
	}
	for i := range 9 { // more slots than there ever are, nearly
		d.line(`%smember: %d, occupancy: Idle, hold: "", health: Up}`, at, i)
	}
	d.line("%sworld: {capacity: null}}", at)
	if !d.movable() {
		d.line("%sworld: {revisions: {B: null, C: null}}}", at) // or what cannot be left may be broken
	} else {
		d.line("%sset: {update: {type: RollingUpdate, paused: false, partition: null}}}", at)
	}
	d.line("%srevise: G}", at)
	d.line("expect:")
	d.line("  finally:")
	d.line("    - members == replicas && free == replicas && claimed == 0")
	if d.movable() {
		d.line("    - updated == replicas")
		d.line("    - conditions.Updated.status == 'True'")
	}
}

// movable tells whether the policy can ever roll anything.
func (d *drawing) movable() bool {
	n := d.replicas
	share := func(s string, absent int, up bool) int {
		v := absent
		if s == "" {
			return v
		}
		if _, err := fmt.Sscan(strings.TrimSuffix(s, "%"), &v); err != nil {
			d.t.Fatal(err)
		}
		if !strings.HasSuffix(s, "%") {
			return v
		}
		if up {
			return (v*n + 99) / 100
		}
		return v * n / 100
	}
	u, s := share(d.limits.unavailable, 1, false), share(d.limits.surge, 0, true)
	if u == 0 && s == 0 && d.limits.unavailable != "0" && d.limits.surge != "0" {
		u = 1
	}
	if n == 0 {
		return true
	}
	return u+s > 0 && share(d.limits.floor, 0, true) < n+min(s, 1)
}

// bound is how long the pool may take to come to rest: each member is replaced
// a few times, one after the other, and waits out the longest backoff.
func (d *drawing) bound() time.Duration {
	once := d.drain + d.stop + max(d.boot, d.slow) + time.Duration(d.minReady)*time.Second + 8*d.lag + time.Minute
	return 12*once*5/4 + d.timeout + 20*time.Minute
}

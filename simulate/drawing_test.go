package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// drawing draws a world, as the text of a scenario file.
//
// Something happens for a while, and then, in most worlds, all becomes quiet:
// what is in the way of the good revision G ends, and nothing happens any
// more. From there on the pool has to come to rest within [drawing.bound].
type drawing struct {
	t *rapid.T
	b strings.Builder
	// spec is what the pool's spec says now, by path; "" for nothing.
	spec map[string]string
	// slots is how many there may have been at most; chairs how many claims a
	// churn kept alive, triggers how many crashes wait for an expression.
	slots, chairs, triggers int
	claims                  []string
	// boot, stop and so on are the longest that there are.
	boot, stop, drain, timeout, lag, minReady time.Duration
	deleted, quiet, kept                      bool
	// first is what the policy comes to at the start.
	first numbers
}

// numbers are what a policy comes to, worked out without the engine.
type numbers struct{ unavailable, surge, floor int }

func (d *drawing) line(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

// yes is true in so many of a hundred cases. What is drawn smaller is simpler.
func (d *drawing) yes(name string, percent int) bool {
	return rapid.IntRange(1, 100).Draw(d.t, name) > 100-percent
}

func (d *drawing) number(name string, least, most int) int {
	return rapid.IntRange(least, most).Draw(d.t, name)
}

// pick draws one of the words, of which the first is the simplest.
func (d *drawing) pick(name string, words ...string) string {
	return rapid.SampledFrom(words).Draw(d.t, name)
}

func (d *drawing) seconds(name string, list ...int) time.Duration {
	return time.Duration(rapid.SampledFrom(list).Draw(d.t, name)) * time.Second
}

func (d *drawing) world() string {
	d.spec = map[string]string{}
	d.line("name: random-world")
	d.line("why: drawn at random")
	for i := range specFields {
		if f := &specFields[i]; d.yes(f.name, f.percent) {
			f.draw(d)
		}
	}
	d.line("pool: %s", d.patch(specPaths()))
	d.first = d.numbers()
	d.nature()
	d.start()
	now := d.timeline()
	if d.quiet = !d.yes("restless", 20); d.quiet {
		d.rest(now)
	} else {
		d.line("run: %v", now+10*time.Minute)
	}
	return d.b.String()
}

// specField is a part of the spec that is drawn as one.
type specField struct {
	name    string
	percent int
	paths   []string
	draw    func(*drawing)
}

// one draws a field that depends on no other.
func one(path string, percent int, words ...string) specField {
	return specField{path, percent, []string{path}, func(d *drawing) { d.spec[path] = d.pick(path, words...) }}
}

// everyHour is a window that opens often enough to wait for.
const (
	windowEvery = 10 * time.Minute
	windows     = `[{schedule: "*/10 * * * *", duration: 2m}]`
)

var specFields = []specField{
	{"replicas", 100, []string{"replicas"}, func(d *drawing) {
		n := d.number("replicas", 0, 6)
		d.slots = max(d.slots, n)
		d.spec["replicas"] = strconv.Itoa(n)
	}},
	one("sizing", 45, "Warm", "Total"),
	one("refillBelow", 25, "1", "2", "4"),
	one("maxMembers", 25, "4", "7", "2", "0"),
	one("update.type", 95, "RollingUpdate", "RollingUpdate", "RollingUpdate", "RollingUpdate", "Manual"),
	{"limits", 100, []string{"update.method", "update.maxUnavailable", "update.maxSurge", "update.minAvailable"}, (*drawing).limits},
	one("update.maxInFlight", 20, "1", "2", "4"),
	one("update.paused", 10, "true", "false"),
	one("update.partition", 25, "1", "2", "4"),
	one("update.order", 20, "OldestFirst", "LowestIndex"),
	{"minReady", 25, []string{"update.minReadySeconds"}, func(d *drawing) {
		n := d.number("minReadySeconds", 0, 30)
		d.minReady = max(d.minReady, time.Duration(n)*time.Second)
		d.spec["update.minReadySeconds"] = strconv.Itoa(n)
	}},
	one("update.progressDeadline", 20, "30s", "2m", "5m"),
	one("update.failureLimit", 40, "1", "2", "3", "50%"),
	one("update.onFailure", 45, "Rollback", "Halt"),
	one("update.unknown", 30, "Replace", "Adopt"),
	one("update.windows", 25, windows, windows, `[{schedule: "0 0 1 1 *", duration: 1m}]`, `[{schedule: "never", duration: 1m}]`),
	one("update.onClaimed", 20, "Notify", "Wait"),
	one("claims.onRelease", 40, "Reuse", "Replace"),
	one("claims.defaultTTL", 10, "1m", "5m"),
	one("claims.maxTTL", 10, "2m", "30s"),
	one("claims.heartbeat", 15, "1m", "10s"),
}

func specPaths() (list []string) {
	for i := range specFields {
		list = append(list, specFields[i].paths...)
	}
	return list
}

// limits draws what a rollout may cost. An update in place allows no surge.
func (d *drawing) limits() {
	draw := func(path string, percent int, words ...string) {
		d.spec[path] = ""
		if d.yes("has "+path, percent) {
			d.spec[path] = d.pick(path, words...)
		}
	}
	draw("update.method", 40, "InPlace", "Replace")
	draw("update.maxUnavailable", 80, "1", "2", "0", "3", "20%", "50%", "100%")
	if d.spec["update.method"] == "InPlace" {
		draw("update.maxSurge", 20, "0", "0%")
	} else {
		draw("update.maxSurge", 50, "1", "2", "0", "3", "25%", "100%")
	}
	draw("update.minAvailable", 20, "1", "0", "2", "3", "50%")
}

// patch writes what the spec says at the paths as one line of YAML.
func (d *drawing) patch(paths []string) string {
	groups := map[string][]string{}
	for _, path := range paths {
		group, field, nested := strings.Cut(path, ".")
		if !nested {
			group, field = "", path
		}
		if v := d.spec[path]; v != "" {
			groups[group] = append(groups[group], field+": "+v)
		}
	}
	list := groups[""]
	for _, g := range []string{"update", "claims"} {
		if f := groups[g]; f != nil {
			list = append(list, g+": {"+strings.Join(f, ", ")+"}")
		}
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// set draws a part of the spec anew, or takes it away, and writes that as a
// merge patch.
func (d *drawing) set() string {
	i := rapid.IntRange(0, len(specFields)-1).Draw(d.t, "part of the spec")
	f := &specFields[i]
	if d.yes("taken away", 25) && f.name != "replicas" {
		for _, path := range f.paths {
			d.spec[path] = ""
		}
	} else {
		f.draw(d)
	}
	was := map[string]string{}
	for _, path := range f.paths {
		if was[path] = d.spec[path]; was[path] == "" {
			d.spec[path] = "null"
		}
	}
	text := "set: " + d.patch(f.paths)
	maps.Copy(d.spec, was)
	return text
}

// nature draws how the world behaves.
func (d *drawing) nature() {
	d.boot = d.seconds("boot", 10, 30, 60, 1)
	d.stop = d.seconds("stop", 5, 10, 0, 60)
	d.drain = d.seconds("drain", 0, 0, 20)
	d.timeout = d.seconds("bootTimeout", 120, 300, 90)
	d.lag = d.seconds("lag", 0, 0, 1, 5, 20)
	f := []string{fmt.Sprintf("boot: %v, stop: %v, drain: %v, bootTimeout: %v, lag: %v", d.boot, d.stop, d.drain, d.timeout, d.lag)}
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
			d.boot = max(d.boot, 70*time.Second)
			revisions = append(revisions, r+": {boot: 70s}")
		}
	}
	if len(revisions) > 0 {
		f = append(f, "revisions: {"+strings.Join(revisions, ", ")+"}")
	}
	d.line("world: {%s}", strings.Join(f, ", "))
}

func (d *drawing) start() {
	d.line("start:")
	d.line("  target: %s", d.pick("target", "A", "A", "B"))
	n := d.slots
	if d.yes("other number", 20) {
		n = d.number("members", 0, 7)
	}
	d.slots = max(d.slots, n)
	if n == 0 {
		d.line("  members: []")
		return
	}
	d.line("  members:")
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
	if d.yes("held", 5) {
		f = append(f, "hold: until "+d.pick("hold", "1m", "10m"))
	}
	if !d.yes("not free", 30) {
		if d.yes("busy", 10) {
			f = append(f, "occupancy: "+d.pick("occupancy", "Busy", "Unknown"))
		}
		return strings.Join(f, ", ")
	}
	state := d.pick("state", "Claimed", "Provisioning", "Unready", "Failed", "Draining", "Terminating")
	f = append(f, "state: "+state)
	if state == "Claimed" {
		f = append(f, "claim: "+d.claim(fmt.Sprintf("s%d", i)))
	}
	return strings.Join(f, ", ")
}

// claim notes that there is a claim of the name. In a warm pool it may bring
// one more slot.
func (d *drawing) claim(name string) string {
	if !slices.Contains(d.claims, name) {
		d.claims = append(d.claims, name)
		d.slots++
	}
	return name
}

// timeline draws what happens, and returns when nothing of it goes on.
func (d *drawing) timeline() time.Duration {
	d.line("timeline:")
	now := time.Duration(0)
	for range d.number("entries", 0, 14) {
		now += d.seconds("later", 0, 1, 7, 20, 45, 100, 300)
		d.line("  - {at: %v, %s}", now, d.edit())
	}
	if d.yes("crashes in the middle", 20) {
		d.triggers = d.number("crashes", 1, 3)
		d.line(`  - {when: "%s", repeat: %d, crash: {for: %v}}`, d.pick("when", "rolling == 1", "members > 2", "claimed == 1",
			"failed > 0", "surge > 0", "m[0].phase == 'Updating'", "m[0].phase == 'Terminating'", "updated == 1", "bodies == 1"),
			d.triggers, d.seconds("dead", 0, 5))
	}
	now += 10 * time.Minute // losses, refusals, holds and churns are over
	d.line("  - {at: %v, claim: %s}", now, d.claim("last"))
	return now
}

func (d *drawing) edit() string {
	m := d.number("member of the edit", 0, 7)
	switch d.pick("edit", "revise", "revise", "claim", "claim", "release", "set", "set", "set", "pause", "health", "occupancy",
		"hold", "body", "slot", "refuse", "crash", "lose", "capacity", "churn", "upgrade", "renderer", "unknown", "claims", "renew",
		"cost", "delete") {
	case "revise":
		return "revise: " + d.pick("to", "A", "B", "C")
	case "claim", "claims":
		return d.claimEdit()
	case "renew":
		return "renew: " + d.anyClaim()
	case "release":
		return "release: " + d.anyClaim()
	case "set":
		return d.set()
	case "pause":
		d.spec["update.paused"] = d.pick("paused", "true", "false")
		return fmt.Sprintf("set: {update: {paused: %s}}", d.spec["update.paused"])
	case "health":
		return fmt.Sprintf("member: %d, health: %s", m, d.pick("health", "Down", "Up"))
	case "occupancy":
		return fmt.Sprintf("member: %d, occupancy: %s", m, d.pick("becomes", "Busy", "Idle", "Unknown"))
	case "hold":
		return fmt.Sprintf("member: %d, hold: %q", m, d.pick("hold", "", "reason", "until 10m"))
	case "cost":
		return fmt.Sprintf("member: %d, cost: %d", m, d.number("new cost", -2, 2))
	case "body", "slot":
		return fmt.Sprintf("member: %d, delete: %s", m, d.pick("deleted", "body", "slot"))
	case "refuse":
		return fmt.Sprintf("member: %d, refuse: {for: 2m}", m)
	case "unknown":
		return fmt.Sprintf(`member: %d, revision: ""`, m)
	default:
		return d.worldEdit()
	}
}

// worldEdit draws what happens to everything.
func (d *drawing) worldEdit() string {
	switch d.pick("edit of the world", "crash", "crash", "lose", "capacity", "churn", "hash", "renderer", "delete") {
	case "lose":
		return fmt.Sprintf("lose: %s, for: %v", d.pick("lost", lossNames...), d.seconds("lost for", 10, 60))
	case "capacity":
		return fmt.Sprintf("world: {capacity: %d}", d.number("capacity", 0, 9))
	case "churn":
		d.chairs += 2
		d.slots += 2
		return "churn: {claims: 2, hold: 30s, until: 10m}"
	case "hash":
		return "upgrade: {hashVersion: 2}"
	case "renderer":
		return "upgrade: {renderer: changed}"
	case "delete":
		if d.yes("deleted", 20) {
			d.deleted = true
			return "delete: pool"
		}
	}
	return fmt.Sprintf("crash: {for: %v}", d.seconds("down", 0, 1, 30))
}

func (d *drawing) claimEdit() string {
	ending := d.pick("ending", "", "", ", ttl: 1m", ", wait: 30s", ", wait: 0s", ", ttl: 5m, wait: 2m")
	if d.yes("many", 20) {
		for i := range 3 {
			d.claim(fmt.Sprintf("m%d", i))
		}
		return "claims: 3, every: 2s, prefix: m" + ending
	}
	name := d.claim(fmt.Sprintf("c%d", d.number("claim", 0, 5)))
	if d.yes("that one", 10) {
		ending += fmt.Sprintf(", member: %d", d.number("member of the claim", 0, 5))
	}
	return "claim: " + name + ending
}

func (d *drawing) anyClaim() string {
	if len(d.claims) == 0 {
		return "nobody"
	}
	return d.pick("which claim", d.claims...)
}

// rest ends all that is in the way, and says what has to come of that. One
// claim may stay, which hides nobody.
func (d *drawing) rest(now time.Duration) {
	now += time.Second
	at := fmt.Sprintf("  - {at: %v, ", now)
	for _, c := range d.claims {
		d.line("%srelease: %s}", at, c)
	}
	if d.kept = d.spec["maxMembers"] == "" && d.size() > 0 && !d.deleted && d.yes("a claim stays", 30); d.kept {
		d.slots++
		d.line("%sclaim: kept, member: 0}", at)
	}
	for i := range max(8, d.slots+d.surge()) {
		d.line(`%smember: %d, occupancy: Idle, hold: "", health: Up}`, at, i)
	}
	d.line("%sworld: {capacity: null}}", at)
	d.spec["update.type"], d.spec["update.paused"] = "RollingUpdate", "false"
	if d.spec["update.windows"] != windows {
		d.spec["update.windows"] = "[]"
	}
	keepsPartition := d.spec["update.partition"] != "" && d.yes("keeps its partition", 50)
	if !keepsPartition {
		d.spec["update.partition"] = "0"
	}
	d.line("%sset: %s}", at, d.patch([]string{"update.type", "update.paused", "update.windows", "update.partition"}))
	if keepsPartition || !d.movable() {
		d.line("%sworld: {revisions: {B: null, C: null}}}", at) // what stays has to work
	}
	d.line("%srevise: G}", at)
	bound := d.bound()
	d.line("run: %v", now+bound+time.Hour) // it stays as it is
	d.line("expect:")
	expected := d.expected()
	d.line("  within: {%v: [%s]}", now+bound, expected)
	d.line("  finally: [%s]", expected)
}

// expected is what has to be true in the end.
func (d *drawing) expected() string {
	if d.deleted {
		return `"members == 0 && bodies == 0 && claimed == 0"`
	}
	n, off := d.size(), d.at("update.partition")
	e := []string{"free == members && claimed == 0"}
	count := "members"
	switch {
	case !d.kept:
	case d.spec["sizing"] == "Warm":
		e[0], count = "free == members - claimed && claimed <= 1", "members - claimed"
	default:
		e[0] = "free == members - claimed && claimed <= 1 && inService == members"
	}
	most := n
	if d.kept && !d.movable() {
		most += d.surge() // they may wait for the claim to end
	}
	if least := d.at("refillBelow"); least > 0 && least < n {
		e = append(e, fmt.Sprintf("%s <= %d && free >= %d - claimed", count, most, least))
	} else {
		e = append(e, fmt.Sprintf("%s >= %d && %s <= %d", count, n, count, most))
	}
	if d.movable() {
		if d.kept {
			off = max(off, 1)
		} else {
			e = append(e, "conditions.Updated.status == 'True'")
		}
		e = append(e, fmt.Sprintf("updated >= members - %d", off))
	}
	for i := range e {
		e[i] = strconv.Quote(e[i])
	}
	return strings.Join(e, ", ")
}

// at is the number that the spec has at the path; 0 for none.
func (d *drawing) at(path string) int {
	n, err := strconv.Atoi(d.spec[path])
	if err != nil {
		return 0
	}
	return n
}

// share is the number of members that the spec says at the path, of n.
func (d *drawing) share(path string, absent, n int, up bool) int {
	s := d.spec[path]
	if s == "" {
		return absent
	}
	v, err := strconv.Atoi(strings.TrimSuffix(s, "%"))
	switch {
	case err != nil:
		d.t.Fatal(err)
	case !strings.HasSuffix(s, "%"):
		return v
	case up:
		return (v*n + 99) / 100
	}
	return v * n / 100
}

// size is how many members there are to be, of which nobody holds one.
func (d *drawing) size() int {
	n := d.at("replicas")
	if d.spec["maxMembers"] != "" {
		n = min(n, d.at("maxMembers"))
	}
	return n
}

func (d *drawing) surge() int { return d.numbers().surge }

// numbers works out what the policy comes to now.
func (d *drawing) numbers() numbers {
	n := d.at("replicas")
	v := numbers{
		unavailable: d.share("update.maxUnavailable", 1, n, false), surge: d.share("update.maxSurge", 0, n, true),
		floor: d.share("update.minAvailable", 0, n, true),
	}
	written := func(path string) bool { return d.spec[path] == "0" || d.spec[path] == "0%" }
	if v.unavailable == 0 && v.surge == 0 && !written("update.maxUnavailable") && !written("update.maxSurge") {
		v.unavailable = 1
	}
	return v
}

// movable tells whether the policy can roll whatever nobody holds: whether one
// of as many members as there can be may go.
func (d *drawing) movable() bool {
	n, v := d.at("replicas"), d.numbers()
	if n == 0 {
		return true
	}
	most := n + min(v.surge, 1)
	if d.spec["maxMembers"] != "" {
		most = min(most, d.at("maxMembers"))
	}
	free := most
	if d.kept && d.spec["sizing"] != "Warm" {
		free--
	}
	return most-1 >= n-v.unavailable && free-1 >= v.floor
}

// bound is how long the pool may take to come to rest once all is quiet. It is
// computed for the worst order of things:
//
//   - what is on its way to nowhere comes to its end: a body hangs until
//     bootTimeout, and the slot waits out the longest backoff, of ten minutes;
//   - then each slot that there may be is replaced, one after the other. That
//     takes a drain, a stop and a boot, each a fifth longer than it should be,
//     minReadySeconds, and eight times the lag: the decision, the end and the
//     beginning are each seen late by one controller and then by the other;
//   - before each of them the pool may wait for its window to open;
//   - claims of a churn that waited until now are served first;
//   - each crash that still waits for its expression lasts for five seconds,
//     and for two lists.
func (d *drawing) bound() time.Duration {
	once := (d.drain+d.stop+d.boot)*6/5 + d.minReady + 8*d.lag
	slots := d.slots + d.surge() + 1
	bound := d.timeout + 10*time.Minute + time.Duration(slots)*once
	if d.spec["update.windows"] == windows {
		bound += time.Duration(slots) * windowEvery
	}
	bound += time.Duration(d.chairs) * (once + 45*time.Second)
	bound += time.Duration(d.triggers) * (5*time.Second + 2*d.lag)
	return bound.Round(time.Second)
}

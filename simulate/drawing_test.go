package simulate

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// drawing draws a world, as the text of a scenario file.
//
// Random entries come first. Then, in most worlds, everything that keeps the pool
// from rolling to the good revision G is removed, and no entries follow. From
// there the pool has to come to rest within [drawing.bound].
type drawing struct {
	t *rapid.T
	b strings.Builder
	// spec is the pool's current spec, by path; "" for an absent field.
	spec map[string]string
	// slots is the largest possible number of slots, chairs the number of claims
	// that churns keep alive, triggers the number of crashes that wait for an
	// expression.
	slots, chairs, triggers int
	claims                  []string
	// boot, stop and so on are the longest times of any revision.
	boot, stop, drain, timeout, lag, minReady time.Duration
	// now is the time of the last entry so far.
	now                  time.Duration
	deleted, quiet, kept bool
	// touched are the members whose edits rest has to undo; flapping: all of them.
	touched  map[int]bool
	flapping bool
	// first are the numbers of the policy at the start.
	first numbers
}

// numbers are those of a policy, computed without the engine.
type numbers struct{ unavailable, surge, floor int }

func (d *drawing) line(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

// yes is true with the probability. It shrinks to false.
func (d *drawing) yes(name string, percent int) bool {
	return rapid.IntRange(1, 100).Draw(d.t, name) > 100-percent
}

func (d *drawing) number(name string, least, most int) int {
	return rapid.IntRange(least, most).Draw(d.t, name)
}

// pick draws one of the words. It shrinks to the first.
func (d *drawing) pick(name string, words ...string) string {
	return rapid.SampledFrom(words).Draw(d.t, name)
}

func (d *drawing) seconds(name string, list ...int) time.Duration {
	return time.Duration(rapid.SampledFrom(list).Draw(d.t, name)) * time.Second
}

func (d *drawing) world() string {
	d.spec, d.touched = map[string]string{}, map[int]bool{}
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
	d.timeline()
	if d.quiet = !d.yes("restless", 20); d.quiet {
		d.rest()
	} else {
		d.line("run: %v", d.now+10*time.Minute)
	}
	return d.b.String()
}

// specField is a part of the spec that is drawn as a unit.
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

// windows opens so often that a test can wait for it, every windowEvery.
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

// limits draws the numbers that limit a rollout. Method InPlace allows no surge.
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

// patch returns the spec at the paths as one line of YAML.
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

// set draws a part of the spec again, or removes it, and returns a merge patch.
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

// nature draws the behaviour of the world.
func (d *drawing) nature() {
	d.boot = d.seconds("boot", 10, 30, 60, 1)
	d.stop = d.seconds("stop", 5, 10, 0, 60)
	d.drain = d.seconds("drain", 0, 0, 20)
	d.timeout = d.seconds("bootTimeout", 120, 300, 90)
	d.lag = d.seconds("lag", 0, 0, 1, 5, 20)
	f := []string{fmt.Sprintf("boot: %v, stop: %v, drain: %v, bootTimeout: %v, lag: %v", d.boot, d.stop, d.drain, d.timeout, d.lag)}
	var revisions []string
	for _, r := range []string{"B", "C"} {
		switch d.pick("outcome of "+r, "Ready", "Ready", "NeverReady", "Crash", "CreateError", "Slow", "Flap") {
		case "NeverReady":
			revisions = append(revisions, r+": {outcome: NeverReady}")
		case "Crash":
			revisions = append(revisions, fmt.Sprintf("%s: {outcome: Crash, after: %v}", r, d.seconds("after", 5, 40, 90, 400)))
		case "CreateError":
			revisions = append(revisions, r+": {outcome: CreateError}")
		case "Flap":
			d.flapping = true
			revisions = append(revisions, fmt.Sprintf("%s: {outcome: Flap, up: %v, down: %v}", r, d.seconds("up", 5, 15, 50, 80), d.seconds("down", 5, 15, 50)))
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
	state := ""
	if d.yes("none has served", 10) { // then there is no current revision
		state = "Provisioning"
	}
	d.line("  members:")
	for i := range n {
		d.line("    - {%s}", d.startMember(i, state))
	}
}

func (d *drawing) startMember(i int, state string) string {
	f := []string{fmt.Sprintf("index: %d", i)}
	defer func() { d.touched[i] = len(f) > 2 }()
	f = append(f, "revision: "+d.pick("revision", "A", "A", "A", "B", `""`))
	if d.yes("cost", 10) {
		f = append(f, fmt.Sprintf("cost: %d", d.number("cost of it", -2, 2)))
	}
	if d.yes("held", 5) {
		f = append(f, "hold: until "+d.pick("hold", "1m", "10m"))
	}
	if state == "" && !d.yes("not free", 30) {
		if d.yes("busy", 10) {
			f = append(f, "occupancy: "+d.pick("occupancy", "Busy", "Unknown"))
		}
		return strings.Join(f, ", ")
	}
	if state == "" {
		state = d.pick("state", "Claimed", "Provisioning", "Unready", "Failed", "Draining", "Terminating")
	}
	f = append(f, "state: "+state)
	if state == "Claimed" {
		f = append(f, "claim: "+d.claim(fmt.Sprintf("s%d", i)))
	}
	return strings.Join(f, ", ")
}

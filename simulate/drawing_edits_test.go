package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"pgregory.net/rapid"
)

// claim records a claim of the name and returns the name. In a warm pool the claim
// may add a slot.
func (d *drawing) claim(name string) string {
	if !slices.Contains(d.claims, name) {
		d.claims = append(d.claims, name)
		d.slots++
	}
	return name
}

// timeline draws the entries, and advances now until their effects have ended.
func (d *drawing) timeline() {
	d.line("timeline:")
	// rapid shrinks a list entry by entry; two lists give enough entries.
	rapid.SliceOfN(rapid.Custom(d.entry), 0, 12).Draw(d.t, "entries")
	rapid.SliceOfN(rapid.Custom(d.entry), 0, 12).Draw(d.t, "more entries")
	if d.yes("crashes in the middle", 20) {
		d.triggers = d.number("crashes", 1, 3)
		d.line(`  - {when: "%s", repeat: %d, crash: {for: %v}}`, d.pick("when", "rolling == 1", "members > 2", "claimed == 1",
			"failed > 0", "surge > 0", "m[0].phase == 'Updating'", "m[0].phase == 'Terminating'", "updated == 1", "bodies == 1"),
			d.triggers, d.seconds("dead", 0, 5))
	}
	d.now += 10 * time.Minute // losses, refusals, holds and churns are over
	d.line("  - {at: %v, claim: %s}", d.now, d.claim("last"))
}

// entry draws and writes one entry of the timeline.
func (d *drawing) entry(t *rapid.T) string {
	defer func(outer *rapid.T) { d.t = outer }(d.t)
	d.t = t
	d.now += d.seconds("later", 0, 1, 7, 20, 45, 100, 300)
	e := d.edit()
	d.line("  - {at: %v, %s}", d.now, e)
	return e
}

// edit draws one edit.
func (d *drawing) edit() string {
	switch d.pick("edit", "revise", "body", "member", "world", "claim", "revise", "body", "member", "world", "set", "grow", "release",
		"undo", "member", "world", "body", "set", "claim", "retry", "pause", "set", "renew", "revise") {
	case "revise":
		return "revise: " + d.pick("to", "A", "B", "C")
	case "undo":
		return "do: undo, to: " + d.pick("back to", "A", "B", "C")
	case "retry":
		return "do: retry"
	case "claim":
		return d.claimEdit()
	case "renew":
		return "renew: " + d.anyClaim()
	case "release":
		return "release: " + d.anyClaim()
	case "set":
		return d.set()
	case "grow":
		return d.grow()
	case "pause":
		d.spec["update.paused"] = d.pick("paused", "true", "false")
		return fmt.Sprintf("set: {update: {paused: %s}}", d.spec["update.paused"])
	case "member":
		return d.memberEdit(d.member())
	case "body":
		return d.bodyEdit(d.member())
	default:
		return d.worldEdit()
	}
}

// member draws the index of a member: mostly a low one, sometimes one above
// replicas, as surge slots and slots for claims have.
func (d *drawing) member() int {
	var m int
	if d.yes("above the size", 30) {
		m = d.at("replicas") + d.number("above it", 0, 2)
	} else {
		m = d.number("member of the edit", 0, 5)
	}
	d.touched[m] = true
	return m
}

// grow draws another size, sometimes with refillBelow.
func (d *drawing) grow() string {
	n := d.number("new size", 0, 6)
	d.slots = max(d.slots, n)
	d.spec["replicas"] = strconv.Itoa(n)
	if d.yes("with refillBelow", 30) {
		d.spec["refillBelow"] = d.pick("refillBelow", "1", "2")
		return fmt.Sprintf("set: {replicas: %d, refillBelow: %s}", n, d.spec["refillBelow"])
	}
	return fmt.Sprintf("set: {replicas: %d}", n)
}

// memberEdit draws an edit of a member.
func (d *drawing) memberEdit(m int) string {
	switch d.pick("edit of the member", "recycle", "hold", "skip", "occupancy", "slot", "recycle", "cordon", "unknown", "hold", "uncordon", "cost") {
	case "occupancy":
		return fmt.Sprintf("member: %d, occupancy: %s", m, d.pick("becomes", "Busy", "Idle", "Unknown"))
	case "hold":
		return fmt.Sprintf("member: %d, hold: %q", m, d.pick("hold", "reason", "until 10m", ""))
	case "cost":
		return fmt.Sprintf("member: %d, cost: %d", m, d.number("new cost", -2, 2))
	case "slot":
		return fmt.Sprintf("member: %d, delete: slot", m)
	case "unknown":
		return fmt.Sprintf(`member: %d, revision: ""`, m)
	case "skip":
		return fmt.Sprintf("member: %d, do: skip", m)
	case "cordon":
		return fmt.Sprintf("member: %d, do: cordon", m)
	case "uncordon":
		return fmt.Sprintf("member: %d, do: uncordon", m)
	}
	return fmt.Sprintf("member: %d, do: recycle", m)
}

// bodyEdit draws an edit of a member's body, or of its next one.
func (d *drawing) bodyEdit(m int) string {
	switch d.pick("edit of the body", "body", "flap", "refuse", "bodies", "stuck", "health", "unstuck") {
	case "health":
		return fmt.Sprintf("member: %d, health: %s", m, d.pick("health", "Down", "Up"))
	case "flap":
		return fmt.Sprintf("member: %d, health: Flap, up: %v, down: %v, until: %v", m, d.seconds("up", 5, 20, 70), d.seconds("down", 5, 20),
			d.now+d.seconds("flaps for", 60, 300, 600))
	case "bodies": // each as soon as the body before it may have become ready
		every := d.boot + d.seconds("apart", 5, 20, 70)
		for range d.number("bodies deleted", 1, 4) {
			d.line("  - {at: %v, member: %d, delete: body}", d.now, m)
			d.now += every
		}
	case "refuse":
		return fmt.Sprintf("member: %d, refuse: {for: %v}", m, d.seconds("refused for", 120, 30, 600))
	case "stuck":
		return fmt.Sprintf("member: %d, stop: never", m)
	case "unstuck":
		return fmt.Sprintf("member: %d, stop: %v", m, lateStop)
	}
	return fmt.Sprintf("member: %d, delete: body", m)
}

// lateStop is the stop time of a body that hung before.
const lateStop = 5 * time.Second

// worldEdit draws an edit of the whole world.
func (d *drawing) worldEdit() string {
	switch d.pick("edit of the world", "crash", "churn", "clock", "capacity", "lose", "churn", "source", "lose", "capacity", "hash", "clock", "crash", "renderer", "delete") {
	case "lose":
		return fmt.Sprintf("lose: %s, for: %v", d.pick("lost", "occupancy", "sources", "members", "occupancy", "render", "all"), d.seconds("lost for", 10, 60, 600))
	case "capacity":
		if d.yes("room again", 40) {
			return "world: {capacity: null}"
		}
		return fmt.Sprintf("world: {capacity: %d}", d.number("capacity", 0, 9))
	case "churn":
		n := d.number("churning", 2, 4)
		d.chairs += n
		d.slots += n
		until := d.seconds("churns for", 600, 120)
		return fmt.Sprintf("churn: {claims: %d, hold: %v, until: %v}", n, d.seconds("held for", 30, 5, 90), d.now+until)
	case "hash":
		return "upgrade: {hashVersion: 2}"
	case "renderer":
		return "upgrade: {renderer: changed}"
	case "source":
		return fmt.Sprintf("source: scripts, content: %q", d.pick("content", "2", "1", "3"))
	case "clock":
		return d.clock()
	case "delete":
		if d.yes("deleted", 20) {
			d.deleted = true
			return "delete: pool"
		}
	}
	return fmt.Sprintf("crash: {for: %v}", d.seconds("down", 0, 1, 30))
}

// clock draws a jump of the controllers' clock.
func (d *drawing) clock() string {
	return fmt.Sprintf("clock: {jump: %v}", d.seconds("jump", 30, -30, 600, -600, 3600, -3600))
}

func (d *drawing) claimEdit() string {
	ending := d.pick("ending", "", "", ", ttl: 1m", ", wait: 30s", ", wait: 0s", ", wait: 5s", ", ttl: 5m, wait: 2m")
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

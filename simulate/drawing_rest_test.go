package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// rest ends all that is in the way, and says what has to come of that. One
// claim may stay, which hides nobody.
func (d *drawing) rest() {
	d.now += time.Second
	at := fmt.Sprintf("  - {at: %v, ", d.now)
	for _, c := range d.claims {
		d.line("%srelease: %s}", at, c)
	}
	if d.kept = d.spec["maxMembers"] == "" && d.size() > 0 && !d.deleted && d.yes("a claim stays", 30); d.kept {
		d.slots++
		d.line("%sclaim: kept, member: 0}", at)
	}
	for i := range max(9, d.slots+d.surge()) {
		if !d.touched[i] && !d.flapping {
			continue
		}
		d.line(`%smember: %d, occupancy: Idle, hold: "", health: Up, do: uncordon, stop: %v}`, at, i, lateStop)
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
	d.line("run: %v", d.now+bound+time.Hour) // it stays as it is
	d.line("expect:")
	expected := d.expected()
	d.line("  within: {%v: [%s]}", d.now+bound, expected)
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
	once := (d.drain+max(d.stop, lateStop)+d.boot)*6/5 + d.minReady + 8*d.lag
	slots := d.slots + d.surge() + 1
	bound := d.timeout + 10*time.Minute + time.Duration(slots)*once
	if d.spec["update.windows"] == windows {
		bound += time.Duration(slots) * windowEvery
	}
	bound += time.Duration(d.chairs) * (once + 45*time.Second)
	bound += time.Duration(d.triggers) * (5*time.Second + 2*d.lag)
	return bound.Round(time.Second)
}

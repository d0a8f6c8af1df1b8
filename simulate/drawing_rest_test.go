package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// rest removes everything that keeps the pool from settling, and writes what must
// hold in the end. One claim may stay.
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
		d.line("%sworld: {revisions: {B: null, C: null}}}", at) // bodies that stay have to become ready
	}
	d.line("%srevise: G}", at)
	bound := d.bound()
	d.line("run: %v", d.now+bound+time.Hour) // it must not change in this hour
	d.line("expect:")
	expected := d.expected()
	d.line("  within: {%v: [%s]}", d.now+bound, expected)
	d.line("  finally: [%s]", expected)
}

// expected returns what must hold in the end.
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
		most += d.surge() // surge slots may wait for the claim to end
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

// at returns the number at the path of the spec; 0 for none.
func (d *drawing) at(path string) int {
	n, err := strconv.Atoi(d.spec[path])
	if err != nil {
		return 0
	}
	return n
}

// share returns the number or percentage of n at the path of the spec, as a number
// of members.
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

// size is the number of members that are to exist besides claimed ones.
func (d *drawing) size() int {
	n := d.at("replicas")
	if d.spec["maxMembers"] != "" {
		n = min(n, d.at("maxMembers"))
	}
	return n
}

func (d *drawing) surge() int { return d.numbers().surge }

// numbers computes the numbers of the policy.
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

// movable reports whether the policy can roll all members that are not held: with
// as many members as possible, one of them may be disrupted.
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

// bound is how long the pool may take to come to rest after the last entry, in the
// worst case:
//
//   - a body that never becomes ready lasts until bootTimeout, and then its slot
//     waits for the longest backoff, ten minutes;
//   - then every possible slot is replaced, one after the other. Each takes a
//     drain, a stop and a boot, a fifth longer than configured, minReadySeconds,
//     and eight lags: two controllers in turn see each step late;
//   - before each replacement the pool may wait for a window;
//   - waiting claims of a churn are served first;
//   - each crash that still waits for its expression takes five seconds and two
//     lists.
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

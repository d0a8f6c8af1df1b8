package simulate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/preview"
)

// quietPool draws a scenario without a timeline.
func quietPool(t *rapid.T) string {
	n := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
	yes := func(name string, of int) bool { return n(name, 1, of) == of }
	var b strings.Builder
	size := n("members", 1, 8)
	fmt.Fprintf(&b, "name: foretold\nwhy: What was foretold happens.\npool:\n  replicas: %d\n", max(0, size+n("more", -2, 2)))
	if yes("warm", 4) {
		b.WriteString("  sizing: Warm\n")
	}
	if yes("refill", 5) {
		fmt.Fprintf(&b, "  refillBelow: %d\n", n("refillBelow", 1, size))
	}
	if yes("ceiling", 5) {
		fmt.Fprintf(&b, "  maxMembers: %d\n", n("maxMembers", size, size+3))
	}
	inPlace := yes("in place", 5)
	b.WriteString("  update:\n    type: RollingUpdate\n")
	if inPlace {
		b.WriteString("    method: InPlace\n")
	} else if yes("surge", 2) {
		fmt.Fprintf(&b, "    maxSurge: %d\n", n("maxSurge", 0, 3))
	}
	for _, f := range []struct {
		name        string
		of          int
		least, most int
	}{
		{"maxUnavailable", 2, 0, 4}, {"minAvailable", 3, 0, size}, {"maxInFlight", 4, 1, 3},
		{"partition", 5, 0, size}, {"minReadySeconds", 4, 1, 50},
	} {
		if yes(f.name+"?", f.of) {
			fmt.Fprintf(&b, "    %s: %d\n", f.name, n(f.name, f.least, f.most))
		}
	}
	if yes("oldest first", 4) {
		b.WriteString("    order: OldestFirst\n")
	}
	if yes("replace unknown", 4) {
		b.WriteString("    unknown: Replace\n")
	}
	if yes("window", 5) {
		fmt.Fprintf(&b, "    windows: [{schedule: \"*/%d * * * *\", duration: %dm}]\n", n("every", 10, 30), n("minutes", 1, 9))
	}
	fmt.Fprintf(&b, "world: {boot: %ds, stop: %ds}\nstart:\n  target: B\n  current: A\n  members:\n", n("boot", 1, 60), n("stop", 0, 20))
	claims := 0
	for range size {
		fmt.Fprintf(&b, "    - {revision: %s", rapid.SampledFrom([]string{"A", "A", "A", "B", "C", `""`}).Draw(t, "revision"))
		switch state := rapid.SampledFrom([]string{"Free", "Free", "Free", "Claimed", "Unready", "Failed", "Provisioning", "Draining", "Terminating"}).Draw(t, "state"); state {
		case "Free":
			if yes("busy", 8) {
				b.WriteString(", occupancy: Busy")
			}
		case "Claimed":
			fmt.Fprintf(&b, ", state: Claimed, claim: c%d", claims)
			claims++
		default:
			b.WriteString(", state: " + state)
		}
		if yes("held", 10) {
			b.WriteString(rapid.SampledFrom([]string{", hold: forever", ", hold: until 7m"}).Draw(t, "hold"))
		}
		if yes("costs", 5) {
			fmt.Fprintf(&b, ", cost: %d", n("cost", -1, 1))
		}
		b.WriteString("}\n")
	}
	b.WriteString("run: 3h\n")
	return b.String()
}

// asExpectations returns a forecast as expectations of a scenario file.
func asExpectations(f *preview.Forecast) string {
	var order []string
	seen := map[int]bool{}
	for _, m := range f.Moves {
		if m.Deed != preview.Made && m.Deed != preview.Born && !seen[m.Index] {
			seen[m.Index] = true
			order = append(order, fmt.Sprint(m.Index))
		}
	}
	end := fmt.Sprintf("updated == %d && stale + unknown == %d && members == %d && free == %d && inService == %d",
		f.After.Updated, f.After.Stale+f.After.Unknown, f.After.Members, f.Free.End, f.InService.End)
	low := fmt.Sprintf("free == %d", f.Free.Lowest)
	took := time.Duration(f.Took)
	var b strings.Builder
	fmt.Fprintf(&b, "expect:\n  creates: %d\n  deletes: %d\n  order: [%s]\n", f.Births, f.Deletes, strings.Join(order, ", "))
	fmt.Fprintf(&b, "  always: [ \"free >= %d\", \"inService >= %d\" ]\n", f.Free.Lowest, f.InService.Lowest)
	fmt.Fprintf(&b, "  within: {%s: [ %q ], %s: [ %q ]}\n", time.Duration(f.Free.At)+time.Second, low, took+2*time.Second, end)
	fmt.Fprintf(&b, "  finally: [ %q ]\n", end)
	return b.String()
}

// For a pool without edits the simulated world, with its own controllers, does
// what the forecast says: the same members in the same order, the same number of
// bodies, the same low of free members, at the same times.
func TestPreview_comesTrue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := quietPool(t)
		s, err := Parse("foretold.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		f := preview.Preview(s.Outlook())
		text += asExpectations(f)
		s, err = Parse("foretold.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if r := s.Run(1, true); !r.Passed() {
			t.Fatalf("\n%s\n%s%+v", reproduction(text, r), r, f)
		}
	})
}

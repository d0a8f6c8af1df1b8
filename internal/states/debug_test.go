package states

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/pawl-dev/pawl/rollout"
)

func TestDebug(t *testing.T) {
	pol, _ := strconv.Atoi(os.Getenv("POL"))
	n := func(k string, d int) int {
		if v, err := strconv.Atoi(os.Getenv(k)); err == nil {
			return v
		}
		return d
	}
	x := Exploration{Policy: Policies()[pol], Bounds: Bounds{Fresh: os.Getenv("FRESH") != "", Slots: n("S", 2), Users: n("U", 2), Faults: n("F", 1)}, Most: n("N", 1000000), Findings: 5}
	r := x.Run()
	for _, f := range r.Findings {
		w := x.r.start(x.Bounds)
		t.Log(f.String(), "\n"+f.Scenario("x"))
		for _, e := range f.path {
			w = step(x.r, w, e)
		}
		var room [maxSlots]rollout.Member
		s := w.snapshot(x.r, room[:0])
		b, _ := json.MarshalIndent(s, "", " ")
		p := s.Plan(w.now)
		t.Logf("%s\n%v wake %v", b, words(p.Actions), p.Wake)
		t.Log(p.Next, p.Updated, p.Reconciling, p.Stalled)
		for i := range s.Members {
			t.Log(i, p.Verdict(i), p.Explain(&s.Members[i]))
		}
	}
}

func diff(a, b *world) string {
	x, _ := json.Marshal(a.slots[:a.n])
	y, _ := json.Marshal(b.slots[:b.n])
	u, _ := json.Marshal(a.records)
	v, _ := json.Marshal(b.records)
	return string(x) + "\n" + string(y) + "\n" + string(u) + "\n" + string(v)
}

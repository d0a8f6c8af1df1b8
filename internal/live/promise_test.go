package live

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/internal/body"
	"github.com/pawl-dev/pawl/internal/body/sim"
	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/rollout"
	"github.com/pawl-dev/pawl/snapshot"
)

// change is something that is done to a member's object.
type change func(*v1alpha1.Member)

func slotAt(index int, changes ...change) *v1alpha1.Member {
	name := history.Slot("pool", index)
	m := &v1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       v1alpha1.MemberSpec{Pool: "pool", Index: int32(index), Revision: "a"},
		Status: v1alpha1.MemberStatus{
			Phase: v1alpha1.PhaseAvailable, Revision: "a", Incarnation: 1, BodyUID: "b-0", ServedSince: snapshot.Micro(noon),
		},
	}
	for _, c := range changes {
		c(m)
	}
	return m
}

func phase(p v1alpha1.Phase) change { return func(m *v1alpha1.Member) { m.Status.Phase = p } }

func heldBy(claim string) change {
	return func(m *v1alpha1.Member) { m.Spec.Claim = &v1alpha1.MemberClaim{Name: claim, UID: types.UID(claim)} }
}

func taken(reason v1alpha1.DisruptionReason) change {
	return func(m *v1alpha1.Member) {
		m.Spec.Disruption = &v1alpha1.Disruption{
			Reason: reason, Action: v1alpha1.ActionReplace, Incarnation: m.Status.Incarnation, Since: snapshot.Micro(noon),
			Rolling: new(reason == v1alpha1.DisruptionDrift),
		}
	}
}

func occupiedAs(o rollout.Occupancy) change {
	return func(m *v1alpha1.Member) { m.Status.Conditions = []metav1.Condition{snapshot.Occupied(o)} }
}

func held(until time.Time) change {
	return func(m *v1alpha1.Member) {
		m.Annotations = map[string]string{v1alpha1.AnnotationHold: hold(until)}
	}
}

func gone(m *v1alpha1.Member) { m.Status.BodyUID = "" }

// newTestBook has a pool of members with healthy bodies.
func newTestBook(update v1alpha1.Update, members ...*v1alpha1.Member) (*book, *poolBook) {
	b := newBook([]string{"pool"})
	p := b.pools["pool"]
	n := int32(len(members))
	p.pool = &v1alpha1.Pool{Spec: v1alpha1.PoolSpec{Replicas: &n, Update: &update}}
	for _, m := range members {
		p.members[int(m.Spec.Index)] = m
		p.bodies[int(m.Spec.Index)] = sim.Body{Observation: body.Observation{State: body.Ready, Incarnation: 1, UID: "b-0"}}
	}
	p.account(noon, noon)
	return b, p
}

func number(n int) *intstr.IntOrString { return new(intstr.FromInt32(int32(n))) }

func TestBook_Promises(t *testing.T) {
	t.Parallel()
	none := ""
	tests := map[string]struct {
		reason   string
		others   []*v1alpha1.Member
		old, is  *v1alpha1.Member
		update   v1alpha1.Update
		want     string
		replicas int
	}{
		"taken":               {reason: "there is room for one", old: slotAt(0), is: slotAt(0, taken("Drift")), want: none},
		"claimed and taken":   {reason: "one excludes the other", old: slotAt(0), is: slotAt(0, heldBy("c"), taken("Drift")), want: "holds claim c and a live disruption"},
		"claimed, ending":     {reason: "a claimed member never ends", old: slotAt(0, heldBy("c")), is: slotAt(0, heldBy("c"), phase("Terminating")), want: "terminates although c holds it"},
		"holder dropped":      {reason: "not even by dropping the claim", old: slotAt(0, heldBy("c")), is: slotAt(0, taken("Drift")), want: "although c holds it"},
		"claim over":          {reason: "its end replaces the body", old: slotAt(0, heldBy("c")), is: slotAt(0, taken("ClaimEnded")), want: none},
		"busy":                {reason: "work runs on it", old: slotAt(0, occupiedAs(rollout.Busy)), is: slotAt(0, taken("Drift")), want: "although it is not idle"},
		"unsure":              {reason: "unknown is busy", old: slotAt(0, occupiedAs(rollout.OccupancyUnsure)), is: slotAt(0, taken("ScaleDown")), want: "although it is not idle"},
		"busy, body gone":     {reason: "there is nothing left to lose", old: slotAt(0, occupiedAs(rollout.Busy), gone), is: slotAt(0, gone, taken("Failed")), want: none},
		"held":                {reason: "somebody said no", old: slotAt(0, held(noon.Add(time.Hour))), is: slotAt(0, taken("Drift")), want: "although it is held"},
		"held before":         {reason: "that hold has ended", old: slotAt(0, held(noon.Add(-time.Hour))), is: slotAt(0, taken("Drift")), want: none},
		"held, failed":        {reason: "a hold is about drift", old: slotAt(0, held(time.Time{})), is: slotAt(0, taken("Failed")), want: none},
		"claimed":             {reason: "it was free", old: slotAt(0), is: slotAt(0, heldBy("c")), want: none},
		"claimed, draining":   {reason: "it was not free", old: slotAt(0, phase("Draining")), is: slotAt(0, heldBy("c"), phase("Draining")), want: "although it was not free"},
		"claimed twice":       {reason: "a claim has one member", others: []*v1alpha1.Member{slotAt(1, heldBy("c"))}, old: slotAt(0), is: slotAt(0, heldBy("c")), want: "which holds pool-1 already"},
		"one too many":        {reason: "another one is down", others: []*v1alpha1.Member{slotAt(1, phase("Unready"))}, old: slotAt(0), is: slotAt(0, taken("Drift")), want: "cannot be spared"},
		"one too many rolls":  {reason: "another one rolls", others: []*v1alpha1.Member{slotAt(1, taken("Drift"), phase("Draining"))}, old: slotAt(0), is: slotAt(0, taken("Drift")), update: v1alpha1.Update{MaxUnavailable: number(2), MaxInFlight: new(int32(1))}, want: "as number 2 although 1 may roll"},
		"two":                 {reason: "two may", others: []*v1alpha1.Member{slotAt(1, taken("Drift"), phase("Draining"))}, old: slotAt(0), is: slotAt(0, taken("Drift")), update: v1alpha1.Update{MaxUnavailable: number(2)}, want: none},
		"floor":               {reason: "the other one is claimed", others: []*v1alpha1.Member{slotAt(1, heldBy("c"), phase("Claimed"))}, old: slotAt(0), is: slotAt(0, taken("Drift")), update: v1alpha1.Update{MinAvailable: number(1)}, want: "0 remain free, and 1 must"},
		"size":                {reason: "a slot is still to be made", others: []*v1alpha1.Member{slotAt(1), slotAt(2)}, old: slotAt(0), is: slotAt(0, taken("Drift")), update: v1alpha1.Update{MaxUnavailable: number(3)}, replicas: 4, want: "the size asks for 4 and there are 3"},
		"down already":        {reason: "what is down costs nothing", others: []*v1alpha1.Member{slotAt(1, phase("Unready"))}, old: slotAt(0, phase("Unready")), is: slotAt(0, phase("Unready"), taken("Drift")), want: none},
		"disruption is spent": {reason: "it is of an earlier body", old: slotAt(0), is: slotAt(0, taken("Drift"), heldBy("c"), func(m *v1alpha1.Member) { m.Spec.Disruption.Incarnation = 0 }), want: none},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := newTestBook(tt.update, append(tt.others, tt.old)...)
			if tt.replicas > 0 {
				*p.pool.Spec.Replicas = int32(tt.replicas)
				p.account(noon, noon)
			}
			got := strings.Join(b.promises(p, tt.old, tt.is, noon.Add(time.Minute), time.Second), "; ")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
			}
		})
	}
}

// A decision has to have been right at some time within the lag, with all that
// was decided since.
func TestBook_SparedAsSeen(t *testing.T) {
	t.Parallel()
	late := 5 * time.Second
	b, p := newTestBook(v1alpha1.Update{}, slotAt(0), slotAt(1), slotAt(2))
	take := func(index int, at time.Duration) string {
		return strings.Join(b.promises(p, p.members[index], slotAt(index, taken("Drift")), noon.Add(at), late), "; ")
	}
	p.members[1] = slotAt(1, phase("Unready"))
	p.account(noon.Add(time.Minute), noon.Add(time.Minute-late))
	if got := take(0, time.Minute+4*time.Second); got != "" {
		t.Errorf("what happened four seconds ago had not reached it: %q", got)
	}
	p.account(noon.Add(time.Minute+9*time.Second), noon.Add(time.Minute+4*time.Second))
	if got := take(0, time.Minute+9*time.Second); !strings.Contains(got, "cannot be spared") {
		t.Errorf("what happened nine seconds ago must be known: %q", got)
	}
	p.members[1] = slotAt(1)
	p.members[0] = slotAt(0, taken("Drift"), phase("Draining"))
	if got := take(2, time.Minute+9*time.Second); !strings.Contains(got, "cannot be spared") && !strings.Contains(got, "may roll") {
		t.Errorf("its own decisions it must know at once: %q", got)
	}
}

func TestBook_Removed(t *testing.T) {
	t.Parallel()
	_, p := newTestBook(v1alpha1.Update{}, slotAt(0, heldBy("c")))
	got := strings.Join(p.removed(p.members[0]), "; ")
	for _, want := range []string{"went while c held it", "left its body b-0 behind"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	delete(p.bodies, 0)
	if got := p.removed(slotAt(0)); got != nil {
		t.Errorf("a slot may go: %q", got)
	}
}

// Births and ends are counted as bodies come and are told to go; what somebody
// else removes is neither.
func TestPoolBook_Body(t *testing.T) {
	t.Parallel()
	_, p := newTestBook(v1alpha1.Update{})
	is := func(uid string, s body.State, told bool) {
		p.body(0, sim.Body{Told: told, Observation: body.Observation{UID: uid, State: s}})
	}
	for _, s := range []body.State{body.Booting, body.Ready, body.Down, body.Stopping, body.Stopping, body.Absent} {
		is("first", s, s == body.Stopping || s == body.Absent)
	}
	is("at once", body.Ready, false)
	is("at once", body.Absent, true)
	is("removed", body.Booting, false)
	is("removed", body.Absent, false)
	if c := p.counts; c.Creates != 3 || c.Deletes != 2 || len(p.bodies) != 0 {
		t.Errorf("%d creates, %d deletes, %d bodies; want 3, 2, 0", c.Creates, c.Deletes, len(p.bodies))
	}
}

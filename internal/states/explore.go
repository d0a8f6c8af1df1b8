package states

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"runtime/debug"
	"slices"
	"strings"
)

// Bounds say how far a world is explored.
type Bounds struct {
	// Slots is how many members the pool has at its start, and Users and Faults how many
	// of them there are on a path, at most.
	Slots, Users, Faults int
	Start                Start
}

// Start is how a pool starts.
type Start string

// The starts. In service, all members are on A, and have served for long.
const (
	InService Start = ""
	Drift     Start = "drift" // the same, and the template says B already
	Fresh     Start = "fresh" // the pool has just been made
)

// ParseBounds reads bounds such as 3/1/1, drift:3/1/1 or fresh:2/1/1.
func ParseBounds(s string) (b Bounds, err error) {
	start, numbers, ok := strings.Cut(s, ":")
	if b.Start = Start(start); !ok {
		b.Start, numbers = InService, s
	}
	_, err = fmt.Sscanf(numbers, "%d/%d/%d", &b.Slots, &b.Users, &b.Faults)
	known := b.Start == InService || b.Start == Drift || b.Start == Fresh
	if err != nil || !known || b.String() != s || b.Slots < 0 || b.Slots > maxDesired || min(b.Users, b.Faults) < 0 || max(b.Users, b.Faults) > 100 {
		return b, fmt.Errorf("bounds %q: have to be slots/users/faults such as 3/1/1, drift:3/1/1 or fresh:2/1/1, of at most %d slots", s, maxDesired)
	}
	return b, nil
}

func (b Bounds) String() string {
	s := fmt.Sprintf("%d/%d/%d", b.Slots, b.Users, b.Faults)
	if b.Start != InService {
		s = string(b.Start) + ":" + s
	}
	return s
}

// Finding is a promise that does not hold, with a shortest path to where it does not.
type Finding struct {
	Policy  Choice
	Bounds  Bounds
	Message string
	path    []edge
}

func (f *Finding) String() string {
	lines := []string{f.Message}
	for _, e := range f.path {
		lines = append(lines, e.String())
	}
	return strings.Join(lines, "\n   ")
}

// Result is what came of one start.
type Result struct {
	States, Edges int
	// Complete: every state within the bounds was explored.
	Complete bool
	Findings []Finding
}

// Exploration is one start under one policy.
type Exploration struct {
	Policy Choice
	Bounds Bounds
	// Most is how many states are explored, at most; 0 for all.
	Most int
	// Known are messages of what is known to be wrong, and no finding.
	Known []string
	// Findings is how many of them end an exploration.
	Findings int

	r      *rules
	seed   maphash.Seed
	known  map[uint64]uint32
	plans  map[uint64]struct{}
	visits []visit
	// level holds the states that are to be explored, next those of the level below.
	level, next []byte
	result      Result
	outside     bool
	v           view
}

// visit is how a state was reached first, and which state is the next one in fair order.
type visit struct {
	from, fair uint32
	by         edge
	// turn is what leads to fair.
	turn kind
}

const (
	noState     = ^uint32(0)
	sizeOfState = 2 // bytes before each state that say how long it is
)

// Run explores, breadth first.
func (x *Exploration) Run() Result {
	x.r = x.Policy.rules(x.Bounds.Slots)
	x.seed, x.known, x.plans = maphash.MakeSeed(), map[uint64]uint32{}, map[uint64]struct{}{}
	w := x.r.start(x.Bounds)
	w.tidy()
	x.reach(&w, noState, edge{})
	x.result.Complete = true
	for at := uint32(0); len(x.next) > 0; {
		x.level, x.next = x.next, x.level[:0]
		for b := x.level; len(b) > 0; at++ {
			if len(x.result.Findings) >= x.Findings || x.Most > 0 && int(at) >= x.Most {
				x.result.Complete = false
				x.next = x.next[:0]
				break
			}
			n := int(b[0]) | int(b[1])<<8
			x.explore(at, b[sizeOfState:sizeOfState+n])
			b = b[sizeOfState+n:]
		}
	}
	x.result.Complete = x.result.Complete && !x.outside
	x.result.States = len(x.visits)
	x.cycles()
	return x.result
}

// reach notes that an edge leads to the tidied state, and returns its number.
func (x *Exploration) reach(w *world, from uint32, by edge) uint32 {
	was := len(x.next)
	b, _ := w.encode(append(x.next, 0, 0))
	key := maphash.Bytes(x.seed, b[was+sizeOfState:])
	if at, ok := x.known[key]; ok {
		x.next = b[:was]
		return at
	}
	n := len(b) - was - sizeOfState
	b[was], b[was+1] = byte(n), byte(n>>8)
	x.next = b
	at := uint32(len(x.visits))
	x.known[key] = at
	x.visits = append(x.visits, visit{from: from, fair: noState, by: by})
	return at
}

// explore checks the state and follows all edges that lead on from it.
func (x *Exploration) explore(at uint32, b []byte) {
	var w, next world
	defer func() {
		if r := recover(); r != nil {
			x.find(at, nil, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
		}
	}()
	w.decode(b)
	v := &x.v
	v.look(x.r, &w)
	x.check(at, &w)
	fair := v.fair()
	x.visits[at].turn = fair.kind
	if fair.kind == noEdge {
		if what := w.rest(x.r); what != "" {
			x.find(at, nil, what)
		}
	}
	var room [96]edge
	for _, e := range v.edges(room[:0]) {
		if !v.follow(e, &next) {
			continue
		}
		x.result.Edges++
		if next.outside {
			x.outside = true
			continue
		}
		if next.broken != "" {
			x.find(at, []edge{e}, next.broken)
		}
		next.tidy()
		to := x.reach(&next, at, e)
		if e == fair {
			x.visits[at].fair = to
		}
	}
	if fair.kind != noEdge && x.visits[at].fair == noState && !x.outside {
		x.find(at, nil, fmt.Sprintf("the world cannot go on by %q, which is its turn", fair))
	}
}

// check checks the plan for the state, once for each that plans see.
func (x *Exploration) check(at uint32, w *world) {
	var room [1024]byte
	b, planned := w.encode(room[:0])
	key := maphash.Bytes(x.seed, b[:planned])
	if _, ok := x.plans[key]; ok {
		return
	}
	x.plans[key] = struct{}{}
	if what := w.check(x.r); what != "" {
		x.find(at, nil, what)
	}
}

// find notes what is wrong with a state, or with the edges that lead on from it, once.
func (x *Exploration) find(at uint32, then []edge, message string) {
	same := func(known string) bool { return Alike(known) == Alike(message) }
	if slices.ContainsFunc(x.Known, same) || slices.ContainsFunc(x.result.Findings, func(f Finding) bool { return same(f.Message) }) {
		return
	}
	path := slices.Clone(then)
	slices.Reverse(path)
	for i := at; x.visits[i].from != noState; i = x.visits[i].from {
		path = append(path, x.visits[i].by)
	}
	slices.Reverse(path)
	x.result.Findings = append(x.result.Findings, Finding{x.Policy, x.Bounds, message, path})
}

// Alike is the message without its numbers and revisions.
func Alike(message string) string {
	return string(bytes.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'C' {
			return -1
		}
		return r
	}, []byte(message)))
}

// cycles looks for states from which the world never comes to rest. Time that goes by
// and changes nothing is rest.
func (x *Exploration) cycles() {
	const unseen, open, done = 0, 1, 2
	marks := make([]uint8, len(x.visits))
	var path []uint32
	for i := range x.visits {
		path = path[:0]
		at := uint32(i)
		for at != noState && marks[at] == unseen {
			marks[at] = open
			path = append(path, at)
			at = x.visits[at].fair
		}
		if at != noState && marks[at] == open {
			x.cycle(at)
		}
		for _, p := range path {
			marks[p] = done
		}
	}
}

// cycle notes a cycle of states, unless only time goes by in it.
func (x *Exploration) cycle(from uint32) {
	var round []string
	moves := false
	for at := from; ; {
		k := x.visits[at].turn
		moves = moves || k != timeEdge
		round = append(round, kindNames[k])
		if at = x.visits[at].fair; at == from {
			break
		}
	}
	if moves {
		x.find(from, nil, "the world never comes to rest, but goes on with "+strings.Join(round, ", ")+" for ever")
	}
}

// step is the tidied state to which the edge leads.
func step(r *rules, w world, e edge) world {
	var v view
	var next world
	v.look(r, &w)
	v.follow(e, &next)
	next.tidy()
	return next
}

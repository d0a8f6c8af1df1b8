package rollout

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var revisions = []Revision{"A", "B", "C", ""}

// snapshots draws any snapshot that can occur.
func snapshots(t *rapid.T) *Snapshot {
	n := rapid.IntRange(0, 12).Draw(t, "members")
	s := &Snapshot{
		Policy:       policies(t),
		Target:       Record{ID: rapid.SampledFrom(revisions[:2]).Draw(t, "target")},
		Current:      Record{ID: "A"},
		WritesUnseen: rapid.IntRange(0, 19).Draw(t, "unseen") == 0,
		WindowShut:   rapid.IntRange(0, 9).Draw(t, "shut") == 0,
		Deleting:     rapid.IntRange(0, 19).Draw(t, "deleting") == 0,
		Budgeted:     rapid.IntRange(0, 4).Draw(t, "budgeted") == 0,
		BudgetRoom:   rapid.IntRange(0, 3).Draw(t, "budgetRoom"),
		Waiting:      rapid.IntRange(0, 2).Draw(t, "waiting"),
		Surge:        rapid.IntRange(0, 2).Draw(t, "surge"),
	}
	if rapid.IntRange(0, 19).Draw(t, "unreadable") == 0 {
		s.Unreadable = SourcesUnresolved
	}
	if rapid.IntRange(0, 9).Draw(t, "nothing to go back to") == 0 {
		s.Current = Record{}
	}
	if rapid.IntRange(0, 4).Draw(t, "grown") == 0 {
		s.Size = rapid.IntRange(1, 12).Draw(t, "size")
	}
	index := 0
	ordered := rapid.Bool().Draw(t, "ordered")
	outage := rapid.IntRange(0, 5).Draw(t, "outage") == 0
	for range n {
		m := anyMember(t, index)
		if !ordered {
			m.Cost = 0
		}
		if outage && m.Phase == Available && m.Disruption.Cause == NoCause {
			m.Phase = Unready
		}
		s.Members = append(s.Members, m)
		index += rapid.IntRange(1, 2).Draw(t, "step")
	}
	if rapid.Bool().Draw(t, "calm") {
		calm(s)
		return s
	}
	for _, m := range s.Members {
		if rapid.IntRange(0, 5).Draw(t, "failed before") == 0 {
			s.Target.Failed++
			s.Target.Failures = append(s.Target.Failures, Failure{
				ID: m.ID, Index: m.Index, Incarnation: max(0, m.Incarnation-1), Count: 1, At: at(t),
				Forgiven: rapid.IntRange(0, 3).Draw(t, "forgiven") == 0,
			})
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "counted") == 0 {
		s.Target.Recovered, s.Target.Counted, s.Target.Since = rapid.IntRange(0, 12).Draw(t, "recovered"), at(t), epoch
	}
	s.Target.Halted = s.Target.Failed >= s.Policy.FailureLimit && s.Target.ID != s.Current.ID
	return s
}

// calm removes unusual states from a snapshot, so that the ordinary rules are
// exercised.
func calm(s *Snapshot) {
	s.Target.ID, s.Unreadable, s.WritesUnseen, s.WindowShut, s.Deleting = "B", "", false, false, false
	p := &s.Policy
	p.Manual, p.Paused, p.Order, p.Partition = false, false, LowestIndex, 0
	for i := range s.Members {
		m := &s.Members[i]
		m.Deleting, m.Stuck, m.Cordoned, m.Asked, m.Skipped, m.FailedEarly = false, false, false, false, false, false
	}
}

func policies(t *rapid.T) Policy {
	number := func(name string) int { return rapid.IntRange(0, 4).Draw(t, name) }
	p := Policy{
		Desired: rapid.IntRange(0, 12).Draw(t, "desired"), MaxUnavailable: number("maxUnavailable"),
		MaxSurge: number("maxSurge"), MinAvailable: number("minAvailable"), HasFloor: rapid.Bool().Draw(t, "floor"),
		MaxInFlight: 1 + number("maxInFlight"), FailureLimit: 1 + number("failureLimit"),
		Manual: rapid.IntRange(0, 9).Draw(t, "manual") == 0, Paused: rapid.IntRange(0, 9).Draw(t, "paused") == 0,
		Order: Order(rapid.IntRange(0, 1).Draw(t, "order")), ReplaceUnknown: rapid.Bool().Draw(t, "replaceUnknown"),
		ProgressDeadline: 10 * time.Minute,
	}
	if rapid.IntRange(0, 4).Draw(t, "partitioned") == 0 {
		p.Partition = number("partition")
	}
	switch rapid.IntRange(0, 5).Draw(t, "sizing") {
	case 0:
		p.Warm = true
	case 1:
		p.Warm, p.RefillBelow = true, number("refillBelow")
	case 2:
		p.RefillBelow = number("refillBelow")
	}
	if p.HasCeiling = rapid.IntRange(0, 4).Draw(t, "ceiling") == 0; p.HasCeiling {
		p.MaxMembers = max(0, p.Desired+number("maxMembers")-2)
	}
	p.InPlace = rapid.IntRange(0, 3).Draw(t, "inPlace") == 0
	return p
}

func at(t *rapid.T) time.Time {
	return epoch.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "at")) * time.Second)
}

// anyMember draws a slot in a state that Step can produce.
func anyMember(t *rapid.T, index int) Member {
	m := Member{
		Index: index, ID: string(rune('a' + index)), Wants: rapid.SampledFrom(revisions).Draw(t, "wants"),
		Incarnation: 2, BornAt: at(t), PhaseSince: at(t), Cost: int32(rapid.IntRange(0, 2).Draw(t, "cost")),
		Held: rapid.IntRange(0, 9).Draw(t, "held") == 0, Cordoned: rapid.IntRange(0, 19).Draw(t, "cordoned") == 0,
		Deleting: rapid.IntRange(0, 19).Draw(t, "deleting slot") == 0,
		Asked:    rapid.IntRange(0, 9).Draw(t, "asked") == 0, Skipped: rapid.IntRange(0, 9).Draw(t, "skipped") == 0,
		Stuck: rapid.IntRange(0, 19).Draw(t, "stuck") == 0,
		Phase: rapid.SampledFrom([]Phase{Available, Available, Available, InClaim, Pending, Provisioning, Preparing, Unready, Updating, Draining, Terminating, Failed}).Draw(t, "phase"),
	}
	m.Body = m.Phase != Pending
	m.Runs = rapid.SampledFrom(revisions).Draw(t, "runs")
	switch m.Phase {
	case Available, InClaim, Unready:
		m.ServedSince = at(t)
	case Draining, Terminating, Failed:
		if rapid.Bool().Draw(t, "served") {
			m.ServedSince = at(t)
		}
	case Pending:
		m.NoRoom = rapid.IntRange(0, 3).Draw(t, "noRoom") == 0
	}
	if rapid.IntRange(0, 29).Draw(t, "quarantined") == 0 && !m.served() {
		m.Phase = Quarantined
	}
	if m.Phase == Failed {
		m.FailedEarly, m.Gone = rapid.Bool().Draw(t, "early"), rapid.Bool().Draw(t, "gone")
		m.Body = !m.Gone || rapid.Bool().Draw(t, "exited")
	}
	m.ForClaim = rapid.IntRange(0, 9).Draw(t, "for claim") == 0
	m.BootTook = time.Duration(rapid.IntRange(0, 40).Draw(t, "boot took")) * time.Second
	if rapid.IntRange(0, 2).Draw(t, "recovered before") == 0 {
		m.Recovered, m.RecoveredAt = rapid.SampledFrom(revisions[:3]).Draw(t, "recovered"), at(t)
	}
	if !m.healthy() && m.Phase != Draining {
		m.DownSince = at(t)
	}
	if m.served() && rapid.IntRange(0, 5).Draw(t, "went down early") == 0 {
		m.UnsettledSince = at(t)
	}
	if rapid.IntRange(0, 3).Draw(t, "tried") == 0 {
		m.Attempts = int32(rapid.IntRange(1, 8).Draw(t, "attempts"))
		m.NextAttempt = at(t).Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "wait")) * time.Second)
	}
	if m.served() {
		m.Occupancy = rapid.SampledFrom([]Occupancy{Idle, Idle, Idle, Busy, OccupancyUnsure}).Draw(t, "occupancy")
		m.Claimed = m.Phase == InClaim || (m.Phase == Unready || m.Phase == Failed) && rapid.Bool().Draw(t, "claimed")
	}
	if !m.Claimed && (m.Phase == Draining || m.Phase == Terminating || rapid.IntRange(0, 5).Draw(t, "disrupted") == 0) {
		m.Disruption = Disruption{
			Cause:  Cause(rapid.IntRange(int(Drift), int(Requested)).Draw(t, "cause")),
			Remove: m.Phase != Updating && rapid.IntRange(0, 2).Draw(t, "remove") == 0,
			Update: m.Phase == Updating, Rolling: rapid.Bool().Draw(t, "rolling"), Incarnation: 1, Since: at(t),
		}
		if m.Phase != Available && m.Phase != Provisioning || rapid.Bool().Draw(t, "live") {
			m.Disruption.Incarnation = m.Incarnation
		}
	}
	return m
}

// TestNew_promises: no plan for any snapshot breaks a rule.
func TestNew_promises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t)
		p := s.Plan(epoch.Add(2 * time.Minute))
		if err := CheckInvariants(s, p); err != nil {
			t.Fatalf("%v\nsnapshot: %s\nactions: %s", err, dump(s), dump(p.Actions))
		}
	})
}

// TestNew_pure: equal input gives an equal plan, byte for byte, and the input
// is not changed.
func TestNew_pure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t)
		before := dump(s)
		one, two := s.Plan(epoch.Add(2*time.Minute)), s.Plan(epoch.Add(2*time.Minute))
		if diff := cmp.Diff(one, two, cmpopts.IgnoreUnexported(Plan{})); diff != "" {
			t.Fatalf("two plans for one snapshot differ:\n%s", diff)
		}
		if after := dump(s); after != before {
			t.Fatalf("the snapshot was changed:\n%s", cmp.Diff(before, after))
		}
	})
}

// TestNew_verdicts: each stale member has exactly one blocker, and the tallies
// are their sums.
func TestNew_verdicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t)
		p := s.Plan(epoch.Add(2 * time.Minute))
		sum := map[Reason]int{}
		for i := range s.Members {
			m := &s.Members[i]
			r := p.Verdict(m.Index)
			if r != "" {
				sum[r]++
			}
			if p.Explain(m) == "" {
				t.Fatalf("member %d is not explained", m.Index)
			}
		}
		total := 0
		for _, b := range p.Blockers {
			if sum[b.Reason] != b.Count {
				t.Fatalf("%s: tally %d, sum of verdicts %d", b.Reason, b.Count, sum[b.Reason])
			}
			total += b.Count
		}
		if total != p.Counts.Stale {
			t.Fatalf("%d members are stale, %d have a blocker: %s", p.Counts.Stale, total, dump(p.Blockers))
		}
	})
}

// TestNew_skips: rule 8. If members in service may be taken, none stays whose
// reason is Next.
func TestNew_skips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t)
		p := s.Plan(epoch.Add(2 * time.Minute))
		for i := range s.Members {
			if m := &s.Members[i]; p.Verdict(m.Index) == Next {
				t.Fatalf("member %d could be taken and is not\nsnapshot: %s\nactions: %s", m.Index, dump(s), dump(p.Actions))
			}
		}
	})
}

// TestNew_takesBack: rule 9. A draining member on the target goes
// back into service.
func TestNew_takesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t)
		p := s.Plan(epoch.Add(2 * time.Minute))
		if s.Unreadable != "" || s.WritesUnseen {
			return
		}
		for i := range s.Members {
			m := &s.Members[i]
			back := slices.ContainsFunc(p.Actions, func(a Action) bool { return a.Kind == Undo && a.Index == m.Index })
			if m.drains() && m.served() && m.Disruption.Cause == Drift && m.Runs == s.Target.ID && !back {
				t.Fatalf("draining member %d is on the target and not taken back\nsnapshot: %s\nactions: %s", m.Index, dump(s), dump(p.Actions))
			}
		}
	})
}

// TestNew_removesDown: rule 10. No member in service is removed for the size
// while one that is down could be.
func TestNew_removesDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t)
		s.Target.Failures = nil // the slot on probation stays
		q := s.decide(epoch.Add(2 * time.Minute))
		p := q.plan
		acts := map[int]*Action{}
		serving := -1
		for i := range p.Actions {
			if a := &p.Actions[i]; a.Kind >= Undo {
				acts[a.Index] = a
			}
		}
		for i := range s.Members {
			m := &s.Members[i]
			if a := acts[m.Index]; a != nil && a.Why == WhyExcess && m.InService() {
				serving = m.Index
			}
		}
		for i := range s.Members {
			m := &s.Members[i]
			free := !m.InService() && !m.leaving() && m.guard(Drift) == "" && !m.Stuck && m.Phase != Quarantined
			if serving >= 0 && free && acts[m.Index] == nil && q.target.Failures == nil {
				t.Fatalf("member %d is in service and removed, %d is down and stays\nsnapshot: %s\nactions: %s", serving, m.Index, dump(s), dump(p.Actions))
			}
		}
	})
}

// TestNew_wakes: between a plan and its Wake time alone changes nothing.
func TestNew_wakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t)
		now := epoch.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "now")) * time.Second)
		p := s.Plan(now)
		until := p.Wake
		if until.IsZero() {
			until = now.Add(240 * time.Hour)
		}
		if !until.After(now) {
			t.Fatalf("a plan of %s wakes at %s", now, until)
		}
		if slices.ContainsFunc(s.Members, func(m Member) bool { return m.ahead(now.Unix()) || m.NextAttempt.After(m.nextAttempt(now)) }) ||
			slices.ContainsFunc(s.Target.Failures, func(f Failure) bool { return f.At.After(now) }) || s.Target.Counted.After(now) || s.Target.Since.After(now) {
			return // times in the future count as now
		}
		for _, at := range []time.Time{now.Add(until.Sub(now) / 2), until.Add(-1)} {
			if diff := cmp.Diff(says(p), says(s.Plan(at))); diff != "" {
				t.Fatalf("planned at %s, to be planned again at %s; at %s:\n%s\nsnapshot: %s\nactions: %s", now, p.Wake, at, diff, dump(s), dump(p.Actions))
			}
		}
	})
}

// says is everything in a plan but times.
func says(p *Plan) []string {
	list := append(lines(p), blockers(p), p.Next)
	for _, c := range []Condition{p.Updated, p.Ready, p.Reconciling, p.Stalled, p.Available} {
		list = append(list, fmt.Sprint(c))
	}
	return append(list, fmt.Sprint(p.Counts, p.Surge, p.Size))
}

// TestNew_answers: questions about members do not change a plan, in
// any order and number.
func TestNew_answers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t)
		q := s.decide(epoch.Add(2 * time.Minute))
		q.report()
		p := q.plan
		before := says(p)
		ask := func() (list []string) {
			for i := range s.Members {
				m := &s.Members[i]
				list = append(list, fmt.Sprint(p.Verdict(m.Index), p.Explain(m), q.birth(m)))
			}
			return list
		}
		first := ask()
		slices.Reverse(s.Members)
		for i := range s.Members {
			q.birth(&s.Members[i])
		}
		slices.Reverse(s.Members)
		if diff := cmp.Diff(first, ask()); diff != "" {
			t.Fatalf("the second answer differs:\n%s", diff)
		}
		if diff := cmp.Diff(before, says(p)); diff != "" {
			t.Fatalf("the plan has changed:\n%s", diff)
		}
	})
}

var (
	named   = regexp.MustCompile(`member (\d+)`)
	counted = regexp.MustCompile(`^(\d+) of (\d+) updated`)
)

// TestNew_numbers: the numbers in each sentence are those of the snapshot.
func TestNew_numbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t)
		p := s.Plan(epoch.Add(2 * time.Minute))
		there := map[string]bool{}
		for i := range s.Members {
			there[strconv.Itoa(s.Members[i].Index)] = true
		}
		for i := range p.Actions {
			there[strconv.Itoa(p.Actions[i].Index)] = true
		}
		for i := range s.Target.Failures {
			there[strconv.Itoa(s.Target.Failures[i].Index)] = true
		}
		texts := []string{p.Next}
		for _, c := range []Condition{p.Updated, p.Ready, p.Reconciling, p.Stalled, p.Available} {
			texts = append(texts, c.Message)
		}
		for _, text := range texts {
			for _, m := range named.FindAllStringSubmatch(text, -1) {
				if !there[m[1]] {
					t.Fatalf("there is no member %s: %s\nsnapshot: %s", m[1], text, dump(s))
				}
			}
			if m := counted.FindStringSubmatch(text); m != nil && (m[1] != strconv.Itoa(p.Counts.Updated) || m[2] != strconv.Itoa(p.Counts.Members)) {
				t.Fatalf("%d of %d are updated: %s", p.Counts.Updated, p.Counts.Members, text)
			}
		}
	})
}

// TestNew_stalled: a pool is stalled only after a member has been on its
// way for the deadline, and no body came into service for the first time meanwhile.
func TestNew_stalled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t)
		now := epoch.Add(time.Duration(rapid.IntRange(0, 1500).Draw(t, "now")) * time.Second)
		if s.Plan(now).Stalled.Reason != "ProgressDeadlineExceeded" {
			return
		}
		then := now.Add(-s.Policy.ProgressDeadline - s.Policy.MinReady)
		waits := false
		for i := range s.Members {
			m := &s.Members[i]
			if m.served() && m.Runs != "" && m.BornAt.Add(m.BootTook).After(then) {
				t.Fatalf("member %d came into service at %s, and now is %s: %s", m.Index, m.BornAt.Add(m.BootTook), now, dump(s))
			}
			decided := m.Disruption.Since
			if m.Disruption.Cause == NoCause || !m.Disrupted() && !m.Rolling() && !m.Repairing() {
				decided = m.outSince()
			}
			waits = waits || !m.InService() && !decided.After(then)
		}
		if !waits {
			t.Fatalf("no member has been on its way since %s, and now is %s: %s", then, now, dump(s))
		}
	})
}

// TestBudget_rounds: rule 12. A percentage of maxUnavailable never gives more
// than it says, and one of maxSurge never less.
func TestBudget_rounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1000).Draw(t, "members")
		u := Share{N: rapid.IntRange(0, 100).Draw(t, "maxUnavailable"), Percent: true, Written: true}
		v := Share{N: rapid.IntRange(0, 100).Draw(t, "maxSurge"), Percent: true, Written: true}
		gotU, gotV, _ := Budget(u, v, n)
		if gotV*100 < v.N*n || (gotV-1)*100 >= v.N*n && gotV > 0 {
			t.Errorf("maxSurge %d%% of %d is %d", v.N, n, gotV)
		}
		if gotU == 1 && gotV == 0 {
			return // otherwise no member could be taken
		}
		if gotU*100 > u.N*n || (gotU+1)*100 <= u.N*n {
			t.Errorf("maxUnavailable %d%% of %d is %d", u.N, n, gotU)
		}
	})
}

func dump(v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// TestPlan_isData: later changes of the snapshot do not change
// a plan.
func TestPlan_isData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := snapshots(t)
		p := s.Plan(epoch.Add(2 * time.Minute))
		members := slices.Clone(s.Members)
		ask := func() []string {
			list := append(says(p), p.String())
			for i := range p.Actions {
				list = append(list, fmt.Sprintf("%+v", p.Actions[i].Record))
			}
			for i := range members {
				list = append(list, fmt.Sprint(p.Verdict(members[i].Index), p.Explain(&members[i])))
			}
			return list
		}
		first := ask()
		for i := range s.Members {
			s.Members[i] = Member{Index: 77, Phase: Failed, Runs: "X", Wants: "Y", Message: "gone"}
		}
		for _, r := range []*Record{&s.Target, &s.Current} {
			for i := range r.Failures {
				r.Failures[i] = Failure{ID: "gone"}
			}
			r.ID, r.Halted, r.Failed = "Z", true, 99
		}
		s.Policy = Policy{}
		if diff := cmp.Diff(first, ask()); diff != "" {
			t.Fatalf("the snapshot has changed, and the plan with it:\n%s", diff)
		}
	})
}

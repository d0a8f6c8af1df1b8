package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/preview"
	"github.com/pawl-dev/pawl/rollout"
)

// foretold is a forecast and what it rests on. Its fields are what
// --output json shows; times are Go durations from now on.
type foretold struct {
	Pool      string `json:"pool"`
	Namespace string `json:"namespace"`
	// Exists: there is such a pool. Otherwise the forecast is of its first fill.
	Exists bool `json:"exists"`
	// Current and Target are the revisions from which and to which it goes.
	Current string `json:"current"`
	Target  string `json:"target"`
	// Assumes are fields of the spec that are taken to have another value.
	Assumes []string `json:"assumes,omitempty"`
	// Notes say what else a reader should know.
	Notes []string `json:"notes,omitempty"`
	// Boot and Stop are how long a body takes to come and to go.
	Boot span `json:"boot"`
	Stop span `json:"stop"`
	*preview.Forecast

	known bool // the target is stored
}

func (t *foretold) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// print writes it as asked for.
func (t *foretold) print(o *output, w io.Writer) error {
	var data []byte
	var err error
	switch o.value {
	case asJSON:
		data, err = json.MarshalIndent(t, "", "    ")
		data = append(data, '\n')
	case asYAML:
		data, err = yaml.Marshal(t)
	case asWide:
		data = []byte(t.table())
	default:
		data = []byte(t.String())
	}
	if err != nil {
		return fmt.Errorf("encode the forecast: %w", err)
	}
	_, err = w.Write(data)
	return err
}

// String is what people read.
func (t *foretold) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pool %s/%s: %s\n", t.Namespace, t.Pool, t.headline())
	for _, line := range t.facts() {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	for _, line := range t.Notes {
		fmt.Fprintf(&b, "note: %s\n", line)
	}
	if len(t.Moves) > 0 {
		fmt.Fprintf(&b, "\nin this order:\n%s", t.moves())
	}
	if len(t.Stays) > 0 {
		fmt.Fprintf(&b, "\nnot on the target in the end:\n%s", t.stays())
	}
	return b.String()
}

// headline says how it ends.
func (t *foretold) headline() string {
	switch {
	case t.Endless:
		return "this never ends: the same happens again and again, and comes to nothing"
	case len(t.Collide) > 0:
		return fmt.Sprintf("this can never end: %s and %s collide", t.Collide[0], t.Collide[1])
	case !t.Finishes && len(t.Moves) == 0:
		return "nothing happens: " + t.Next
	case !t.Finishes:
		return fmt.Sprintf("comes to a standstill %s: %s", after(t.Took), t.Next)
	case len(t.Moves) == 0:
		return "nothing happens: every member is what it should be"
	case !t.Exists:
		return fmt.Sprintf("there is no such pool yet; it would be filled in %s", within(t.Took))
	}
	return fmt.Sprintf("done in %s, with nobody's help", within(t.Took))
}

// facts are the numbers, and what they rest on.
func (t *foretold) facts() []string {
	target := t.Target
	if !t.known {
		target += " (a new one)"
	}
	list := []string{"to revision " + target}
	if t.Current != t.Target && t.Current != "" {
		list[0] += ", from " + t.Current
	}
	for _, a := range t.Assumes {
		list = append(list, "as if "+a+" were set; as it is, no member is replaced")
	}
	made := fmt.Sprintf("%s made, %d told to go", count(t.Births, "body", "bodies"), t.Deletes)
	if t.Updates > 0 {
		made += fmt.Sprintf(", %d updated where they are", t.Updates)
	}
	if t.SurgePeak > 0 {
		made += fmt.Sprintf(", at most %s on top", count(t.SurgePeak, "surge member", "surge members"))
	}
	return append(list,
		fmt.Sprintf("%d of %d on the target now, %d of %d in the end", t.Before.Updated, t.Before.Members, t.After.Updated, t.After.Members),
		made,
		fmt.Sprintf("free: %s; in service: %s", low(t.Free), low(t.InService)),
		fmt.Sprintf("a body takes %s to boot (%s) and %s to stop (%s)",
			t.Boot.Takes, t.Boot.source("--boot"), t.Stop.Takes, t.Stop.source("--stop")),
	)
}

// source says where the figure comes from, and how to set it.
func (s *span) source(flag string) string {
	switch s.From {
	case fromFlag:
		return "as " + flag + " says"
	case fromMembers:
		return "measured, median of " + members(s.Members)
	case fromTemplate:
		return "as the template says"
	}
	return "a guess, since none has been measured; say it with " + flag
}

func low(l preview.Low) string {
	if l.Lowest == l.Now {
		return fmt.Sprintf("%d now, never fewer", l.Now)
	}
	return fmt.Sprintf("%d now, %d at the lowest, %s", l.Now, l.Lowest, after(l.At))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// within is a length of time as people say it.
func within(t preview.Time) string {
	d := time.Duration(t)
	switch {
	case d >= 48*time.Hour:
		return duration.HumanDuration(d)
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	default:
		d = d.Round(time.Millisecond)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func after(t preview.Time) string {
	if t == 0 {
		return "at once"
	}
	return "after " + within(t)
}

func (t *foretold) member(index int) string { return fmt.Sprintf("%s-%d", t.Pool, index) }

// moves are what is done, the first of them.
func (t *foretold) moves() string {
	rows := [][]string{{"  MEMBER", "DOES", "BEGINS", "DONE", "WHY"}}
	for i := range t.Moves {
		if i == manyMoves {
			break
		}
		m := &t.Moves[i]
		rows = append(rows, []string{"  " + t.member(m.Index), does(m), after(m.At), done(m), string(m.Why)})
	}
	return aligned(rows) + andMore(len(t.Moves))
}

func andMore(n int) string {
	if n <= manyMoves {
		return ""
	}
	return fmt.Sprintf("  and %d more\n", n-manyMoves)
}

// does says what is done to a member.
func does(m *preview.Move) string {
	switch {
	case m.Surge:
		return "surge"
	case m.Deed == preview.Made:
		return "made"
	case m.Deed == preview.Born:
		return "born"
	case m.Deed == preview.Removed:
		return "removed"
	case m.Deed == preview.UpdatedInPlace:
		return "updated"
	}
	return "replaced"
}

func done(m *preview.Move) string {
	if m.Done == nil {
		return "-"
	}
	return after(*m.Done)
}

// stays are the members that are not on the target in the end, and what they
// wait for, the first of them.
func (t *foretold) stays() string {
	rows := [][]string{}
	for i := range t.Stays {
		if i == manyMoves {
			break
		}
		s := &t.Stays[i]
		rows = append(rows, []string{"  " + t.member(s.Index), string(s.Reason), needed(s.Needs), s.Text})
	}
	return aligned(rows) + andMore(len(t.Stays))
}

// needed says who has to act.
func needed(n rollout.Need) string {
	switch n {
	case rollout.NeedsPerson:
		return "needs a person"
	case rollout.NeedsHolder:
		return "needs its holder"
	case rollout.NeedsWork:
		return "needs its work to end"
	case rollout.NeedsRoom:
		return "needs room"
	case rollout.NeedsOthers:
		return "needs other members"
	}
	return "as the policy says"
}

// table is a row for each thing that is done, and each member that stays.
func (t *foretold) table() string {
	rows := [][]string{{"MEMBER", "DOES", "BEGINS", "DONE", "FROM", "TO", "WHY", "NEEDS"}}
	for i := range t.Moves {
		m := &t.Moves[i]
		rows = append(rows, []string{
			t.member(m.Index), does(m), after(m.At), done(m), orDash(string(m.From)), orDash(string(m.To)), string(m.Why), "-",
		})
	}
	for i := range t.Stays {
		s := &t.Stays[i]
		rows = append(rows, []string{
			t.member(s.Index), "stays", "-", "-", orDash(string(s.Revision)), t.Target, string(s.Reason), orDash(string(s.Needs)),
		})
	}
	return aligned(rows)
}

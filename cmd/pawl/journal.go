package main

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// journal writes one line per change, with the time since it began.
type journal struct {
	out   io.Writer
	now   func() time.Time
	start time.Time

	phases map[string]string
	state  string
	// begun: the pool was shown as it was at first, so that what is told of
	// members is change.
	begun bool
	away  bool
}

func newJournal(out io.Writer, now func() time.Time) *journal {
	return &journal{out: out, now: now, start: now(), phases: map[string]string{}}
}

func (j *journal) pool(p *v1alpha1.Pool) {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionUpdated)
	state := "no status yet"
	if c != nil {
		state = c.Reason + ": " + c.Message
	}
	if p.Status.ObservedGeneration < p.Generation || state == j.state && j.begun {
		return
	}
	updated, total := progress(p)
	j.begun, j.state = true, state
	j.line("pool %s  %d of %d updated  %s", p.Name, updated, total, state)
}

func (j *journal) member(m *v1alpha1.Member, gone bool) {
	was, known := j.phases[m.Name]
	is := phase(m)
	if gone {
		is = "gone"
	}
	if was == is {
		return
	}
	j.phases[m.Name] = is
	if !known && m.Status.Phase != "" {
		return // as it was at first
	}
	j.line("%s  %s → %s%s", m.Name, orNew(was), is, inBrackets(because(m)))
}

func orNew(was string) string {
	if was == "" {
		return "new"
	}
	return was
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return "  (" + s + ")"
}

// because is why a member is in its phase; empty if that says it all.
func because(m *v1alpha1.Member) string {
	if d := disruption(m); d != nil {
		return string(d.Reason)
	}
	switch m.Status.Phase {
	case v1alpha1.PhaseClaimed:
		if c := m.Spec.Claim; c != nil {
			return "claim " + c.Name
		}
	case v1alpha1.PhaseAvailable, v1alpha1.PhaseProvisioning:
		return "revision " + orDash(m.Status.Revision)
	case v1alpha1.PhaseFailed, v1alpha1.PhaseUnready:
		return m.Status.Message
	}
	return ""
}

func (j *journal) lost(err error) {
	if !j.away {
		j.line("the server cannot be read: %v; trying again", err)
	}
	j.away = true
}

// tick does nothing: lines are written as things happen.
func (j *journal) tick() {}

func (j *journal) line(format string, args ...any) {
	_, _ = fmt.Fprintf(j.out, "%5.1fs  %s\n", j.now().Sub(j.start).Seconds(), fmt.Sprintf(format, args...))
	j.away = false
}

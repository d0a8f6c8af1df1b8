package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/api/v1alpha1"
)

// ANSI sequences of the terminal.
const (
	clearLine = "\x1b[2K"
	clearDown = "\x1b[0J"
)

// live draws the pool anew over its last picture.
type live struct {
	out  io.Writer
	size func() (width, height int)
	now  func() time.Time
	all  bool

	last    *v1alpha1.Pool
	members map[string]*v1alpha1.Member
	trouble string
	// changed: the last picture is no longer right. It has drawn lines.
	changed bool
	drawn   int
}

func newLive(out io.Writer, size func() (width, height int), now func() time.Time, all bool) *live {
	return &live{out: out, size: size, now: now, all: all, members: map[string]*v1alpha1.Member{}}
}

func (l *live) pool(p *v1alpha1.Pool) {
	l.last, l.trouble, l.changed = p, "", true
}

func (l *live) member(m *v1alpha1.Member, gone bool) {
	l.members[m.Name], l.changed = m, true
	if gone {
		delete(l.members, m.Name)
	}
}

func (l *live) lost(err error) {
	l.trouble, l.changed = fmt.Sprintf("the server cannot be read: %v; trying again", err), true
}

// tick puts a new picture in the place of the last one, if it changed.
func (l *live) tick() {
	if l.last == nil || !l.changed {
		return
	}
	lines := l.picture(l.size())
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", l.drawn)
	}
	for _, line := range lines {
		b.WriteString("\r" + clearLine + line + "\n")
	}
	b.WriteString(clearDown)
	_, _ = io.WriteString(l.out, b.String())
	l.changed, l.drawn = false, len(lines)
}

// picture is a progress bar and the tree, as far as there is room.
func (l *live) picture(width, height int) []string {
	members := slices.Collect(maps.Values(l.members))
	sortMembers(members)
	const others = 6 // lines around those of the members
	t := &tree{pool: l.last, members: members, now: l.now(), all: l.all, summed: !l.all && len(members)+others > height}
	updated, total := progress(l.last)
	lines := []string{bar(updated, total, min(40, width-20))}
	lines = append(lines, strings.Split(strings.TrimSuffix(t.String(), "\n"), "\n")...)
	if l.trouble != "" {
		lines = append(lines, l.trouble)
	}
	if most := height - 1; len(lines) > most && most > 1 {
		left := len(lines) - most + 1
		lines = append(lines[:most-1], fmt.Sprintf("└─ and %d lines more", left))
	}
	for i, line := range lines {
		lines[i] = cutTo(line, width)
	}
	return lines
}

// bar is a bar of the width with the done part filled.
func bar(done, total, width int) string {
	if width < 1 {
		width = 1
	}
	filled := width
	if total > 0 {
		filled = min(width, done*width/total)
	}
	return fmt.Sprintf("[%s%s] %d/%d updated", strings.Repeat("█", filled), strings.Repeat("░", width-filled), done, total)
}

// cutTo cuts a line to a width in characters.
func cutTo(line string, width int) string {
	if width < 1 || utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width-1]) + "…"
}

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/internal/history"
	"github.com/pawl-dev/pawl/snapshot"
)

// fewChanges is how many changes of a revision a line has room for.
const fewChanges = 2

// entry is one revision of a pool's history.
type entry struct {
	Number int64  `json:"number"`
	ID     string `json:"id"`
	// Created is when it was recorded, TargetSince when it last became the
	// target, StoodAt when the pool last came to stand on it.
	Created     metav1.Time       `json:"created"`
	TargetSince *metav1.MicroTime `json:"targetSince,omitempty"`
	StoodAt     *metav1.MicroTime `json:"stoodAt,omitempty"`
	// States are any of target, current, halted and rolled back.
	States []string `json:"states,omitempty"`
	// Members is how many bodies there are of it now, Failed how many of it
	// failed since it last became the target.
	Members int `json:"members"`
	Failed  int `json:"failed"`
	// Changed is what differs from the one before.
	Changed []string `json:"changed,omitempty"`
}

func (p *program) historyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "history POOL",
		GroupID: "look",
		Short:   "List the revisions of a pool: which members run them, what failed, what changed",
		Long: `List the revisions of a pool, in the order in which they last became its target: which members run them, how many bodies
of them failed, and what changed against the one before.

The current revision is the last one on which the pool stood or, before that, the first one of which a body recovered.`,
		Example: fmt.Sprintf("  %[1]s history web\n  %[1]s history web -o wide", p.name),
		Args:    one("POOL"),
	}
	out := outputFlag(c, asJSON, asYAML, asWide)
	c.RunE = func(c *cobra.Command, args []string) error {
		k, err := p.connect()
		if err != nil {
			return err
		}
		pool, err := k.past(c.Context(), args[0], p.now())
		if err != nil {
			return err
		}
		return p.history(pool, out)
	}
	return c
}

func (p *program) history(pool *past, out *output) error {
	list, err := pool.entries()
	if err != nil {
		return err
	}
	switch {
	case !out.people():
		return out.encode(p.Out, list)
	case len(list) == 0:
		_, err = fmt.Fprintf(p.ErrOut, "%s has no revisions yet; is `pawl controller` or pawld running?\n", pool.named())
	default:
		_, err = fmt.Fprint(p.Out, aligned(rows(list, p.now(), out.value == asWide)))
	}
	return err
}

// entries are the revisions, the oldest first.
func (p *past) entries() ([]entry, error) {
	on := p.on()
	list := []entry{}
	for _, r := range p.stored.Revisions {
		id := history.RevisionID(r)
		rec := p.records[id]
		e := entry{
			Number: r.Revision, ID: id, Created: r.CreationTimestamp, TargetSince: rec.TargetSince, StoodAt: rec.StoodAt,
			States: p.states(id), Members: on[id], Failed: rec.Failed,
		}
		if before := p.before(r); before != nil {
			template, others, err := p.differences(history.RevisionID(before), id)
			if err != nil {
				return nil, err
			}
			e.Changed = slices.Concat(template, others)
		}
		list = append(list, e)
	}
	return list, nil
}

func rows(list []entry, now time.Time, wide bool) [][]string {
	head := []string{"REVISION", "ID", "AGE", "STATE", "MEMBERS", "FAILED", "CHANGED"}
	if wide {
		head = append(head[:6:6], "TARGET SINCE", "STOOD", "CHANGED")
	}
	table := [][]string{head}
	for _, e := range list {
		row := []string{
			strconv.FormatInt(e.Number, 10), e.ID, ago(e.Created.Time, now), orDash(strings.Join(e.States, ", ")),
			strconv.Itoa(e.Members), strconv.Itoa(e.Failed),
		}
		if wide {
			row = append(row, ago(snapshot.Time(e.TargetSince), now), ago(snapshot.Time(e.StoodAt), now))
		}
		most := fewChanges
		if wide {
			most = len(e.Changed)
		}
		table = append(table, append(row, orDash(history.Few(e.Changed, most))))
	}
	return table
}

// ago is how long something has been so; "-" if it never was.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return age(t, now)
}

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// status shows one pool.
type status struct {
	*program

	out     *output
	all     bool
	watch   bool
	timeout time.Duration
}

func (p *program) statusCommand() *cobra.Command {
	s := &status{program: p}
	c := &cobra.Command{
		Use:     "status POOL",
		GroupID: "look",
		Short:   "Show a pool and its members: phase, revision, who holds them, what keeps them from being updated",
		Long: fmt.Sprintf(`Show a pool and its members: phase, revision, who holds them, what keeps them from being updated.

With more than %d members they are summed up, unless --all is given.

With --watch it goes on until the pool is updated: as a live picture on a terminal, otherwise as one line per change. It
ends with status 0 once every member is updated, and with 1 if the rollout halts, or after --timeout.`, manyMembers),
		Example: fmt.Sprintf("  %[1]s status web\n  %[1]s status web --watch --timeout 10m", p.name),
		Args:    one("POOL"),
		RunE:    s.run,
	}
	s.out = outputFlag(c, asJSON, asYAML)
	c.Flags().BoolVar(&s.all, "all", false, fmt.Sprintf("show every member also of a pool of more than %d", manyMembers))
	c.Flags().BoolVarP(&s.watch, "watch", "w", false, "go on until every member is updated")
	c.Flags().DurationVar(&s.timeout, "timeout", 0, "with --watch: give up after this long; 0 is never")
	return c
}

func (s *status) run(c *cobra.Command, args []string) error {
	switch {
	case s.watch && s.out.value != asText:
		return &usageError{c, fmt.Errorf("--watch is for people; leave out --output %s", s.out.value)}
	case s.timeout < 0 || s.timeout != 0 && !s.watch:
		return &usageError{c, fmt.Errorf("--timeout %s: needs --watch, and must not be negative", s.timeout)}
	}
	k, err := s.connect()
	if err != nil {
		return err
	}
	pool, err := k.pool(c.Context(), args[0])
	if err != nil {
		return err
	}
	if s.watch {
		return s.follow(c.Context(), k, pool.Name)
	}
	members, err := k.members(c.Context(), pool.Name)
	if err != nil {
		return err
	}
	t := &tree{pool: pool, members: members, all: s.all, now: s.now()}
	if s.out.value == asText {
		if t.claims, err = k.notified(c.Context(), pool); err != nil {
			return err
		}
		_, err := fmt.Fprint(s.Out, t)
		return err
	}
	return s.out.print(s.Out, t.list())
}

// list is the pool and its members as the server has them.
func (t *tree) list() *metav1.List {
	l := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	l.Items = append(l.Items, runtime.RawExtension{Object: kinded(t.pool, "Pool")})
	for _, m := range t.members {
		l.Items = append(l.Items, runtime.RawExtension{Object: kinded(m, "Member")})
	}
	return l
}

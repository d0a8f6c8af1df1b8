package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pawl-dev/pawl/api/v1alpha1"
	"github.com/pawl-dev/pawl/rollout"
)

// acceptTable has the server make the columns, so that they are those of the
// definition of Pool, and kubectl's.
const acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// get lists pools.
type get struct {
	*program

	out *output
	all bool
}

func (p *program) getCommand() *cobra.Command {
	g := &get{program: p}
	c := &cobra.Command{
		Use:     "get [POOL...]",
		GroupID: "look",
		Short:   "List pools: how many members are free, claimed, updated, and what the rollout does",
		Example: fmt.Sprintf("  %[1]s get\n  %[1]s get -A -o wide\n  %[1]s get web -o yaml", p.name),
		Args:    cobra.ArbitraryArgs,
		RunE:    func(c *cobra.Command, args []string) error { return g.run(c, args) },
	}
	g.out = outputFlag(c, asJSON, asYAML, asWide, asName)
	c.Flags().BoolVarP(&g.all, "all-namespaces", "A", false, "list the pools of all namespaces")
	return c
}

func (g *get) run(c *cobra.Command, pools []string) error {
	if g.all && len(pools) > 0 {
		return &usageError{c, fmt.Errorf("--all-namespaces lists all pools; leave %s out, or say in which --namespace", pools[0])}
	}
	k, err := g.connect()
	if err != nil {
		return err
	}
	if g.all {
		k.namespace = metav1.NamespaceAll
	}
	if g.out.people() {
		return g.table(c.Context(), k, pools)
	}
	list, err := k.pools(c.Context(), pools)
	if err != nil {
		return err
	}
	return g.out.print(g.Out, list)
}

// table prints the columns that the server makes.
func (g *get) table(ctx context.Context, k *cluster, pools []string) error {
	table, err := k.table(ctx, pools)
	if err != nil {
		return err
	}
	if len(table.Rows) == 0 {
		_, err := fmt.Fprintln(g.ErrOut, "there are no pools"+inNamespace(k.namespace))
		return err
	}
	wide := g.out.value == asWide
	if err := printTable(g.Out, table, printers.PrintOptions{Wide: wide, WithNamespace: g.all}); err != nil || !wide {
		return err
	}
	return g.holds(ctx, k, pools)
}

// holds says of the pools whose rollout a hold is in the way of, who is held,
// until when and why: of each, the first member. What cannot be read is left
// out.
func (g *get) holds(ctx context.Context, k *cluster, pools []string) error {
	var list v1alpha1.PoolList
	if err := k.List(ctx, &list, client.InNamespace(k.namespace)); err != nil {
		return nil //nolint:nilerr // see above
	}
	var b strings.Builder
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.Rollout == nil || len(pools) > 0 && !slices.Contains(pools, p.Name) {
			continue
		}
		for _, blocker := range p.Status.Rollout.Blockers {
			var m v1alpha1.Member
			if blocker.Reason != string(rollout.HeldMember) || k.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: blocker.Example}, &m) != nil {
				continue
			}
			if line := held(&m, g.now()); line != "" {
				fmt.Fprintf(&b, "%s\n", line)
			}
		}
	}
	_, err := io.WriteString(g.Out, b.String())
	return err
}

func inNamespace(name string) string {
	if name == metav1.NamespaceAll {
		return ""
	}
	return " in namespace " + name
}

func printTable(w io.Writer, t *metav1.Table, o printers.PrintOptions) error {
	tabs := printers.GetNewTabWriter(w)
	if err := printers.NewTablePrinter(o).PrintObj(t, tabs); err != nil {
		return fmt.Errorf("print pools: %w", err)
	}
	return tabs.Flush()
}

// table reads the rows of the pools, or of all there are.
func (c *cluster) table(ctx context.Context, pools []string) (*metav1.Table, error) {
	if len(pools) == 0 {
		return c.rows(ctx, "")
	}
	var all *metav1.Table
	for _, name := range pools {
		t, err := c.rows(ctx, name)
		switch {
		case err != nil:
			return nil, c.about(err, "pool", name)
		case all == nil:
			all = t
		default:
			all.Rows = append(all.Rows, t.Rows...)
		}
	}
	return all, nil
}

// rows reads the row of a pool, or of all if the name is empty.
func (c *cluster) rows(ctx context.Context, name string) (*metav1.Table, error) {
	t := &metav1.Table{}
	r := c.rest.Get().NamespaceIfScoped(c.namespace, c.namespace != metav1.NamespaceAll).Resource("pools").SetHeader("Accept", acceptTable)
	if name != "" {
		r = r.Name(name)
	}
	if err := r.Do(ctx).Into(t); err != nil {
		return nil, err
	}
	for i := range t.Rows { // the printer asks the objects for their namespace
		m := &metav1.PartialObjectMetadata{}
		if err := runtime.DecodeInto(unstructured.UnstructuredJSONScheme, t.Rows[i].Object.Raw, m); err == nil {
			t.Rows[i].Object.Object = m
		}
	}
	return t, nil
}

// pools reads the pools as the server has them, whatever this program knows of
// their fields: one alone as itself, several as a list.
func (c *cluster) pools(ctx context.Context, names []string) (runtime.Object, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PoolList"))
	if len(names) == 0 {
		if err := c.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
			return nil, fmt.Errorf("list pools: %w", err)
		}
		return list, nil
	}
	for _, name := range names {
		o := unstructured.Unstructured{}
		o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Pool"))
		if err := c.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: name}, &o); err != nil {
			return nil, c.about(err, "pool", name)
		}
		list.Items = append(list.Items, o)
	}
	if len(list.Items) == 1 {
		return &list.Items[0], nil
	}
	return list, nil
}
